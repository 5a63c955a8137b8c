"""Writes the pages of the Python API: the public names of each package.

The pages contain the directives of autodoc. Sphinx fills them with signatures and docstrings.
"""

import inspect
from importlib import import_module

PACKAGES = (
    "seqloom",
    "seqloom.nn",
    "seqloom.models",
    "seqloom.decoding",
    "seqloom.metrics",
    "seqloom.data",
    "seqloom.text",
    "seqloom.analysis",
    "seqloom.viz",
    "seqloom.testing",
)
INTRODUCTION = """\
Python API
==========

The public names of seqloom. Import them from the packages below, not from the modules that define them.

.. toctree::
   :maxdepth: 1

"""


def render_api() -> dict[str, str]:
    """Return the pages in reStructuredText: an index, and one page per package."""
    index = INTRODUCTION + "".join(f"   {package}\n" for package in PACKAGES)
    return {"index": index, **{package: _render_package(package) for package in PACKAGES}}


def _render_package(package: str) -> str:
    parts = [package, "=" * len(package), "", f".. automodule:: {package}", "   :no-members:", ""]
    for name in public_names(package):
        parts += [f".. {_directive(package, name)}:: {package}.{name}", ""]
    return "\n".join(parts)


def public_names(package: str) -> list[str]:
    """Return the names that a package exports."""
    return list(getattr(import_module(package), "__all__", ()))


def _directive(package: str, name: str) -> str:
    value = getattr(import_module(package), name)
    if inspect.isclass(value):
        return "autoclass"
    return "autofunction" if inspect.isroutine(value) else "autodata"
