"""The code blocks of the README, of the pages in docs, and of the pages about the project."""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.site.links import DOCS, PROJECT_PAGES, ROOT

PAGES = [
    *(ROOT / name for name in PROJECT_PAGES),
    *(
        path
        for path in sorted(DOCS.rglob("*.md"))
        if "generated" not in path.relative_to(DOCS).parts
    ),
]
"""All pages that people write. The site adds pages that it generates from the program."""
FENCE = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>[^\n]*) -->\n\n?)?"
    r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$",
    flags=re.M | re.S,
)
"""A code block, with the comment before it that says why no test runs it."""


@dataclass(frozen=True)
class CodeBlock:
    """A code block of a page.

    line:   number of the line with the opening fence
    reason: why no test runs the block. Empty if a test runs it
    """

    page: Path
    line: int
    language: str
    code: str
    reason: str

    def __str__(self) -> str:
        return f"{page_name(self.page)}:{self.line}"


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def code_blocks(page: Path, *languages: str) -> list[CodeBlock]:
    """The blocks of a page in these languages. Default: in all languages."""
    text = page.read_text(encoding="utf-8")
    blocks = [
        CodeBlock(
            page=page,
            line=text.count("\n", 0, found.start("indent")) + 1,
            language=found["language"],
            code=found["code"],
            reason=found["reason"] or "",
        )
        for found in FENCE.finditer(text)
    ]
    return [block for block in blocks if not languages or block.language in languages]


def shell_commands(block: CodeBlock) -> list[str]:
    """The commands of a shell block, without comments. A loop is one command."""
    code = block.code.replace("\\\n", " ")
    if code.startswith("for "):
        return [code]
    lines = [re.split(r"(?:^|\s)#", line)[0].strip() for line in code.splitlines()]
    return [line for line in lines if line]
