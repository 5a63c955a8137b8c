"""The bars at the top of the page: how fast each of them trains and decodes."""

from pathlib import Path
from typing import Any

from bench import decoding_table, training_table

OURS, THEIRS, INK = "#d1495b", "#b8c4cc", "#2f3b45"
Bars = list[tuple[str, float]]


def draw(training: dict[str, Any], decoding: dict[str, Any], path: Path) -> None:
    """One panel for each comparison, the fastest on top, seqloom in its own colour."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = panels_of(training, decoding)
    heights = [len(bars) for _, bars in panels]
    figure, axes = pyplot.subplots(
        len(panels),
        1,
        figsize=(8.6, 0.36 * sum(heights) + 0.75 * len(panels)),
        height_ratios=heights,
        layout="constrained",
    )
    for axis, (title, bars) in zip([axes] if len(panels) == 1 else axes, panels, strict=True):
        panel(axis, title, bars)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    pyplot.close(figure)


def panels_of(training: dict[str, Any], decoding: dict[str, Any]) -> list[tuple[str, Bars]]:
    """Speeds relative to seqloom's, as they were side by side: a machine's own drift cancels."""
    titles = {
        "transformer": "Training a Transformer: speed, seqloom = 1",
        "recurrent": "Training a GRU with attention: speed, seqloom = 1",
    }
    panels = []
    for model, title in titles.items():
        if model in training["models"]:
            found = training_table.measured(training["models"][model])
            bars = [
                (group[key]["name"], 1 / training_table.faster(key, group).median)
                for key, group in found
            ]
            panels.append((title, bars))
    contenders = decoding["contenders"]
    for setting in ("beam 5, batch 32", "beam 5, batch 1"):
        bars = [
            (
                contenders[key]["name"],
                1 / decoding_table.faster(key, contenders, setting).median,
            )
            for key in decoding_table.measured(contenders, setting)
        ]
        panels.append((f"Decoding, {setting}: speed, seqloom's torch compiled = 1", bars))
    return panels


def panel(axis: Any, title: str, bars: Bars) -> None:
    names = [name for name, _ in bars]
    values = [value for _, value in bars]
    colours = [OURS if name.startswith("seqloom") else THEIRS for name in names]
    drawn = axis.barh(names, values, color=colours, height=0.72)
    axis.bar_label(drawn, fmt="{:.2f}", padding=4, color=INK, fontsize=9)
    axis.invert_yaxis()
    axis.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold")
    axis.tick_params(length=0, colors=INK, labelsize=9)
    axis.xaxis.set_visible(False)
    axis.margins(x=0.12)
    for side in axis.spines.values():
        side.set_visible(False)
