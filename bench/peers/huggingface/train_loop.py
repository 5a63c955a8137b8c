"""Marian in the loop most people write: sorted token batches, forward, backward, clip, AdamW."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
import transformers
from torch import Tensor

from bench.peers.huggingface.model import DROPOUT, build
from bench.window import Counts, Window
from bench.workload import END, PAD, Workload

IGNORED = -100
Pair = tuple[list[int], list[int]]


def main() -> None:
    window, workload = Window(), Workload.load(Path(sys.argv[1]))
    torch.manual_seed(workload.seed)
    model = build(workload).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), workload.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
    )
    pairs = list(zip(workload.ids("source"), workload.ids("target"), strict=True))
    window.ready(
        version=transformers.__version__,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(one.numel() for one in model.parameters()),
        loop="plain PyTorch loop",
        batching="token budget, sorted by lengths",
        dropout=DROPOUT,
    )
    for batch in batches(pairs, workload.batch_tokens, random.Random(workload.seed)):
        window.batch(counts(batch))
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), workload.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        window.step()


def batches(pairs: list[Pair], budget: int, chance: random.Random) -> Iterator[dict[str, Tensor]]:
    """Without end: pairs of like lengths together, the order of the batches shuffled."""
    ends = [([*source, END], [*target, END]) for source, target in pairs]
    ends.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
    groups: list[list[Pair]] = [[]]
    longest = 0
    for pair in ends:
        longest = max(longest, len(pair[0]), len(pair[1]))
        if (len(groups[-1]) + 1) * longest > budget:
            groups.append([])
            longest = max(len(pair[0]), len(pair[1]))
        groups[-1].append(pair)
    while True:
        chance.shuffle(groups)
        for group in groups:
            source = padded([pair[0] for pair in group], PAD)
            yield {
                "input_ids": source,
                "attention_mask": (source != PAD).long(),
                "labels": padded([pair[1] for pair in group], IGNORED),
            }


def padded(rows: list[list[int]], filler: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])


def counts(batch: dict[str, Tensor]) -> Counts:
    source, labels = batch["attention_mask"], batch["labels"]
    real = int((labels != IGNORED).sum())
    return Counts(int(source.sum()), source.numel(), real, labels.numel())


if __name__ == "__main__":
    main()
