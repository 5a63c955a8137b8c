"""The fast ways to train compute what the plain way computes."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.core.errors import TrainingError
from seqloom.core.sequences import Batch
from seqloom.core.signature import Tokens, Vectors
from seqloom.data.layout import Layout, PaddedLayout
from seqloom.data.packing import BucketLayout, PackedLayout
from seqloom.tasks.likelihood import token_loss
from seqloom.training import loop
from seqloom.training.distributed import World
from seqloom.training.event_log import Event
from seqloom.training.fast import select
from seqloom.training.fast.cuda_graphs import CapturedSteps
from seqloom.training.loop import train
from seqloom.training.optimizer import build_optimizer
from seqloom.training.session import Session
from seqloom.training.setup import open_session
from seqloom.training.step import train_step
from tiny_runs import STILL, TRANSFORMER, outcome, recipe

ALONE = World(0, 1, torch.device("cpu"))
TALKER = ("task.kind=language-model", "model.encoder.kind=none", TRANSFORMER[1])
ROTARY = tuple(
    change.replace("{kind='learned', max_length=24}", "{kind='rotary'}") for change in TRANSFORMER
)
APPENDED = tuple(
    change.replace("max_length=24", "max_length=24, join='append', width=4")
    for change in TRANSFORMER
)
COPYING = ("text.shared=true", "model.decoder.copying=true")
PACKABLE = {
    "learned": TRANSFORMER,
    "copying": (*TRANSFORMER, *COPYING),
    "appended": APPENDED,
    "rotary": ROTARY,
    "language model": TALKER,
}


def session_of(folder: Path, *changes: str, world: World = ALONE) -> Session:
    config = recipe(*changes)
    session = open_session(config, folder, False, world, lambda event: None)
    session.event_log.close()
    return session


@pytest.fixture(scope="module", params=PACKABLE)
def packable(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return session_of(tmp_path_factory.mktemp("run") / "x", *PACKABLE[request.param])


def loss_of_all(session: Session, layout: Layout) -> tuple[torch.Tensor, torch.Tensor]:
    """The summed loss over the corpus laid out this way, and its gradient."""
    corpus, model = session.stream.corpus, session.model.double()
    model.zero_grad()
    plan = layout.plan(corpus.source_lengths, corpus.target_lengths, 0, 0)
    losses = [token_loss(model, layout.gather(corpus, each), 0.1) for each in plan]
    total = torch.stack(losses).sum()
    total.backward()
    return total.detach(), torch.cat(
        [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    )


@settings(max_examples=6, deadline=None)
@given(length=st.integers(6, 40), rows=st.integers(1, 5))
def test_pairs_that_share_a_row_do_not_see_each_other(
    packable: Session, length: int, rows: int
) -> None:
    """Packed, padded or in buckets: the same loss and the same gradient."""
    padded = loss_of_all(packable, PaddedLayout(100))
    for layout in (PackedLayout(length * rows, length), BucketLayout(100)):
        for one, other in zip(padded, loss_of_all(packable, layout), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("copying", [(), COPYING], ids=["speaking", "copying"])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_rows_that_fill_up_a_bucket_teach_nothing(
    tmp_path: Path, cell: str, copying: tuple[str, ...]
) -> None:
    cells = (f"model.encoder.cell={cell}", f"model.decoder.cell={cell}")
    session = session_of(tmp_path / "x", *STILL, *cells, *copying)
    padded, bucketed = (
        loss_of_all(session, layout) for layout in (PaddedLayout(100), BucketLayout(100))
    )
    for one, other in zip(padded, bucketed, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


STEPS = 50


def losses_of(session: Session, recorded: bool, accumulate: int) -> list[float]:
    """The losses of fifty steps, each taken plainly or by a recorder."""
    optimizer = build_optimizer(session.config.training.optimizer, session.model, recorded)

    def loss_of(batch: Batch) -> torch.Tensor:
        return token_loss(session.model, batch, 0.1)

    world = session.world
    recorder = CapturedSteps(session.model, optimizer, loss_of, 1.0, world)
    losses = []
    for _ in range(STEPS):
        batches = [next(session.stream) for _ in range(accumulate)]
        result = (
            recorder.step(batches)
            if recorded
            else train_step(
                session.model,
                optimizer,
                [batch.to(world.device) for batch in batches],
                loss_of,
                1.0,
                world,
            )
        )
        losses.append(float(result.loss))
    return losses


@pytest.mark.parametrize("device", ["cpu", *["cuda"] * torch.cuda.is_available()])
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize(
    "changes",
    [
        (*STILL, "training.batching=bucketed"),
        (*TRANSFORMER, "training.batching=packed"),
        (*STILL, "training.batching=bucketed", *COPYING),
        (*TRANSFORMER, "training.batching=packed", *COPYING),
    ],
    ids=["recurrent", "transformer", "recurrent, copying", "transformer, copying"],
)
def test_recorded_steps_lose_what_plain_steps_lose(
    tmp_path: Path, changes: tuple[str, ...], accumulate: int, device: str
) -> None:
    """On a CPU a recording is played by doing the work again; on a GPU it is a CUDA graph."""
    world = World(0, 1, torch.device(device))
    plain, recorded = (
        losses_of(session_of(tmp_path / name, *changes, world=world), is_recorded, accumulate)
        for name, is_recorded in (("plain", False), ("recorded", True))
    )
    assert recorded == pytest.approx(plain, abs=1e-5)
    assert plain[-1] < plain[0]


@pytest.mark.parametrize("batching", ["padded", "packed", "bucketed"])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(
    tmp_path: Path, batching: str
) -> None:
    changes = (*TRANSFORMER, f"training.batching={batching}", "training.loop=recorded")
    train(recipe(*changes), tmp_path / "straight")
    train(recipe(*changes, "training.steps=7"), tmp_path / "stopped")
    train(recipe(*changes), tmp_path / "stopped", resume=True)
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "straight")


def memory_for(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a GPU run out of memory with batches of more tokens than this."""
    original = loop.batch_loss

    def loss(session: Session, step: int, batch: Batch) -> torch.Tensor:
        if batch.targets.values.numel() > tokens:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
        return original(session, step, batch)

    monkeypatch.setattr(loop, "batch_loss", loss)


@pytest.mark.parametrize("kind", ["plain", "recorded"])
def test_a_batch_that_does_not_fit_is_taken_in_parts_and_the_user_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    changes = (*STILL, f"training.loop={kind}", "training.batching=bucketed")
    whole = train(recipe(*changes), tmp_path / "whole")
    memory_for(20, monkeypatch)
    told: list[Event] = []
    parted = train(recipe(*changes), tmp_path / "parted", report=told.append)
    assert parted.best == pytest.approx(whole.best, rel=1e-4)
    notes = [event.data["text"] for event in told if event.kind == "note"]
    assert len(notes) == 2, "64 tokens, then 32: said once each"
    assert "rows of" in notes[0]
    assert "training.batch_tokens = 32" in notes[0]
    assert "training.accumulate = 2" in notes[0]


def test_a_row_that_does_not_fit_alone_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_for(1, monkeypatch)
    with pytest.raises(TrainingError, match=r"a single row does not fit .* Make the model smaller"):
        train(recipe(), tmp_path / "x")


@pytest.mark.parametrize(
    ("small", "large", "chosen", "tried"),
    [
        (1.0, 3.0, "bf16", {32, 256}),
        (0.5, 3.0, "bf16", {32, 256}),
        (1.0, 1.2, "fp32", {32, 256}),
        (0.03, 3.0, "fp32", {32}),
    ],
)
def test_a_precision_is_used_on_a_cpu_only_where_it_was_measured_to_be_faster(
    monkeypatch: pytest.MonkeyPatch, small: float, large: float, chosen: str, tried: set[int]
) -> None:
    """small, large: how many times as fast products in bf16 are. A large one may take seconds, and
    is not tried where small ones leave no hope."""
    seen = set()

    def seconds(dtype: torch.dtype, side: int) -> float:
        seen.add(side)
        return 1.0 if dtype == torch.float32 else 1 / (small if side == 32 else large)

    monkeypatch.setattr(select, "product_seconds", seconds)
    settings = recipe().training
    words, numbers = Tokens(8), Vectors(2)
    assert select.choose_precision(settings, words, ALONE.device) == chosen
    assert seen == tried
    assert select.choose_precision(settings, numbers, ALONE.device) == "fp32"
    asked = recipe("training.precision=bf16").training
    assert select.choose_precision(asked, numbers, ALONE.device) == "bf16"


def test_a_matrix_product_can_be_timed() -> None:
    assert 0 < select.product_seconds(torch.float32, 32) < 5
