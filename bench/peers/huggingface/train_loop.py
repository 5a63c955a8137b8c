"""Marian in a plain PyTorch loop: batches sorted by length, forward, backward, clip, AdamW."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
import transformers
from torch import Tensor

from bench.comparison.time_window import TimeWindow, TokenCounts
from bench.comparison.workload import END, PAD, Workload
from bench.peers.huggingface.model import DROPOUT, build_marian

IGNORED = -100
Pair = tuple[list[int], list[int]]


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    torch.manual_seed(workload.seed)
    model = build_marian(workload).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), workload.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
    )
    pairs = list(zip(workload.ids("source"), workload.ids("target"), strict=True))
    window.ready(
        version=transformers.__version__,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        loop="plain PyTorch loop",
        batching="token budget, sorted by lengths",
        dropout=DROPOUT,
    )
    for batch in batches(pairs, workload.batch_tokens, random.Random(workload.seed)):
        window.add_batch(count_tokens(batch))
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), workload.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        window.finish_step()


def batches(
    pairs: list[Pair], budget: int, generator: random.Random
) -> Iterator[dict[str, Tensor]]:
    """Yield batches of pairs with similar lengths endlessly, in shuffled order."""
    with_end = [([*source, END], [*target, END]) for source, target in pairs]
    with_end.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
    groups: list[list[Pair]] = [[]]
    longest = 0
    for pair in with_end:
        longest = max(longest, len(pair[0]), len(pair[1]))
        if (len(groups[-1]) + 1) * longest > budget:
            groups.append([])
            longest = max(len(pair[0]), len(pair[1]))
        groups[-1].append(pair)
    while True:
        generator.shuffle(groups)
        for group in groups:
            source = pad([pair[0] for pair in group], PAD)
            yield {
                "input_ids": source,
                "attention_mask": (source != PAD).long(),
                "labels": pad([pair[1] for pair in group], IGNORED),
            }


def pad(rows: list[list[int]], padding: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [padding] * (longest - len(row)) for row in rows])


def count_tokens(batch: dict[str, Tensor]) -> TokenCounts:
    source, labels = batch["attention_mask"], batch["labels"]
    real = int((labels != IGNORED).sum())
    return TokenCounts(int(source.sum()), source.numel(), real, labels.numel())


if __name__ == "__main__":
    main()
