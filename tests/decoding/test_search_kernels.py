"""The Triton kernels of the searches compute what torch computes.

Without a GPU they run in Triton's interpreter, if Triton is installed.
"""

import os

import pytest
import torch

os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton", reason="Triton comes with the GPU builds of torch")

from seqloom.decoding.beam import Beam
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.fast.kernels import (
    MAX_COUNT,
    MAX_VOCABULARY,
    can_use_kernels,
    log_sum_exp,
    top_k_of_rows,
)
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import SearchRequest
from seqloom.models.interface import Memory
from seqloom.nn.fast import dispatch
from support.toy_decoders import AttentiveDecoder, random_memory

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_width = pytest.mark.parametrize("columns", [5, 64, 2048, 2049, 5000])


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "TRITON_INTERPRETED", True)


def random_logits(columns: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(columns)
    logits = 10 * torch.randn(7, columns, generator=generator)
    logits[torch.rand(7, columns, generator=generator) < 0.2] = float("-inf")
    logits[:, 0] = 1.0  # every row has a finite logit
    return logits.to(DEVICE, dtype)


@each_dtype
@each_width
def test_log_sum_exp(columns: int, dtype: torch.dtype) -> None:
    logits = random_logits(columns, dtype)
    torch.testing.assert_close(log_sum_exp(logits), logits.float().logsumexp(dim=1))


@each_dtype
@each_width
@pytest.mark.parametrize("count", [1, 3, 5])
def test_the_largest_values_and_their_columns(columns: int, dtype: torch.dtype, count: int) -> None:
    logits = random_logits(columns, dtype)
    best, tokens = top_k_of_rows(logits, count)
    assert torch.equal(best, logits.float().topk(count, dim=1).values)
    exists = best > float("-inf")
    assert torch.equal(logits.float().gather(1, tokens)[exists], best[exists])
    for row, row_exists in zip(tokens, exists, strict=True):
        assert len(row[row_exists].unique()) == row_exists.sum()


def test_the_first_of_equal_values_is_the_best() -> None:
    values = torch.tensor([[1.0, 3.0, 3.0, 2.0, 3.0]], device=DEVICE)
    assert top_k_of_rows(values, 4)[1].tolist() == [[1, 2, 4, 3]]


def test_rows_may_be_a_part_of_a_wider_tensor() -> None:
    wide = torch.randn(4, 300, device=DEVICE)
    part = wide[:, :100]
    torch.testing.assert_close(log_sum_exp(part), part.logsumexp(dim=1))
    assert torch.equal(top_k_of_rows(part, 3)[0], part.topk(3, dim=1).values)


@pytest.mark.parametrize(
    "search",
    [
        Greedy(rules=Rules(min_length=3)),
        Beam(3, rules=Rules(no_repeat_ngram=2)),
        Beam(4, extra_candidate=True, rules=Rules(allow_unknown=True, min_length=2)),
        Beam(3, rules=Rules(score_prefix=False)),
    ],
)
@pytest.mark.parametrize("words", [3, 40])
def test_searches_find_the_hypotheses_of_the_plain_version(
    search: Greedy | Beam, words: int
) -> None:
    decoder = AttentiveDecoder(1, words).to(DEVICE, torch.float32)
    sources = random_memory(1, [3, 1, 5])
    memory = Memory(
        sources.states.to(DEVICE, torch.float32),
        sources.mask.to(DEVICE),
        sources.summary.to(DEVICE, torch.float32),
    )
    request = SearchRequest([6, 9, 4], [[], [5], []], n_best=2)
    expected = search(decoder, memory, request)
    results = CapturedSearch(search)(decoder, memory, request)
    for hypotheses, expected_hypotheses in zip(results, expected, strict=True):
        for first, second in zip(hypotheses, expected_hypotheses, strict=True):
            assert first.tokens == second.tokens
            assert first.log_probabilities == pytest.approx(second.log_probabilities, abs=1e-5)


def test_the_kernels_are_not_used_for_unsupported_logits() -> None:
    assert can_use_kernels(torch.zeros(2, 100), 5)
    assert not can_use_kernels(torch.zeros(2, 100, dtype=torch.float64), 5)
    assert not can_use_kernels(torch.zeros(100, 2).T, 1)
    assert not can_use_kernels(torch.zeros(2, 100), MAX_COUNT + 1)
    assert not can_use_kernels(torch.zeros(2, 4), 5)
    assert not can_use_kernels(torch.zeros(1, MAX_VOCABULARY + 1), 5)
