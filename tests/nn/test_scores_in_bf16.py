"""Half as many bits must not change what a query looks at."""

from collections.abc import Callable

import pytest
import torch

from seqloom.nn.attention import AdditiveScore, BilinearScore, DotScore, RbfScore, Score

WIDTH, HEADS = 64, 2
EVERY_SCORE: dict[str, Callable[[], Score]] = {
    "dot": lambda: DotScore("one", WIDTH),
    "dot / √d": lambda: DotScore("sqrt", WIDTH),
    "dot / d": lambda: DotScore("width", WIDTH),
    "bilinear": lambda: BilinearScore(HEADS, WIDTH, WIDTH),
    "additive": lambda: AdditiveScore(HEADS, WIDTH, WIDTH, width=32),
    "rbf": lambda: RbfScore(1.0),
}


def test_every_score_there_is_is_tried() -> None:
    ours = {kind for kind in Score.__subclasses__() if kind.__module__ == Score.__module__}
    assert {type(build()) for build in EVERY_SCORE.values()} == ours


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # says a CPU that has no bf16 of its own
@pytest.mark.parametrize("name", EVERY_SCORE)
@pytest.mark.parametrize("apart", [0.0, 0.05, 1.0])
def test_a_score_in_bf16_is_close_to_the_score_in_float32(name: str, apart: float) -> None:
    """Also where queries and keys nearly meet, and a small distance is left of large squares."""
    torch.manual_seed(0)
    score = EVERY_SCORE[name]()
    # Numbers that bf16 can say, so that all of the difference is the score's own.
    keys = torch.randn(2, HEADS, 9, WIDTH).bfloat16()
    queries = (keys[:, :, :7] + apart * torch.randn(2, HEADS, 7, WIDTH)).bfloat16()
    with torch.no_grad():
        exact = score(queries.float(), keys.float())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            narrow = score(queries, keys).float()
            mixed = score(queries.float(), keys.float()).float()
    for found in (narrow, mixed):
        assert ((found - exact).abs() <= 0.05 * (1 + exact.abs())).all()
