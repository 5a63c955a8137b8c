"""Compares an imported run with the original model of transformers."""

from collections.abc import Sequence
from typing import Any

import torch

from seqloom.config.schema.decoding import BeamConfig, GreedyConfig
from seqloom.core.batch import Padded
from seqloom.runs.run import Run

MAX_LENGTH = 40
GREEDY = GreedyConfig(max_length=MAX_LENGTH, length_counts_end=True)
BEAM = BeamConfig(width=5, max_length=MAX_LENGTH, length_counts_end=True)


def generate(
    model: Any, tokenizer: Any, texts: Sequence[str], beams: int, **options: Any
) -> list[str | None]:
    """Translate with transformers. None stands for an output of beam search that reached the
    length limit.

    The unknown token is excluded, as seqloom does by default. seqloom stops as soon as `beams`
    hypotheses have ended, which is early_stopping=True.
    """
    batch = tokenizer(list(texts), return_tensors="pt", padding=True)
    outputs = model.generate(
        **batch,
        num_beams=beams,
        early_stopping=beams > 1,
        suppress_tokens=[tokenizer.unk_token_id, *options.pop("suppress_tokens", [])],
        max_length=None,
        max_new_tokens=MAX_LENGTH,
        **options,
    )
    texts = tokenizer.batch_decode(outputs, skip_special_tokens=True)
    ended = (outputs[:, 1:] == tokenizer.eos_token_id).any(dim=1).tolist()
    return [
        text if has_end or beams == 1 else None for text, has_end in zip(texts, ended, strict=True)
    ]


def assert_equal_outputs(
    run: Run,
    expected: Sequence[str | None],
    texts: Sequence[str],
    beams: int,
    to: str | None = None,
    **settings: Any,
) -> None:
    """Assert that a run has these outputs.

    settings: changes of the search

    Outputs of beam search that reached the length limit are not compared: transformers ranks them
    among the others, but seqloom prefers outputs that end. One output in a hundred may differ: if END
    is one of the k best tokens of a hypothesis, seqloom extends this hypothesis only by the k - 1
    others, but transformers compares the 2k best candidates of all hypotheses.
    """
    decoding = (BEAM if beams > 1 else GREEDY).model_copy(update=settings)
    outputs = run.translate(
        texts, decoding=decoding, attention=False, to=to, split=False, pass_through=False
    )
    pairs = [
        (output.text, text)
        for output, text in zip(outputs, expected, strict=True)
        if text is not None
    ]
    assert len(pairs) >= 0.9 * len(texts)
    assert len({text for _, text in pairs}) >= len(texts) / 10
    different = [pair for pair in pairs if pair[0] != pair[1]]
    assert len(different) <= (0.01 * len(texts) if beams > 1 else 0), different


@torch.inference_mode()
def logits(run: Run, source: Sequence[int], inputs: Sequence[int]) -> torch.Tensor:
    """Return the logits of a run for each position of the decoder inputs: (T, V)"""
    padded = Padded(torch.tensor([source]), torch.tensor([len(source)]))
    memory = run.model.encode(padded, 1)
    return run.model.decoder(torch.tensor([inputs]), memory).logits()[0]
