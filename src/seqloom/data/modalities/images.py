"""Images as a source: pixels from folders, zip files and tar files.

The images of a corpus are decoded once, stored as raw pixels and read through a memory map.
"""

import hashlib
import io
import json
import re
import tarfile
import zipfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from seqloom.config.schema.corpora import CaptionsConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import CaptioningConfig
from seqloom.core.errors import DataError, NotFoundError
from seqloom.core.signature import Pixels
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.corpus.digests import file_digest
from seqloom.data.example import Example
from seqloom.data.modalities.modality import Modality, SourceInput, SourceWriter
from seqloom.data.readers.generated.scenes import SCENE_PREFIX, draw_scene
from seqloom.data.readers.reader import Reader, Records
from seqloom.data.readers.text_files import locate, read_lines
from seqloom.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # imports torch, which takes seconds, and worker processes do not need it
    from seqloom.core.batch import Images

SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")
PIXELS_FILE = "images.bytes"
ROWS_FILE = "images.rows"
SHAPE_FILE = "images.json"
IMAGE_TOKENS = 64
"""An image counts as this many tokens in the token budget. Encoding an image on a CPU takes some
megabytes, and batches of more than a few dozen images are not faster."""
MAX_LISTED = 5
"""Maximum number of images without a caption that an error message lists."""
_CAPTION_NUMBER = re.compile(r"#\d+$")
"""Flickr files number the captions of an image: dog.jpg#0, dog.jpg#1."""
PixelArray = NDArray[np.uint8]
"""(3, height, width)"""


@dataclass(frozen=True)
class ImageInput(SourceInput):
    """An image.

    pixels: (3, height, width)
    """

    pixels: PixelArray
    length: ClassVar[None] = None

    @property
    def size(self) -> int:
        return IMAGE_TOKENS

    @classmethod
    def collate(cls, inputs: Sequence[Self]) -> "Images":
        import torch

        from seqloom.core.batch import Images

        return Images(torch.from_numpy(np.stack([one.pixels for one in inputs])))


class ImageModality(Modality):
    """Square images.

    size:   height and width, in pixels, of the images that the model processes
    margin: images are read with a height and width of `size` + `margin` pixels. The model crops
            them to `size`
    """

    file: ClassVar[str] = PIXELS_FILE

    def __init__(self, size: int, margin: int) -> None:
        self.size = size
        self.read_size = size + margin

    @classmethod
    def learn(cls, config: RunConfig, tokenizer: Tokenizer | None, sources: Iterable[str]) -> Self:
        assert isinstance(config.task, CaptioningConfig)
        return cls(config.task.size, config.task.margin)

    @classmethod
    def load(cls, config: RunConfig, folder: Path) -> Self:
        return cls.learn(config, None, ())

    @property
    def spec(self) -> Pixels:
        return Pixels(3, self.size, self.size)

    def prepare(self, text: str) -> ImageInput:
        """Read the image whose path is `text`."""
        return ImageInput(read_pixels(text.strip(), self.read_size))

    def decode(self, content: bytes, name: str) -> ImageInput:
        """Decode the content of an image file.

        name: the image's name, for error messages
        """
        return ImageInput(decode_pixels(content, name, self.read_size))

    def centre(self, source: ImageInput) -> PixelArray:
        """Return the centre of an image, which is the input of the model in prediction."""
        margin = (self.read_size - self.size) // 2
        part = slice(margin, margin + self.size)
        return source.pixels[:, part, part]

    @property
    def identity(self) -> list[Any]:
        return [self.read_size]

    def writer(self, folder: Path) -> "ImageWriter":
        return ImageWriter(folder, self.read_size)

    @classmethod
    def open(cls, folder: Path, shards: Sequence[Path]) -> "ImageStore":
        return ImageStore(shards[0])


class ImageStore:
    """Reads the images of many examples. An image with several captions is stored once.

    pixels: (N, 3, size, size) pixels of the N distinct images
    rows:   (examples,) for each example, the index of its image in `pixels`
    """

    lengths = None

    def __init__(self, folder: Path) -> None:
        self.rows: IntArray = np.fromfile(folder / ROWS_FILE, dtype=np.int64)
        size = json.loads((folder / SHAPE_FILE).read_bytes())["size"]
        mapped = np.memmap(folder / PIXELS_FILE, dtype=np.uint8, mode="r")
        self.pixels: NDArray[np.uint8] = np.asarray(mapped.reshape(-1, 3, size, size))

    def take(self, indices: IntArray) -> "Images":
        """Return the images of the examples at `indices`, in this order."""
        import torch

        from seqloom.core.batch import Images

        return Images(torch.from_numpy(self.pixels[self.rows[indices]]))

    def release(self) -> None:
        """Do nothing: the pixels stay in memory, because an image with several captions is read
        several times in an epoch."""


class ImageWriter(SourceWriter):
    """Writes the files of an `ImageStore`. Each distinct image is stored once."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._size = size
        self._indices: dict[str, int] = {}
        self._rows = array("q")
        (folder / SHAPE_FILE).write_text(json.dumps({"size": size}))

    def length(self, encoded: str) -> None:
        return None

    def append(self, encoded: Sequence[str], examples: Sequence[Example]) -> None:
        for path in encoded:
            if path not in self._indices:
                self._indices[path] = len(self._indices)
                with (self._folder / PIXELS_FILE).open("ab") as file:
                    file.write(read_pixels(path, self._size).tobytes())
            self._rows.append(self._indices[path])

    def close(self) -> None:
        (self._folder / ROWS_FILE).write_bytes(self._rows.tobytes())


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


def read_pixels(path: str, size: int) -> PixelArray:
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


def decode_pixels(content: bytes, name: str, size: int) -> PixelArray:
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


class CaptionsReader(Reader[CaptionsConfig]):
    """Reads one example per caption. The source of the example is the path of the image."""

    @property
    def used_files(self) -> list[str]:
        return [*self.corpus.images, *self._text_files]

    @property
    def name(self) -> str:
        return self.corpus.captions

    @property
    def _text_files(self) -> list[str]:
        names = self.corpus.names
        return [self.corpus.captions, *([] if names is None else [names])]

    def identity(self) -> list[Any]:
        return [
            [file_digest(locate(name, self.folder)) for name in self._text_files],
            [images_digest(image_container(name, self.folder)) for name in self.corpus.images],
        ]

    def read(self) -> Records:
        path = locate(self.corpus.captions, self.folder)
        selected = (
            None
            if self.corpus.names is None
            else _read_names(locate(self.corpus.names, self.folder))
        )
        image_paths = _image_paths(self.corpus, self.folder)
        captioned: set[str] = set()
        for number, line in enumerate(read_lines(path), start=1):
            name, tab, caption = line.partition("\t")
            if not tab:
                raise DataError(
                    f"{path}:{number}: there is no tab; a line must be the name of an image, a tab and "
                    "a caption"
                )
            name = _CAPTION_NUMBER.sub("", name.strip())
            if selected is not None and name not in selected:
                continue
            if "/" in name:
                raise DataError(
                    f"{path}:{number}: the image {name} is a path; write only the name of the file, and "
                    "add its folder or archive to `images`"
                )
            if name not in image_paths:
                raise DataError(
                    f"{path}:{number}: the image {name} is in none of {', '.join(self.corpus.images)}; add "
                    "its folder or archive to `images`, or list the images to use in a file and set "
                    "`names` to that file"
                )
            captioned.add(name)
            yield Example(image_paths[name], caption, (caption,), f"{path}:{number}")
        if missing := sorted((selected or set()) - captioned):
            listed = ", ".join(missing[:MAX_LISTED]) + (" …" if len(missing) > MAX_LISTED else "")
            raise DataError(
                f"{path}: has no caption for {len(missing)} of the images in {self.corpus.names}: {listed}; "
                "add captions, or remove these names"
            )


def _read_names(path: Path) -> set[str]:
    return {line.strip() for line in read_lines(path) if line.strip()}


def _image_paths(config: CaptionsConfig, folder: str) -> dict[str, str]:
    """Map the file name of each image to its path. If several images have the same file name, the
    first one is used."""
    paths: dict[str, str] = {}
    for container in config.images:
        container_path = image_container(container, folder)
        for name in image_names(container_path):
            paths.setdefault(name.rsplit("/", 1)[-1], f"{container_path}/{name}")
    return paths


def images_digest(container: Path) -> str:
    """Return a digest of the images in an archive or a folder.

    For an archive, the digest covers its content. For a folder, it covers the names, sizes and
    modification times of the images, because reading all images would take long.
    """
    if container.is_file():
        return file_digest(container)
    entries = [
        (name, status.st_size, status.st_mtime_ns)
        for name in image_names(container)
        for status in [(container / name).stat()]
    ]
    return hashlib.sha256(repr(entries).encode()).hexdigest()
