"""Formulas as text: subscripts, concatenations, projections. Each layer states its own formula."""

import inspect

from torch import nn

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def indexed(letter: str, step: int) -> str:
    """Append a step as a subscript: s, 3 -> s₃"""
    return f"{letter}{step}".translate(_SUBSCRIPTS)


def indexed_layer(letter: str, layer: int, layers: int, step: int) -> str:
    """Append the layer as a superscript and the step as a subscript: s, layer 2, step 3 -> s²₃

    If there is only one layer, the superscript is omitted: s₃
    """
    superscript = "" if layers == 1 else str(layer).translate(_SUPERSCRIPTS)
    return f"{letter}{superscript}{str(step).translate(_SUBSCRIPTS)}"


def concatenated(symbols: list[str]) -> str:
    """Write a concatenation: [s₃; a₃]. A single symbol has no brackets."""
    return symbols[0] if len(symbols) == 1 else f"[{'; '.join(symbols)}]"


def fitted(vector: str, fit: nn.Module) -> str:
    """Formula of a vector after its projection to the width of the network.

    vector: formula of the vector before the projection
    fit:    the projection. If it is an `nn.Identity`, the result is `vector`.
    """
    return vector if isinstance(fit, nn.Identity) else f"W ({vector}) + b"


def is_extension(part: object) -> bool:
    """True if the class of the part is defined outside seqloom."""
    return type(part).__module__.partition(".")[0] != "seqloom"


def origin_note(part: object) -> str:
    """Describe a part that states no formula: where it is defined, and its settings."""
    names = [name for name in inspect.signature(type(part)).parameters if hasattr(part, name)]
    values = {name: getattr(part, name) for name in names}
    settings = [
        f"{name} = {value}"
        for name, value in values.items()
        if isinstance(value, str | int | float)
    ]
    origin = [f"from {type(part).__module__}, outside seqloom"] if is_extension(part) else []
    return "; ".join([*origin, ", ".join(settings)] if settings else origin)
