"""The commands `seqloom example attention` and `seqloom example search`, which need no run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from seqloom.cli.commands.explain import print_explanation
from seqloom.cli.commands.search import ShowAll, check_suffix, show_search
from seqloom.cli.matrices import MATRIX_SYNTAX, MatrixParser
from seqloom.cli.options import Full, Json, RunSettings, option
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions


def attention(
    score: Annotated[
        Literal["dot", "bilinear", "additive", "rbf"],
        option("SCORE", "Score function: dot, bilinear, additive or rbf."),
    ] = "dot",
    scale: Annotated[
        Literal["one", "sqrt", "width"] | None,
        option(
            "SCALE",
            "Divisor of the dot product: one (1), sqrt (√d) or width (d). Default: one.",
        ),
    ] = None,
    select: Annotated[
        Literal["softmax", "argmax", "nearest", "exact"],
        option(
            "SELECTION",
            "softmax; argmax: the value with the best score; nearest: the value whose key is "
            "nearest to the query; exact: the value whose key equals the query, or zero.",
        ),
    ] = "argmax",
    gamma: Annotated[float | None, option("N", "γ of the rbf score. Default: 1.")] = None,
    query: Annotated[
        int | None,
        option(
            "N",
            "Number of the state that attends, counted from 1. Default: 2, or 1 if there is only "
            "one state.",
        ),
    ] = None,
    h: Annotated[
        str | None,
        option(
            "ROWS",
            f"The states, one row each. {MATRIX_SYNTAX}: 5,1 4,3 -2,6. Default: the states of the "
            "lecture.",
            "--h",
        ),
    ] = None,
    wq: Annotated[
        str | None,
        option(
            "ROWS",
            "Matrix of the queries, for example 1,0;2,9. Default: the matrix of the lecture; with "
            "--h, the identity.",
            "--wq",
        ),
    ] = None,
    wk: Annotated[
        str | None, option("ROWS", "Matrix of the keys. Default: as for --wq.", "--wk")
    ] = None,
    wv: Annotated[
        str | None, option("ROWS", "Matrix of the values. Default: as for --wq.", "--wv")
    ] = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Explain self-attention on the numbers of a lecture, or on your own.

    Prints the shape, the numbers and the formula of queries, keys, scores, weights and context.
    """
    from seqloom.analysis import attention_example as lecture
    from seqloom.analysis.matrices import Rows, identity

    parser = MatrixParser()
    states = lecture.STATES if h is None else parser.parse("--h", h)

    def matrix(name: str, value: str | None, of_lecture: Rows) -> Rows:
        if value is not None:
            return parser.parse(name, value)
        return of_lecture if h is None else identity(len(states[0]) if states else 1)

    example = lecture.AttentionExample(
        states=states,
        to_query=matrix("--wq", wq, lecture.TO_QUERY),
        to_key=matrix("--wk", wk, lecture.TO_KEY),
        to_value=matrix("--wv", wv, lecture.TO_VALUE),
        query=(2 if len(states) > 1 else 1) if query is None else query,
        score=score,
        scale=scale or "one",
        gamma=1.0 if gamma is None else gamma,
        selection=select,
    )
    problems = list(parser.problems)
    if scale is not None and (score != "dot" or example.measures_distance):
        problems.append(
            "--scale divides the dot product. It needs --score dot with --select softmax or argmax."
        )
    if gamma is not None and score != "rbf":
        problems.append("--gamma is the factor γ of the rbf score. It needs --score rbf.")
    if problems := [*problems, *example.problems()]:
        raise typer.BadParameter("\n".join(problems))
    print_explanation(lecture.explain_example(example), full=full, json=json)


@with_prediction_options("example search")
def search(
    options: PredictionOptions = DEFAULT_OPTIONS,
    n_best: Annotated[
        int | None, option("N", "Number of outputs. Default: the beam width.", min=1, max=1000)
    ] = None,
    show_all: ShowAll = False,
    out: Annotated[
        Path | None,
        option("FILE", "Write the search tree (.svg, .png, .pdf or .html), or all data (.json)."),
    ] = None,
    json: Json = False,
    settings: RunSettings = None,
) -> None:
    """Trace a beam search of width 2 on an example of a lecture, "he hit me with a pie"."""
    from seqloom.analysis.search_example import example_recipe, search_example
    from seqloom.cli.recipe_settings import change_decoding
    from seqloom.inference.search_settings import check_n_best

    check_suffix(out)
    decoding = change_decoding(example_recipe(), settings, options.beam)
    if n_best is not None:
        check_n_best(decoding, n_best)
    show_search(search_example(decoding, n_best), None, out, show_all=show_all, json=json)
