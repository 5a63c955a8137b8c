"""Programs that measure something other than trained models: speed, latency, memory, exports."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A program of `python -m bench NAME`.

    module: has `add_options(parser)`; `measure(options)`, which yields the results so far, each of
            them to be stored; the function that renders them as Markdown; and maybe `draw()`, which
            draws a picture of the stored results
    """

    module: str
    help: str
    table: str = "table"


PROGRAMS: dict[str, Program] = {
    "training-cpu": Program(
        "bench.comparison.training", "training on a CPU, compared with other toolkits"
    ),
    "decoding-cpu": Program(
        "bench.comparison.decoding", "decoding on a CPU, compared with other toolkits"
    ),
}
