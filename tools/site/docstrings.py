"""Converts docstrings to reStructuredText, which Sphinx expects.

Docstrings of seqloom are plain text: paragraphs, code between single backticks, lists of parameters
(`name: meaning`), tables of two columns, and examples that are indented or valid Python.
"""

import ast
import re
import textwrap

_CODE = re.compile(r"`([^`]+)`")
_SPECIAL = re.compile(r"([\\*|_`])")
_PARAMETER = re.compile(r"(\*{0,2}\w[\w, .*]*):\s+(\S.*)")
_COLUMNS = re.compile(r"(\S+) {2,}(\S.*)")
_ENUMERATOR = re.compile(r"\(?\w{1,4}[.)]\s")


def to_rst(docstring: str) -> str:
    """Return a docstring as reStructuredText. Its first paragraph is a summary."""
    summary, *blocks = re.split(r"\n\s*\n", docstring.strip())
    return "\n\n".join([_paragraph(summary), *map(_convert_block, _join_programs(blocks))])


def _join_programs(blocks: list[str]) -> list[str]:
    """Join blocks that are parts of one program."""
    joined: list[str] = []
    for block in blocks:
        if joined and _is_python(joined[-1]) and _is_python(block):
            joined[-1] += f"\n\n{block}"
        else:
            joined.append(block)
    return joined


def _convert_block(block: str) -> str:
    lines = block.splitlines()
    if lines[0].startswith(" "):
        return _literal(block)
    if lines[0].startswith("- "):
        return "\n".join(f"- {_inline(item)}" for item in _items(lines))
    first, _, rest = block.partition("\n")
    if first.endswith(":") and rest.startswith(" "):
        return f"{_inline(first)}\n\n{_convert_block(textwrap.dedent(rest))}"
    for pattern in (_PARAMETER, _COLUMNS):
        if all(pattern.match(line) or line.startswith(" ") for line in lines):
            return _definitions(lines, pattern)
    if _is_python(block):
        return _literal(block)
    start = next((index for index, line in enumerate(lines) if line.startswith(" ")), None)
    if start is not None and lines[-1].startswith(" "):
        text = _paragraph("\n".join(lines[:start]))
        return f"{text}\n\n{_literal(chr(10).join(lines[start:]))}"
    return _paragraph(block)


def _literal(block: str) -> str:
    text = textwrap.dedent(block)
    directive = ".. code-block:: python" if _is_python(text) else "::"
    return f"{directive}\n\n{textwrap.indent(text, '    ')}"


def _items(lines: list[str]) -> list[str]:
    """Join the lines of each list item."""
    items: list[str] = []
    for line in lines:
        if line.startswith("- "):
            items.append(line[2:])
        else:
            items[-1] += f" {line.strip()}"
    return items


def _definitions(lines: list[str], pattern: re.Pattern[str]) -> str:
    """Return parameters as a field list, which Sphinx puts under a heading of its own."""
    entries: list[tuple[str, str]] = []
    for line in lines:
        match = pattern.match(line)
        if match is not None and not line.startswith(" "):
            entries.append((match[1], match[2]))
        else:
            name, text = entries[-1]
            entries[-1] = (name, f"{text} {line.strip()}")
    if pattern is _PARAMETER and all(name.strip("*").isidentifier() for name, _ in entries):
        return "\n".join(f":param {_escape(name)}: {_inline(text)}" for name, text in entries)
    return "\n".join(f"{_inline(name)}\n    {_inline(text)}" for name, text in entries)


def _is_python(block: str) -> bool:
    """True if a block is a program. A text is not valid Python, unless it is a single word."""
    try:
        statements = ast.parse(block).body
    except SyntaxError:
        return False
    return not all(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Name) for each in statements
    )


def _paragraph(block: str) -> str:
    text = _inline(" ".join(block.split()))
    return f"\\{text}" if _ENUMERATOR.match(text) else text


def _inline(text: str) -> str:
    """Escape a text, and mark the code in it."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(
        f"\\ ``{part}``\\ " if index % 2 else _escape(part) for index, part in enumerate(parts)
    )


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
