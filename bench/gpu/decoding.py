"""Decoding speed on a GPU, and that of Hugging Face Marian `generate`.

Transformer-base, 10k vocabulary, random weights in bf16, outputs of 24 forced tokens. The program
first compares captured with plain searches in float32. Then it times each batch after two warm-up
calls, and compares the minimum number of bytes that a step has to move with the bandwidth of a
copy on the same GPU.
"""

import argparse
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch

from bench.gpu.marian import BASE, Size, build_marian
from bench.tables import markdown
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.data.readers.splits import read_split
from seqloom.decoding.beam import Beam
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import SearchRequest
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.text.preprocessing import Preprocessing
from seqloom.text.subwords import SubwordTokenizer

DEVICE = torch.device("cuda")
TOKENS = 24
SOURCE_LENGTH = 16
STREAM = 8
"""Number of batches that are decoded one after the other."""
BATCHES = [
    *((rows, 1) for rows in (1, 64, 256, 1024, 4096, 8192)),
    *((rows, 5) for rows in (128, 512, 1024, 2048, 4096)),
]
MARIAN_BATCHES = [(256, 1), (1024, 1), (128, 5), (512, 5)]
"""(batch size, beam width)"""


def seqloom_model(shape: Size) -> Model:
    """The original Transformer (post-norm, ReLU, tied embeddings) with random weights."""
    part = {
        "kind": "transformer",
        "layers": shape.layers,
        "width": shape.width,
        "feedforward": shape.feedforward,
        "norm": "post",
        "attention": {
            "kind": "attention",
            "score": {"kind": "dot", "scale": "sqrt"},
            "projection": "linear",
            "values": "learned",
            "heads": shape.heads,
            "output_projection": True,
        },
    }
    config = ModelConfig.model_validate({"encoder": part, "decoder": part, "tie": "all"})
    ids = Tokens(shape.vocabulary)
    torch.manual_seed(0)
    return build_model(config, Signature(ids, ids, True)).eval().requires_grad_(False)


def random_sources(shape: Size, batch: int) -> Padded:
    generator = torch.Generator().manual_seed(1)
    size = (batch, SOURCE_LENGTH)
    values = torch.randint(4, shape.vocabulary, size, generator=generator)
    return Padded(values, torch.full((batch,), SOURCE_LENGTH))


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


def minimum_bytes(shape: Size, batch: int, beam: int) -> float:
    """Bytes that decoding a batch in bf16 has to move at least.

    Weights once per step, keys and values of earlier positions once per row, those of the source
    once per source, and the logits written and read once.
    """
    width, rows = shape.width, batch * beam
    layer = 8 * width**2 + 2 * width * shape.feedforward
    weights = 2 * (shape.layers * layer + shape.vocabulary * width)
    past = sum(range(1, TOKENS + 1)) * rows * shape.layers * 2 * width * 2
    source = TOKENS * batch * SOURCE_LENGTH * shape.layers * 2 * width * 2
    return TOKENS * weights + past + source + TOKENS * rows * shape.vocabulary * 2 * 2


def build_search(beam: int) -> Greedy | Beam:
    rules = Rules(min_length=TOKENS)
    return Greedy(rules=rules) if beam == 1 else Beam(beam, rules=rules)


def check(shape: Size) -> dict[str, Any]:
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


def time_seqloom(shape: Size, batch: int, beam: int, model: Any) -> dict[str, float]:
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


def time_marian(shape: Size, batch: int, beam: int, model: Any) -> float:
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


HEAD = "batch;beam;seqloom, tok/s;one batch;in replay;of bandwidth;Hugging Face `generate`;ratio"


def table(results: dict[str, Any]) -> str:
    marian = {(row["batch"], row["beam"]): row for row in results["rows"] if "marian" in row}
    rows = []
    for row in results["rows"]:
        if "marian" in row:
            continue
        cells = [f"{row['batch']:,}", f"{row['beam']}", f"{row['tokens_per_second']:,.0f}"]
        cells += [f"{row[f'{name}_tokens_per_second']:,.0f}" for name in ("one_batch", "replay")]
        cells.append(f"{100 * row['bandwidth_share']:.0f} %")
        other = marian.get((row["batch"], row["beam"]))
        ratio = f"{row['tokens_per_second'] / other['rate']:.1f}" if other else ""
        rows.append([*cells, f"{other['rate']:,.0f}" if other else "", ratio])
    checked = results["check"]
    return (
        f"{markdown(HEAD.split(';'), rows)}\n\n"
        f"Copy bandwidth: {results['copy_bytes_per_second'] / 1e12:.1f} TB/s. In fp32, captured and plain "
        f"searches give the same outputs for {checked['same_outputs']} of {checked['of']} sources, with "
        f"scores\nwithin {checked['largest_difference_of_scores']:.1g}."
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--alone", action="store_true", help="measure seqloom without Hugging Face")


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN builds a new plan for every shape
    bandwidth = copy_bandwidth()
    rows: list[dict[str, Any]] = []
    report = {"copy_bytes_per_second": bandwidth, "check": check(BASE), "rows": rows}
    model = seqloom_model(BASE).to(DEVICE)
    for batch, beam in BATCHES:
        times = time_seqloom(BASE, batch, beam, model)
        rates = {name: batch * TOKENS / times[name] for name in ("stream", "whole", "device")}
        rows.append(
            {
                "batch": batch,
                "beam": beam,
                "seconds": times,
                "tokens_per_second": rates["stream"],
                "one_batch_tokens_per_second": rates["whole"],
                "replay_tokens_per_second": rates["device"],
                "bandwidth_share": minimum_bytes(BASE, batch, beam) / times["device"] / bandwidth,
            }
        )
        print(rows[-1], flush=True)
        yield report
    if not options.alone:
        marian = build_marian(BASE, dropout=0.0, use_cache=True).to(DEVICE, torch.bfloat16).eval()
        for batch, beam in MARIAN_BATCHES:
            rate = batch * TOKENS / time_marian(BASE, batch, beam, marian)
            rows.append({"marian": True, "batch": batch, "beam": beam, "rate": rate})
            print(rows[-1], flush=True)
            yield report
