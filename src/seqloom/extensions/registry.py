"""Registers parts by name, and finds the part that a setting `kind` of a recipe names.

A part of seqloom itself is registered with the class of its settings, see `config/schema/section.py`.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

Point = Literal["score", "metric", "reader", "tokenizer", "rule", "encoder", "decoder"]
"""The extension points. An installed package registers its metrics, for example, as entry points in
the group "seqloom.metric"."""
POINTS: tuple[Point, ...] = get_args(Point)
FORM = "module:Name"
"""How a recipe names an extension that is not registered."""

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

_registered: dict[Point, dict[str, Any]] = {point: {} for point in POINTS}
_built_in: dict[str, dict[str, type[Any]]] = {}

Extension = TypeVar("Extension", bound=Callable[..., Any])


class ExtensionError(ValueError):
    """An extension cannot be found or used. The message says why and what to do."""


def score(name: str) -> Callable[[Extension], Extension]:
    """Decorator that registers a subclass of `seqloom.nn.AttentionScore` as an attention score."""
    return _registering("score", name)


def metric(name: str) -> Callable[[Extension], Extension]:
    """Decorator that registers a metric, a function of hypotheses and references."""
    return _registering("metric", name)


def reader(name: str) -> Callable[[Extension], Extension]:
    """Decorator that registers a data reader, a function that yields examples."""
    return _registering("reader", name)


def tokenizer(name: str) -> Callable[[Extension], Extension]:
    """Decorator that registers a subclass of `seqloom.text.PieceTokenizer` as a tokenizer."""
    return _registering("tokenizer", name)


def rule(name: str) -> Callable[[Extension], Extension]:
    """Decorator that registers a decoding rule, which implements `seqloom.decoding.Rule`."""
    return _registering("rule", name)


def encoder(name: str) -> Callable[[Extension], Extension]:
    """Decorator that registers a subclass of `seqloom.models.EncoderModule` as an encoder."""
    return _registering("encoder", name)


def decoder(name: str) -> Callable[[Extension], Extension]:
    """Decorator that registers a subclass of `seqloom.models.DecoderModule` as a decoder."""
    return _registering("decoder", name)


def _registering(point: Point, name: str) -> Callable[[Extension], Extension]:
    if not _NAME.fullmatch(name):
        raise ExtensionError(
            f"the name {name!r} of a {point} must consist of lower-case letters, digits and "
            "hyphens, such as 'cosine'"
        )

    def register(extension: Extension) -> Extension:
        other = _registered[point].get(name)
        # A notebook cell or a reloaded module defines the same extension again.
        if other is not None and _origin(other) != _origin(extension):
            raise ExtensionError(
                f"the name {name!r} is already registered for the {point} {_origin(other)}; choose "
                "another name"
            )
        _registered[point][name] = extension
        return extension

    return register


def register_built_in(point: str, kind: str, settings: type[Any]) -> None:
    """Register a part of seqloom itself, with the class of its settings (`PartConfig`).

    point: type of the part, such as "score"
    kind:  the name of the part in recipes. FORM stands for all extensions of this type
    """
    _built_in.setdefault(point, {})[kind] = settings


def built_in_parts(point: str) -> dict[str, type[Any]]:
    """Return the classes of the settings of all parts of one type, by their kinds."""
    return _built_in.get(point, {})


def _origin(extension: Any) -> str:
    """Return the module and the name of an extension in the form "module:Name"."""
    return f"{extension.__module__}:{extension.__qualname__}"


@cache
def _entry_points(point: Point) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"seqloom.{point}")}


def registered_names(point: Point) -> list[str]:
    """Return all registered names of one type of extension, for example of all scores."""
    return sorted({*_registered[point], *_entry_points(point)})


def is_extension(point: Point, kind: str) -> bool:
    """True if `kind` has the form "module:Name" or is a registered name."""
    return ":" in kind or kind in _registered[point] or kind in _entry_points(point)


def find_extension(point: Point, kind: str) -> Any:
    """Return an extension, which is a class or a function. Imports its module if necessary.

    Raises ExtensionError if there is no such extension.

    point: type of the extension, such as "score"
    kind:  registered name of the extension, or "module:Name"
    """
    if kind in _registered[point]:
        return _registered[point][kind]
    if ":" in kind:
        if not _PATH.fullmatch(kind):
            raise ExtensionError(
                f"'{kind}' must have the form '{FORM}', such as 'mypackage:Cosine'"
            )
        return load_part(kind)
    if kind in _entry_points(point):
        return load_part(_entry_points(point)[kind].value, name=kind)
    names = ", ".join(registered_names(point)) or "none"
    raise ExtensionError(
        f"no {point} is registered as '{kind}'; the registered names are: {names}. Install the "
        f"package that registers this name, or give the {point} in the form '{FORM}'"
    )


def load_part(path: str, name: str = "") -> Any:
    """Import the module of a part and return its class or function.

    path: module and name of the part, in the form "module:Name"
    name: the name of the entry point, for error messages. Default: "", no entry point
    """
    module_name, _, attributes = path.partition(":")
    subject = f"'{name}' is {path}, and its module" if name else "the module"
    try:
        value: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise ExtensionError(_missing_module(subject, module_name)) from error
        raise ExtensionError(
            f"{subject} '{module_name}' needs the module '{missing}', which is not installed; "
            "install it"
        ) from error
    except Exception as error:  # importing executes the module, which can raise any error
        raise ExtensionError(
            f"{subject} '{module_name}' cannot be imported: {type(error).__name__}: {error}"
        ) from error
    for attribute in attributes.split("."):
        if not hasattr(value, attribute):
            raise ExtensionError(
                f"the module '{module_name}' ({getattr(value, '__file__', 'built in')}) has no "
                f"'{attributes}'; correct the name in the recipe"
            )
        value = getattr(value, attribute)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        raise ExtensionError(
            f"'{path}' is a {type(value).__name__}, not a class or a function; correct the name in "
            "the recipe"
        )
    return value


def _missing_module(subject: str, module: str) -> str:
    top = module.split(".")[0]
    is_here = Path(f"{top}.py").is_file() or Path(top, "__init__.py").is_file()
    arguments = " ".join(sys.argv[1:]) if Path(sys.argv[0]).name == "seqloom" else "…"
    if is_here:
        advice = f"it is in the current directory, so run: PYTHONPATH=. seqloom {arguments}"
    else:
        advice = (
            "install the package that contains it or, if it is a file, put its folder on the path: "
            f"PYTHONPATH=FOLDER seqloom {arguments}"
        )
    return f"{subject} '{module}' is not on the Python path; {advice}"
