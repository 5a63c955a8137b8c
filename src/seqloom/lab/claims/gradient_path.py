"""Through attention a gradient takes one step; along the chain it takes as many as there are words."""

import math
from dataclasses import dataclass, replace

import torch

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.results import Numbers, Results
from seqloom.lab.untrained import random_batch, random_model, recurrent, transformer
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart, LineChart, Series

CHAIN, LOOKING, TRANSFORMER = "GRU, chain alone", "GRU with attention", "Transformer"
LENGTHS = (5, 10, 20, 40, 80)
NAMES = [f"gradient at {length}" for length in LENGTHS]
WAY = f"from {LENGTHS[0]} to {LENGTHS[-1]} words"


@dataclass(frozen=True)
class Settings:
    width: int
    rows: int


def configure(trial: Trial[Settings]) -> ModelConfig:
    if trial.condition == TRANSFORMER:
        return transformer(trial.settings.width, layers=2)
    return recurrent(trial.settings.width, attention=trial.condition == LOOKING)


def measure(trial: Trial[Settings]) -> Numbers:
    """How much the last answer depends on the first word read, for sentences of each length."""
    # Double precision: what fades over 160 steps is too small for anything else.
    model = random_model(configure(trial), trial.seed).double()
    numbers = {}
    for length, name in zip(LENGTHS, NAMES, strict=True):
        batch = random_batch(trial.settings.rows, length, trial.seed)
        assert isinstance(batch.source, Padded)
        read = batch.source.values.double().requires_grad_()  # (B, S, D)
        sentences = replace(batch, source=Padded(read, batch.source.lengths))
        logits = model(sentences).logits()[:, -1]  # (B, V)
        torch.nn.functional.cross_entropy(logits, batch.targets.values[:, -1]).backward()
        assert read.grad is not None
        numbers[name] = read.grad[:, 0].norm(dim=-1).mean().item() * trial.settings.rows
    return numbers


def judge(results: Results) -> Verdict:
    def fall(condition: str) -> list[float]:
        """By how many powers of ten the gradient falls as sentences grow."""
        return _ratios(*(results.over_seeds(condition, NAMES[place]) for place in (0, -1)))

    longest = [results.over_seeds(one, NAMES[-1]) for one in (LOOKING, CHAIN)]
    # Shared among T words, each has 1/T of the weight: so much less is no fault of the path.
    fair, unit = math.log10(2 * LENGTHS[-1] / LENGTHS[0]), "powers of ten"
    return conclude(
        Effect(f"{WAY}, the gradient falls along the chain by", fall(CHAIN), above=fair, unit=unit),
        Effect(f"{WAY}, it falls through attention by", fall(LOOKING), below=fair, unit=unit),
        Effect(f"{WAY}, it falls in a Transformer by", fall(TRANSFORMER), below=fair, unit=unit),
        Effect(
            f"at {LENGTHS[-1]} words, attention has more of it than the chain, by",
            _ratios(*longest),
            above=1.0,
            unit=unit,
        ),
    )


def _ratios(ones: list[float], others: list[float]) -> list[float]:
    """By how many powers of ten the ones are above the others."""
    tiny = 1e-300  # what even double precision calls zero
    pairs = zip(ones, others, strict=True)
    return [math.log10(max(one, tiny) / max(other, tiny)) for one, other in pairs]


def plot(results: Results) -> list[Chart]:
    series = [
        Series(one, LENGTHS, results.curve(one, NAMES)) for one in (CHAIN, LOOKING, TRANSFORMER)
    ]
    label = "gradient of the last answer at the first word"
    return [LineChart("words", label, series, logarithmic_x=True, logarithmic_y=True)]


CLAIM = Claim(
    name="gradient-path",
    sentence="Attention connects every output with every input in one step, so gradients reach far "
    "words; along the recurrent chain they pass as many steps as there are words, and fade.",
    source="L1, Attention summary (O(T) to O(1)); L0 §1.3.4; L3, backpropagation with attention",
    setup="Models with the random weights that training begins with read random vectors. The loss "
    "of the last output is sent back to the first vector read, for sentences of 5 to 80 words; "
    "between the two lie twice as many states as words along the chain, and one attention "
    "otherwise. A gradient that is shared among T words may fall like 1/T without any fault of "
    "its path, so a factor of twice that counts as none.",
    confirms="From 5 to 80 words the gradient falls by more than a factor of 32 along the chain and "
    "by less with attention and in a Transformer, and at 80 words attention has ten times the "
    "chain's.",
    refutes="The chain keeps its gradient, or attention loses it, with every seed.",
    conditions=(CHAIN, LOOKING, TRANSFORMER),
    sizes={
        "tiny": Settings(width=16, rows=2),
        "small": Settings(width=64, rows=32),
        "full": Settings(width=512, rows=64),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=tuple(
        Column(name, f"{length} words", ".2e") for name, length in zip(NAMES, LENGTHS, strict=True)
    ),
)
