"""Time decoding on a GPU, and Hugging Face Marian `generate` if it is installed.

    python -m bench.decode_gpu OUT.json [--alone]

Transformer-base, 10k vocabulary, random weights in bf16, outputs of 24 forced tokens. The program
first compares captured with plain searches in float32. Then it times each batch after two warm-up
calls, and compares the minimum number of bytes that a step has to move with the bandwidth of a
copy on the same GPU.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from bench.decode_cpu import BASE, DecodingShape, marian_model, random_sources, seqloom_model
from seqloom.config.loading.loader import load_recipe
from seqloom.data.readers.splits import read_split
from seqloom.decoding.beam import Beam
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import SearchRequest
from seqloom.text.preprocessing import Preprocessing
from seqloom.text.subwords import SubwordTokenizer

DEVICE = torch.device("cuda")
TOKENS = 24
STREAM = 8
"""Number of batches that are decoded one after the other."""
BATCHES = [
    (1, 1),
    (64, 1),
    (256, 1),
    (1024, 1),
    (4096, 1),
    (8192, 1),
    (128, 5),
    (512, 5),
    (1024, 5),
    (2048, 5),
    (4096, 5),
]
MARIAN_BATCHES = [(256, 1), (1024, 1), (128, 5), (512, 5)]
"""(batch size, beam width)"""


def minimum_time(call: Callable[[], Any], repeats: int = 3) -> float:
    """The minimum time of a call in seconds, after two warm-up calls."""
    times = []
    for number in range(2 + repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        if number >= 2:
            times.append(time.perf_counter() - start)
    return min(times)


def copy_bandwidth() -> float:
    """Bytes per second that a copy reads and writes."""
    source = torch.empty(2**30, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    return 2 * source.numel() / minimum_time(lambda: target.copy_(source), 5)


def minimum_bytes(shape: DecodingShape, batch: int, beam: int) -> float:
    """Bytes that decoding a batch in bf16 has to move at least.

    Weights once per step, keys and values of earlier positions once per row, those of the source
    once per source, and the logits written and read once.
    """
    width, rows = shape.width, batch * beam
    layer = 8 * width**2 + 2 * width * shape.feedforward
    weights = 2 * (shape.layers * layer + shape.vocabulary * width)
    past = sum(range(1, TOKENS + 1)) * rows * shape.layers * 2 * width * 2
    source = TOKENS * batch * shape.source_length * shape.layers * 2 * width * 2
    return TOKENS * weights + past + source + TOKENS * rows * shape.vocabulary * 2 * 2


def build_search(beam: int) -> Greedy | Beam:
    rules = Rules(min_length=TOKENS)
    return Greedy(rules=rules) if beam == 1 else Beam(beam, rules=rules)


def check(shape: DecodingShape) -> dict[str, Any]:
    """Compare captured with plain searches in float32, with all rules and a prefix."""
    model, source = seqloom_model(shape).to(DEVICE), random_sources(shape, 13).to(DEVICE)
    same, worst = 0, 0.0
    rules = Rules(min_length=3, no_repeat_ngram=2)
    request = SearchRequest([5 + 2 * i for i in range(13)], [[], [7, 8]] + [[]] * 11)
    searches: list[Greedy | Beam] = [Greedy(rules=rules), Beam(5, rules=rules)]
    for search in searches:
        with torch.inference_mode():
            memory = model.encode(source, 13)
            plain = search(model.decoder, memory, request)
            captured = CapturedSearch(search)(model.decoder, memory, request)
        for [first], [second] in zip(captured, plain, strict=True):
            same += first.tokens == second.tokens
            worst = max(worst, abs(first.score - second.score))
    return {"same_outputs": same, "of": 26, "largest_difference_of_scores": worst}


@cache
def train_tokenizer(size: int) -> SubwordTokenizer:
    """A tokenizer with so many pieces, trained on the bundled pairs of Tatoeba."""
    config = load_recipe("tatoeba-de-en-transformer").config
    lines = (
        text for pair in read_split(config.data, "train") for text in (pair.source, pair.target)
    )
    tokenizer = SubwordTokenizer.train(lines, Preprocessing(), size, "bpe")
    assert tokenizer.size == size
    return tokenizer


def time_seqloom(shape: DecodingShape, batch: int, beam: int, model: Any) -> dict[str, float]:
    source = random_sources(shape, batch).to(DEVICE)
    search, request = (
        CapturedSearch(build_search(beam), torch.bfloat16),
        SearchRequest([TOKENS] * batch),
    )

    def encode() -> Any:
        with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
            return model.encode(source, batch)

    memory = encode()
    start = time.perf_counter()
    hypotheses = search(model.decoder, memory, request)
    first_call = time.perf_counter() - start
    assert all(len(best.tokens) == TOKENS for [best] in hypotheses)
    tokenizer = train_tokenizer(shape.vocabulary)

    def texts(hypotheses: list[list[Hypothesis]]) -> list[str]:
        return [tokenizer.decode(best.tokens) for [best] in hypotheses]

    complete = minimum_time(lambda: texts(search(model.decoder, encode(), request)))

    def decode_stream() -> None:
        """Decode several batches as `seqloom translate` does: the host reads the outputs of a batch
        while the GPU decodes the next one."""
        previous = None
        for _ in range(STREAM):
            started = search.start(model.decoder, encode(), request)
            if previous is not None:
                assert len(texts(previous.hypotheses())) == batch
            started.finish()
            previous = started
        assert previous is not None
        assert len(texts(previous.hypotheses())) == batch

    stream = minimum_time(decode_stream) / STREAM
    program = search.program(model.decoder, memory, request)

    def replay() -> None:
        with torch.inference_mode():
            program.begin()
            for _ in range(TOKENS):
                program.advance()

    device = minimum_time(replay)
    return {
        "first": first_call,
        "stream": stream,
        "whole": complete,
        "device": device,
        "encoder": minimum_time(encode),
    }


def time_marian(shape: DecodingShape, batch: int, beam: int, model: Any) -> float:
    source = random_sources(shape, batch).to(DEVICE)

    def decode() -> Any:
        with torch.inference_mode():
            return model.generate(
                input_ids=source.values,
                attention_mask=source.mask.long(),
                num_beams=beam,
                do_sample=False,
                use_cache=True,
                min_new_tokens=TOKENS,
                max_new_tokens=TOKENS,
            )

    return minimum_time(decode, 1)


TEXT = """One {device}, torch {torch}, Python {python}. Transformer-base (6+6 layers of width 512, 8 heads, 10,000 pieces)
with random weights in bf16 and outputs of 24 forced tokens. The column "seqloom" has the speed over {stream} batches, including
the encoder, the search, the copy of the outputs to the host and {outputs}; the host reads the outputs of a batch while the
GPU decodes the next one. "One batch" is the same for a single batch. "In replay" is the search alone on
the GPU; "of bandwidth" is the minimum number of bytes that this search has to move, as a share of the copy bandwidth
measured in the same run ({copies:.1f} TB/s). Marian is timed after two passes over the same shapes. Written by `python -m bench.decode_gpu docs/results/benchmarks/decoding-gpu.json`.

| batch | beam | seqloom, tok/s | one batch | in replay | of bandwidth | Hugging Face `generate` | ratio |
|---|---|---|---|---|---|---|---|
{rows}

In fp32, captured and plain searches give the same outputs for {check[same_outputs]} of {check[of]} sources, with scores
within {check[largest_difference_of_scores]:.1g}.
"""


def table(results: dict[str, Any]) -> str:
    """The section of docs/benchmarks.md."""
    marian = {(row["batch"], row["beam"]): row for row in results["rows"] if "marian" in row}
    rows = []
    for row in results["rows"]:
        if "marian" in row:
            continue
        marian_row = marian.get((row["batch"], row["beam"]))
        comparison = ["", ""]
        if marian_row is not None:
            ratio = row["tokens_per_second"] / marian_row["rate"]
            comparison = [f"{marian_row['rate']:,.0f}", f"{ratio:.1f}"]
        rows.append(
            f"| {row['batch']:,} | {row['beam']} | {row['tokens_per_second']:,.0f} "
            f"| {row['one_batch_tokens_per_second']:,.0f} | {row['replay_tokens_per_second']:,.0f} | {100 * row['bandwidth_share']:.0f} % "
            f"| {comparison[0]} | {comparison[1]} |"
        )
    copies = results["copy_bytes_per_second"] / 1e12
    outputs = (
        "their texts" if results.get("texts") else "the tokens and scores as objects, without texts"
    )
    return TEXT.format(
        **(
            results
            | {"rows": "\n".join(rows), "copies": copies, "stream": STREAM, "outputs": outputs}
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--alone", action="store_true", help="measure seqloom without Hugging Face")
    arguments = parser.parse_args()
    torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN builds a new plan for every shape
    bandwidth = copy_bandwidth()
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "copy_bytes_per_second": bandwidth,
        "check": check(BASE),
        "texts": True,
        "rows": [],
    }
    print(f"copies {bandwidth / 1e12:.2f} TB/s; {report['check']}", flush=True)

    def save() -> None:
        arguments.out.write_text(json.dumps(report, indent=1))

    model = seqloom_model(BASE).to(DEVICE)
    for batch, beam in BATCHES:
        times = time_seqloom(BASE, batch, beam, model)
        rate, one_batch_rate, replay_rate = (
            batch * TOKENS / times[name] for name in ("stream", "whole", "device")
        )
        share = minimum_bytes(BASE, batch, beam) / times["device"] / bandwidth
        report["rows"].append(
            {
                "batch": batch,
                "beam": beam,
                "seconds": times,
                "tokens_per_second": rate,
                "one_batch_tokens_per_second": one_batch_rate,
                "replay_tokens_per_second": replay_rate,
                "bandwidth_share": share,
            }
        )
        save()
        print(
            f"batch {batch} beam {beam}: {rate:,.0f} tok/s with encoder and texts, "
            f"{one_batch_rate:,.0f} for one batch, {replay_rate:,.0f} in replay ({share:.0%} of bandwidth), "
            f"first call {times['first']:.2f} s",
            flush=True,
        )
    if not arguments.alone:
        marian = marian_model(BASE).to(DEVICE, torch.bfloat16)
        for batch, beam in MARIAN_BATCHES:
            rate = batch * TOKENS / time_marian(BASE, batch, beam, marian)
            report["rows"].append({"marian": True, "batch": batch, "beam": beam, "rate": rate})
            save()
            print(f"Marian batch {batch} beam {beam}: {rate:,.0f} tok/s", flush=True)


if __name__ == "__main__":
    main()
