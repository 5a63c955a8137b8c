"""Draws results of analyses: as text in a terminal, as figures and as HTML pages.

Modules are named after what they draw and where: `attention_terminal`, `attention_figure`
(matplotlib) and `attention_page` (HTML); `search_tree_terminal`, `search_tree_figure` and
`search_tree_page`, which share `search_tree_layout`; `explanation_terminal` for one decoder step;
`gradients`, `caption_attention`, `comparison_page`, `line_plot`; `chart` for SVG charts.
`terminal_format` and `figures` contain helpers of these modules.
"""
