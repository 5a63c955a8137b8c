"""Words and numbers that stand in columns, whatever is in them."""

import math
import unicodedata
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def one_line(text: str, limit: int, ascii_only: bool = False) -> str:
    """Text that takes one line and no more than `limit` cells, whatever is in it."""
    shown = "".join("·" if _moves_the_cursor(character) else character for character in text)
    if ascii_only:
        plain = unicodedata.normalize("NFKC", shown.replace("▁", "_").replace("·", "."))
        shown = plain.encode("ascii", "replace").decode()
    if cell_len(shown) > limit:
        shown = set_cell_size(shown, limit - 1).rstrip() + ("~" if ascii_only else "…")
    if any(unicodedata.bidirectional(character) in ("R", "AL") for character in shown):
        # Isolated, right-to-left words cannot turn the rest of the line around.
        shown = f"\N{FIRST STRONG ISOLATE}{shown}\N{POP DIRECTIONAL ISOLATE}"
    return shown


def _moves_the_cursor(character: str) -> bool:
    """Control characters, line breaks and direction marks would break the picture (or worse)."""
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or (
        unicodedata.category(character) == "Cf" and character != "\N{ZERO WIDTH JOINER}"
    )


def padded(text: str, cells: int) -> str:
    """Text with blanks behind it, as wide as this."""
    return text + " " * (cells - cell_len(text))


def number(value: float) -> str:
    """Whole ones as they are, others to three places; what is smaller than that by its power."""
    if math.isinf(value):
        return "-inf" if value < 0 else "inf"
    if value == round(value) and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.3f}" if 0.0005 <= abs(value) < 1e6 else f"{value:.1e}"


def column(values: Sequence[float]) -> list[str]:
    """Numbers under each other: all whole, or all to three places."""
    if all(math.isfinite(value) and value == round(value) and abs(value) < 1e6 for value in values):
        return [f"{value:.0f}" for value in values]
    tiny = any(0 < abs(value) < 0.0005 for value in values)
    return [number(v) if tiny or math.isinf(v) else f"{v:.3f}" for v in values]


def bar(share: float, cells: int, ascii_only: bool = False) -> str:
    """A share, 0 to 1, of a bar so many cells long, to an eighth of a cell."""
    share = min(max(share, 0.0), 1.0)
    if ascii_only:
        return "#" * round(share * cells)
    eighths = round(share * cells * 8)
    if share >= 0.0005:
        eighths = max(eighths, 1)  # what a number to three places shows is seen, too
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
