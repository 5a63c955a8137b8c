"""Packed, bucketed and captured training equals plain training."""

import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.transformer import TransformerLayersConfig
from seqloom.core.batch import Batch
from seqloom.core.errors import TrainingError
from seqloom.core.signature import Signature, Tokens, Vectors
from seqloom.data.batching.bucketing import BucketLayout
from seqloom.data.batching.layout import BatchLayout, PaddedLayout
from seqloom.data.batching.packing import PackedLayout
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder
from seqloom.nn.fast.dispatch import gpu_has_bf16
from seqloom.nn.fast.fused_transformer import supports
from seqloom.training import loop
from seqloom.training.distributed import World
from seqloom.training.event_log import Event
from seqloom.training.fast import cuda_graphs, select
from seqloom.training.fast.cuda_graphs import CapturedSteps
from seqloom.training.loop import train
from seqloom.training.loss import batch_loss
from seqloom.training.optimizer import build_optimizer
from seqloom.training.parallel.gradients import checkpoint_activations
from seqloom.training.session import Session
from seqloom.training.setup import open_session
from seqloom.training.step import SeededBatch, train_step
from support.tiny_runs import NO_DROPOUT, TRANSFORMER, checkpoint_digests, tiny_config
from support.token_loss import token_loss

pytestmark = pytest.mark.slow

ONE_RANK = World(0, 1, torch.device("cpu"))
LANGUAGE_MODEL = ("task.kind=language-model", "model.encoder.kind=none", TRANSFORMER[1])
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
    "language model": LANGUAGE_MODEL,
}


def session_of(folder: Path, *changes: str, world: World = ONE_RANK) -> Session:
    config = tiny_config(*changes)
    session = open_session(config, folder, False, world, lambda event: None)
    session.event_log.close()
    return session


def loss_and_gradient(session: Session, layout: BatchLayout) -> tuple[torch.Tensor, torch.Tensor]:
    """The summed loss over the corpus in this layout, and its gradient."""
    corpus, model = session.stream.corpus, session.model.double()
    model.zero_grad()
    plan = layout.plan(corpus.source_lengths, corpus.target_lengths, 0, 0)
    losses = [token_loss(model, layout.gather(corpus, each), 0.1) for each in plan]
    total = torch.stack(losses).sum()
    total.backward()
    return total.detach(), torch.cat(
        [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    )


def assert_equal_results(
    first: tuple[torch.Tensor, torch.Tensor], second: tuple[torch.Tensor, torch.Tensor]
) -> None:
    for expected, actual in zip(first, second, strict=True):
        torch.testing.assert_close(expected, actual, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module", params=PACKABLE)
def packable(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Session, tuple[torch.Tensor, torch.Tensor]]:
    """A session, and the loss and gradient of padded batches. Those of bucketed batches are equal."""
    session = session_of(tmp_path_factory.mktemp("run") / "x", *PACKABLE[request.param])
    padded = loss_and_gradient(session, PaddedLayout(100))
    assert_equal_results(padded, loss_and_gradient(session, BucketLayout(100)))
    return session, padded


@settings(max_examples=6, deadline=None)
@given(length=st.integers(6, 40), rows=st.integers(1, 5))
def test_packed_pairs_do_not_attend_to_each_other(
    packable: tuple[Session, tuple[torch.Tensor, torch.Tensor]], length: int, rows: int
) -> None:
    """Packed batches give the loss and gradient of padded batches."""
    session, padded = packable
    packed = PackedLayout(length * rows, length)
    assert_equal_results(padded, loss_and_gradient(session, packed))


@pytest.mark.parametrize("copying", [(), COPYING], ids=["generating", "copying"])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_padding_rows_of_a_bucket_do_not_change_loss_or_gradient(
    tmp_path: Path, cell: str, copying: tuple[str, ...]
) -> None:
    cells = (f"model.encoder.cell={cell}", f"model.decoder.cell={cell}")
    session = session_of(tmp_path / "x", *NO_DROPOUT, *cells, *copying)
    padded, bucketed = (
        loss_and_gradient(session, layout) for layout in (PaddedLayout(100), BucketLayout(100))
    )
    assert_equal_results(padded, bucketed)


STEPS = {"cpu": 15, "cuda": 50}
"""Number of steps by device. More on a GPU, where the graph of a batch shape is replayed in later steps."""


def losses_of(session: Session, captured: bool, accumulate: int) -> list[float]:
    """The losses of `STEPS` steps, run eagerly or by `CapturedSteps`."""
    optimizer = build_optimizer(session.config.training.optimizer, session.model, captured)

    def loss_of(batch: Batch) -> torch.Tensor:
        return token_loss(session.model, batch, 0.1)

    world = session.world
    captured_steps = CapturedSteps(session.model, optimizer, loss_of, 1.0, world)
    losses = []
    for _ in range(STEPS[world.device.type]):
        batches = [SeededBatch(next(session.stream)) for _ in range(accumulate)]
        result = (
            captured_steps.step(batches)
            if captured
            else train_step(
                session.model,
                optimizer,
                batches,
                loss_of,
                1.0,
                world,
            )
        )
        losses.append(float(result.loss))
    captured_steps.close()
    return losses


def test_captured_steps_restore_the_settings_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stances: list[str] = []
    monkeypatch.setattr(torch.compiler, "set_stance", stances.append)
    monkeypatch.setattr(cuda_graphs, "compile_model", lambda model: None)
    before = sys.getswitchinterval()
    session = session_of(tmp_path / "x")
    steps = CapturedSteps(
        session.model, session.optimizer, lambda batch: torch.ones(()), 1.0, session.world, True
    )
    sys.setswitchinterval(before / 2)
    steps.close()
    assert sys.getswitchinterval() == pytest.approx(before)
    assert stances == ["force_eager", "default"]


@pytest.mark.parametrize("device", ["cpu", *["cuda"] * torch.cuda.is_available()])
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize(
    "changes",
    [
        (*NO_DROPOUT, "training.batching=bucketed"),
        (*TRANSFORMER, "training.batching=packed"),
        (*NO_DROPOUT, "training.batching=bucketed", *COPYING),
        (*TRANSFORMER, "training.batching=packed", *COPYING),
    ],
    ids=["recurrent", "transformer", "recurrent, copying", "transformer, copying"],
)
def test_captured_steps_have_the_same_losses_as_plain_steps(
    tmp_path: Path, changes: tuple[str, ...], accumulate: int, device: str
) -> None:
    """On a GPU the steps are CUDA graphs; on a CPU the captured function runs eagerly."""
    world = World(0, 1, torch.device(device))
    plain, captured = (
        losses_of(session_of(tmp_path / name, *changes, world=world), is_captured, accumulate)
        for name, is_captured in (("plain", False), ("captured", True))
    )
    assert captured == pytest.approx(plain, abs=1e-5)
    assert plain[-1] < plain[0]


@pytest.mark.parametrize("batching", ["padded", "packed", "bucketed"])
def test_a_resumed_run_of_captured_steps_ends_bit_equal(tmp_path: Path, batching: str) -> None:
    changes = (*TRANSFORMER, f"training.batching={batching}", "training.loop=captured")
    train(tiny_config(*changes), tmp_path / "straight")
    train(tiny_config(*changes, "training.steps=7"), tmp_path / "stopped")
    train(tiny_config(*changes), tmp_path / "stopped", resume=True)
    assert checkpoint_digests(tmp_path / "stopped") == checkpoint_digests(tmp_path / "straight")


def limit_memory(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate an out-of-memory error for batches with more target tokens than this."""

    def loss(session: Session, step: int, batch: Batch) -> torch.Tensor:
        if batch.targets.values.numel() > tokens:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
        return batch_loss(session, step, batch)

    monkeypatch.setattr(loop, "batch_loss", loss)


@pytest.mark.parametrize("kind", ["plain", "captured"])
def test_a_batch_that_does_not_fit_is_split_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    changes = (*NO_DROPOUT, f"training.loop={kind}", "training.batching=bucketed")
    whole = train(tiny_config(*changes), tmp_path / "whole")
    limit_memory(20, monkeypatch)
    events: list[Event] = []
    split = train(tiny_config(*changes), tmp_path / "split", report=events.append)
    assert split.best == pytest.approx(whole.best, rel=1e-4)
    notes = [event.data["text"] for event in events if event.kind == "note"]
    assert len(notes) == 2, "one note for 64 tokens and one for 32"
    assert "rows of" in notes[0]
    assert "training.batch_tokens = 32" in notes[0]
    assert "training.accumulate = 2" in notes[0]


def test_a_single_row_that_does_not_fit_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_memory(1, monkeypatch)
    with pytest.raises(TrainingError, match=r"a single row does not fit .* Make the model smaller"):
        train(tiny_config(), tmp_path / "x")


@pytest.mark.parametrize(
    ("small", "large", "chosen", "tried"),
    [
        (1.0, 3.0, "bf16", {32, 256}),
        (0.5, 3.0, "bf16", {32, 256}),
        (1.0, 1.2, "fp32", {32, 256}),
        (0.03, 3.0, "fp32", {32}),
    ],
)
def test_bf16_is_chosen_on_a_cpu_only_if_it_is_measured_to_be_faster(
    monkeypatch: pytest.MonkeyPatch, small: float, large: float, chosen: str, tried: set[int]
) -> None:
    """small, large: speed-up of bf16 products. The large product is not timed if the small one is
    much slower."""
    timed = set()

    def seconds(dtype: torch.dtype, side: int) -> float:
        timed.add(side)
        return 1.0 if dtype == torch.float32 else 1 / (small if side == 32 else large)

    monkeypatch.setattr(select, "product_seconds", seconds)
    settings = tiny_config().training
    tokens, vectors = Tokens(8), Vectors(2)
    assert select.choose_precision(settings, tokens, ONE_RANK.device) == chosen
    assert timed == tried
    assert select.choose_precision(settings, vectors, ONE_RANK.device) == "fp32"
    explicit = tiny_config("training.precision=bf16").training
    assert select.choose_precision(explicit, vectors, ONE_RANK.device) == "bf16"


@pytest.mark.parametrize(
    ("capability", "chosen"), [((7, 5), "fp32"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_bf16_is_chosen_on_a_gpu_only_if_it_has_instructions_for_it(
    capability: tuple[int, int], chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch emulates bf16 on older GPUs, and says that they support it."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *given: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    gpu_has_bf16.cache_clear()
    try:
        settings, gpu = tiny_config().training, torch.device("cuda", 0)
        assert select.choose_precision(settings, Tokens(8), gpu) == chosen
    finally:
        gpu_has_bf16.cache_clear()


def test_a_matrix_product_is_timed() -> None:
    assert 0 < select.product_seconds(torch.float32, 32) < 5


# Layers with GELU have no fused kernels.
GELU = ("model.encoder.activation=gelu", "model.decoder.activation=gelu")
LONG = (*GELU, "training.steps=1000000", "training.batch_tokens=25600")
# Heads of width 16 have fused kernels.
FUSED = ("model.encoder.width=32", "model.decoder.width=32")
PACKED, BUCKETED = PackedLayout(400, 40), BucketLayout(400)


@pytest.mark.parametrize(
    ("changes", "layout", "ranks", "expected"),
    [
        ((*TRANSFORMER, *LONG), PACKED, 1, True),
        (TRANSFORMER, PACKED, 1, False),  # too short
        ((*TRANSFORMER, *LONG), BUCKETED, 1, False),
        ((*TRANSFORMER, *LONG), PACKED, 2, False),
        ((*TRANSFORMER, "training.compile=true"), BUCKETED, 2, True),
        ((*TRANSFORMER, *LONG, "training.compile=false"), PACKED, 1, False),
    ],
)
def test_layers_are_compiled_if_it_saves_time(
    changes: tuple[str, ...],
    layout: BatchLayout,
    ranks: int,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(select, "find_triton", lambda: True)
    assert compiles(tiny_config(*changes), layout, ranks) == expected


def compiles(
    config: RunConfig, layout: BatchLayout, ranks: int, precision: select.Precision = "bf16"
) -> bool:
    model = build_model(config.model, Signature(Tokens(20), Tokens(20), shared=False))
    return select.compiles_layers(config, model, layout, precision, ranks)


def test_layers_with_fused_kernels_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "find_triton", lambda: True)
    long = ("training.steps=1000000", "training.batch_tokens=25600")
    config = tiny_config(*TRANSFORMER, *long, *FUSED)
    assert not compiles(config, PACKED, 1)
    assert compiles(config, PACKED, 1, "fp32"), "the kernels are for bf16"
    assert compiles(config, PackedLayout(4096, 256), 1), "rows are too long for the kernels"
    for change in (
        "model.encoder.activation=gelu",
        "model.encoder.attention.dropout=0.1",
        "model.encoder.attention.heads=8",  # each head is 4 wide
        "model.encoder.positions={kind='rotary'}",
    ):
        assert compiles(tiny_config(*TRANSFORMER, *long, *FUSED, change), PACKED, 1), change


@pytest.mark.parametrize("score", ["{kind='bilinear'}", "{kind='additive'}"])
def test_layers_with_another_score_than_the_dot_product_are_not_fused(score: str) -> None:
    """The kernels would ignore its weights."""
    part = Signature(Tokens(20), Tokens(20), shared=False)
    for side in ("encoder", "decoder"):
        changes = (*TRANSFORMER, *FUSED, f"model.{side}.attention.score={score}")
        model = build_model(tiny_config(*changes).model, part)
        assert [has_fused(model.encoder), has_fused(model.decoder)].count(False) == 1, side


def has_fused(part: object) -> bool:
    assert isinstance(part, TransformerEncoder | TransformerDecoder)
    return supports(part.layers)


def test_layers_with_a_changed_forward_are_not_fused() -> None:
    """Fused functions do not call the layers, so they would ignore checkpointing and hooks."""

    config = tiny_config(*TRANSFORMER, *FUSED).model

    def build() -> Model:
        return build_model(config, Signature(Tokens(20), Tokens(20), shared=False))

    def encoder_of(model: Model) -> TransformerEncoder:
        assert isinstance(model.encoder, TransformerEncoder)
        return model.encoder

    assert supports(encoder_of(build()).layers)
    checkpointed, hooked, prehooked = build(), build(), build()
    checkpoint_activations(checkpointed)
    encoder_of(hooked).layers[0].register_forward_hook(lambda *given: None)
    encoder_of(prehooked).layers[0].register_forward_pre_hook(lambda *given: None)
    for changed in map(encoder_of, (checkpointed, hooked, prehooked)):
        assert not supports(changed.layers)


def test_r_drop_doubles_the_work_that_compiled_layers_save(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "find_triton", lambda: True)
    config = tiny_config(*TRANSFORMER, *LONG)
    numbers = 0
    for part in (config.model.encoder, config.model.decoder):
        assert isinstance(part, TransformerLayersConfig)
        numbers += part.layers * part.width
    monkeypatch.setattr(select, "MIN_COMPILED_WORK", 1.5 * 1_000_000 * 25_600 * numbers)
    assert not compiles(config, PACKED, 1)
    with_r_drop = tiny_config(*TRANSFORMER, *LONG, "training.r_drop=1.0")
    assert compiles(with_r_drop, PACKED, 1)


def test_layers_are_not_compiled_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "find_triton", lambda: False)
    assert not compiles(tiny_config(*TRANSFORMER, *LONG), PACKED, 1)
