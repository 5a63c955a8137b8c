"""Reading translation memories (TMX): languages, inline markup, and broken or hostile files."""

import gzip
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.corpora import TmxConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.readers import tmx
from seqloom.data.readers.splits import read_corpus

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\r"), max_size=9
)


def read(path: Path, source: str = "de", target: str = "en") -> list[Example]:
    config = TmxConfig(path=path.name, source=source, target=target)
    return list(read_corpus(config, str(path.parent), "train", "data.train"))


def write(folder: Path, body: str, start: str = "") -> Path:
    path = folder / "memory.tmx"
    path.write_text(f'{start}<tmx version="1.4"><header/><body>{body}</body></tmx>', "utf-8")
    return path


def unit(*variants: tuple[str, str]) -> str:
    texts = (f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in variants)
    return f"<tu>{''.join(texts)}</tu>"


def tmx_bytes(pairs: Sequence[tuple[str, str]], encoding: str) -> bytes:
    """A memory written by the XML writer of the standard library."""
    root = ElementTree.Element("tmx", version="1.4")
    ElementTree.SubElement(root, "header", srclang="de")
    body = ElementTree.SubElement(root, "body")
    for pair in pairs:
        element = ElementTree.SubElement(body, "tu")
        for language, text in zip(("de", "en"), pair, strict=True):
            variant = ElementTree.SubElement(element, "tuv", {LANG: language})
            ElementTree.SubElement(variant, "seg").text = text
    return ElementTree.tostring(root, encoding)


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(st.tuples(TEXT, TEXT), max_size=5),
    encoding=st.sampled_from(["utf-8", "utf-16", "us-ascii"]),
    compress=st.sampled_from([bytes, gzip.compress, zstandard.compress]),
)
def test_pairs_are_read_back_as_written(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[str, str]],
    encoding: str,
    compress: Callable[[bytes], bytes],
) -> None:
    path = tmp_path_factory.mktemp("tmx") / "memory.tmx"
    path.write_bytes(compress(tmx_bytes(pairs, encoding)))
    examples = read(path)
    assert [(example.source, example.target) for example in examples] == pairs
    assert [example.where for example in examples] == [
        f"{path}:unit {number}" for number in range(1, len(pairs) + 1)
    ]


@pytest.mark.parametrize(
    ("wanted", "texts"),
    [
        ("en", ("plain", "British", "American")),
        ("EN", ("plain", "British", "American")),
        ("en-us", ("American",)),
        ("en_GB", ("British",)),
    ],
)
def test_languages_match_in_any_case_and_with_any_region(
    tmp_path: Path, wanted: str, texts: tuple[str, ...]
) -> None:
    variants = [("EN-GB", "British"), ("de-AT", "x"), ("en", "plain"), ("en-US", "American")]
    path = write(tmp_path, unit(*variants, ("enm", "Middle English")))
    (example,) = read(path, target=wanted)
    assert (example.source, example.target, example.references) == ("x", texts[0], texts)


def test_formatting_codes_are_removed_and_highlighted_text_is_kept(tmp_path: Path) -> None:
    marked = (
        'Click <bpt i="1" type="bold">&lt;b&gt;</bpt>here<ept i="1">&lt;/b&gt;</ept>'
        '<ph x="1">&lt;br/&gt;<sub>alt</sub></ph><it pos="begin">[</it><ut>{x}</ut> '
        "<hi>and <hi>there</hi></hi>."
    )
    (example,) = read(write(tmp_path, unit(("de", marked), ("en", "a &amp; b"))))
    assert (example.source, example.target) == ("Click here and there.", "a & b")


def test_document_type_and_attribute_of_tmx_1_1_are_accepted(tmp_path: Path) -> None:
    body = '<tu><tuv lang="de"><seg>a</seg></tuv><tuv lang="en"><seg>b</seg></tuv></tu>'
    path = write(tmp_path, body, '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n')
    assert [example.source for example in read(path)] == ["a"]


@pytest.mark.parametrize(
    "entity",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">',
        '<!ENTITY b SYSTEM "file:///etc/passwd">',
        '<!ENTITY % b SYSTEM "http://example.com/x.dtd"> %b;',
    ],
)
def test_files_that_define_entities_are_refused(tmp_path: Path, entity: str) -> None:
    path = write(tmp_path, unit(("de", "&b;"), ("en", "x")), f"<!DOCTYPE tmx [{entity}]>")
    with pytest.raises(DataError, match=r"memory\.tmx: defines XML entities, .* remove the"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"unit 1: is not valid XML \(no element found"),
        (b"a\tb\n", r"unit 1: is not valid XML \(syntax error: line 1"),
        (b"<html/>", r"memory\.tmx: is not a TMX file: its root element is <html>"),
        (b"<tmx><body><tu><tuv></tu>", r"unit 1: is not valid XML \(mismatched tag: line 1"),
        (b"<?xml version='1.0' encoding='none'?><tmx/>", r"unit 1: is not valid XML \(unknown"),
        (b"<tmx><body><tu>\xff</tu></body></tmx>", r"unit 1: is not valid XML \(not well-formed"),
        (tmx_bytes([("a", "b")], "utf-8")[:-9], r"unit 2: is not valid XML \(no element|unclosed"),
        (
            gzip.compress(b"<tmx>", mtime=0)[:-9],
            r"unit 1: the gzip data is damaged or ends too early",
        ),
        (
            b"<tmx><body><tu><tuv xml:lang='de'><seg>a</seg></tuv><tuv xml:lang='fr'/></tu></body></tmx>",
            r"unit 1: has no text in 'en', only in 'de'; set data\.train\.target to a language",
        ),
    ],
)
def test_error_names_the_file_and_the_unit(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "memory.tmx"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(path)


def test_source_and_target_language_must_differ() -> None:
    with pytest.raises(ValueError, match="choose two different languages"):
        TmxConfig(path="x", source="de", target="DE")


def test_memory_does_not_grow_with_the_number_of_units(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    peaks = []
    for count in (500, 5_000):
        path.write_bytes(tmx_bytes([("a" * 100, "b" * 100)] * count, "utf-8"))
        config = TmxConfig(path=path.name, source="de", target="en")
        tracemalloc.start()
        assert sum(1 for _ in read_corpus(config, str(tmp_path), "train", "data")) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_unit_of_unlimited_size_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmx, "MAX_UNIT_BYTES", 100_000)
    path = write(tmp_path, unit(("de", "x" * 200_000), ("en", "y")))
    with pytest.raises(DataError, match="unit 1: is larger than 100,000 bytes; split it"):
        read(path)


def test_the_parser_gets_large_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The XML parser scans an incomplete tag again with each block: 10 MB in blocks of 16 kB take
    seconds."""
    sizes = []

    class RecordingFile(tmx._LimitedFile):
        def read(self, size: int = -1) -> bytes:
            block = super().read(size)
            sizes.append(len(block))
            return block

    monkeypatch.setattr(tmx, "_LimitedFile", RecordingFile)
    path = tmp_path / "memory.tmx"
    path.write_bytes(b"<" + b"a" * tmx.MAX_UNIT_BYTES)
    with pytest.raises(DataError, match="is larger than"):
        read(path)
    assert min(sizes[:-1]) == tmx.BLOCK_BYTES >= 100_000
