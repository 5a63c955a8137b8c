"""The Sphinx extension of the site: generated pages, docstrings, links and notebooks."""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from tools.site.docstrings import to_rst
from tools.site.links import DOCS, adapt_links
from tools.site.notebooks import is_notebook, write_notebooks
from tools.site.pages import write_generated_pages


def _write_pages(app: Sphinx) -> None:
    write_generated_pages()
    write_notebooks()


def _adapt_source(app: Sphinx, page: str, source: list[str]) -> None:
    """Adapt the links of a page, and offer notebooks for download below their title."""
    path = Path(app.env.doc2path(page))
    if path.suffix != ".md":
        return
    source[0] = adapt_links(source[0], path, path)
    if path.parent == DOCS / "course" and is_notebook(path):
        download = f"{{download}}`Download this notebook </generated/notebooks/{path.stem}.ipynb>`"
        source[0] = re.sub(
            r"^(# .+)$", rf"\1\n\n{download}", source[0], count=1, flags=re.MULTILINE
        )


def _convert_docstring(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = to_rst("\n".join(lines)).splitlines()


def _skip_member(
    app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out the fields of named tuples: the docstring of the class describes them."""
    docstring = getattr(value, "__doc__", None) or ""
    return True if docstring.startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _adapt_source)
    app.connect("autodoc-process-docstring", _convert_docstring)
    app.connect("autodoc-skip-member", _skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
