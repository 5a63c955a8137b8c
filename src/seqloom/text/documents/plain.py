"""Plain text: translates each line.

Blank lines, and the white space at the start and end of a line, stay as they are.
"""

from collections.abc import Iterator

from seqloom.text.documents.parts import Part, text_parts


def plain_parts(content: str) -> Iterator[Part]:
    for line in content.split("\n"):
        yield from text_parts(line)
        yield Part("\n")
