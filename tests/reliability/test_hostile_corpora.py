"""Hostile and damaged data files: `seqloom prepare` reads them or names the line, in little time and memory."""

import gzip
import json
import random
import re
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import zstandard

from seqloom.data.readers.text_files import MAX_BYTES
from support.cli_runner import CliResult, run_cli
from support.forking import SharedInteger, run_in_child
from support.load_testing import process_mib
from support.trials import count_trials, save_results

pytestmark = pytest.mark.slow

FILES = count_trials(8, 240)
MAX_SECONDS = 10.0
"""Maximum CPU time of the process. The elapsed time is not meaningful on a shared machine."""
MAX_MIB = 300.0
"""Maximum growth of the memory of the process."""
LINES = 40
"""Number of pairs in a corpus."""
USABLE, UNUSABLE = 0, 65
"""Exit codes of `seqloom prepare`."""


@dataclass(frozen=True)
class Format:
    """A file format with one pair per line.

    settings: the corpus in a recipe; its file is named "data"
    line:     writes a pair
    start:    first line of the file
    end:      what follows the last pair
    """

    settings: str
    line: Callable[[str, str], str]
    start: str = ""
    end: str = ""


def tmx_unit(source: str, target: str) -> str:
    sides = (("de", source), ("en", target))
    variants = (f'<tuv xml:lang="{name}"><seg>{text}</seg></tuv>' for name, text in sides)
    return f"<tu>{''.join(variants)}</tu>"


FORMATS = {
    "parallel": Format(
        'kind = "parallel", source = "data", target = "target"', lambda source, _: source
    ),
    "tsv": Format('kind = "tsv", path = "data"', lambda *pair: "\t".join(pair)),
    "csv": Format('kind = "csv", path = "data"', lambda *pair: ",".join(pair), "source,target\n"),
    "jsonl": Format(
        'kind = "jsonl", path = "data"',
        lambda source, target: json.dumps({"src": source, "tgt": target}, ensure_ascii=False),
    ),
    "tmx": Format(
        'kind = "tmx", path = "data", source = "de", target = "en"',
        tmx_unit,
        '<tmx version="1.4"><header/><body>\n',
        "</body></tmx>\n",
    ),
}

TEXTS = {
    "lone CR": "a\rb",
    "U+2028": "a\u2028b\u2029c\u0085d",
    "right-to-left": "\u202eabc\u202c שלום مرحبا \u2066a\u2069",
    "emoji with joiners": "👩\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈 👍🏿",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "many combining marks": "e" + "\u0301" * 5_000,
    "noncharacters": "\ufdd0\U0010ffff\ufffd",
    "formulas and markup": "=1+1; $(id); {{7*7}}; %s%n; ../../x",
    "spaces": " \u3000\u00a0 ",
    "300 kB": "ab " * 100_000,
}
"""Unusual texts that are valid in every format."""
BAD_BYTES = {
    "Latin-1": b"caf\xe9",
    "truncated UTF-8": b"a\xe2\x82",
    "surrogate": b"\xed\xa0\x80",
    "overlong": b"\xc0\xaf",
    "NUL": b"a\0b",
    "1 MB": b"x" * (MAX_BYTES + 1),
}
"""Lines that no format accepts. The error names the line."""
BAD_LINES = {
    "tsv": ["no tab", ""],
    "csv": ['"open', "a,b,c", "alone", '"a"b,c', ""],
    "jsonl": ['{"src": "a",', "[]", "[" * 50_000, '{"src": 1, "tgt": "b"}', "NaN", "", "{}",
              '{"src": "a", "tgt": "\\ud800"}'],
    "tmx": ["<tu>", "</tu>", "&amp", "&bomb;", "<tu/>", "<" + "a" * 100_000, "<a>" * 50_000,
            '<tu><tuv xml:lang="de"><seg>a</seg></tuv></tu>'],
}  # fmt: skip
"""Lines that are not valid in their format."""
ENTITIES = '<!DOCTYPE tmx [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Entities of which the last one stands for 2 · 10⁸ characters."""


@cache
def bomb(compress: Callable[[bytes], bytes]) -> bytes:
    """A small file that expands to 300 MB."""
    return compress(b"x" * 300_000_000)


WHOLE_FILES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "gzip, truncated": lambda content: gzip.compress(content)[:-9],
    "gzip, changed": lambda content: change_middle(gzip.compress(content)),
    "zstd, truncated": lambda content: zstandard.compress(content)[:-3],
    "gzip bomb": lambda content: bomb(gzip.compress),
    "zstd bomb": lambda content: bomb(zstandard.compress),
    "100 MB line": lambda content: content + b"x" * 100_000_000 + b"\n",
    "entity bomb": lambda content: (ENTITIES + "]>").encode() + content.replace(b"a", b"&i;"),
    "UTF-16": lambda content: content.decode().encode("utf-16"),
    "other format": lambda content: b"%PDF-1.7\n\x89PNG\r\n\x1a\n" + content,
}
READABLE_FILES: dict[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "no newline at the end": lambda content: content.rstrip(b"\n"),
}


def change_middle(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


@dataclass(frozen=True)
class HostileFile:
    """The content of a data file.

    line: the line that the error must name; None if the whole file is unusual
    code: the expected exit code; None: the file may be read or not
    """

    content: bytes
    line: int | None = None
    code: int | None = UNUSABLE


def hostile_file(style: str, name: str, generator: random.Random) -> HostileFile:
    """Write pairs in a format, and put a hostile text or line into them, or change the file."""
    form = FORMATS[style]
    lines = [form.line(word * 2, word).encode() for word in generator.choices("abcdefg", k=LINES)]
    number = generator.randrange(LINES)
    line = number + 1 + form.start.count("\n")
    is_line_format = style != "tmx"
    expected = HostileFile(b"", line if is_line_format else None)
    if name in TEXTS:
        lines[number] = form.line(TEXTS[name], "a").encode()
        # A lone CR ends a record of a CSV file.
        expected = HostileFile(b"", code=None if style == "csv" else USABLE)
    elif name in BAD_BYTES:
        lines[number] = form.line("a", "b").encode().replace(b"a", BAD_BYTES[name])
        if name == "1 MB" and not is_line_format:
            expected = HostileFile(b"", code=None)
    elif name in BAD_LINES.get(style, ()):
        lines[number] = name.encode()
    content = form.start.encode() + b"".join(each + b"\n" for each in lines) + form.end.encode()
    if name in WHOLE_FILES:
        return HostileFile(WHOLE_FILES[name](content), code=None if name == "UTF-16" else UNUSABLE)
    if name in READABLE_FILES:
        return HostileFile(READABLE_FILES[name](content), code=USABLE)
    return HostileFile(content, expected.line, expected.code)


def hostile_cases() -> list[tuple[str, str]]:
    """Format and name of every hostile file, in random order."""
    cases = [
        (style, name)
        for style in FORMATS
        for name in (*TEXTS, *BAD_BYTES, *BAD_LINES.get(style, ()), *WHOLE_FILES, *READABLE_FILES)
        if (name == "entity bomb") <= (style == "tmx")
    ]
    random.Random(1).shuffle(cases)
    return cases


def write_recipe(folder: Path, style: str) -> Path:
    (folder / "target").write_text("a\n" * LINES, encoding="utf-8")
    (folder / "dev.tsv").write_text("a\tb\n", encoding="utf-8")
    path = folder / "recipe.toml"
    path.write_text(
        f"""
        [data]
        folder = "{folder}"
        train = {{ {FORMATS[style].settings} }}
        dev = {{ kind = "tsv", path = "dev.tsv" }}
        [text]
        tokenizer = {{ kind = "characters" }}
        """,
        encoding="utf-8",
    )
    return path


def prepare(folder: Path, style: str, content: bytes) -> tuple[CliResult, float, float]:
    """Run `seqloom prepare` in a child process. Returns its result, CPU seconds and MiB of growth."""
    (folder / "data").write_bytes(content)
    recipe, output = write_recipe(folder, style), folder / "output.json"
    growth, milliseconds = SharedInteger(), SharedInteger()

    def work() -> None:
        before = process_mib()
        result = run_cli("prepare", recipe, "--workers", 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        growth.set(max(0, int(peak - before)))
        milliseconds.set(int(1000 * time.process_time()))
        output.write_text(json.dumps([result.exit_code, result.stdout, result.stderr]))

    assert run_in_child(work) == 0
    result = CliResult(*json.loads(output.read_text()))
    return result, milliseconds.get() / 1000, growth.get()


def test_hostile_files_are_read_or_explained(tmp_path: Path) -> None:
    cases = hostile_cases()
    run_cli("prepare", write_recipe(tmp_path, "tsv"))  # imports what the children need
    slowest, largest = 0.0, 0.0
    problems: list[str] = []
    for number in range(FILES):
        style, name = cases[number % len(cases)]
        hostile = hostile_file(style, name, random.Random(number))
        result, seconds, growth = prepare(tmp_path, style, hostile.content)
        slowest, largest = max(slowest, seconds), max(largest, growth)
        if problem := problem_of(result, hostile, tmp_path):
            problems.append(f"{style}, {name[:40]}: {problem}: {result.stderr[:300]}")
    assert not problems, "\n".join(problems)
    assert slowest < MAX_SECONDS
    assert largest < MAX_MIB
    save_results(
        "hostile-corpora",
        files=FILES,
        tracebacks=0,
        slowest_cpu_seconds=round(slowest, 2),
        grown_mib=round(largest, 1),
    )


def problem_of(result: CliResult, hostile: HostileFile, folder: Path) -> str | None:
    """What is wrong with the result of a hostile file."""
    if "Traceback" in result.stderr:
        return "there is a traceback"
    if result.exit_code not in ((USABLE, UNUSABLE) if hostile.code is None else (hostile.code,)):
        return f"the exit code is {result.exit_code}"
    if result.exit_code == USABLE:
        # Filters may skip an empty text. They report it.
        counts = re.search(rf"train: \d+ of {LINES} examples", result.stdout)
        return None if counts else "lines are lost"
    if hostile.line is None:
        where = rf"{re.escape(str(folder / 'data'))}|data\.train: data:"
    else:
        where = re.escape(f"{folder / 'data'}:{hostile.line}:")
    return None if re.search(where, result.error) else f"{where} is not named"
