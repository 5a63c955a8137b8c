"""ForeignModel: a model of another toolkit, converted to seqloom's settings, tokenizers and weight
names."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from seqloom.config.schema.corpora import ImportedConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import TranslationConfig
from seqloom.config.schema.text import ImportedTokenizerConfig, TextConfig
from seqloom.config.schema.training import TrainingConfig
from seqloom.core.errors import ConfigError
from seqloom.core.storage import TEMPORARY_PREFIX, publish, storage_errors
from seqloom.data.modalities.text import TextModality
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.runs.bundle import create_run
from seqloom.runs.integrity import WEIGHTS, weights_store
from seqloom.runs.weights import assign_weights, weights_of, write_tensors
from seqloom.tasks.build import build_task
from seqloom.tasks.token_task import TokenTask
from seqloom.text.imported import ImportedTokenizer


@dataclass(frozen=True)
class ForeignModel:
    """A model of another toolkit, ready to be written as a run folder.

    path:     the folder or file of the model, for error messages
    kind:     the kind of model, for messages: "Marian (Hugging Face)"
    source:   tokenizer of the source
    target:   tokenizer of the target
    weights:  weights with the names that seqloom uses. A shared matrix may have several names
    data:     languages and language tags
    tag_side: whether the source or the target starts with the tag of the target language
    """

    path: Path
    kind: str
    model: ModelConfig
    source: ImportedTokenizer
    target: ImportedTokenizer
    weights: Mapping[str, Tensor]
    data: ImportedConfig
    decoding: DecodingConfig
    tag_side: Literal["source", "target"] = "source"

    def build(self) -> tuple[RunConfig, TokenTask, Model]:
        """Build the recipe, the task and the model with its weights."""
        task_config = TranslationConfig(tag_side=self.tag_side)
        config = RunConfig(
            task=task_config,
            data=DataConfig(train=(self.data,)),
            text=TextConfig(tokenizer=ImportedTokenizerConfig(), shared=self.model.tie == "all"),
            model=self.model,
            training=TrainingConfig(steps=1),  # the setting is required, but not used
            decoding=self.decoding,
        )
        task = build_task(task_config, TextModality(self.source), self.target)
        model = build_model(config.model, task.signature)
        names = dict(model.named_parameters())
        weights = {name: tensor for name, tensor in self.weights.items() if name in names}
        assign_weights(model, weights, self.path, "Download all files of the model again.")
        return config, task, model.eval()


def write_run(foreign: ForeignModel, folder: Path) -> None:
    """Write the model as a run folder. The folder appears only when it is complete."""
    check_unused(folder)
    config, task, model = foreign.build()
    staging = folder.with_name(f"{TEMPORARY_PREFIX}{folder.name}-{os.getpid()}-import")
    try:
        create_run(staging, config, task, {})
        weights_store(staging).add(
            0, lambda path: write_tensors(path / WEIGHTS, weights_of(model)), keep=1
        )
        with storage_errors(folder):
            if folder.is_dir():
                folder.rmdir()
            publish(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def check_unused(folder: Path) -> None:
    """Raise a ConfigError if the folder exists and is not empty."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConfigError(f"{folder}: already exists. Give the name of a new folder.")


def select_rows(matrix: Tensor, rows: Sequence[int]) -> Tensor:
    """Reorder the rows of an embedding matrix: row i of the result is row `rows[i]` of `matrix`."""
    return matrix.index_select(0, torch.tensor(rows))
