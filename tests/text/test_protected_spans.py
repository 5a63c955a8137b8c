"""Protected spans are found, removed and inserted without changing the rest of a text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.text import CharactersConfig, SubwordsConfig, WordsConfig
from seqloom.text import protected_spans
from seqloom.text.build import train_tokenizer
from seqloom.text.protected_spans import (
    Insertion,
    cluster_start,
    clusters,
    find_spans,
    insert_spans,
    insertion,
    missing_numbers,
    missing_spans,
    protect,
)

FAMILY = "👨\u200d👩\u200d👧"
PARTS = [
    "Hallo",
    "welt.",
    "<b>",
    "{n}",
    "%s",
    "https://x.org/a?b=c",
    "a.b@c.de",
    "😀",
    FAMILY,
    "🇩🇪",
    "12",
    "!",
    "Ž",
]
texts = st.lists(st.sampled_from([*PARTS, " ", "  "]), max_size=12).map("".join).map(str.strip)
any_text = st.text(max_size=40).map(str.strip)


def spans_of(text: str) -> list[str]:
    return [text[start:end] for start, end in find_spans(text)]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("Siehe https://x.org/a?b=c#d. Gut.", ["https://x.org/a?b=c#d"]),
        ("(www.example.com), ja", ["www.example.com"]),
        ("Mail an a.b+c@mail.example.org!", ["a.b+c@mail.example.org"]),
        ("gut 😀😀 ja", ["😀😀"]),
        ("{name} hat %s, %(n)d und %.2f", ["{name}", "%s", "%(n)d", "%.2f"]),
        ("a {{0}} b {{ x.y }} c {} d ${e}", ["{{0}}", "{{ x.y }}", "{}", "${e}"]),
        ("ein <b>Hund</b> <a href='x y'>da</a>", ["<b>", "</b>", "<a href='x y'>", "</a>"]),
        ("100%ig, 20%s, 5 % s, {ein Text}, 3 < 4 > 2, a<b", []),
        (f"{FAMILY} 👍🏽 🇩🇪 3️⃣ ok ❤️", [f"{FAMILY} 👍🏽 🇩🇪 3️⃣", "❤️"]),
        ("um 12:30 @ home, 5 * 3 # 1", []),
        ("Ein ganz gewöhnlicher Satz.", []),
    ],
)
def test_urls_addresses_and_emoji_are_found(text: str, spans: list[str]) -> None:
    assert spans_of(text) == spans


@pytest.mark.parametrize("config", [SubwordsConfig(size=60), CharactersConfig()])
def test_unknown_characters_are_protected_and_letters_protect_their_word(
    config: SubwordsConfig | CharactersConfig,
) -> None:
    tokenizer = train_tokenizer(config, ["Der Hund sieht uns an.", "Eine Katze"] * 3, (), False)
    text = "Žižek sieht ☭ uns an."
    assert [text[start:end] for start, end in find_spans(text, tokenizer)] == ["Žižek", "☭"]
    assert find_spans("Der Hund sieht uns an.", tokenizer) == []
    assert find_spans("uns Ž😀 an", tokenizer) == [(4, 6)]  # spans that touch are one span


@pytest.mark.parametrize(
    "part", [*PARTS, "www.x.org", "ftp://x.org", "1\ufe0f\u20e3", "⌚", "</b>"]
)
@given(st.text(alphabet="wtph:/.@a%s<>{}1#*\ufe0f\u20e3\u231a\u2b50\U0001f1e9é ", max_size=20))
def test_the_fast_search_for_spans_misses_none(part: str, rest: str) -> None:
    for text in (part, f"{part} {rest}"):
        assert_all_spans_are_found(text)


def assert_all_spans_are_found(text: str) -> None:
    found = [match.span() for match in protected_spans._SPANS.finditer(text)]
    assert find_spans(text) == protected_spans._merge(found)


def test_unknown_words_of_a_word_vocabulary_are_not_protected() -> None:
    tokenizer = train_tokenizer(WordsConfig(), ["Der Hund"] * 3, (), False)
    assert find_spans("Der Kater 😀", tokenizer) == [(10, 11)]


@given(st.one_of(texts, any_text))
def test_protecting_keeps_the_whole_text(text: str) -> None:
    spans = find_spans(text)
    assert spans == sorted(spans)
    protected = protect(text, spans)
    assert protected.text == text
    without, kept = protected.without_inner()
    assert kept == sorted(kept)
    replaced = {start for start, _ in protected.inner}
    inside = {index for start, end in protected.inner for index in range(start, end)}
    for character, index in zip(without, kept, strict=True):
        if index in replaced:
            assert character == " "
        else:
            assert character == protected.core[index]
            assert index not in inside
    if not spans and any(character.isalpha() for character in text):
        assert (protected.core, without) == (text, text)


@pytest.mark.parametrize(
    "text", ["😀😀", "12:30", "https://x.org", "…", "42 %", "a@b.de 😀", "— 7"]
)
def test_a_text_without_letters_outside_its_spans_has_no_core(text: str) -> None:
    assert protect(text, find_spans(text)).core == ""


def test_spans_at_the_ends_are_removed_with_their_white_space() -> None:
    text = "😀  Guten Tag 👍 heute\t https://x.org"
    protected = protect(text, find_spans(text))
    assert (protected.leading, protected.trailing) == ("😀  ", "\t https://x.org")
    assert (protected.core, protected.inner_texts) == ("Guten Tag 👍 heute", ["👍"])
    assert protected.without_inner()[0] == "Guten Tag heute"


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("Guten<br>Tag heute", "Guten Tag heute"),
        ("Guten</li><li>Tag heute", "Guten Tag heute"),
        ("a<x>b", "a b"),
        ("mal😀mal gut", "mal mal gut"),
        ("Cafe\u0301😀mal gut", "Cafe\u0301 mal gut"),
        ("gut,😀ja doch", "gut, ja doch"),
        ("gut😀, ja", "gut, ja"),
        ("gut (😀ja) da", "gut (ja) da"),
        ("gut 😀ja 😀 da", "gut ja da"),
        ("un<b>glaub</b>lich gut", "unglaublich gut"),
        ("H<sub class='x'>zwei</sub><i>O</i> da", "HzweiO da"),
        ("今天😀很好", "今天很好"),
    ],
)
def test_words_around_a_removed_span_are_joined_only_across_inline_tags(
    text: str, without: str
) -> None:
    assert protect(text, find_spans(text)).without_inner()[0] == without


def test_words_are_joined_across_an_invisible_character() -> None:
    assert protect("Donau\u00addampf", [(5, 6)]).without_inner()[0] == "Donaudampf"


def test_a_span_is_missing_if_it_occurs_less_often_than_in_the_source() -> None:
    text = "eins 😀 zwei 😀 drei"
    protected = protect(text, find_spans(text))
    assert missing_spans(protected, "one 😀 two three") == [1]
    assert missing_spans(protected, "one 😀 two 😀 three") == []


@given(st.lists(st.sampled_from(["one", "two.", "drei"])), st.lists(st.integers(0, 5), max_size=3))
def test_inserting_spans_keeps_the_words_and_their_order(
    words: list[str], places: list[int]
) -> None:
    insertions = [Insertion(f"<{n}>", place) for n, place in enumerate(sorted(places))]
    text, starts = insert_spans(" ".join(words), insertions)
    assert [word for word in text.split() if not word.startswith("<")] == words
    assert [word for word in text.split() if word.startswith("<")] == [i.text for i in insertions]
    assert [text[start:].split()[0] for start in starts] == words


def test_an_inserted_span_stays_attached_to_its_neighbour() -> None:
    text = "er sagt „ja“ und https://x.org, gut"
    protected = protect(text, [(8, 9), (11, 12), (17, 30)])
    insertions = [insertion(protected, number, number + 1) for number in range(3)]
    assert insert_spans("one two three four", insertions)[0] == (
        "one „two“ three https://x.org four"
    )


def test_a_mark_between_letters_is_inserted_without_a_space_before_it() -> None:
    protected = protect("wer‽was ist", [(3, 4)])
    assert insert_spans("who what", [insertion(protected, 0, 1)])[0] == "who‽ what"


@pytest.mark.parametrize(
    ("source", "output", "missing"),
    [
        ("Er zahlt 1.234 Euro.", "He pays 1,234 euros.", []),
        ("Er zahlt 1 234 Euro.", "He pays 1234 euros.", []),
        ("Er zahlt 1234 Euro.", "He pays euros.", ["1234"]),
        ("2 von 15", "two of 15", []),
        ("am 3.5.2020", "on 5/3", ["3.5.2020"]),
        ("१२३ लोग", "123 people", []),
        ("12 Hunde", "312 dogs", ["12"]),
        ("12 Hunde", "120 dogs", ["12"]),
        ("234 Hunde", "1,234 dogs", ["234"]),
        ("Am 12. 300 Hunde", "On the 12th, 300 dogs", []),
        ("Am 12. 300 Hunde", "12 300 dogs", []),
        ("1.234.567 Hunde", "1 234 567 dogs", []),
        ("am 3.5.2020", "on 3. 5. 2020", []),
        ("1.234 Hunde", "51 234 dogs", ["1.234"]),
    ],
)
def test_missing_numbers_are_found(source: str, output: str, missing: list[str]) -> None:
    assert missing_numbers(source, output) == missing


@given(any_text)
def test_clusters_cover_the_text(text: str) -> None:
    assert "".join(text[start:end] for start, end in clusters(text)) == text


def test_a_text_is_not_cut_inside_a_visible_character() -> None:
    text = f"a{FAMILY}b🇩🇪e\u0301"
    starts = {start for start, _ in clusters(text)} | {len(text)}
    assert len(starts) == 6
    assert all(cluster_start(text, index) in starts for index in range(1, len(text)))


@pytest.mark.parametrize(
    "text", ["a.b@", "https://", "a.", "😀", "1 ", "a\u0301", "www.", "<a ", "{{", "%1$", "<a b='"]
)
def test_finding_spans_takes_linear_time(text: str) -> None:
    start = time.perf_counter()
    protect(text * 8_000, find_spans(text * 8_000)).without_inner()
    missing_numbers(text * 8_000, text * 8_000)
    assert time.perf_counter() - start < 3
