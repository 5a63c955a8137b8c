"""Marian in Seq2SeqTrainer, as in its examples: a fixed number of sentences, grouped by length."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

from bench.comparison.time_window import TimeWindow
from bench.comparison.workload import END, PAD, Workload
from bench.peers.huggingface.model import DROPOUT, build_marian
from bench.peers.huggingface.train_loop import IGNORED, count_tokens, pad


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    torch.manual_seed(workload.seed)
    model = build_marian(workload)
    mean_length = max(workload.mean_source, workload.mean_target)
    sentences = round(workload.batch_tokens / mean_length)

    def collate(rows: list[dict[str, list[int]]]) -> dict[str, Tensor]:
        source = pad([row["input_ids"] for row in rows], PAD)
        batch = {
            "input_ids": source,
            "attention_mask": (source != PAD).long(),
            "labels": pad([row["labels"] for row in rows], IGNORED),
        }
        window.add_batch(count_tokens(batch))
        return batch

    class WindowCallback(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            window.ready(
                version=transformers.__version__,
                torch=torch.__version__,
                threads=torch.get_num_threads(),
                parameters=sum(parameter.numel() for parameter in model.parameters()),
                loop="transformers.Seq2SeqTrainer",
                batching=f"{sentences} sentences, grouped by source length",
                dropout=DROPOUT,
            )

        def on_step_end(self, *_: Any, **__: Any) -> None:
            window.finish_step()

    pairs = zip(workload.ids("source"), workload.ids("target"), strict=True)
    rows = [{"input_ids": [*source, END], "labels": [*target, END]} for source, target in pairs]
    with tempfile.TemporaryDirectory() as folder:
        trainer = Seq2SeqTrainer(
            model=model,
            args=training_arguments(workload, folder, sentences),
            train_dataset=rows,
            data_collator=collate,
            callbacks=[WindowCallback()],
        )
        trainer.train()


def training_arguments(workload: Workload, folder: str, sentences: int) -> Seq2SeqTrainingArguments:
    return Seq2SeqTrainingArguments(
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


if __name__ == "__main__":
    main()
