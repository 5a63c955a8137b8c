"""The table and the plots of the beam width benchmark."""

from typing import Any

from bench.beam_widths import plots, table

ROWS: list[dict[str, Any]] = [
    {"width": width, "length_penalty": exponent, "log_probability": -10.0 + width}
    | {"tokens": 8.0 - exponent, "bleu": 20.0 + width * exponent}
    for exponent in (0.0, 1.0)
    for width in (1, 2, 3)
]


def test_every_measurement_has_a_row_and_a_point() -> None:
    assert len(table({"rows": ROWS}).splitlines()) == 2 + len(ROWS)
    log_probability, bleu = plots(ROWS)
    assert [(line.x, line.values) for line in log_probability.series] == [
        ([1, 2, 3], [[-9], [-8], [-7]])
    ] * 2
    assert bleu.series[0].values == [[20], [20], [20]]
    assert bleu.series[1].values == [[21], [22], [23]]
