"""Labelling: one label for a sequence, or one for each position."""

from seqloom.config.schema.task import LabelsConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.data.modalities.text import TextModality
from seqloom.tasks.build import build_task
from seqloom.text.build import train_tokenizer


def test_outputs_have_at_most_one_label_per_position_and_end() -> None:
    tokenizer = train_tokenizer(CharactersConfig(), ["abc"], (), False)
    task = build_task(LabelsConfig(), TextModality(tokenizer), tokenizer)
    assert task.prepare("ab" * 400).max_length == 801
    assert task.prepare("a").max_length == 2
