import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from seqloom.config.schema.corpora import JsonlConfig, LinesConfig, ParallelConfig, TsvConfig
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.example import Example
from seqloom.data.fingerprint import fingerprint
from seqloom.data.jsonl import read_jsonl
from seqloom.data.lines import read_plain_lines
from seqloom.data.parallel import read_parallel
from seqloom.data.tsv import read_tsv


def write(folder: Path, **files: str) -> None:
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")


def test_two_files_are_read_line_by_line(tmp_path: Path) -> None:
    write(tmp_path, de="eins\nzwei\n", en="one\ntwo\n", more="1\n2\n")
    config = ParallelConfig(source="de", target="en", references=("more",))
    assert list(read_parallel(config, str(tmp_path), "data.dev")) == [
        Example("eins", "one", ("one", "1"), f"{tmp_path}/de:1"),
        Example("zwei", "two", ("two", "2"), f"{tmp_path}/de:2"),
    ]


@pytest.mark.parametrize(("german", "english"), [(3, 5), (5, 3), (0, 2)])
def test_unequal_files_are_refused_with_both_counts_and_the_first_line_without_partner(
    tmp_path: Path, german: int, english: int
) -> None:
    write(tmp_path, de="x\n" * german, en="y\n" * english)
    longer = "de" if german > english else "en"
    with pytest.raises(DataError) as info:
        list(read_parallel(ParallelConfig(source="de", target="en"), str(tmp_path), "data.dev"))
    message = str(info.value)
    assert f"{tmp_path}/de has {german} lines, {tmp_path}/en has {english} lines" in message
    assert f"line {min(german, english) + 1} of {tmp_path}/{longer} has no partner" in message


def test_all_missing_files_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as info:
        list(read_parallel(ParallelConfig(source="de", target="en"), str(tmp_path), "data.dev"))
    assert f"{tmp_path}/de: there is no such file" in str(info.value)
    assert f"{tmp_path}/en: there is no such file" in str(info.value)


def test_some_lines_of_two_files_can_be_taken(tmp_path: Path) -> None:
    write(tmp_path, de="1\n2\n3\n4\n5\n", en="a\nb\nc\nd\ne\n")

    def taken(**lines: int) -> list[tuple[str, str]]:
        config = ParallelConfig(source="de", target="en", **lines)
        return [(e.target, e.where) for e in read_parallel(config, str(tmp_path), "data.dev")]

    assert taken(first_line=2, last_line=3) == [
        ("b", f"{tmp_path}/de:2"),
        ("c", f"{tmp_path}/de:3"),
    ]
    everything = taken()
    for cut in range(1, 5):  # two parts that meet are the whole
        assert taken(last_line=cut) + taken(first_line=cut + 1) == everything


def test_lines_that_are_not_there_cannot_be_taken(tmp_path: Path) -> None:
    write(tmp_path, de="1\n2\n3\n", en="a\nb\nc\n", short="a\nb\n")
    for lines in ({"first_line": 4}, {"last_line": 4}):
        ((name, _),) = lines.items()
        config = ParallelConfig(source="de", target="en", **lines)
        words = rf"de: has 3 lines, and data\.dev\.{name} = 4 is behind the last .* 3 or less"
        with pytest.raises(DataError, match=words):
            list(read_parallel(config, str(tmp_path), "data.dev"))
    with pytest.raises(ValidationError, match="first_line 3 is behind last_line 2"):
        ParallelConfig(source="de", target="en", first_line=3, last_line=2)
    config = ParallelConfig(source="de", target="short", last_line=1)
    with pytest.raises(DataError, match=r"line 3 of .* has no partner"):  # though nobody wants it
        list(read_parallel(config, str(tmp_path), "data.dev"))


def test_columns_are_chosen_by_number(tmp_path: Path) -> None:
    write(tmp_path, tsv="one\teins\tuno\textra\n")
    config = TsvConfig(path="tsv", source_column=1, target_column=0, reference_columns=(2,))
    assert list(read_tsv(config, str(tmp_path), "data.train")) == [
        Example("eins", "one", ("one", "uno"), f"{tmp_path}/tsv:1")
    ]


def test_a_missing_column_is_named_with_what_is_there(tmp_path: Path) -> None:
    write(tmp_path, tsv="one\teins\nonly this\n", blank="one\teins\n\n")
    words = (
        r"tsv:2: there is no second column, only one column in 'only this'; .* data\.dev\.target_"
    )
    with pytest.raises(DataError, match=words):
        list(read_tsv(TsvConfig(path="tsv"), str(tmp_path), "data.dev"))
    with pytest.raises(DataError, match=r"tsv:1: .* no third column, only 2 columns in"):
        list(read_tsv(TsvConfig(path="tsv", target_column=2), str(tmp_path), "data.dev"))
    with pytest.raises(DataError, match=r"blank:2: is a blank line, which has no second column"):
        list(read_tsv(TsvConfig(path="blank"), str(tmp_path), "data.dev"))
    with pytest.raises(DataError, match=r"no 12th column"):
        list(read_tsv(TsvConfig(path="tsv", target_column=11), str(tmp_path), "data.dev"))


def test_both_shapes_of_json_lines_are_read(tmp_path: Path) -> None:
    records = [
        {"de": "eins", "en": "one"},
        {"translation": {"de": "zwei", "en": "two"}},
        {"de": "drei", "en": ["three", "3"]},
    ]
    write(tmp_path, jsonl="".join(json.dumps(record) + "\n" for record in records))
    config = JsonlConfig(path="jsonl", source="de", target="en")
    assert list(read_jsonl(config, str(tmp_path), "data.dev")) == [
        Example("eins", "one", ("one",), f"{tmp_path}/jsonl:1"),
        Example("zwei", "two", ("two",), f"{tmp_path}/jsonl:2"),
        Example("drei", "three", ("three", "3"), f"{tmp_path}/jsonl:3"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"src": "a",', r"is not JSON: .* at character 13 of "),
        ("", r"is not JSON: .* of an empty line"),
        ("[1, 2]", r"must be a JSON object, \{…\}, not \[1, 2\]"),
        ("[" * 99_999, r"nested too deeply"),
        ('{"src": "a"}', r"there is no 'tgt', only 'src'"),
        (
            '{"translation": {"de": "a"}}',
            r"no 'src', only 'translation\.de'; say with data\.train\[1\]\.source",
        ),
        ('{"translation": "a"}', r"there is no 'src', only 'translation'"),
        ("{}", r"there is no 'src', only an empty object"),
        ('{"src": 1, "tgt": "b"}', r"'src' must be a string .* not 1 and 'b'"),
        ('{"src": "a", "tgt": [1]}', r"a list of strings, not 'a' and \[1\]"),
        ('{"src": "a", "tgt": []}', r"'tgt' is an empty list"),
        ('{"src": "a", "tgt": "\\ud800"}', r"half of a surrogate pair"),
    ],
)
def test_a_bad_record_is_named_with_what_is_there(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, jsonl=f'{{"src": "a", "tgt": "b"}}\n{line}\n')
    with pytest.raises(DataError, match=f"jsonl:2: .*{message}"):
        list(read_jsonl(JsonlConfig(path="jsonl"), str(tmp_path), "data.train[1]"))


def test_where_a_source_is_null_or_missing_another_key_is_read(tmp_path: Path) -> None:
    records = [
        {"new": "better", "old": "good", "code": "1"},
        {"new": None, "old": "good", "code": "2"},
        {"old": "good", "code": "3"},
        {"new": "", "old": "good", "code": "4"},
        {"new": None, "code": "5"},
    ]
    write(tmp_path, jsonl="".join(json.dumps(record) + "\n" for record in records))
    config = JsonlConfig(path="jsonl", source="new", source_fallback="old", target="code")
    reader = read_jsonl(config, str(tmp_path), "data.dev")
    assert [next(reader).source for _ in range(4)] == ["better", "good", "good", ""]
    with pytest.raises(DataError, match=r"jsonl:5: there is no 'old'.*data\.dev\.source_fallback"):
        next(reader)
    alone = JsonlConfig(path="jsonl", source="new", target="code")
    with pytest.raises(DataError, match=r"jsonl:2: .*not None.*data\.dev\.source_fallback names"):
        list(read_jsonl(alone, str(tmp_path), "data.dev"))


def test_a_source_that_is_a_list_is_joined_if_the_recipe_says_how(tmp_path: Path) -> None:
    write(
        tmp_path, jsonl='{"src": ["One.", "Two."], "tgt": ["a", "b"]}\n{"src": "x", "tgt": "y"}\n'
    )
    config = JsonlConfig(path="jsonl", source_joiner=" ")
    examples = list(read_jsonl(config, str(tmp_path), "data.dev"))
    assert [example.source for example in examples] == ["One. Two.", "x"]
    assert examples[0].references == ("a", "b")
    with pytest.raises(DataError, match=r"jsonl:1: .*data\.dev\.source_joiner = \" \" joins"):
        list(read_jsonl(JsonlConfig(path="jsonl"), str(tmp_path), "data.dev"))
    write(tmp_path, jsonl='{"src": ["One.", 2], "tgt": "y"}\n')
    with pytest.raises(DataError, match=r"jsonl:1: 'src' must be a string"):
        list(read_jsonl(config, str(tmp_path), "data.dev"))


def test_every_key_that_is_listed_can_be_read(tmp_path: Path) -> None:
    write(tmp_path, jsonl=json.dumps({"id": "7", "translation": {"de": "zwei", "en": "two"}}))
    with pytest.raises(DataError) as info:
        list(read_jsonl(JsonlConfig(path="jsonl"), str(tmp_path), "data.train"))
    listed = re.findall(r"'([^']+)'", str(info.value).partition("only")[2])
    assert listed == ["id", "translation.de", "translation.en"]
    for key in listed:
        config = JsonlConfig(path="jsonl", source=key, target=key)
        (example,) = read_jsonl(config, str(tmp_path), "data.train")
        assert example.source in ("7", "zwei", "two")


def test_plain_lines_have_no_source_and_blank_ones_count(tmp_path: Path) -> None:
    write(tmp_path, txt="one\n\nthree\n")
    examples = list(read_plain_lines(LinesConfig(path="txt"), str(tmp_path)))
    assert [(e.source, e.target) for e in examples] == [("", "one"), ("", ""), ("", "three")]
    assert examples[2].where == f"{tmp_path}/txt:3"


def test_other_lines_of_the_same_files_are_other_examples(tmp_path: Path) -> None:
    write(tmp_path, de="1\n2\n3\n", en="a\nb\nc\n")

    def digest(**lines: int) -> str:
        corpus = ParallelConfig(source="de", target="en", **lines)
        return fingerprint(DataConfig(folder=str(tmp_path), train=(corpus,)), "train")

    digests = [digest(), digest(last_line=2), digest(first_line=2), digest(first_line=3)]
    assert len(set(digests)) == len(digests)
