"""Adapts the links of Markdown pages to the site.

In the repository, pages link to files outside `docs`. The site contains some of these files as
pages (PROJECT_PAGES) and none of the folders.
"""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROJECT_PAGES = {
    "README.md": "overview",
    "ARCHITECTURE.md": "architecture",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
    "bench/README.md": "benchmarking",
}
"""Files outside `docs` that are pages of the site, with their names in docs/generated/project."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#]+)(#[^()\s]*)?\)")


def adapt_links(text: str, file: Path, page: Path) -> str:
    """Return the text of a Markdown file with links that are valid on the site.

    file: the file, from which its relative links start
    page: the page of the site that shows the text, a path below `docs`
    """

    def adapt(match: re.Match[str]) -> str:
        image, label, path, anchor = match[1], match[2], match[3], match[4] or ""
        if ":" in path or path.startswith("/"):
            return match[0]
        target = (file.parent / path).resolve()
        if target.is_dir():
            return f"{label}"
        if target.is_relative_to(ROOT):
            project_page = PROJECT_PAGES.get(str(target.relative_to(ROOT)))
            if project_page is not None:
                target = DOCS / "generated" / "project" / f"{project_page}.md"
        return f"{image}[{label}]({os.path.relpath(target, page.parent)}{anchor})"

    return _LINK.sub(adapt, text)
