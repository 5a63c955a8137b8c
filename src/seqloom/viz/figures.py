"""Create matplotlib figures and write them to files. The file's suffix selects the format."""

import io
import warnings
from pathlib import Path
from typing import Any

from seqloom.core.errors import ConfigError
from seqloom.core.extras import import_optional
from seqloom.core.storage import write_file

IMAGE_FORMATS = ("png", "svg", "pdf")


def image_format(path: Path) -> str:
    """Return the image format that the suffix of `path` names.

    Raises:
        ConfigError: if figures cannot be written in this format.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in IMAGE_FORMATS:
        raise ConfigError(
            f"{path}: unsupported image format. Supported formats: {', '.join(IMAGE_FORMATS)}. "
            f"Name the file {path.stem}.png, for example."
        )
    return suffix


def create_figure(path: Path, size: tuple[float, float], purpose: str) -> Any:
    """Return an empty matplotlib figure of this size in inches.

    Checks the suffix of `path`, so that an unknown format is reported before anything is drawn.

    Args:
        purpose: what the figure shows. Used in the error message if matplotlib is not installed.
    """
    image_format(path)
    figure_module = import_optional("matplotlib.figure", "plots", purpose)
    return figure_module.Figure(figsize=size, layout="constrained")


def save_figure(path: Path, figure: Any) -> None:
    """Write the figure in the format that the suffix of `path` names."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A font without glyphs for a script draws boxes. The figure is still useful.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format=image_format(path), dpi=160)
    write_file(path, buffer.getvalue())
