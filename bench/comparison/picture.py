"""The bar charts of docs/benchmarks.md: relative training and decoding speed of the systems."""

from typing import Any

from bench.store import ROOT

PICTURE = ROOT / "docs" / "pictures" / "benchmarks.png"
SEQLOOM_COLOUR, PEER_COLOUR, TEXT_COLOUR = "#d1495b", "#b8c4cc", "#2f3b45"
Bars = list[tuple[str, float]]


def draw(training: dict[str, Any], decoding: dict[str, Any]) -> None:
    """Save a figure with one panel per comparison, fastest system on top."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = chart_panels(training, decoding)
    heights = [len(bars) for _, bars in panels]
    figure, axes = pyplot.subplots(
        len(panels),
        1,
        figsize=(8.6, 0.36 * sum(heights) + 0.75 * len(panels)),
        height_ratios=heights,
        layout="constrained",
    )
    for axis, (title, bars) in zip([axes] if len(panels) == 1 else axes, panels, strict=True):
        draw_panel(axis, title, bars)
    figure.savefig(PICTURE, dpi=130, metadata={"Software": None})
    pyplot.close(figure)


def chart_panels(training: dict[str, Any], decoding: dict[str, Any]) -> list[tuple[str, Bars]]:
    """Title and bars of each panel: speeds relative to seqloom in the same rounds."""
    from bench.comparison import decoding as decoding_results
    from bench.comparison import training as training_results

    titles = {
        "transformer": "Training a Transformer: speed, seqloom = 1",
        "recurrent": "Training a GRU with attention: speed, seqloom = 1",
    }
    panels = []
    for model, title in titles.items():
        if model in training["models"]:
            systems = training_results.measured_systems(training["models"][model])
            bars = [
                (group[key]["name"], 1 / training_results.speed_up(key, group).median)
                for key, group in systems
            ]
            panels.append((title, bars))
    results = decoding["contenders"]
    for setting in ("beam 5, batch 32", "beam 5, batch 1"):
        bars = [
            (
                results[key]["name"],
                1 / decoding_results.speed_up(key, results, setting).median,
            )
            for key in decoding_results.measured_keys(results, setting)
        ]
        panels.append((f"Decoding, {setting}: speed, seqloom's torch compiled = 1", bars))
    return panels


def draw_panel(axis: Any, title: str, bars: Bars) -> None:
    names = [name for name, _ in bars]
    values = [value for _, value in bars]
    colours = [SEQLOOM_COLOUR if name.startswith("seqloom") else PEER_COLOUR for name in names]
    container = axis.barh(names, values, color=colours, height=0.72)
    axis.bar_label(container, fmt="{:.2f}", padding=4, color=TEXT_COLOUR, fontsize=9)
    axis.invert_yaxis()
    axis.set_title(title, loc="left", color=TEXT_COLOUR, fontsize=11, fontweight="bold")
    axis.tick_params(length=0, colors=TEXT_COLOUR, labelsize=9)
    axis.xaxis.set_visible(False)
    axis.margins(x=0.12)
    for side in axis.spines.values():
        side.set_visible(False)
