"""The generated pages of the documentation site are complete, and every page is in the navigation."""

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from seqloom.config.loading.fields import all_sections
from seqloom.config.loading.json_schema import recipe_schema
from seqloom.config.schema.recipe import RunConfig
from support.cli_runner import all_commands
from tools.site.api import PACKAGES, public_names
from tools.site.check_links import find_problems
from tools.site.docstrings import to_rst
from tools.site.links import DOCS, ROOT, adapt_links
from tools.site.pages import generated_pages
from tools.site.recipes import example_value

SECTIONS = [section for path, section in all_sections(RunConfig) if path]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return generated_pages()


def toctree_entries(text: str) -> list[str]:
    """The pages that the toctrees of a Markdown or reStructuredText page name."""
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, flags=re.M | re.S)
    blocks += re.findall(r"^\.\. toctree::\n((?:   .*\n|\n)*)", text, flags=re.M)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    names = [line for line in lines if line and not line.startswith(":")]
    return [re.sub(r"^.*<(.*)>$", r"\1", name) for name in names]


def matching_pages(entry: str, texts: dict[str, str]) -> list[str]:
    """The pages that an entry of a toctree names. With :glob:, it may be a pattern."""
    return [page for page in texts if Path(page).match(entry)] if "*" in entry else [entry]


def test_every_page_is_in_the_navigation(pages: dict[str, str]) -> None:
    texts = {f"generated/{name}".rpartition(".")[0]: text for name, text in pages.items()}
    for path in DOCS.rglob("*.md"):
        if "generated" not in path.relative_to(DOCS).parts:
            name = path.relative_to(DOCS).with_suffix("").as_posix()
            texts[name] = path.read_text(encoding="utf-8")
    found, remaining, missing = set(), ["index"], set()
    while remaining:
        page = remaining.pop()
        if page not in texts:
            missing.add(page)
        elif page not in found:
            found.add(page)
            for entry in toctree_entries(texts[page]):
                remaining += matching_pages((Path(page).parent / entry).as_posix(), texts)
    assert found == set(texts)
    if (DOCS / "course").exists():  # copies without the course are allowed
        assert not missing
    assert all(page.startswith("course/") for page in missing)


def test_the_reference_lists_every_command_with_its_options(pages: dict[str, str]) -> None:
    parts = re.split(r"^### seqloom ", pages["commands.md"], flags=re.M)
    shared, *commands = parts
    shown = {part.partition("\n")[0]: part for part in commands}
    assert set(shown) == set(all_commands())
    for name, command in all_commands().items():
        options = [option for parameter in command.params for option in parameter.opts]
        for option in (each for each in options if each.startswith("--")):
            assert f"{{option}} {option}" in shown[name] or f"{{option}} {option}" in shared


def test_the_reference_lists_every_setting(pages: dict[str, str]) -> None:
    text = "\n".join(pages[f"recipe/{name}.md"] for name in RunConfig.model_fields)
    shown = re.findall(r"^::::\{confval\} (.*)$", text, flags=re.M)
    assert len(shown) == len(set(shown))
    assert len(shown) == sum(len(section.model_fields) for section in set(SECTIONS))
    assert text.count("\nExample: `") == len(shown)


def test_every_example_of_a_setting_is_valid() -> None:
    schema = recipe_schema()
    definitions: dict[str, Any] = schema["definitions"]
    for section in dict.fromkeys(SECTIONS):
        for name in section.model_fields:
            value = example_value(section, name)
            assert value is not None, f"{section.__name__}.{name} has no example"
            setting = definitions[section.__name__]["properties"][name]
            validator = jsonschema_rs.Draft7Validator({**setting, "definitions": definitions})
            assert validator.is_valid(value), f"{section.__name__}.{name}: {value}"


def test_the_reference_lists_every_public_name(pages: dict[str, str]) -> None:
    for package in PACKAGES:
        for name in public_names(package):
            assert f":: {package}.{name}\n" in pages[f"api/{package}.rst"]


def test_docstrings_become_paragraphs_parameters_and_programs() -> None:
    docstring = """Return *all* rows of `x`: the_first, too.

    from seqloom.nn import DotScore
    DotScore()

rows:  number of rows
       of the table
width: width. Default: 1
"""
    assert to_rst(docstring) == (
        "Return \\*all\\* rows of \\ ``x``\\ : the\\_first, too.\n\n"
        ".. code-block:: python\n\n    from seqloom.nn import DotScore\n    DotScore()\n\n"
        ":param rows: number of rows of the table\n:param width: width. Default: 1"
    )


def test_links_to_files_outside_docs_lead_to_pages_of_the_site() -> None:
    page = DOCS / "tasks" / "labels.md"
    text = "[a](../../README.md#tests), [b](../data.md), [c](../results), [d](http://example.org/x)"
    assert adapt_links(text, page, page) == (
        "[a](../generated/project/overview.md#tests), [b](../data.md), c, [d](http://example.org/x)"
    )
    overview = DOCS / "generated" / "project" / "overview.md"
    assert adapt_links("![x](docs/pictures/x.png)", ROOT / "README.md", overview) == (
        "![x](../../pictures/x.png)"
    )


def test_links_without_a_target_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here"></a><a href="b.html#there"></a><a href="c.html"></a>'
        '<a href="http://example.org"></a><script src="https://example.org/x.js"></script>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="other">', encoding="utf-8")
    assert find_problems(tmp_path) == [
        "a.html: loads https://example.org/x.js from another server",
        "a.html: b.html#there has no target",
        "a.html: c.html has no target",
    ]
