"""Print one decoder step in a terminal, with every intermediate value.

attention
  query     q = s₂                                                      (96)
            0.113  -0.874  0.020  0.519  -0.442 … 0.091   norm 4.610
  scores    e = qᵀ W k                                                   (3)
  weights   α = softmax(e)                                               (3)
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

from seqloom.analysis.explanation import Explanation, TokenProbability
from seqloom.models.step_description import TracedValue
from seqloom.viz.terminal_format import (
    draw_bar,
    draw_columns,
    fit_to_line,
    format_column,
    format_number,
    pad_to_width,
    strip_word_marker,
)

_SHORT_VECTOR = 8
"""Vectors up to this length are printed in full."""
_LEADING_NUMBERS = 5
"""Number of values printed from the start of a longer vector. Its last value is printed too."""
_BAR_CELLS = 20
_MAX_TOKEN_CELLS = 18
_MAX_LINE_CELLS = 100
"""Maximum line width. In a longer line, the shape at the right end would be hard to match with the
name at the left end.
"""
_MARGIN = 4
"""Indentation of the values below a name."""


def draw_explanation(
    explanation: Explanation, *, width: int = 80, ascii_only: bool = False, full: bool = False
) -> Text:
    """Draw all intermediate values of a decoder step, in the order of computation.

    Args:
        full: print every number of every vector. Default: False, which shortens long vectors.
    """
    renderer = _ExplanationRenderer(min(width, _MAX_LINE_CELLS), ascii_only, full)
    drawing = renderer.header(explanation)
    for section, section_values in groupby(explanation.parts, key=lambda part: part.section):
        drawing.append(f"\n{renderer.formula(section)}\n", "bold blue")
        parts = list(section_values)
        name_width = max(len(part.name) for part in parts)
        for group in group_by_table(parts):
            drawing.append(renderer.group(group, name_width))
    if explanation.best:
        drawing.append(renderer.best_tokens(explanation))
    return drawing


def group_by_table(parts: Sequence[TracedValue]) -> Iterator[list[TracedValue]]:
    """Group the values of a decoder step. Each group is printed as one table.

    Consecutive vectors with one number per token form a group. A scalar after such a vector, for
    example the scale of a dot product, belongs to the same group. A group ends after a vector of
    probabilities, such as attention weights. Every other value is a group of its own.
    """
    group: list[TracedValue] = []
    for part in parts:
        fits = has_number_per_token(part) or (part.values.dim() == 0 and bool(group))
        if not fits and group:
            yield group
            group = []
        group.append(part)
        if not fits or is_distribution(part.values):
            yield group
            group = []
    if group:
        yield group


def has_number_per_token(part: TracedValue) -> bool:
    """True if the value is a vector with one number for each token."""
    return bool(part.labels) and part.values.dim() == 1


def is_distribution(values: Tensor) -> bool:
    """True for a vector of non-negative numbers that sum to one."""
    return values.dim() == 1 and bool((values >= 0).all()) and abs(float(values.sum()) - 1) < 1e-3


@dataclass(frozen=True)
class _ExplanationRenderer:
    width: int
    ascii_only: bool
    full: bool

    def header(self, explanation: Explanation) -> Text:
        """Print the source, the output, and the token that the decoder reads at this step.

        Brackets mark the token of the output that this step predicts.
        """
        drawing = Text()
        step = explanation.step if explanation.output else 0
        if step:
            drawing.append(f"step {step} of {len(explanation.output)}", "bold")
            if explanation.layer is not None:
                focus = f"   layer {explanation.layer}, head {explanation.head}"
                drawing.append(focus, "dim")
            drawing.append("\n")
        if explanation.source:
            drawing.append(self._token_list("source", explanation.source))
        if step:
            drawing.append(self._token_list("output", explanation.output, step))
        if explanation.previous is not None:
            drawing.append(self._token_list("input", [explanation.previous.piece]))
        return drawing

    def _token_list(self, name: str, pieces: Sequence[str], marked: int = 0) -> Text:
        """Print all tokens, wrapped at the line width.

        marked: position of the token to mark, counted from 1. Default: 0, no token is marked.
        """
        indent = 11
        drawing = Text()
        drawing.append(f"  {name}".ljust(indent), "dim")
        used = indent
        for position, piece in enumerate(pieces, start=1):
            token = self._token(piece)
            token = f"[{token}]" if position == marked else token
            if used > indent and used + cell_len(token) > self.width:
                drawing.append("\n" + " " * indent)
                used = indent
            elif position > 1:
                drawing.append("  ")
            drawing.append(token, "bold cyan" if position == marked else "")
            used += cell_len(token) + 2
        drawing.append("\n")
        return drawing

    def _token(self, piece: str) -> str:
        return fit_to_line(strip_word_marker(piece), _MAX_TOKEN_CELLS, self.ascii_only)

    def group(self, parts: Sequence[TracedValue], name_width: int) -> Text:
        """Print several values of a decoder step: their names and formulas, then their numbers."""
        drawing = Text()
        for part in parts:
            drawing.append(self._title(part, name_width))
        columns = [part for part in parts if has_number_per_token(part)]
        if columns:
            drawing.append(self._table(columns))
        elif parts[0].values.dim():
            drawing.append(self._vectors(parts[0]))
        return drawing

    def _title(self, part: TracedValue, name_width: int) -> Text:
        """Print the name, formula and shape of a value, and the value itself if it is a scalar."""
        line = Text("  ")
        line.append(part.name.ljust(name_width + 2), "bold")
        line.append(self.formula(part.formula), "cyan")
        if part.values.dim() == 0:
            line.append(f" = {format_number(float(part.values))}")
        shape = f"({' × '.join(map(str, part.shape))})" if part.shape else ""
        gap = self.width - line.cell_len - cell_len(shape)
        if shape:
            line.append(" " * max(gap, 2) + self.formula(shape), "dim")
        line.append("\n")
        if part.note:
            line.append(" " * _MARGIN + self.formula(part.note) + "\n", "dim italic")
        return line

    def formula(self, text: str) -> str:
        """Return a formula. If `ascii_only` is set, mathematical symbols are spelled in ASCII."""
        return text if not self.ascii_only else text.translate(_ASCII_SYMBOLS)

    def _table(self, parts: Sequence[TracedValue]) -> Text:
        """Print a table with a line for each token and a column for each value.

        Bars show values that are probabilities, such as attention weights.
        """
        names = [part.name for part in parts]
        columns = {
            name: format_column(part.values.tolist())
            for name, part in zip(names, parts, strict=True)
        }
        tokens = [self._token(label) for label in parts[0].labels]
        values = parts[-1].values
        if not is_distribution(values):
            return draw_columns(tokens, columns, [Text()] * len(tokens), indent=_MARGIN)
        bars = [draw_bar(value, _BAR_CELLS, self.ascii_only) for value in values.tolist()]
        return draw_columns(
            tokens,
            columns,
            [Text(bar, "blue") for bar in bars],
            indent=_MARGIN,
            highlighted=int(values.argmax()),
        )

    def _vectors(self, part: TracedValue) -> Text:
        """Print one vector, or one vector for each token, with aligned numbers."""
        vectors = part.values if part.values.dim() == 2 else part.values.unsqueeze(0)
        tokens = [self._token(label) for label in part.labels]
        margin = max(map(cell_len, tokens), default=0)
        entries = [format_column(self._printed_numbers(vector).tolist()) for vector in vectors]
        cells = max(7, *(len(entry) for row in entries for entry in row))
        drawing = Text()
        for row, vector in enumerate(vectors):
            lead = " " * _MARGIN + (pad_to_width(tokens[row], margin) + "  " if tokens else "")
            drawing.append(lead, "dim")
            drawing.append(self._vector([entry.rjust(cells) for entry in entries[row]], vector))
        return drawing

    def _printed_numbers(self, vector: Tensor) -> Tensor:
        if self.full or len(vector) <= _SHORT_VECTOR:
            return vector
        return torch.cat((vector[:_LEADING_NUMBERS], vector[-1:]))

    def _vector(self, entries: Sequence[str], vector: Tensor) -> Text:
        if len(vector) <= _SHORT_VECTOR:
            return Text(" ".join(entries) + "\n")
        norm = f"norm {format_number(float(vector.norm()))}"
        if not self.full:
            dots = "..." if self.ascii_only else "…"
            numbers = f"{' '.join(entries[:_LEADING_NUMBERS])} {dots} {entries[-1]}"
            return Text.assemble(numbers, (f"   {norm}\n", "dim"))
        indent = "\n" + " " * _MARGIN
        per_line = max((self.width - _MARGIN) // (len(entries[0]) + 1), 1)
        starts = range(0, len(entries), per_line)
        lines = [" ".join(entries[start : start + per_line]) for start in starts]
        return Text.assemble(indent + indent.join(lines), (f"{indent}{norm}\n", "dim"))

    def best_tokens(self, explanation: Explanation) -> Text:
        """Print the most probable tokens. The output token is marked.

        If the output token is not among the most probable ones, it is added.
        """
        drawing = Text()
        drawing.append("\nmost probable tokens\n", "bold blue")
        answer = explanation.answer
        shown: list[TokenProbability] = list(explanation.best)
        if answer is not None and answer.id not in {token.id for token in shown}:
            shown.append(answer)
        labels = [self._token(token.piece) for token in shown]
        margin = max(map(cell_len, labels))
        for token, label in zip(shown, labels, strict=True):
            is_output = answer is not None and token.id == answer.id
            probability = token.probability or 0.0
            mark = (">" if self.ascii_only else "→") if is_output else " "
            drawing.append(
                f"  {mark} {pad_to_width(label, margin)}", "bold cyan" if is_output else ""
            )
            drawing.append(f"   {probability:8.4f}")
            bar = draw_bar(probability, _BAR_CELLS, self.ascii_only)
            drawing.append(f"  {bar}".rstrip() + "\n", "blue")
        return drawing


_ASCII_SYMBOLS: dict[int, str | int] = {
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
    ord("∂"): "d",
    ord("ω"): "omega",
    ord("Σ"): "sum",
    ord("∞"): "inf",
}
"""ASCII spellings of the mathematical symbols in formulas."""
