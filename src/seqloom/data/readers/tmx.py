"""Reads translation memories in the format TMX 1.4, unit by unit, in constant memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from seqloom.config.schema.corpora import TmxConfig
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.example import Example, InvalidLine
from seqloom.data.readers.compression import DamagedFileError, open_file
from seqloom.data.readers.reader import Reader, Records

MAX_UNIT_BYTES = 10_000_000
"""Maximum size of a translation unit, and of the text before the first one. It limits the memory."""
BLOCK_BYTES = 128_000
"""Number of bytes that the XML parser gets at once."""
FORMATTING_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Elements whose content is formatting of the original document, not text."""
XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


class TmxReader(Reader[TmxConfig]):
    """Reads translation units. A unit is invalid if it lacks a text in one of the two languages."""

    def read(self) -> Records:
        for path in self.paths():
            for number, unit in enumerate(_units(path), start=1):
                yield _example(unit, f"{path}:unit {number}", self.corpus, self.table)


def _units(path: Path) -> Iterator[Element]:
    """Yield the `tu` elements (translation units) of a file. To save memory, each element is
    removed from the XML tree before the next one is read."""
    number = 0
    try:
        with open_file(path) as file:
            limited = _LimitedFile(file)
            ancestors: list[Element] = []
            for event, element in iterparse(limited, events=("start", "end")):
                if event == "start":
                    if not ancestors and _name(element) != "tmx":
                        raise DataError(
                            f"{path}: is not a TMX file: its root element is <{element.tag}>, not "
                            "<tmx>; give a TMX file, or use another kind of corpus"
                        )
                    ancestors.append(element)
                    continue
                ancestors.pop()
                if _name(element) == "tu":
                    number += 1
                    yield element
                    limited.bytes_of_unit = 0
                    # The parent refers to all units. Without this, the memory would grow.
                    ancestors[-1].clear()
    except DefusedXmlException as error:
        raise DataError(
            f"{path}: defines XML entities, which seqloom does not expand, because a small file "
            "can define a text of many gigabytes or read other files; replace the entities and "
            "remove the <!DOCTYPE …> with its <!ENTITY …> lines"
        ) from error
    except _UnitTooLargeError as error:
        raise DataError(
            f"{path}:unit {number + 1}: is larger than {MAX_UNIT_BYTES:,} bytes; split it into "
            "sentences"
        ) from error
    except (ParseError, LookupError, ValueError) as error:
        # An unknown encoding is a LookupError or a ValueError.
        raise DataError(
            f"{path}:unit {number + 1}: is not valid XML ({error}); correct the file, for example "
            f"with: xmllint --recover {path}"
        ) from error
    except DamagedFileError as error:
        raise DataError(f"{path}:unit {number + 1}: {error}") from error
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error


class _UnitTooLargeError(Exception):
    """A translation unit has more than MAX_UNIT_BYTES bytes."""


class _LimitedFile:
    """A file that raises an error if too many bytes are read for one translation unit.

    bytes_of_unit: number of bytes read since the last unit. The caller sets it to 0 after each
                   unit.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.bytes_of_unit = 0

    def read(self, size: int = -1) -> bytes:
        # The parser asks for 16 kB at once. It scans an incomplete tag or text again from its start
        # with each block, so that small blocks take seconds for a tag of some megabytes.
        block = self._file.read(BLOCK_BYTES)
        self.bytes_of_unit += len(block)
        if self.bytes_of_unit > MAX_UNIT_BYTES:
            raise _UnitTooLargeError
        return block


def _example(unit: Element, where: str, config: TmxConfig, table: str) -> Example | InvalidLine:
    texts = _texts(unit)
    sources, targets = (_select(texts, name) for name in (config.source, config.target))
    if sources and targets:
        return Example(sources[0], targets[0], tuple(targets), where)
    missing = [
        (setting, name)
        for setting, name, found in (
            ("source", config.source, sources),
            ("target", config.target, targets),
        )
        if not found
    ]
    languages = ", ".join(dict.fromkeys(f"'{language}'" for language, _ in texts))
    return InvalidLine(
        where,
        f"has no text in {' and '.join(repr(name) for _, name in missing)}, only in "
        f"{languages or 'no language'}",
        f"set {' and '.join(f'{table}.{setting}' for setting, _ in missing)} to a language of the "
        "file",
    )


def _texts(unit: Element) -> list[tuple[str, str]]:
    """Return (language, text) for each text of a translation unit.

    A `tuv` element holds the unit in one language, and its `seg` elements hold the texts.
    """
    texts = []
    for variant in unit:
        if _name(variant) != "tuv":
            continue
        # TMX 1.1 has the attribute lang instead of xml:lang.
        language = variant.get(XML_LANGUAGE) or variant.get("lang") or ""
        texts += [(language, _plain_text(part)) for part in variant if _name(part) == "seg"]
    return texts


def _select(texts: list[tuple[str, str]], wanted: str) -> list[str]:
    """Return the texts in a language. Texts in exactly this language come first.

    "de" selects de, DE and de-AT. "de-AT" selects de-AT and de_at, but not de.
    """
    wanted = _normalised(wanted)
    exact = [text for language, text in texts if _normalised(language) == wanted]
    regional = [text for language, text in texts if _normalised(language).startswith(f"{wanted}-")]
    return exact + regional


def _normalised(language: str) -> str:
    return language.strip().lower().replace("_", "-")


def _plain_text(element: Element) -> str:
    """Return the text of an element without formatting codes."""
    parts = [element.text or ""]
    for child in element:
        if _name(child) not in FORMATTING_CODES:
            parts.append(_plain_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _name(element: Element) -> str:
    """Return the name of an element without its namespace, in lower case."""
    return element.tag.rpartition("}")[2].lower()
