"""Reads captioned images."""

import re
from collections.abc import Iterator
from pathlib import Path

from seqloom.config.schema.corpora import CaptionsConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.modalities.images import image_container, image_names
from seqloom.data.readers.text_files import locate, read_lines

MAX_LISTED = 5
"""Maximum number of images without a caption that an error message lists."""
_CAPTION_NUMBER = re.compile(r"#\d+$")
"""Flickr files number the captions of an image: dog.jpg#0, dog.jpg#1."""


def read_captions(config: CaptionsConfig, folder: str) -> Iterator[Example]:
    """Yield one example per caption. The source of the example is the path of the image."""
    path = locate(config.captions, folder)
    selected = None if config.names is None else _read_names(locate(config.names, folder))
    image_paths = _image_paths(config, folder)
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
                f"{path}:{number}: the image {name} is in none of {', '.join(config.images)}; add "
                "its folder or archive to `images`, or list the images to use in a file and set "
                "`names` to that file"
            )
        captioned.add(name)
        yield Example(image_paths[name], caption, (caption,), f"{path}:{number}")
    if missing := sorted((selected or set()) - captioned):
        listed = ", ".join(missing[:MAX_LISTED]) + (" …" if len(missing) > MAX_LISTED else "")
        raise DataError(
            f"{path}: has no caption for {len(missing)} of the images in {config.names}: {listed}; "
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
