"""Writes docs/mission.md from docs/mission.toml: every capability, a command that shows it, a test that checks it.

    python -m tools.mission

`tests/docs/test_mission.py` checks that every command is valid and that every test exists.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "docs" / "mission.toml"
PAGE = ROOT / "docs" / "mission.md"

INTRODUCTION = """\
# What seqloom can do, line by line

Every capability, with a command that shows it and the tests that check it. L0 to L4 are the five documents that seqloom
follows. `runs/demo` is the run that `seqloom demo` trains. `seqloom train NAME` writes the run `runs/NAME`.

`python -m tools.mission` writes this page from `docs/mission.toml`.
"""


@dataclass(frozen=True)
class MissionLine:
    """One capability.

    show:  commands that show it
    tests: tests that check it, as FILE::TEST relative to the folder `tests`
    """

    id: str
    what: str
    source: str
    show: tuple[str, ...]
    tests: tuple[str, ...]


def read_lines() -> dict[str, list[MissionLine]]:
    """Return the lines of every section."""
    sections = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return {
        title: [
            MissionLine(
                id=name,
                what=entry["what"],
                source=entry["from"],
                show=tuple(entry["show"]),
                tests=tuple(entry["tests"]),
            )
            for name, entry in entries.items()
        ]
        for title, entries in sections.items()
    }


def render(sections: dict[str, list[MissionLine]]) -> str:
    """Return the page in Markdown."""
    parts = [INTRODUCTION]
    for title, lines in sections.items():
        parts.append(
            f"\n## {title}\n\n| id | capability | from | command | test |\n|---|---|---|---|---|\n"
        )
        parts += [_row(line) for line in lines]
    return "".join(parts)


def _row(line: MissionLine) -> str:
    commands = "<br>".join(f"`{_escaped(command)}`" for command in line.show)
    tests = "<br>".join(
        f"[{_words(test)}](../tests/{test.partition('::')[0]})" for test in line.tests
    )
    return f"| {line.id} | {_escaped(line.what)} | {line.source} | {commands} | {tests} |\n"


def _words(test: str) -> str:
    """tests/x.py::test_a_beam_is_wide -> a beam is wide"""
    return test.partition("::")[2].removeprefix("test_").replace("_", " ")


def _escaped(text: str) -> str:
    """Escape the character that separates the cells of a table."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render(read_lines()), encoding="utf-8")
