"""Imports packages that are installed only with an optional extra, such as seqloom[plots]."""

import importlib
from types import ModuleType

from seqloom.core.errors import NotFoundError


def import_optional(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a module whose package is installed with the optional extra `extra`.

    Raises NotFoundError with the install command if the package is not installed. The message
    starts with `purpose`, which names the feature that needs the package, for example "seqloom
    serve".
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise NotFoundError(
            f"{purpose} needs {package}, which is not installed; "
            f"install it with: pip install 'seqloom[{extra}]'"
        ) from error
