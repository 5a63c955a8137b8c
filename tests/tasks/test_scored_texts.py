"""Outputs and references are compared in the Unicode form of the target tokenizer."""

from pathlib import Path
from typing import get_args
from unicodedata import normalize

import numpy as np
import pytest

from seqloom.config.schema.names import ScoreName
from seqloom.config.schema.task import CaptioningConfig, LabelsConfig, TranslationConfig
from seqloom.config.schema.text import Normalization, WhitespaceConfig
from seqloom.data.example import Example
from seqloom.data.modalities.frames import FrameModality
from seqloom.data.modalities.images import ImageModality
from seqloom.data.modalities.text import TextModality
from seqloom.inference.evaluation.groups import mean_scores, score_groups
from seqloom.metrics.score import Score
from seqloom.tasks.captioning import Captioning
from seqloom.tasks.labelling import Labelling
from seqloom.tasks.token_task import TokenTask
from seqloom.tasks.translation import Translation
from seqloom.text.build import train_tokenizer
from seqloom.text.tokenizer import Tokenizer

OUTPUTS = ["das gefällt mir sehr", "schöne grüße aus köln"]
REFERENCES = ["das gefällt mir sehr", "schöne grüße an köln"]
SCORES = get_args(ScoreName)


def tokenizer(form: Normalization = "nfc") -> Tokenizer:
    return train_tokenizer(WhitespaceConfig(), REFERENCES, (), False, form)


def tasks(form: Normalization) -> dict[str, TokenTask]:
    target = tokenizer(form)
    source = TextModality(target)
    frames = FrameModality(np.zeros(1, np.float32), np.ones(1, np.float32))
    return {
        "translation": Translation(TranslationConfig(scores=(*SCORES, "sari")), source, target),
        "labels": Labelling(LabelsConfig(scores=SCORES), source, target),
        "captioning": Captioning(CaptioningConfig(), ImageModality(8, 0), target),
        "frames": Labelling(LabelsConfig(scores=SCORES), frames, target),
    }


every_task = pytest.mark.parametrize("name", tasks("nfc"))


def examples(form: str | None = None) -> list[Example]:
    texts = [normalize("NFD", text) if form == "NFD" else text for text in REFERENCES]
    return [Example(f"{text} é", text, (text, f"{text} ä"), "") for text in texts]


def values(scores: list[Score]) -> dict[str, float]:
    return {score.key: score.value for score in scores}


@every_task
def test_the_form_of_references_and_sources_does_not_change_scores(name: str) -> None:
    task = tasks("nfc")[name]
    assert values(task.scores(OUTPUTS, examples("NFD"))) == values(task.scores(OUTPUTS, examples()))
    decomposed = [normalize("NFD", output) for output in OUTPUTS]
    assert values(task.scores(decomposed, examples())) == values(task.scores(OUTPUTS, examples()))


@every_task
def test_signatures_name_the_form_only_if_it_changed_a_text(name: str) -> None:
    task = tasks("nfc")[name]
    for score in task.scores(OUTPUTS, examples("NFD")):
        assert str(score.signature).endswith("unicode:nfc")
    for score in task.scores(OUTPUTS, examples()):
        assert "unicode" not in str(score.signature)


@every_task
def test_without_normalisation_other_forms_are_other_texts(name: str) -> None:
    task = tasks("none")[name]
    scores = task.scores(OUTPUTS, examples("NFD"))
    assert values(scores) != values(task.scores(OUTPUTS, examples()))
    assert all("unicode" not in str(score.signature) for score in scores)


def test_groups_are_scored_in_the_same_form() -> None:
    task = tasks("nfc")["translation"]
    grouped = [
        [Example(e.source, e.target, e.references, "", group) for e, group in zip(split, "ab")]  # noqa: B905
        for split in (examples("NFD"), examples())
    ]
    other, usual = (mean_scores(score_groups(task, split, OUTPUTS)) for split in grouped)
    assert values(other) == values(usual)


def test_paths_of_images_are_not_normalised(tmp_path: Path) -> None:
    task = tasks("nfc")["captioning"]
    path = str(tmp_path / normalize("NFD", "ä.png"))
    scored = task.scored_texts(["a"], [Example(path, "b", ("b",), "")])
    assert scored.examples[0].source == path
    assert not scored.changed
