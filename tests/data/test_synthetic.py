from itertools import combinations

import pytest

from seqloom.config.schema.corpora import SyntheticConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example, Split
from seqloom.data.synthetic import read_synthetic

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
CONFIGS = [
    SyntheticConfig(task="copy", examples=300, min_length=2, max_length=4, symbols=5),
    SyntheticConfig(task="reverse", examples=300, max_length=3),
    SyntheticConfig(task="sort", examples=300, max_length=3),
    SyntheticConfig(task="addition", examples=300, max_length=2),
    SyntheticConfig(task="case", examples=300, min_length=3, max_length=12),
]
every_task = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.task)


def answer(task: str, source: str) -> str:
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


def parts(example: Example, task: str) -> list[str]:
    if task == "addition":
        return example.source.split("+")
    return [example.source[4:] if task == "case" else example.source]


@every_task
def test_answers_are_true_and_lengths_as_asked(config: SyntheticConfig) -> None:
    examples = list(read_synthetic(config, "train"))
    assert len(examples) == config.examples
    assert all(example.target == answer(config.task, example.source) for example in examples)
    lengths = {len(part) for example in examples for part in parts(example, config.task)}
    assert min(lengths) >= config.min_length
    assert max(lengths) <= config.max_length
    assert len(lengths) > 1


@every_task
def test_reading_twice_gives_the_same_and_another_seed_something_else(
    config: SyntheticConfig,
) -> None:
    other = config.model_copy(update={"seed": 7})
    assert list(read_synthetic(config, "dev")) == list(read_synthetic(config, "dev"))
    assert list(read_synthetic(config, "dev")) != list(read_synthetic(other, "dev"))


@every_task
def test_fewer_examples_are_the_first_of_more(config: SyntheticConfig) -> None:
    fewer = config.model_copy(update={"examples": 20})
    assert list(read_synthetic(fewer, "train")) == list(read_synthetic(config, "train"))[:20]


@every_task
def test_no_two_splits_share_a_source_whatever_their_seeds(config: SyntheticConfig) -> None:
    seen = {
        split: {
            "+".join(parts(example, config.task))
            for example in read_synthetic(config.model_copy(update={"seed": seed}), split)
        }
        for seed, split in enumerate(SPLITS)
    }
    for one, other in combinations(SPLITS, 2):
        assert not seen[one] & seen[other]


def test_a_split_without_any_source_is_an_error_and_not_an_endless_search() -> None:
    config = SyntheticConfig(task="copy", examples=5, max_length=1, symbols=2)
    with pytest.raises(DataError, match=r"none is left for the \w+ split; raise max_length"):
        _ = [list(read_synthetic(config, split)) for split in SPLITS]
