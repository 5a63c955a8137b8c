"""Images from folders, zip and tar files, opened when they are needed."""

import hashlib
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
from seqloom.data.digests import file_digest

SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")
Pixels = NDArray[np.uint8]
"""(3, height, width)"""


def image_names(place: Path) -> Iterator[str]:
    """The images in a folder or an archive, by their paths in it."""
    if place.is_dir():
        found = (each.relative_to(place).as_posix() for each in place.rglob("*") if each.is_file())
        names = sorted(found)
    elif place.is_file():
        archive = _open(str(place), place.stat().st_mtime_ns)
        names = archive.namelist() if isinstance(archive, zipfile.ZipFile) else archive.getnames()
    else:
        raise NotFoundError(
            f"{place.absolute()}: there is no such folder or archive of images; "
            "to look elsewhere: --set data.folder=…"
        )
    return (name for name in names if name.lower().endswith(SUFFIXES))


def images_digest(place: Path) -> str:
    """Of an archive its content; of a folder the names, sizes and times of its images, since to
    read all of them would take as long as to use them."""
    if place.is_file():
        return file_digest(place)
    facts = [
        (name, found.st_size, found.st_mtime_ns)
        for name in image_names(place)
        for found in [(place / name).stat()]
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def read_pixels(reference: str, size: int) -> Pixels:
    """The middle square of an image, so many pixels wide: (3, size, size)

    reference: a file, or a member of an archive as photos.zip/dog.jpg
    """
    try:
        content = _content(Path(reference).expanduser())
    except (OSError, ValueError) as error:
        raise _unreadable(reference, error) from error
    return pixels_of(content, reference, size)


def pixels_of(content: bytes, name: str, size: int) -> Pixels:
    """The same of an image that is at hand. name: what errors call it"""
    try:
        with Image.open(io.BytesIO(content)) as image:
            square = _middle(image.convert("RGB"), size)
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise _unreadable(name, error) from error
    return np.asarray(square, dtype=np.uint8).transpose(2, 0, 1)


def _unreadable(name: str, error: Exception) -> DataError:
    return DataError(
        f"{name}: cannot be read as an image ({error}); is it whole, and of a usual format?"
    )


def _middle(image: Image.Image, size: int) -> Image.Image:
    """Scaled until its shorter side has the size; what is longer is cut off on both ends."""
    width, height = image.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return image.resize(
        (size, size), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side)
    )


def _content(path: Path) -> bytes:
    if path.is_file():
        return path.read_bytes()
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    if archive is None:
        raise NotFoundError(f"{path}: there is no such image")
    opened = _open(str(archive), archive.stat().st_mtime_ns)
    member = path.relative_to(archive).as_posix()
    try:
        if isinstance(opened, zipfile.ZipFile):
            return opened.read(member)
        file = opened.extractfile(member)
    except KeyError as error:
        raise NotFoundError(f"{path}: {archive.name} holds no {member}") from error
    if file is None:
        raise DataError(f"{path}: is a folder inside {archive.name}, not an image")
    return file.read()


@lru_cache(maxsize=16)
def _open(path: str, changed: int) -> zipfile.ZipFile | tarfile.TarFile:
    """Kept open: its table of contents is read once. `changed` opens a file again that changed."""
    try:
        return zipfile.ZipFile(path) if zipfile.is_zipfile(path) else tarfile.open(path)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise DataError(f"{path}: is no zip or tar file that can be read ({error})") from error
