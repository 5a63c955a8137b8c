"""Writes the generated pages of the site to docs/generated."""

from tools.site.api import render_api
from tools.site.commands import render_commands
from tools.site.links import DOCS, PROJECT_PAGES, ROOT, adapt_links
from tools.site.recipes import render_recipes

GENERATED = DOCS / "generated"


def generated_pages() -> dict[str, str]:
    """Return the text of every generated page by its path below docs/generated."""
    pages = {"commands.md": render_commands()}
    pages |= {f"recipe/{name}.md": text for name, text in render_recipes().items()}
    pages |= {f"api/{name}.rst": text for name, text in render_api().items()}
    for source, name in PROJECT_PAGES.items():
        page = GENERATED / "project" / f"{name}.md"
        text = (ROOT / source).read_text(encoding="utf-8")
        pages[f"project/{name}.md"] = adapt_links(text, ROOT / source, page)
    return pages


def write_generated_pages() -> None:
    """Write all generated pages. Pages that are no longer generated are removed.

    An unchanged page keeps its file, so that Sphinx does not read it again.
    """
    pages = generated_pages()
    for name, text in pages.items():
        path = GENERATED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    kept = {GENERATED / name for name in pages}
    for path in GENERATED.rglob("*.*"):
        if path.suffix in (".md", ".rst") and path not in kept:
            path.unlink()
