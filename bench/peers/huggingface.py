"""Hugging Face Marian: a plain training loop, Seq2SeqTrainer, and `generate`, also of its ONNX export.

python -m bench.peers.huggingface WORKLOAD loop|trainer|generate|onnx
"""

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from bench.comparison.decoding_worker import TOKENS, serve
from bench.comparison.time_window import TimeWindow, TokenCounts
from bench.comparison.workload import END, PAD, Workload

DROPOUT = "embedded input, sublayers' outputs"
"""Marian can also apply dropout to attention weights and inside the feed-forward network. Both are
off by default and here."""
IGNORED = -100
Pair = tuple[list[int], list[int]]


def build_marian(workload: Workload, use_cache: bool = False) -> MarianMTModel:
    """A MarianMT model of the workload's size. The decoder starts with PAD, as is usual for Marian."""
    torch.manual_seed(workload.seed)
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", workload.layers),
            ("attention_heads", workload.heads),
            ("ffn_dim", workload.feedforward),
        )
    }
    config = MarianConfig(
        vocab_size=workload.vocabulary,
        d_model=workload.width,
        **sides,
        dropout=workload.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        max_position_embeddings=512,
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=END,
        forced_eos_token_id=None,
        decoder_start_token_id=PAD,
        use_cache=use_cache,
    )
    return MarianMTModel(config)


def with_end(workload: Workload) -> list[Pair]:
    pairs = zip(workload.ids("source"), workload.ids("target"), strict=True)
    return [([*source, END], [*target, END]) for source, target in pairs]


def collate(pairs: list[Pair]) -> dict[str, Tensor]:
    source = pad([pair[0] for pair in pairs], PAD)
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "labels": pad([pair[1] for pair in pairs], IGNORED),
    }


def pad(rows: list[list[int]], padding: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [padding] * (longest - len(row)) for row in rows])


def count_tokens(batch: dict[str, Tensor]) -> TokenCounts:
    source, labels = batch["attention_mask"], batch["labels"]
    real = int((labels != IGNORED).sum())
    return TokenCounts(int(source.sum()), source.numel(), real, labels.numel())


def run_loop(workload: Workload) -> None:
    """Batches sorted by length, forward, backward, clip, AdamW."""
    window = TimeWindow()
    model = build_marian(workload).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), workload.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
    )
    version = transformers.__version__
    batching = "token budget, sorted by lengths"
    window.describe(model, version, "plain PyTorch loop", batching, DROPOUT)
    for batch in batches(with_end(workload), workload.batch_tokens, random.Random(workload.seed)):
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
    pairs = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0])))
    groups: list[list[Pair]] = [[]]
    longest = 0
    for pair in pairs:
        longest = max(longest, len(pair[0]), len(pair[1]))
        if (len(groups[-1]) + 1) * longest > budget:
            groups.append([])
            longest = max(len(pair[0]), len(pair[1]))
        groups[-1].append(pair)
    while True:
        generator.shuffle(groups)
        yield from map(collate, groups)


def run_trainer(workload: Workload) -> None:
    """Seq2SeqTrainer, as in its examples: a fixed number of sentences, grouped by length."""
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

    window = TimeWindow()
    model = build_marian(workload)
    sentences = round(workload.batch_tokens / max(workload.mean_source, workload.mean_target))

    def collate_rows(rows: list[dict[str, list[int]]]) -> dict[str, Tensor]:
        batch = collate([(row["input_ids"], row["labels"]) for row in rows])
        window.add_batch(count_tokens(batch))
        return batch

    class WindowCallback(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            loop, batching = "transformers.Seq2SeqTrainer", "grouped by source length"
            version = transformers.__version__
            window.describe(model, version, loop, f"{sentences} sentences, {batching}", DROPOUT)

        def on_step_end(self, *_: Any, **__: Any) -> None:
            window.finish_step()

    with tempfile.TemporaryDirectory() as folder:
        arguments = Seq2SeqTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=sentences,
            train_sampling_strategy="group_by_length",
            learning_rate=workload.learning_rate,
            adam_beta2=0.98,
            lr_scheduler_type="constant",
            max_grad_norm=workload.clip,
            num_train_epochs=1e6,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=workload.seed,
            remove_unused_columns=False,
        )
        rows = [{"input_ids": source, "labels": target} for source, target in with_end(workload)]
        trainer = Seq2SeqTrainer(
            model=model,
            args=arguments,
            train_dataset=rows,
            data_collator=collate_rows,
            callbacks=[WindowCallback()],
        )
        trainer.train()


def run_generate(workload: Workload, version: str = transformers.__version__) -> None:
    serve_generate(build_marian(workload, use_cache=True).eval(), workload, version)


def run_onnx(workload: Workload) -> None:
    """Exported by optimum: ONNX Runtime computes, `generate` of transformers searches."""
    from importlib.metadata import version

    from optimum.onnxruntime import ORTModelForSeq2SeqLM

    folder = workload.folder / "onnx"
    if not folder.exists():  # the export takes a minute
        with tempfile.TemporaryDirectory() as temporary:
            build_marian(workload, use_cache=True).eval().save_pretrained(temporary)
            ORTModelForSeq2SeqLM.from_pretrained(temporary, export=True).save_pretrained(folder)
    model = ORTModelForSeq2SeqLM.from_pretrained(folder)
    serve_generate(model, workload, version("onnxruntime"))


def serve_generate(model: Any, workload: Workload, version: str) -> None:
    def decode(sources: list[list[int]], beam: int) -> Any:
        ids = pad([[*source, END] for source in sources], PAD)
        with torch.inference_mode():
            return model.generate(
                input_ids=ids,
                attention_mask=(ids != PAD).long(),
                num_beams=beam,
                do_sample=False,
                min_new_tokens=TOKENS,
                max_new_tokens=TOKENS,
            )

    serve(decode, workload, version)


RUNS = {"loop": run_loop, "trainer": run_trainer, "generate": run_generate, "onnx": run_onnx}

if __name__ == "__main__":
    RUNS[sys.argv[2]](Workload.load(Path(sys.argv[1])))
