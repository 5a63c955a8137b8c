"""The commands and programs of all pages run, on small models and in the order of the page."""

import shutil
from pathlib import Path

import pytest
from page_blocks import PAGES, CodeBlock, code_blocks, page_name
from page_files import prepare_page, write_files
from page_runner import PageRunner, run_command, shorten

pytestmark = pytest.mark.slow

OWN_TESTS = {"docs/extending.md": "test_extending.py"}
"""Pages whose blocks other tests run."""
QUICK = {
    "README.md",
    "docs/analysis/attention.md",
    "docs/analysis/search.md",
    "docs/analysis/steps-and-gradients.md",
    "docs/command-line.md",
    "docs/data.md",
    "docs/figures.md",
    "docs/index.md",
    "docs/switches.md",
    "docs/texts.md",
}
"""Pages that run in `make test`. The other pages train or start servers; `make campaign` runs them."""


def blocks_to_run(page: Path) -> list[CodeBlock]:
    return [block for block in code_blocks(page, "sh", "python", "toml") if not block.reason]


def pages_with_code() -> list[Path]:
    """The pages with commands or programs that this module runs."""
    return [
        page
        for page in PAGES
        if page_name(page) not in OWN_TESTS
        and any(block.language != "toml" for block in blocks_to_run(page))
    ]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small demo run and the files that several pages use."""
    folder = tmp_path_factory.mktemp("pages")
    write_files(folder)
    run_command(shorten("seqloom demo"), folder)
    return folder


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, id=page_name(page), marks=() if page_name(page) in QUICK else pytest.mark.long
        )
        for page in pages_with_code()
    ],
)
def test_the_blocks_of_a_page_run(page: Path, workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    shutil.copytree(workspace, folder)
    with prepare_page(page_name(page), folder) as address:
        runner = PageRunner(folder, address)
        for block in blocks_to_run(page):
            runner.run(block)
