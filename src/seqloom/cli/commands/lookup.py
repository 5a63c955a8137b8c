"""The command `seqloom lookup`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from seqloom.cli.matrices import MATRIX_SYNTAX, MatrixParser
from seqloom.cli.options import FigureFile, Json, option
from seqloom.cli.output import show_result
from seqloom.cli.tables import stdout_console, supports_unicode


def lookup(
    keys: Annotated[
        str | None,
        option(
            "ROWS",
            f"The keys, one row each. {MATRIX_SYNTAX}: 1,1 3,2. Default: four points in the plane.",
        ),
    ] = None,
    values: Annotated[
        str | None,
        option(
            "ROWS", "The values, one row per key, for example 10 20 or 1,0 0,1. Default: 10 20 30 …"
        ),
    ] = None,
    query: Annotated[
        str | None,
        option(
            "ROW",
            "The query, as wide as the keys. Default: 2,2.5; with --keys, the mean of the keys.",
        ),
    ] = None,
    select: Annotated[
        Literal["exact", "nearest", "soft"] | None,
        option(
            "METHOD",
            "exact: the value whose key equals the query, or zero; nearest: the value of the "
            "nearest key; soft: a weighted mean of all values. Default: all three.",
        ),
    ] = None,
    score: Annotated[
        Literal["dot", "rbf"], option("SCORE", "Score of soft: dot (q · k) or rbf (-γ‖q - k‖²).")
    ] = "rbf",
    gamma: Annotated[
        float | None,
        option("N", "γ of the rbf score. Larger values favour the nearest keys. Default: 1."),
    ] = None,
    temperature: Annotated[
        float, option("T", "Divisor of the scores of soft. Smaller values favour the best key.")
    ] = 1.0,
    out: FigureFile = None,
    json: Json = False,
) -> None:
    """Look up a query in a table of keys and values: exactly, by the nearest key, and softly.

    Shows attention as a hash table that can be differentiated. Prints the scores, the weights, the
    result, and the gradients of the result with respect to the query and the keys.
    """
    from seqloom.analysis.lookup import METHODS, LookupTable, look_up
    from seqloom.viz.diagrams.soft_lookup import draw_lookups
    from seqloom.viz.lookup_terminal import draw_lookup

    parser = MatrixParser()
    changes: dict[str, Any] = {}
    if keys is not None:
        rows = parser.parse("--keys", keys)
        changes["keys"] = rows
        changes["values"] = [[10.0 * number] for number in range(1, len(rows) + 1)]
        changes["query"] = [sum(column) / len(rows) for column in zip(*rows, strict=False)]
    if values is not None:
        changes["values"] = parser.parse("--values", values)
    if query is not None:
        changes["query"] = parser.parse_vector("--query", query)
    table = LookupTable(
        **changes, score=score, gamma=1.0 if gamma is None else gamma, temperature=temperature
    )
    problems = [*parser.problems, *table.problems()]
    if gamma is not None and score != "rbf":
        problems.append("--gamma is the factor γ of the rbf score. It needs --score rbf.")
    if problems:
        raise typer.BadParameter("\n".join(problems))
    results = [look_up(table, method) for method in METHODS if select in (None, method)]
    record = {
        "keys": table.keys,
        "values": table.values,
        "query": table.query,
        "score": table.score,
        "gamma": table.gamma,
        "temperature": table.temperature,
        "lookups": [result.to_json() for result in results],
    }

    def print_drawing() -> None:
        drawing = draw_lookup(table, results, ascii_only=not supports_unicode())
        stdout_console().print(drawing, soft_wrap=True, end="")

    show_result(
        record,
        print_drawing,
        lambda: draw_lookups(table, results),
        out=out,
        json=json,
        title="the lookup",
    )
