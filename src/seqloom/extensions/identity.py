"""The version of an extension: its package and a digest of its source code."""

import hashlib
import inspect
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ExtensionVersion:
    """Where the code of an extension comes from.

    module:       module that defines the extension
    name:         name of the extension in that module
    distribution: installed package and its version, such as "mypackage 1.2"; "" if the module does
                  not belong to an installed package
    sha256:       SHA-256 of the source file of the module; "" if there is no file, as in a notebook
    """

    module: str
    name: str
    distribution: str
    sha256: str


def extension_version(extension: Any) -> ExtensionVersion:
    """Return the package, its version and the digest of the source code of an extension.

    The digest covers the module that defines the extension, not the modules that it imports.
    """
    module: str = extension.__module__
    return ExtensionVersion(
        module, extension.__qualname__, _distribution(module.split(".")[0]), _source_digest(module)
    )


@cache
def _distribution(package: str) -> str:
    names = packages_distributions().get(package, [])
    return f"{names[0]} {version(names[0])}" if names else ""


def _source_digest(module: str) -> str:
    try:
        path = inspect.getsourcefile(sys.modules[module])
    except (KeyError, TypeError):
        return ""
    if path is None or not Path(path).is_file():
        return ""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
