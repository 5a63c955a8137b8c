"""Reads images from folders, zip files and tar files."""

import io
import tarfile
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.readers.generated.scenes import SCENE_PREFIX, draw_scene

SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")
Pixels = NDArray[np.uint8]
"""(3, height, width)"""


def image_container(name: str, folder: str) -> Path:
    """Return the path of a folder or an archive of images.

    name:   the path as written in the recipe
    folder: the setting `data.folder`. A relative `name` is relative to this folder.
    """
    return Path(folder).expanduser() / Path(name).expanduser()


def image_names(container: Path) -> Iterator[str]:
    """Return the paths of all images in a folder or an archive, relative to this container."""
    if container.is_dir():
        files = (path for path in container.rglob("*") if path.is_file())
        names = sorted(path.relative_to(container).as_posix() for path in files)
    elif container.is_file():
        archive = _open_archive(str(container), container.stat().st_mtime_ns)
        names = archive.namelist() if isinstance(archive, zipfile.ZipFile) else archive.getnames()
    else:
        raise NotFoundError(
            f"{container.absolute()}: there is no such folder or archive of images; "
            "to change the base folder: --set data.folder=…"
        )
    return (name for name in names if name.lower().endswith(SUFFIXES))


def read_pixels(path: str, size: int) -> Pixels:
    """Read the centre square of an image, resized to (3, size, size).

    path: a file, a member of an archive such as photos.zip/dog.jpg, or a generated image such as
          scene:red circle 30 20 18
    """
    if path.startswith(SCENE_PREFIX):
        return draw_scene(path, size)
    try:
        content = _read_content(Path(path).expanduser())
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return decode_pixels(content, path, size)


def decode_pixels(content: bytes, name: str, size: int) -> Pixels:
    """Decode the centre square of an encoded image, resized to (3, size, size).

    name: the image's name, for error messages
    """
    try:
        with Image.open(io.BytesIO(content)) as image:
            square = _centre_square(image.convert("RGB"), size)
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise _unreadable(name, error) from error
    return np.asarray(square, dtype=np.uint8).transpose(2, 0, 1)


def _unreadable(name: str, error: Exception) -> DataError:
    return DataError(
        f"{name}: cannot be read as an image ({error}); check that the file is complete and in a "
        "common format such as JPEG or PNG"
    )


def _centre_square(image: Image.Image, size: int) -> Image.Image:
    """Crop the longer side equally at both ends, and resize the result to (size, size)."""
    width, height = image.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return image.resize(
        (size, size), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side)
    )


def _read_content(path: Path) -> bytes:
    if path.is_file():
        return path.read_bytes()
    archive_path = next((parent for parent in path.parents if parent.is_file()), None)
    if archive_path is None:
        raise NotFoundError(f"{path.absolute()}: there is no such image; correct the path")
    archive = _open_archive(str(archive_path), archive_path.stat().st_mtime_ns)
    member = path.relative_to(archive_path).as_posix()
    try:
        if isinstance(archive, zipfile.ZipFile):
            return archive.read(member)
        file = archive.extractfile(member)
    except KeyError as error:
        raise NotFoundError(
            f"{path}: {archive_path.name} has no member {member}; correct the path"
        ) from error
    if file is None:
        raise DataError(
            f"{path}: is a folder inside {archive_path.name}, not an image; give the path of an "
            "image"
        )
    return file.read()


@lru_cache(maxsize=16)
def _open_archive(path: str, modified: int) -> zipfile.ZipFile | tarfile.TarFile:
    """Open an archive and keep it open, so that its table of contents is read only once.

    modified: modification time of the file. It is only a part of the cache key of this function,
              so that a changed file is opened again.
    """
    try:
        return zipfile.ZipFile(path) if zipfile.is_zipfile(path) else tarfile.open(path)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise DataError(
            f"{path}: is not a readable zip or tar file ({error}); copy or download the file again"
        ) from error
