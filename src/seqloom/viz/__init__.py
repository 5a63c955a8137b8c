"""Draws results of analyses: as text in a terminal, as figures, as SVG and as HTML pages.

Modules are named after what they draw and how. For example, `attention_terminal` draws attention as
text, `attention_figure` as an image (with matplotlib), and `attention_page` as an HTML page.
`chart` draws SVG charts, and `diagrams` draws SVG diagrams. `terminal_format` and `figures` contain
helpers of the other modules.

The public functions return SVG, which Jupyter notebooks display:

    from seqloom import viz
    from seqloom.analysis import search_example

    viz.draw_search_tree(search_example()).save("tree.svg")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.viz.chart import BarChart, LineChart, Series, render_svg
    from seqloom.viz.diagrams.attention_matrix import draw_attention_matrix
    from seqloom.viz.diagrams.encoder_decoder import draw_encoder_decoder
    from seqloom.viz.diagrams.search_tree import draw_search_tree
    from seqloom.viz.diagrams.soft_lookup import draw_soft_lookup
    from seqloom.viz.diagrams.svg import Svg
    from seqloom.viz.diagrams.transformer_layer import draw_transformer_layer
    from seqloom.viz.diagrams.unrolled_rnn import draw_unrolled_rnn

__all__ = [
    "BarChart",
    "LineChart",
    "Series",
    "Svg",
    "draw_attention_matrix",
    "draw_encoder_decoder",
    "draw_search_tree",
    "draw_soft_lookup",
    "draw_transformer_layer",
    "draw_unrolled_rnn",
    "render_svg",
]

_MODULES = {
    "BarChart": "chart",
    "LineChart": "chart",
    "Series": "chart",
    "render_svg": "chart",
    "Svg": "diagrams.svg",
    "draw_attention_matrix": "diagrams.attention_matrix",
    "draw_encoder_decoder": "diagrams.encoder_decoder",
    "draw_search_tree": "diagrams.search_tree",
    "draw_soft_lookup": "diagrams.soft_lookup",
    "draw_transformer_layer": "diagrams.transformer_layer",
    "draw_unrolled_rnn": "diagrams.unrolled_rnn",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used.

    Some of the modules import torch, which takes seconds.
    """
    if name not in _MODULES:
        raise AttributeError(f"module 'seqloom.viz' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"seqloom.viz.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
