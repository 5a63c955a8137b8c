"""Time decoding on a GPU, beside Hugging Face Marian `generate` if it is installed.

    python -m bench.decode_gpu OUT.json [--alone]

Transformer-base, 10k vocabulary, random weights in bf16, outputs of 24 forced tokens. First the
recorded searches are held against the plain ones in float32; then each batch is timed after its
shape has been seen twice, and the bytes that a step must move at the least are set against the
bandwidth of a plain copy on the same machine.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bench.decode_cpu import BASE, Shape, marian_model, seqloom_model, some_sources
from seqloom.decoding.beam import Beam
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import SearchRequest

DEVICE = torch.device("cuda")
TOKENS = 24
WORK = [(1, 1), (64, 1), (256, 1), (1024, 1), (4096, 1), (8192, 1), (128, 5), (512, 5), (1024, 5)]
PEER_WORK = [(256, 1), (1024, 1), (128, 5), (512, 5)]


def seconds_of(call: Callable[[], Any], repeats: int = 3) -> float:
    """The least time of a call, after two to warm up."""
    times = []
    for turn in range(2 + repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        if turn >= 2:
            times.append(time.perf_counter() - begin)
    return min(times)


def copy_bandwidth() -> float:
    """Bytes read and written a second by a plain copy."""
    source = torch.empty(2**30, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    return 2 * source.numel() / seconds_of(lambda: target.copy_(source), 5)


def least_bytes(shape: Shape, batch: int, beam: int) -> float:
    """What decoding a batch has to move at the least, in bf16: weights once a step, keys and values
    of the past once a row, of the source once a source, logits out and in."""
    width, rows = shape.width, batch * beam
    layer = 8 * width**2 + 2 * width * shape.feedforward
    weights = 2 * (shape.layers * layer + shape.vocabulary * width)
    past = sum(range(1, TOKENS + 1)) * rows * shape.layers * 2 * width * 2
    source = TOKENS * batch * shape.source_length * shape.layers * 2 * width * 2
    return TOKENS * weights + past + source + TOKENS * rows * shape.vocabulary * 2 * 2


def search_for(beam: int) -> Greedy | Beam:
    rules = Rules(min_length=TOKENS)
    return Greedy(rules=rules) if beam == 1 else Beam(beam, rules=rules)


def check(shape: Shape) -> dict[str, Any]:
    """Do recorded and plain searches agree in float32? Rules and prefixes are all on."""
    model, source = seqloom_model(shape).to(DEVICE), some_sources(shape, 13).to(DEVICE)
    same, worst = 0, 0.0
    rules = Rules(min_length=3, no_repeat_ngram=2)
    request = SearchRequest([5 + 2 * i for i in range(13)], [[], [7, 8]] + [[]] * 11)
    searches: list[Greedy | Beam] = [Greedy(rules=rules), Beam(5, rules=rules)]
    for search in searches:
        with torch.inference_mode():
            memory = model.encode(source, 13)
            plain = search(model.decoder, memory, request)
            recorded = CapturedSearch(search)(model.decoder, memory, request)
        for [one], [other] in zip(recorded, plain, strict=True):
            same += one.tokens == other.tokens
            worst = max(worst, abs(one.score - other.score))
    return {"same_outputs": same, "of": 26, "largest_difference_of_scores": worst}


def time_seqloom(shape: Shape, batch: int, beam: int, model: Any) -> dict[str, float]:
    source = some_sources(shape, batch).to(DEVICE)
    search, request = (
        CapturedSearch(search_for(beam), torch.bfloat16),
        SearchRequest([TOKENS] * batch),
    )

    def encode() -> Any:
        with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
            return model.encode(source, batch)

    memory = encode()
    begin = time.perf_counter()
    found = search(model.decoder, memory, request)
    first = time.perf_counter() - begin
    assert all(len(best.tokens) == TOKENS for [best] in found)
    whole = seconds_of(lambda: search(model.decoder, encode(), request))
    program = search.program(model.decoder, memory, request)

    def replay() -> None:
        with torch.inference_mode():
            program.begin()
            for _ in range(TOKENS):
                program.advance()

    device = seconds_of(replay)
    return {"first": first, "whole": whole, "device": device, "encoder": seconds_of(encode)}


def time_marian(shape: Shape, batch: int, beam: int, model: Any) -> float:
    source = some_sources(shape, batch).to(DEVICE)

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

    return seconds_of(decode, 1)


TEXT = """One {device}, torch {torch}, Python {python}; Transformer-base (6+6 layers of 512, 8 heads, 10,000
pieces), random weights in bf16, outputs of 24 forced tokens. Whole: encoder, search, and the
outputs back on the host. Replay: the search alone on the GPU; of the copy bandwidth ({copies:.1f} TB/s,
measured in the same run), the share that the bytes it has to move at the least make up. Marian is
timed after two passes over the same shapes. `python -m bench.decode_gpu
docs/results/benchmarks/decoding-gpu.json`

| batch | beam | seqloom, tok/s | in replay | of bandwidth | Hugging Face `generate` | ratio |
|---|---|---|---|---|---|---|
{rows}

Recorded and plain searches in fp32: the same outputs for {check[same_outputs]} of {check[of]}, scores within
{check[largest_difference_of_scores]:.1g}.
"""


def table(results: dict[str, Any]) -> str:
    """The section of docs/benchmarks.md."""
    peers = {(one["batch"], one["beam"]): one for one in results["rows"] if "marian" in one}
    rows = []
    for one in results["rows"]:
        if "marian" in one:
            continue
        peer = peers.get((one["batch"], one["beam"]))
        beside = ["", ""]
        if peer is not None:
            ratio = one["tokens_per_second"] / peer["rate"]
            beside = [f"{peer['rate']:,.0f}", f"{ratio:.1f}"]
        rows.append(
            f"| {one['batch']:,} | {one['beam']} | {one['tokens_per_second']:,.0f} "
            f"| {one['replay_tokens_per_second']:,.0f} | {100 * one['bandwidth_share']:.0f} % "
            f"| {beside[0]} | {beside[1]} |"
        )
    copies = results["copy_bytes_per_second"] / 1e12
    return TEXT.format(**(results | {"rows": "\n".join(rows), "copies": copies}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--alone", action="store_true", help="without Hugging Face")
    arguments = parser.parse_args()
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans every new shape anew
    bandwidth = copy_bandwidth()
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "copy_bytes_per_second": bandwidth,
        "check": check(BASE),
        "rows": [],
    }
    print(f"copies {bandwidth / 1e12:.2f} TB/s; {report['check']}", flush=True)

    def keep() -> None:
        arguments.out.write_text(json.dumps(report, indent=1))

    model = seqloom_model(BASE).to(DEVICE)
    for batch, beam in WORK:
        times = time_seqloom(BASE, batch, beam, model)
        rate, inner = (batch * TOKENS / times[name] for name in ("whole", "device"))
        share = least_bytes(BASE, batch, beam) / times["device"] / bandwidth
        row = {"batch": batch, "beam": beam, "seconds": times, "tokens_per_second": rate}
        report["rows"].append({**row, "replay_tokens_per_second": inner, "bandwidth_share": share})
        keep()
        print(
            f"batch {batch} beam {beam}: {rate:,.0f} tok/s with encoder and texts, {inner:,.0f} in "
            f"replay ({share:.0%} of bandwidth), first {times['first']:.2f} s",
            flush=True,
        )
    if not arguments.alone:
        marian = marian_model(BASE).to(DEVICE, torch.bfloat16)
        for batch, beam in PEER_WORK:
            rate = batch * TOKENS / time_marian(BASE, batch, beam, marian)
            report["rows"].append({"marian": True, "batch": batch, "beam": beam, "rate": rate})
            keep()
            print(f"Marian batch {batch} beam {beam}: {rate:,.0f} tok/s", flush=True)


if __name__ == "__main__":
    main()
