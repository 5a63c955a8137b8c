"""Draws results of analyses: as text in a terminal, as figures, as SVG and as HTML pages.

`drawing` has the shapes, colours and fonts of all figures and writes them as SVG, PNG or PDF. Modules
that end in `_terminal` draw text. `pages` writes HTML pages of the components in `components/`, which
are also part of the web page.

The public functions return SVG, which Jupyter notebooks display:

    from seqloom import viz
    from seqloom.analysis import search_example

    viz.draw_search_tree(search_example()).save("tree.svg")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.viz.attention_matrix import draw_attention_matrix
    from seqloom.viz.chart import BarChart, LineChart, Series, render_svg
    from seqloom.viz.diagrams.recurrent_models import draw_encoder_decoder, draw_unrolled_rnn
    from seqloom.viz.diagrams.soft_lookup import draw_soft_lookup
    from seqloom.viz.diagrams.transformer_layer import draw_transformer_layer
    from seqloom.viz.drawing import Svg
    from seqloom.viz.search_tree import draw_search_tree

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
    "Svg": "drawing",
    "draw_attention_matrix": "attention_matrix",
    "draw_encoder_decoder": "diagrams.recurrent_models",
    "draw_search_tree": "search_tree",
    "draw_soft_lookup": "diagrams.soft_lookup",
    "draw_transformer_layer": "diagrams.transformer_layer",
    "draw_unrolled_rnn": "diagrams.recurrent_models",
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
