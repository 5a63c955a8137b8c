"""CHANGELOG, CITATION and README agree with the package."""

import re
import tomllib
from pathlib import Path

from seqloom import __version__
from tools.oldest_torch import oldest_torch

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_changelog_and_citation_name_the_current_version() -> None:
    newest = re.search(r"^## \[([\d.]+)\]", read("CHANGELOG.md"), flags=re.M)
    assert newest is not None
    assert newest[1] == __version__
    assert f"\nversion: {__version__}\n" in read("CITATION.cff")


def test_the_citation_has_the_licence_of_the_package() -> None:
    assert f"\nlicense: {PROJECT['license']}\n" in read("CITATION.cff")


def test_the_readme_states_the_oldest_python_and_torch() -> None:
    python = PROJECT["requires-python"].removeprefix(">=")
    torch = oldest_torch().removesuffix(".0")
    assert f"Python {python} or newer and torch {torch} or newer" in " ".join(
        read("README.md").split()
    )
