"""Settings of the documentation site. `make docs` builds it."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from seqloom import __version__  # noqa: E402

project = "seqloom"
author = "The seqloom authors"
release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
    "tools.site.sphinx_extension",
]
exclude_patterns = ["generated/notebooks"]
highlight_language = "text"  # of code blocks without a language
smartquotes = False  # quotes in settings are part of the value
nitpicky = True
# Signatures name types of other libraries and of modules that are not public.
nitpick_ignore_regex = [("py:.*", ".*")]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "html_image"]
myst_heading_anchors = 4
if not (ROOT / "docs" / "course" / "index.md").exists():  # a copy without the course
    suppress_warnings = ["toc.not_readable"]

nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "docs" / "notebooks")
nb_execution_in_temp = True  # notebooks write run folders
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True  # the lines that a cell prints are one block

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
python_use_unqualified_type_names = True

copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = "seqloom"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_search_summary = False  # summaries cannot be loaded from files
html_show_copyright = False
html_show_sphinx = False
