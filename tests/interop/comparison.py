"""Compares an imported or exported run with the model of transformers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from seqloom.config.schema.decoding import BeamConfig, GreedyConfig
from seqloom.core.batch import Padded
from seqloom.inference.run import Run

MAX_LENGTH = 24
"""Maximum number of output tokens. Some outputs of the models in these tests reach it."""
GREEDY = GreedyConfig(max_length=MAX_LENGTH, length_counts_end=True)
BEAM = BeamConfig(
    width=5,
    max_length=MAX_LENGTH,
    length_counts_end=True,
    extra_candidate=True,
    rank_unfinished=True,
)
EARLY_STOPPING: dict[str, Any] = {"estimate": False, "count": True, "bound": "never"}
"""Values of decoding.stopping, and of early_stopping in transformers. The first is the default of
transformers."""
SCORE_TOLERANCE = 1e-4


class Output(NamedTuple):
    """An output of another toolkit. The score is None for greedy search."""

    text: str
    score: float | None = None


def generate(model: Any, tokenizer: Any, texts: Sequence[str], **options: Any) -> list[Output]:
    """Translate with transformers, with the settings of generation_config.json.

    The unknown token is excluded, as seqloom does by default.

    options: other settings of `model.generate`
    """
    suppressed = [tokenizer.unk_token_id, *options.pop("suppress_tokens", [])]
    found = model.generate(
        **tokenizer(list(texts), return_tensors="pt", padding=True),
        suppress_tokens=suppressed,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    texts = tokenizer.batch_decode(found.sequences, skip_special_tokens=True)
    scores = getattr(found, "sequences_scores", None)
    return list(map(Output, texts, [None] * len(texts) if scores is None else scores.tolist()))


def assert_equal_outputs(
    run: Run,
    expected: Sequence[Output],
    texts: Sequence[str],
    to: str | None = None,
    **settings: Any,
) -> None:
    """Assert that a run has exactly these outputs, and the same scores.

    settings: changes of the run's search
    """
    decoding = run.config.decoding.model_copy(update=settings)
    outputs = run.translate(
        texts, decoding=decoding, attention=False, to=to, split=False, pass_through=False
    )
    pairs = list(zip(outputs, expected, strict=True))
    assert len({output.text for output in expected}) >= len(texts) / 20
    assert [(ours.text, theirs.text) for ours, theirs in pairs if ours.text != theirs.text] == []
    for ours, theirs in pairs:
        assert theirs.score is None or abs(ours.score - theirs.score) < SCORE_TOLERANCE


@torch.inference_mode()
def logits(run: Run, source: Sequence[int], inputs: Sequence[int]) -> torch.Tensor:
    """Return the logits of a run for each position of the decoder inputs: (T, V)"""
    padded = Padded(torch.tensor([source]), torch.tensor([len(source)]))
    memory = run.model.encode(padded, 1)
    return run.model.decoder(torch.tensor([inputs]), memory).logits()[0]
