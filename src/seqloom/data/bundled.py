"""The sentence pairs that come with seqloom."""

from collections.abc import Iterator
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable

from seqloom.config.schema.corpora import BundledConfig
from seqloom.data.example import Example, Split
from seqloom.data.files import read_lines


def bundled_file(config: BundledConfig, split: Split) -> Traversable:
    pair = "de-en" if "de" in (config.source, config.target) else "en-fr"
    return files("seqloom.bundled") / f"tatoeba-{pair}.{split}.tsv.gz"


def read_bundled(config: BundledConfig, split: Split) -> Iterator[Example]:
    """Each split is a file of its own; no two share a sentence."""
    resource = bundled_file(config, split)
    first_is_source = resource.name.startswith(f"tatoeba-{config.source}-")
    with as_file(resource) as path:
        for number, line in enumerate(read_lines(path), start=1):
            first, second = line.split("\t")
            source, target = (first, second) if first_is_source else (second, first)
            yield Example(source, target, (target,), f"{resource.name}:{number}")
