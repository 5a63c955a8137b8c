"""The notebooks in docs/course are complete, use only the public API, and run in the time that the page promises."""

import ast
import os
import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from tools.site.links import ROOT

COURSE = ROOT / "docs" / "course"
NOTEBOOKS = sorted(COURSE.glob("0*.md"))
PUBLIC = {"seqloom", "seqloom.nn", "seqloom.viz", "seqloom.analysis", "seqloom.data"}
"""Modules of seqloom that a notebook may import."""
OTHERS = {*sys.stdlib_module_names, "torch"}
MAX_SECONDS = 120
"""Limit of the CPU time of a notebook. Other programs on the machine do not change the CPU time."""


@dataclass(frozen=True)
class CodeCell:
    """A code cell of a MyST notebook, with its tags."""

    code: str
    tags: frozenset[str]


def code_cells(notebook: Path) -> list[CodeCell]:
    text = notebook.read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", text, re.M | re.S)
    assert len(cells) == text.count("{code-cell}")
    found = []
    for cell in cells:
        # Options of a cell: a YAML block, or lines that start with a colon.
        options = re.match(r"---\n.*?^---\n|(?::[^\n]*\n)*", cell, re.M | re.S)
        assert options is not None
        tags = re.findall(r"tags: \[(.*?)\]", options[0])
        found.append(CodeCell(cell[options.end() :], frozenset(", ".join(tags).split(", "))))
    assert all(cell.code.strip() for cell in found)
    return found


def exercises(notebook: Path) -> list[str]:
    """The text of each exercise, up to the next heading."""
    text = notebook.read_text(encoding="utf-8")
    return re.findall(r"^### Exercise \d\n(.*?)(?=^##|\Z)", text, re.M | re.S)


def imports(code: str) -> set[tuple[str, str]]:
    """Pairs of module and name; the name is empty for `import module`."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "", alias.name) for alias in node.names}
    return found


def test_there_are_eight_notebooks_and_the_index_lists_all() -> None:
    index = (COURSE / "index.md").read_text(encoding="utf-8")
    assert [notebook.name[:3] for notebook in NOTEBOOKS] == [f"0{n}-" for n in range(1, 9)]
    assert all(f"({notebook.name})" in index for notebook in NOTEBOOKS)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_jupytext_and_jupyter_recognise_the_notebook(notebook: Path) -> None:
    header = notebook.read_text(encoding="utf-8").split("---\n")[1]
    assert "format_name: myst" in header
    assert re.search(r"^kernelspec:.*^  name: python3$", header, re.M | re.S)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_cells_compile_and_import_only_public_names(notebook: Path) -> None:
    for cell in code_cells(notebook):
        for module, name in imports(cell.code):
            if module.split(".")[0] != "seqloom":
                assert module.split(".")[0] in OTHERS
                continue
            assert module in PUBLIC
            if name and f"{module}.{name}" not in PUBLIC:
                assert name in import_module(module).__all__


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_solutions_are_hidden_on_the_site_and_in_jupyter(notebook: Path) -> None:
    text = notebook.read_text(encoding="utf-8")
    assert text.count("tags: [hide-cell]") == text.count("source_hidden: true")
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_exercises_have_solutions_and_there_is_a_cell_to_change(notebook: Path) -> None:
    found = exercises(notebook)
    assert len(found) >= 2
    for exercise in found:
        assert "[hide-cell]" in exercise or "<summary>Solution</summary>" in exercise
    assert any("change-this" in cell.tags for cell in code_cells(notebook))
    assert "\n## Change this and see\n" in notebook.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_runs_within_the_time_limit(notebook: Path, tmp_path: Path) -> None:
    """The cells run as one program. A program shows no figures, but computes all of them."""
    program = tmp_path / "notebook.py"
    program.write_text("\n".join(cell.code for cell in code_cells(notebook)), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    before = _cpu_seconds()
    subprocess.run([sys.executable, program], cwd=tmp_path, env=environment, check=True)
    assert _cpu_seconds() - before < MAX_SECONDS


def _cpu_seconds() -> float:
    """CPU time of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
