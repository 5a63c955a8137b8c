"""The start of a fine-tuning: weights, vocabulary and optimiser state of the parent.

The parent is the run that the fine-tuning starts from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import training_tags
from seqloom.config.schema.task import TranslationConfig
from seqloom.config.schema.text import NewTagConfig
from seqloom.config.schema.training import StartConfig
from seqloom.core.errors import ConfigError, NotFoundError, StorageError
from seqloom.core.storage import read_manifest
from seqloom.data.modalities.text import TextModality
from seqloom.models.seq2seq import Model
from seqloom.runs.bundle import Bundle, load_bundle
from seqloom.runs.integrity import checkpoint_store
from seqloom.runs.weights import assign_weights, read_tensors, weights_of
from seqloom.tasks.build import build_task, load_task
from seqloom.tasks.task import Task
from seqloom.tasks.token_task import TokenTask
from seqloom.text.new_tags import add_tags, token_id
from seqloom.text.tokenizer import Tokenizer

OPTIMIZER = "optimizer.safetensors"
"""File of a checkpoint with the state of the optimiser."""
START_DIGEST = "start"
"""Entry of a run's manifest: SHA-256 of the weights that its training started from."""


@dataclass(frozen=True)
class NewRows:
    """For each new tag, the id of the known token whose embedding the tag copies.

    The copy is the row that the tag adds to the embedding matrix.

    source: ids in the source vocabulary, one per new tag
    target: ids in the target vocabulary, one per new tag
    """

    source: tuple[int, ...] = ()
    target: tuple[int, ...] = ()


@dataclass(frozen=True)
class Start:
    """Everything that a fine-tuning takes over from its parent, the run that it starts from.

    run:       the path of the parent, for messages
    task:      the task with the parent's vocabulary, including new tags
    digest:    SHA-256 of the parent's weights file
    weights:   the parent's weights
    moments:   the parent's optimiser state by name; empty for a fresh optimiser
    new_rows:  for each new tag, the id of the token whose embedding it copies
    """

    run: str
    task: Task
    digest: str
    weights: dict[str, Tensor]
    moments: dict[str, Tensor]
    new_rows: NewRows

    def assign_to(self, model: Model) -> None:
        """Set the weights of a model to those of the parent, the run that fine-tuning starts from.

        If the recipe adds tags to the vocabulary (text.new_tags), the embedding of each new tag is
        a copy of the embedding of a known token.
        """
        extended = {
            name: self._extend(name, self.weights[name], parameter.shape, copies=True)
            for name, parameter in model.named_parameters()
            if name in self.weights
        }
        remedy = "Remove [model] from the recipe. Fine-tuning uses the model of this run."
        assign_weights(model, {**self.weights, **extended}, Path(self.run), remedy)

    def optimizer_tensors(self, model: Model) -> dict[str, Tensor]:
        """Return the optimiser state of the parent, the run that fine-tuning starts from.

        Zeros are appended for the embeddings of new tags.
        """
        shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
        return {
            key: self._extend(name, tensor, shapes[name], copies=False)
            if tensor.dim() and name in shapes
            else tensor
            for key, tensor in self.moments.items()
            for name in [key.rpartition(":")[0]]
        }

    def _extend(self, name: str, tensor: Tensor, shape: torch.Size, copies: bool) -> Tensor:
        """If a tensor has one row per token, append a row for each new tag.

        Returns other tensors unchanged.

        name:   name of the weight
        tensor: the weight or its optimiser state
        shape:  shape of the weight in the new model
        copies: if True, a new row is a copy of the row of a known token. If False, it is zero
        """
        rows = self.new_rows.source if name.startswith("encoder.") else self.new_rows.target
        if tensor.shape == shape or not rows:
            return tensor
        if (len(tensor) + len(rows), *tensor.shape[1:]) != tuple(shape):
            raise ConfigError(
                f"text.new_tags: tags cannot be added to the model of {self.run}, because its "
                f"weight '{name}' has no row per token (one-hot embeddings); remove new_tags"
            )
        new = tensor[list(rows)] if copies else torch.zeros_like(tensor[list(rows)])
        return torch.cat([tensor, new])


def load_start(config: RunConfig, settings: StartConfig) -> Start:
    """Load the run that a fine-tuning starts from, and check all of its files."""
    bundle = load_bundle(Path(settings.run), torch.device("cpu"))
    task, rows = _extend_task(bundle, config)
    _check_tags(config, task, settings.run)
    moments = {} if settings.optimizer == "fresh" else _read_moments(bundle, settings.run)
    weights = weights_of(bundle.model)
    return Start(settings.run, task, bundle.digest, weights, moments, rows)


def check_same_start(folder: Path, start: Start) -> None:
    """Raise a StorageError if the parent's weights have changed since this run was created.

    The parent is the run that a fine-tuning starts from. This check is needed only before the first
    checkpoint: later, a resumed run does not read the parent.
    """
    if read_manifest(folder).get(START_DIGEST, start.digest) != start.digest:
        raise StorageError(
            f"{folder}: the weights of {start.run} have changed since this run was started from "
            "them. Restore the old weights, or start again in another --run folder"
        )


def _read_moments(bundle: Bundle, run: str) -> dict[str, Tensor]:
    checkpoint = checkpoint_store(bundle.folder).current_path()
    if checkpoint is None or not (checkpoint / OPTIMIZER).is_file():
        raise NotFoundError(
            f"{run}: has no checkpoint with the state of the optimiser. To start with a fresh "
            "optimiser, remove training.start.optimizer = 'continued'"
        )
    return read_tensors(checkpoint / OPTIMIZER)


def _extend_task(bundle: Bundle, config: RunConfig) -> tuple[Task, NewRows]:
    """Load the task with the vocabulary of the parent, and add the new tags to this vocabulary.

    The parent is the run that the fine-tuning starts from. Returns the task and, for each new tag,
    the id of the token whose embedding the tag copies.
    """
    task, new = load_task(config, bundle.folder / "text"), config.text.new_tags
    if not new:
        return task, NewRows()
    assert isinstance(task, TokenTask)
    assert isinstance(config.task, TranslationConfig), "only translation has new tags"
    source, target = task.source_tokenizer, task.target_tokenizer
    assert source is not None
    tags = [tag.tag for tag in new]
    rows = NewRows(_ids_of(source, new), _ids_of(target, new))
    modality = TextModality(add_tags(source, tags))
    return build_task(config.task, modality, add_tags(target, tags)), rows


def _ids_of(tokenizer: Tokenizer, new: Sequence[NewTagConfig]) -> tuple[int, ...]:
    ids = {tag.like: token_id(tokenizer, tag.like) for tag in new}
    missing = [like for like, id_ in ids.items() if id_ is None]
    if missing:
        known = ", ".join(tokenizer.preprocessing.tags.names) or "none"
        raise ConfigError(
            f"text.new_tags: `like` must be a token of the vocabulary, but {', '.join(missing)} is "
            f"not in it. Tags in the vocabulary: {known}"
        )
    return tuple(id_ for tag in new if (id_ := ids[tag.like]) is not None)


def _check_tags(config: RunConfig, task: Task, run: str) -> None:
    """Raise a ConfigError if the data has tags that are not in the vocabulary."""
    if not isinstance(task, TokenTask) or task.source_tokenizer is None:
        return
    known = task.source_tokenizer.preprocessing.tags.names
    missing = [tag for tag in (*training_tags(config.data), *config.text.tags) if tag not in known]
    if missing:
        like = known[0] if known else "a token of the vocabulary"
        raise ConfigError(
            f"data.train: {run} has no tag {', '.join(missing)}. To add it, set "
            f"text.new_tags = [{{ tag = '{missing[0]}', like = '{like}' }}], where `like` is the "
            "token whose embedding the new tag copies"
        )


def start_facts(start: Start | None) -> Mapping[str, str]:
    """Return the manifest entry with the SHA-256 of the weights that a run started from.

    Returns an empty mapping if the run is not a fine-tuning.
    """
    return {} if start is None else {START_DIGEST: start.digest}
