"""Synthetic examples: correct targets, reproducible, disjoint splits."""

from itertools import combinations

import pytest

from seqloom.config.schema.corpora import SyntheticConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example, Split
from seqloom.data.readers.splits import read_corpus

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
CONFIGS = [
    SyntheticConfig(task="copy", examples=300, min_length=2, max_length=4, symbols=5),
    SyntheticConfig(task="reverse", examples=300, max_length=3),
    SyntheticConfig(task="sort", examples=300, max_length=3),
    SyntheticConfig(task="addition", examples=300, max_length=2),
    SyntheticConfig(task="case", examples=300, min_length=3, max_length=12),
]
every_task = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.task)


def expected_target(task: str, source: str) -> str:
    match task:
        case "copy":
            return source
        case "reverse":
            return "".join(reversed(source))
        case "sort":
            return "".join(sorted(source))
        case "addition":
            first, second = source.split("+")
            return str(int(first) + int(second))
    tag, text = source.split(" ", 1)
    return {"<U>": text.upper(), "<L>": text.lower()}[tag]


def operands(example: Example, task: str) -> list[str]:
    """The texts whose lengths the config limits: both summands, or the source without its tag."""
    if task == "addition":
        return example.source.split("+")
    return [example.source[4:] if task == "case" else example.source]


@every_task
def test_targets_are_correct_and_lengths_within_limits(config: SyntheticConfig) -> None:
    examples = list(read_corpus(config, ".", "train", "data.train"))
    assert len(examples) == config.examples
    assert all(e.target == expected_target(config.task, e.source) for e in examples)
    lengths = {len(text) for example in examples for text in operands(example, config.task)}
    assert min(lengths) >= config.min_length
    assert max(lengths) <= config.max_length
    assert len(lengths) > 1


@every_task
def test_examples_depend_on_the_seed_alone(config: SyntheticConfig) -> None:
    other = config.model_copy(update={"seed": 7})
    assert list(read_corpus(config, ".", "dev", "data.train")) == list(
        read_corpus(config, ".", "dev", "data.train")
    )
    assert list(read_corpus(config, ".", "dev", "data.train")) != list(
        read_corpus(other, ".", "dev", "data.train")
    )


@every_task
def test_smaller_corpus_is_the_start_of_a_larger_one(config: SyntheticConfig) -> None:
    smaller = config.model_copy(update={"examples": 20})
    assert (
        list(read_corpus(smaller, ".", "train", "data.train"))
        == list(read_corpus(config, ".", "train", "data.train"))[:20]
    )


@every_task
def test_splits_share_no_source_whatever_their_seeds(config: SyntheticConfig) -> None:
    sources = {
        split: {
            "+".join(operands(example, config.task))
            for example in read_corpus(
                config.model_copy(update={"seed": seed}), ".", split, "data.train"
            )
        }
        for seed, split in enumerate(SPLITS)
    }
    for first, second in combinations(SPLITS, 2):
        assert not sources[first] & sources[second]


def test_split_without_any_source_is_an_error_not_an_endless_loop() -> None:
    config = SyntheticConfig(task="copy", examples=5, max_length=1, symbols=2)
    with pytest.raises(DataError, match=r"cannot be used in the \w+ split; there are too few"):
        _ = [list(read_corpus(config, ".", split, "data.train")) for split in SPLITS]
