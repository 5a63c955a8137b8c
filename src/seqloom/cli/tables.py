"""Formats tables and scores for the terminal, and creates rich consoles."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from seqloom.cli.output import allows_colour
from seqloom.config.schema.names import METRICS

_METRIC_LABELS = {"chrf": "chrF"} | {
    name: facts.label for name, facts in METRICS.items() if facts.label
}
_PERCENTAGES = {
    "accuracy",
    "token accuracy",
    "exact match",
    "exact match tokenised",
    "word error rate",
    "phoneme error rate",
}
"""Metrics that are shares of sentences or tokens."""
_TWO_DECIMALS = ("bleu", "chrf", "ter", "rouge", "sari", "macro f1")
"""Starts of the names of metrics on a scale from 0 to 100."""
MAX_PERPLEXITY = 1_000_000
"""Larger perplexities are shown as "> 1,000,000"."""


def stdout_console() -> Console:
    """Return a rich console that prints to stdout.

    The console does not interpret markup such as "[b]" or ":smile:", but prints it unchanged.
    Colour is off if stdout is not a terminal or if the variable NO_COLOR is set.
    """
    return Console(
        file=sys.stdout,
        no_color=not allows_colour(sys.stdout),
        highlight=False,
        markup=False,
        emoji=False,
    )


def stderr_console() -> Console:
    """Return a rich console that prints to stderr.

    The console does not interpret markup such as "[b]" or ":smile:", but prints it unchanged.
    Colour is off if stderr is not a terminal or if the variable NO_COLOR is set.
    """
    return Console(
        stderr=True,
        no_color=not allows_colour(sys.stderr),
        highlight=False,
        markup=False,
        emoji=False,
    )


def supports_unicode() -> bool:
    """True if the encoding of stdout is a Unicode encoding."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def make_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table without borders. All columns except the first are right-aligned."""
    table = Table(box=None, pad_edge=False)
    for column, header in enumerate(headers):
        table.add_column(header, justify="right" if column else "left")
    for row in rows:
        table.add_row(*row)
    return table


def metric_label(name: str) -> str:
    """Return the display name of a metric: "BLEU" for "bleu", "exact match" for "exact_match"."""
    return _METRIC_LABELS.get(name, name.replace("_", " ").replace("-", " "))


def format_score(name: str, value: float) -> str:
    """Format a score for display. The metric determines the number of decimals.

    name: name of the metric, such as "BLEU" or "exact-match"
    """
    if not math.isfinite(value):
        return str(value)
    key = name.lower().replace("-", " ").replace("_", " ")
    if key in _PERCENTAGES:
        return f"{_format_decimals(value, 2)}%"
    if key.startswith("perplexity"):
        return format_perplexity(value)
    return _format_decimals(value, 2 if key.startswith(_TWO_DECIMALS) else 3)


def format_perplexity(value: float) -> str:
    """Format a perplexity with at least three significant digits.

    Values above MAX_PERPLEXITY are shown as "> MAX_PERPLEXITY".
    """
    if value > MAX_PERPLEXITY:
        return f"> {MAX_PERPLEXITY:,}"
    return f"{value:.2f}" if value < 10 else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _format_decimals(value: float, decimals: int) -> str:
    """Format a number with this number of decimals.

    A positive number that would be rounded to 0 is shown as "< 0.01" (for two decimals), a negative
    one as "> -0.01".
    """
    smallest = 10**-decimals
    if 0 < abs(value) < smallest / 2:
        return f"< {smallest:.{decimals}f}" if value > 0 else f"> -{smallest:.{decimals}f}"
    return f"{value:,.{decimals}f}"
