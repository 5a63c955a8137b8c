"""Images and what is said about them."""

import re
from collections.abc import Iterator
from pathlib import Path

from seqloom.config.schema.corpora import CaptionsConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines
from seqloom.data.images import image_names

SHOWN = 5
_NUMBER = re.compile(r"#\d+$")


def read_captions(config: CaptionsConfig, folder: str) -> Iterator[Example]:
    """An example for each caption; its source is the place of the image."""
    path = locate(config.captions, folder)
    wanted = None if config.names is None else _names(locate(config.names, folder))
    places = _places(config, folder)
    seen: set[str] = set()
    for number, line in enumerate(read_lines(path), start=1):
        name, tab, caption = line.partition("\t")
        if not tab:
            raise DataError(
                f"{path}:{number}: there is no tab; a line is the name of an image, a tab and "
                "its caption"
            )
        name = _NUMBER.sub("", name.strip())
        if wanted is not None and name not in wanted:
            continue
        if name not in places:
            raise DataError(
                f"{path}:{number}: the image {name} is in none of {', '.join(config.images)}; add "
                "the place that holds it to images, or name the images that are meant in a file: "
                "names"
            )
        seen.add(name)
        yield Example(places[name], caption, (caption,), f"{path}:{number}")
    if missing := sorted((wanted or set()) - seen):
        shown = ", ".join(missing[:SHOWN]) + (" …" if len(missing) > SHOWN else "")
        raise DataError(f"{path}: has no caption for {len(missing)} of {config.names}: {shown}")


def _names(path: Path) -> set[str]:
    return {line.strip() for line in read_lines(path) if line.strip()}


def _places(config: CaptionsConfig, folder: str) -> dict[str, str]:
    """Name -> reference, for every image; a name is unique however it is archived."""
    places: dict[str, str] = {}
    for one in config.images:
        place = Path(folder).expanduser() / Path(one).expanduser()
        for name in image_names(place):
            places.setdefault(name.rsplit("/", 1)[-1], f"{place}/{name}")
    return places
