"""One step of a decoder, laid open in a terminal.

where it looks
  query     q = s₂                                                        96
            0.113  -0.874  0.020  0.519  -0.442 … 0.091   norm 4.610
  scores    e = qᵀ W k                                                     3
  weights   α = softmax(e)                                                 3
                       scores   weights
            das         1.204     0.061  █▏
            gefällt     3.871     0.882  █████████████████▋
            mir         1.131     0.057  █▏
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from rich.cells import cell_len
from rich.text import Text
from torch import Tensor

from seqloom.inside.explanation import Explanation, Part, Token
from seqloom.viz.words import bar, column, number, one_line, padded

_SHORT = 8
"""Numbers of a vector that is written whole."""
_FIRST = 5
"""Numbers of a longer one that come before its last."""
_BAR = 20
_LONGEST = 18
"""Cells of a word."""
_WIDEST = 100
"""Cells of a line; beyond, shapes would stand too far from their names."""
_MARGIN = 4
"""Cells before what stands under a name."""


def draw_explanation(
    explanation: Explanation, *, width: int = 80, ascii_only: bool = False, full: bool = False
) -> Text:
    """All parts in their order; full: all numbers of all vectors."""
    pen = _Pen(min(width, _WIDEST), ascii_only, full)
    picture = pen.head(explanation)
    for chapter, parts in groupby(explanation.parts, key=lambda part: part.chapter):
        picture.append(f"\n{pen.text(chapter)}\n", "bold blue")
        told = list(parts)
        longest = max(len(part.name) for part in told)
        for group in grouped(told):
            picture.append(pen.group(group, longest))
    if explanation.best:
        picture.append(pen.best(explanation))
    return picture


def grouped(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Parts that have a number for each word stand side by side, up to those that are shares.

    A single number on the way from one to the other, as a scale is, comes with them.
    """
    group: list[Part] = []
    for part in parts:
        fits = is_by_word(part) or (part.values.dim() == 0 and bool(group))
        if not fits and group:
            yield group
            group = []
        group.append(part)
        if not fits or are_shares(part.values):
            yield group
            group = []
    if group:
        yield group


def is_by_word(part: Part) -> bool:
    """Has it one number for each word?"""
    return bool(part.labels) and part.values.dim() == 1


def are_shares(values: Tensor) -> bool:
    """Are there several, and do they add up to one?"""
    return values.dim() == 1 and bool((values >= 0).all()) and abs(float(values.sum()) - 1) < 1e-3


@dataclass(frozen=True)
class _Pen:
    width: int
    ascii_only: bool
    full: bool

    def head(self, explanation: Explanation) -> Text:
        """What was read and put out, this step's token marked."""
        picture = Text()
        here = explanation.step if explanation.output else 0
        if here:
            picture.append(f"step {here} of {len(explanation.output)}", "bold")
            if explanation.layer is not None:
                where = f"   layer {explanation.layer}, head {explanation.head}"
                picture.append(where, "dim")
            picture.append("\n")
        if explanation.source:
            picture.append(self._folded("read", explanation.source))
        if here:
            picture.append(self._folded("put out", explanation.output, here))
        if explanation.previous is not None:
            picture.append(self._folded("goes in", [explanation.previous.piece]))
        return picture

    def _folded(self, name: str, pieces: Sequence[str], marked: int = 0) -> Text:
        """All pieces, in as many lines as they take; one of them is marked, from 1."""
        indent = 11
        picture = Text()
        picture.append(f"  {name}".ljust(indent), "dim")
        used = indent
        for place, piece in enumerate(pieces, start=1):
            word = self._word(piece)
            word = f"[{word}]" if place == marked else word
            if used > indent and used + cell_len(word) > self.width:
                picture.append("\n" + " " * indent)
                used = indent
            elif place > 1:
                picture.append("  ")
            picture.append(word, "bold cyan" if place == marked else "")
            used += cell_len(word) + 2
        picture.append("\n")
        return picture

    def _word(self, piece: str) -> str:
        return one_line(piece.removeprefix("▁") or piece, _LONGEST, self.ascii_only)

    def group(self, parts: Sequence[Part], longest: int) -> Text:
        """Names and formulas, and under them the numbers; longest: cells for a name."""
        picture = Text()
        for part in parts:
            picture.append(self._title(part, longest))
        tabled = [part for part in parts if is_by_word(part)]
        if tabled:
            picture.append(self._table(tabled))
        elif parts[0].values.dim():
            picture.append(self._vectors(parts[0]))
        return picture

    def _title(self, part: Part, longest: int) -> Text:
        """The name, the formula, a single number, and at the margin the shape."""
        line = Text("  ")
        line.append(part.name.ljust(longest + 2), "bold")
        line.append(self.text(part.formula), "cyan")
        if part.values.dim() == 0:
            line.append(f" = {number(float(part.values))}")
        shape = f"({' × '.join(map(str, part.shape))})" if part.shape else ""
        gap = self.width - line.cell_len - cell_len(shape)
        if shape:
            line.append(" " * max(gap, 2) + self.text(shape), "dim")
        line.append("\n")
        if part.note:
            line.append(" " * _MARGIN + self.text(part.note) + "\n", "dim italic")
        return line

    def text(self, formula: str) -> str:
        """Mathematics as this terminal can write it."""
        return formula if not self.ascii_only else formula.translate(_PLAIN)

    def _table(self, parts: Sequence[Part]) -> Text:
        """A line for each word, a column for each part, a bar for the last that are shares."""
        words = [self._word(label) for label in parts[0].labels]
        margin = max(map(cell_len, words))
        columns = [column(part.values.tolist()) for part in parts]
        widths = [
            max(len(part.name), *(len(entry) for entry in entries))
            for part, entries in zip(parts, columns, strict=True)
        ]
        picture = Text(" " * (_MARGIN + margin))
        for part, cells in zip(parts, widths, strict=True):
            picture.append("   " + part.name.rjust(cells), "dim")
        picture.append("\n")
        shares = parts[-1].values if are_shares(parts[-1].values) else None
        for row, word in enumerate(words):
            best = shares is not None and row == int(shares.argmax())
            picture.append(" " * _MARGIN + padded(word, margin), "bold" if best else "")
            for entries, cells in zip(columns, widths, strict=True):
                picture.append("   " + entries[row].rjust(cells))
            if shares is not None:
                drawn = bar(float(shares[row]), _BAR, self.ascii_only)
                picture.append(f"  {drawn}".rstrip(), "blue")
            picture.append("\n")
        return picture

    def _vectors(self, part: Part) -> Text:
        """One vector, or one for each word, with numbers under each other."""
        rows = part.values if part.values.dim() == 2 else part.values.unsqueeze(0)
        words = [self._word(label) for label in part.labels]
        margin = max(map(cell_len, words), default=0)
        entries = [column(self._seen(row).tolist()) for row in rows]
        cells = max(7, *(len(entry) for row in entries for entry in row))
        picture = Text()
        for place, row in enumerate(rows):
            lead = " " * _MARGIN + (padded(words[place], margin) + "  " if words else "")
            picture.append(lead, "dim")
            picture.append(self._vector([entry.rjust(cells) for entry in entries[place]], row))
        return picture

    def _seen(self, vector: Tensor) -> Tensor:
        """The numbers of it that are written."""
        whole = self.full or len(vector) <= _SHORT
        return vector if whole else torch.cat((vector[:_FIRST], vector[-1:]))

    def _vector(self, entries: Sequence[str], vector: Tensor) -> Text:
        if len(vector) <= _SHORT:
            return Text(" ".join(entries) + "\n")
        norm = f"norm {number(float(vector.norm()))}"
        if not self.full:
            dots = "..." if self.ascii_only else "…"
            some = f"{' '.join(entries[:_FIRST])} {dots} {entries[-1]}"
            return Text.assemble(some, (f"   {norm}\n", "dim"))
        indent = "\n" + " " * _MARGIN
        per_line = max((self.width - _MARGIN) // (len(entries[0]) + 1), 1)
        starts = range(0, len(entries), per_line)
        lines = [" ".join(entries[start : start + per_line]) for start in starts]
        return Text.assemble(indent + indent.join(lines), (f"{indent}{norm}\n", "dim"))

    def best(self, explanation: Explanation) -> Text:
        """The most probable tokens; the one that was put out is marked, and added if need be."""
        picture = Text()
        picture.append("\nthe best tokens\n", "bold blue")
        answer = explanation.answer
        shown: list[Token] = list(explanation.best)
        if answer is not None and answer.id not in {token.id for token in shown}:
            shown.append(answer)
        words = [self._word(token.piece) for token in shown]
        margin = max(map(cell_len, words))
        for token, word in zip(shown, words, strict=True):
            chosen = answer is not None and token.id == answer.id
            probability = token.probability or 0.0
            mark = (">" if self.ascii_only else "→") if chosen else " "
            picture.append(f"  {mark} {padded(word, margin)}", "bold cyan" if chosen else "")
            picture.append(f"   {probability:8.4f}")
            drawn = bar(probability, _BAR, self.ascii_only)
            picture.append(f"  {drawn}".rstrip() + "\n", "blue")
        return picture


_PLAIN: dict[int, str | int] = {
    **str.maketrans("₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹", "01234567890123456789"),
    ord("·"): "*",
    ord("×"): "x",
    ord("…"): "..",
    ord("√"): "sqrt ",
    ord("σ"): "sigmoid",
    ord("‖"): "|",
    ord("′"): "'",
    ord("″"): "''",
    ord("‴"): "'''",
    ord("ᵀ"): "^T",
    ord("∘"): "*",
    ord("α"): "w",
    ord("ω"): "omega",
    ord("Σ"): "sum",
    ord("∞"): "inf",
}
"""Mathematics in letters, for terminals that know no others."""
