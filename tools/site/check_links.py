"""Checks the links of a built site.

    python -m tools.site.check_links FOLDER

Every link to a page, a heading or a file must have a target in the folder. Pages must not load
styles, scripts or images from other servers. Prints all problems; the exit code is 1 if there are any.
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

RESOURCES = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "src")}


class _PageParser(HTMLParser):
    """Collects the ids, links and loaded resources of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value is None:
                continue
            if name == "id":
                self.ids.add(value)
            elif (tag, name) in RESOURCES:
                self.resources.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


@cache
def _parse(path: Path) -> _PageParser:
    parser = _PageParser()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def find_problems(folder: Path) -> list[str]:
    """Return a line for every link without a target, and for every resource of another server."""
    problems = []
    for page in sorted(folder.rglob("*.html")):
        parsed, name = _parse(page), page.relative_to(folder)
        problems += [
            f"{name}: loads {url} from another server"
            for url in parsed.resources
            if urlsplit(url).netloc
        ]
        problems += [
            f"{name}: {url} has no target"
            for url in dict.fromkeys((*parsed.links, *parsed.resources))
            if not _has_target(page, url)
        ]
    return problems


def _has_target(page: Path, url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return True  # another server, or mailto:
    target = page.parent / unquote(parts.path) if parts.path else page
    if not target.is_file():
        return False
    is_heading = bool(parts.fragment) and target.suffix == ".html"
    return not is_heading or unquote(parts.fragment) in _parse(target).ids


def main() -> int:
    problems = find_problems(Path(sys.argv[1]))
    print(*problems, sep="\n", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
