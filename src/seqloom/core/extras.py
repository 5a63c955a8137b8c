"""Packages that only some need, asked for when they are needed."""

import importlib
from types import ModuleType

from seqloom.core.errors import NotFoundError


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a package of an optional extra, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise NotFoundError(
            f"{purpose} needs {package}, which is not installed; "
            f"install it with: pip install 'seqloom[{extra}]'"
        ) from error
