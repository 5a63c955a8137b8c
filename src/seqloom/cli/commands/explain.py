"""The command `seqloom explain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seqloom.cli.matrices import MATRIX_SYNTAX, MatrixParser
from seqloom.cli.options import BeamWidth, Json, RunSettings, existing_run
from seqloom.cli.output import print_json
from seqloom.cli.parameters.completion import complete_run
from seqloom.cli.tables import stdout_console, supports_unicode

if TYPE_CHECKING:
    from seqloom.analysis.explain.explanation import Explanation
    from seqloom.analysis.explain.lecture_example import AttentionExample

_EXAMPLE = "With --example"


def explain(
    run_folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]",
            help="Run folder, written by `seqloom train`.",
            autocompletion=complete_run,
        ),
    ] = None,
    text: Annotated[
        str,
        typer.Argument(metavar="[TEXT]", help="Source text; for a language model, the prompt."),
    ] = "",
    step: Annotated[
        int, typer.Option(metavar="N", help="Step of the output to explain, counted from 1.")
    ] = 1,
    target: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Output to explain. Default: the output of the run."),
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Layer whose attention is shown, counted from 1. Default: the last."
        ),
    ] = None,
    head: Annotated[
        int | None, typer.Option(metavar="N", help="Attention head, counted from 1. Default: 1.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print all numbers of long vectors.")
    ] = False,
    beam: BeamWidth = None,
    json: Json = False,
    settings: RunSettings = None,
    example: Annotated[
        bool,
        typer.Option(
            "--example", help="Explain self-attention on small numbers. Needs no run folder."
        ),
    ] = False,
    score: Annotated[
        Literal["dot", "bilinear", "additive", "rbf"] | None,
        typer.Option(
            metavar="SCORE",
            help="Score function: dot, bilinear, additive or rbf. Default: dot.",
            rich_help_panel=_EXAMPLE,
        ),
    ] = None,
    scale: Annotated[
        Literal["one", "sqrt", "width"] | None,
        typer.Option(
            metavar="SCALE",
            help="Divisor of the dot product: one (1), sqrt (√d) or width (d). Default: one.",
            rich_help_panel=_EXAMPLE,
        ),
    ] = None,
    select: Annotated[
        Literal["softmax", "argmax", "nearest", "exact"] | None,
        typer.Option(
            metavar="SELECTION",
            help="softmax; argmax: the value with the best score; nearest: the value whose key is "
            "nearest to the query; exact: the value whose key equals the query, or zero. "
            "Default: argmax.",
            rich_help_panel=_EXAMPLE,
        ),
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option(metavar="N", help="γ of the rbf score. Default: 1.", rich_help_panel=_EXAMPLE),
    ] = None,
    query: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of the state that attends, counted from 1. Default: 2, or 1 if there is "
            "only one state.",
            rich_help_panel=_EXAMPLE,
        ),
    ] = None,
    h: Annotated[
        str | None,
        typer.Option(
            "--h",
            metavar="ROWS",
            help=f"The states, one row each. {MATRIX_SYNTAX}: 5,1 4,3 -2,6. Default: the states "
            "of the lecture.",
            rich_help_panel=_EXAMPLE,
        ),
    ] = None,
    wq: Annotated[
        str | None,
        typer.Option(
            "--wq",
            metavar="ROWS",
            help="Matrix of the queries, for example 1,0;2,9. Default: the matrix of the lecture; "
            "with --h, the identity.",
            rich_help_panel=_EXAMPLE,
        ),
    ] = None,
    wk: Annotated[
        str | None,
        typer.Option(
            "--wk",
            metavar="ROWS",
            help="Matrix of the keys. Default: as for --wq.",
            rich_help_panel=_EXAMPLE,
        ),
    ] = None,
    wv: Annotated[
        str | None,
        typer.Option(
            "--wv",
            metavar="ROWS",
            help="Matrix of the values. Default: as for --wq.",
            rich_help_panel=_EXAMPLE,
        ),
    ] = None,
) -> None:
    """Explain one decoder step: query, keys, scores, weights, values, context, best tokens.

    Prints the shape, the numbers and the formula of every value. With --example, explains
    self-attention on the numbers of a lecture or on your own.
    """
    options = ExampleOptions(score, scale, select, gamma, query, h, wq, wk, wv)
    if example and run_folder is not None:
        raise typer.BadParameter("--example cannot be combined with a run folder.")
    if run_folder is None and not example:
        raise typer.BadParameter("Give a run folder and a text, or --example.")
    if not example and (given := options.given()):
        raise typer.BadParameter(
            f"{', '.join(given)}: only for --example. To change a trained run, use --set, for "
            "example --set model.decoder.attention.selection=argmax."
        )
    if example:
        run_options = {
            "--target": target,
            "--layer": layer,
            "--head": head,
            "--beam": beam,
            "--set": settings,
            "--step": None if step == 1 else step,
        }
        if given := [name for name, value in run_options.items() if value is not None]:
            raise typer.BadParameter(f"{', '.join(given)}: cannot be combined with --example.")
    existing_run(run_folder)

    from seqloom.analysis.explain.explainer import explain as explain_run
    from seqloom.analysis.explain.explanation import HeadSelection
    from seqloom.cli.recipe_settings import change_decoding, load_run
    from seqloom.cli.tags import warn_about_missing_tags
    from seqloom.viz.explanation_terminal import draw_explanation

    if run_folder is None:
        explanation = options.explain()
    else:
        run, settings = load_run([run_folder], settings)
        decoding = change_decoding(run.config, settings, beam)
        warn_about_missing_tags(run, [text])
        explanation = explain_run(
            run, text, step, target=target, focus=HeadSelection(layer, head), decoding=decoding
        )
    if json:
        print_json(explanation.to_json())
        return
    console = stdout_console()
    drawing = draw_explanation(
        explanation, width=console.width, ascii_only=not supports_unicode(), full=full
    )
    console.print(drawing, soft_wrap=True, end="")


@dataclass(frozen=True)
class ExampleOptions:
    """The options that are valid only with --example. None: the user has not given the option."""

    score: Literal["dot", "bilinear", "additive", "rbf"] | None
    scale: Literal["one", "sqrt", "width"] | None
    select: Literal["softmax", "argmax", "nearest", "exact"] | None
    gamma: float | None
    query: int | None
    h: str | None
    wq: str | None
    wk: str | None
    wv: str | None

    def given(self) -> list[str]:
        """Return the names of the options that the user has given."""
        return [f"--{name}" for name, value in vars(self).items() if value is not None]

    def explain(self) -> Explanation:
        """Explain self-attention on the numbers of a lecture, or on those that the options give.

        Raises one BadParameter that lists all problems of the options.
        """
        from seqloom.analysis.explain.lecture_example import explain_example

        parser = MatrixParser()
        example = self._example(parser)
        problems = [*parser.problems, *self._useless_options(example), *example.problems()]
        if problems:
            raise typer.BadParameter("\n".join(problems))
        return explain_example(example)

    def _example(self, parser: MatrixParser) -> AttentionExample:
        from seqloom.analysis.explain import lecture_example as lecture
        from seqloom.analysis.matrices import Rows, identity

        states = lecture.STATES if self.h is None else parser.parse("--h", self.h)

        def matrix(option: str, value: str | None, of_lecture: Rows) -> Rows:
            if value is not None:
                return parser.parse(option, value)
            return of_lecture if self.h is None else identity(len(states[0]) if states else 1)

        return lecture.AttentionExample(
            states=states,
            to_query=matrix("--wq", self.wq, lecture.TO_QUERY),
            to_key=matrix("--wk", self.wk, lecture.TO_KEY),
            to_value=matrix("--wv", self.wv, lecture.TO_VALUE),
            query=(2 if len(states) > 1 else 1) if self.query is None else self.query,
            score=self.score or "dot",
            scale=self.scale or "one",
            gamma=1.0 if self.gamma is None else self.gamma,
            selection=self.select or "argmax",
        )

    def _useless_options(self, example: AttentionExample) -> list[str]:
        """Return an error message for each given option that would have no effect."""
        problems = []
        if self.scale is not None and (example.score != "dot" or example.measures_distance):
            problems.append(
                "--scale divides the dot product. It needs --score dot with --select softmax or "
                "argmax."
            )
        if self.gamma is not None and example.score != "rbf":
            problems.append("--gamma is the factor γ of the rbf score. It needs --score rbf.")
        return problems
