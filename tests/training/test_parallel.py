"""Training on several ranks gives the results of one process."""

import multiprocessing
import time
from pathlib import Path
from traceback import StackSummary
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn
from torch._C._distributed_c10d import HashStore
from torch.distributed.checkpoint.api import CheckpointException
from torch.nn.parallel import DistributedDataParallel

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.batch import Batch
from seqloom.core.errors import (
    ConfigError,
    PeerError,
    SeqloomError,
    StorageError,
    TrainingError,
)
from seqloom.data.batching.stream import BatchStream
from seqloom.models.transformer import TransformerEncoder
from seqloom.runs.weights import read_tensors, write_tensors
from seqloom.training import loop
from seqloom.training.distributed import World, join_world
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from seqloom.training.loss import batch_loss
from seqloom.training.parallel import failures, gradients, sharding
from seqloom.training.parallel.agreement import check_equal_settings, flatten_settings
from seqloom.training.parallel.sharding import Shards
from seqloom.training.session import Session
from seqloom.training.setup import continues_job, open_session
from support.ranks import run_on_ranks, train_on_ranks
from support.tiny_runs import (
    NO_DROPOUT,
    TRANSFORMER,
    latest_checkpoint,
    read_events,
    temporary_files,
    tiny_config,
)

CPU = torch.device("cpu")
HARD_ATTENTION = (*NO_DROPOUT, "model.decoder.attention.selection=argmax")
"""Some weights of this model have no gradient."""
DROPOUT = ("model.encoder.dropout=0.1", "model.decoder.dropout=0.1")
SHORT = (
    "training.steps=6",
    "training.evaluate_every=3",
    "training.checkpoint_every=3",
    "training.precision=fp32",  # "auto" measures the CPU, and a measurement under load can differ
)


def session_of(config: RunConfig, folder: Path, world: World) -> Session:
    """A session before its first step."""
    session = open_session(config, folder, False, world, lambda event: None)
    session.event_log.close()
    return session


def losses_of(folder: Path) -> list[float]:
    """Losses of steps and evaluations, in the order of the event log."""
    return [event["loss"] for event in read_events(folder) if "loss" in event]


def weights_in(folder: Path) -> Tensor:
    """All weights of the last checkpoint as one vector."""
    weights = read_tensors(latest_checkpoint(folder) / "model.safetensors")
    return torch.cat([weights[name].flatten() for name in sorted(weights)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [HARD_ATTENTION, (*TRANSFORMER, *DROPOUT)], ids=["unused", "dropout"]
)
def test_gradients_of_two_ranks_equal_those_of_one(
    tmp_path: Path, changes: tuple[str, ...]
) -> None:
    """Three steps: DDP changes how it handles unused parameters after the first one."""
    config = tiny_config(*changes, "training.accumulate=4", "training.clip=none")

    def write_gradients(world: World, name: str) -> None:
        session = session_of(config, tmp_path / "run" / name, world)
        session.optimizer.step = lambda: None  # type: ignore[assignment, method-assign]
        for step in range(3):
            loop.take_step(session)
            found = {
                weight: each.grad
                for weight, each in session.model.named_parameters()
                if each.grad is not None
            }
            if world.is_main:
                write_tensors(tmp_path / f"{name}-{step}.safetensors", found)

    def on_rank(_: int) -> None:
        with join_world(CPU, 60) as world:
            write_gradients(world, "two")

    write_gradients(World(0, 1, CPU), "one")
    assert run_on_ranks(2, on_rank) == [0, 0]
    for step in range(3):
        one, two = (
            read_tensors(tmp_path / f"{name}-{step}.safetensors") for name in ("one", "two")
        )
        assert one.keys() == two.keys()
        for name in one:
            torch.testing.assert_close(two[name], one[name], rtol=1e-5, atol=1e-7)


Stage = Literal["first step", "forward", "backward"]


class SmallBuckets(DistributedDataParallel):
    """DDP with many buckets, so that a rank can fail after some and before others."""

    def __init__(self, module: nn.Module, **options: Any) -> None:
        super().__init__(module, **{**options, "bucket_cap_mb": 0.0005})  # 500 bytes


def limit_memory_of_rank_1(monkeypatch: pytest.MonkeyPatch, tokens: int, stage: Stage) -> None:
    """Simulate a rank 1 that runs out of memory for batches with more target tokens than this.

    It does so in the first step, which is without DDP, or in step 3.
    """
    first_step = 1 if stage == "first step" else 3

    def fail(_: Tensor | None = None) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

    def loss(session: Session, step: int, batch: Batch) -> Tensor:
        fits = step < first_step or batch.targets.values.numel() <= tokens
        if session.world.rank == 0 or fits:
            return batch_loss(session, step, batch)
        if stage == "forward":
            fail()
        assert session.model.encoder is not None
        hook = session.model.encoder.register_forward_hook(
            lambda module, inputs, memory: memory.states.register_hook(fail) and None
        )
        value = batch_loss(session, step, batch)
        hook.remove()
        return value

    monkeypatch.setattr(gradients, "DistributedDataParallel", SmallBuckets)
    monkeypatch.setattr(loop, "batch_loss", loss)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["first step", "forward", "backward"])
def test_out_of_memory_on_one_rank_splits_the_batches_of_all_and_keeps_the_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: Stage
) -> None:
    one = tiny_config(*NO_DROPOUT, *SHORT, "training.accumulate=2")
    train(one, tmp_path / "whole")
    limit_memory_of_rank_1(monkeypatch, 20, stage)
    train_on_ranks(2, tiny_config(*NO_DROPOUT, *SHORT), tmp_path / "split")
    assert losses_of(tmp_path / "split") == pytest.approx(losses_of(tmp_path / "whole"), abs=1e-5)
    notes = [event["text"] for event in read_events(tmp_path / "split") if "text" in event]
    assert len(notes) == 2, "batches of 64 tokens were halved twice"
    assert "out of memory on another rank" in notes[0]
    assert "training.accumulate = 4" in notes[0]


FSDP = ("training.parallel=fsdp",)


@pytest.mark.slow
def test_sharded_training_equals_one_process_and_resumes_in_one_process(tmp_path: Path) -> None:
    """The checkpoint of step 3 has one file per rank. The final checkpoint has ordinary files."""
    # The gradient of the key biases is 0 up to rounding. With a small epsilon, Adam would make
    # steps of the size of the learning rate from these rounding errors.
    epsilon = "training.optimizer.epsilon=1e-4"
    averaging = "training.averaging={kind='ema', decay=0.5}"
    changes = (*TRANSFORMER, *SHORT, averaging, epsilon, "training.accumulate=2")
    config, sharded = tiny_config(*changes), tiny_config(*changes, *FSDP)
    train(config, tmp_path / "whole")
    train_on_ranks(2, sharded, tmp_path / "sharded")
    torch.testing.assert_close(
        weights_in(tmp_path / "sharded"), weights_in(tmp_path / "whole"), rtol=0, atol=1e-5
    )
    assert losses_of(tmp_path / "sharded") == pytest.approx(losses_of(tmp_path / "whole"), abs=1e-5)
    first = tmp_path / "sharded" / "checkpoints" / "step-00000003"
    files = sorted(path.name for path in (first / "shards").iterdir())
    assert len(files) == 2
    assert all(name.endswith(".safetensors") for name in files)
    # The checkpoint of step 6 is damaged, so training resumes from the sharded one.
    (tmp_path / "sharded" / "checkpoints" / "step-00000006" / "trainer.json").write_text("")
    train(config, tmp_path / "sharded", resume=True)
    torch.testing.assert_close(
        weights_in(tmp_path / "sharded"), weights_in(tmp_path / "whole"), rtol=0, atol=1e-5
    )
    assert temporary_files(tmp_path / "sharded") == []


@pytest.mark.slow
def test_activation_checkpointing_does_not_change_the_weights(tmp_path: Path) -> None:
    for name in ("false", "true"):
        setting = f"training.activation_checkpointing={name}"
        train(tiny_config(*TRANSFORMER, *DROPOUT, *SHORT, setting), tmp_path / name)
    assert torch.equal(weights_in(tmp_path / "true"), weights_in(tmp_path / "false"))


def test_activation_checkpointing_computes_layers_again(tmp_path: Path) -> None:
    config = tiny_config(*TRANSFORMER, "training.activation_checkpointing=true")
    session = session_of(config, tmp_path / "x", World(0, 1, CPU))
    calls = []
    encoder = session.model.encoder
    assert isinstance(encoder, TransformerEncoder)
    encoder.layers[0].feedforward.register_forward_pre_hook(lambda *_: calls.append("forward"))
    loop.take_step(session)
    assert len(calls) == 2, "once in the forward pass and once in the backward pass"


def test_the_batches_of_a_step_are_dealt_to_the_ranks_in_order(tmp_path: Path) -> None:
    session = session_of(tiny_config(), tmp_path / "x", World(0, 1, CPU))
    corpus, layout = session.stream.corpus, session.stream.layout
    for size in (1, 2, 4):
        streams = [BatchStream(corpus, layout, 1, rank, size) for rank in range(size)]
        dealt = [next(stream) for _ in range(8 // size) for stream in streams]
        whole = BatchStream(corpus, layout, 1)
        for batch in dealt:
            assert torch.equal(batch.targets.values, next(whole).targets.values)


def test_a_number_of_ranks_that_does_not_divide_the_batches_of_a_step_is_an_error(
    tmp_path: Path,
) -> None:
    world = World(0, 4, CPU)
    config = tiny_config("training.accumulate=6")
    with pytest.raises(ConfigError, match=r"is 6, .* among 4 ranks.*training\.accumulate = 8"):
        session_of(config, tmp_path / "x", world)
    assert not (tmp_path / "x").exists()


def test_different_settings_of_ranks_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    other = tiny_config("training.steps=9", "training.seed=5").model_dump()

    def gather(world: World, facts: dict[str, object]) -> list[dict[str, object]]:
        return [facts, {**facts, **flatten_settings(other)}]

    monkeypatch.setattr(World, "gather", gather)
    with pytest.raises(ConfigError) as error:
        check_equal_settings(tiny_config(), World(0, 2, CPU))
    lines = str(error.value).splitlines()
    assert "  training.steps: 12 on rank 0, 9 on rank 1" in lines
    assert "  training.seed: 1 on rank 0, 5 on rank 1" in lines
    assert len(lines) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps_of_rank_1", "folder", "error"),
    [
        (9, "run", "ConfigError: the ranks of this job do not train the same model:"),
        (12, "file/run", "StorageError: "),
    ],
    ids=["different recipes", "unwritable folder"],
)
def test_an_error_before_training_ends_all_ranks_and_is_reported_by_rank_0(
    tmp_path: Path, steps_of_rank_1: int, folder: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "SECONDS_TO_PRINT", 0.1)  # rank 0 waits for rank 1 below
    (tmp_path / "file").touch()
    rank_1_has_ended = multiprocessing.get_context("fork").Event()

    def on_rank(rank: int) -> None:
        config = tiny_config(f"training.steps={steps_of_rank_1 if rank == 1 else 12}")
        try:
            train(config, tmp_path / folder)
        except SeqloomError as raised:
            message = f"{type(raised).__name__}: {raised}"
            (tmp_path / str(rank)).write_text(message, encoding="utf-8")
        if rank == 1:
            rank_1_has_ended.set()
        # Rank 0 runs the store here. With torchrun, the store is in a process that lives longer.
        assert rank_1_has_ended.wait(60)

    assert run_on_ranks(2, on_rank) == [0, 0]
    assert (tmp_path / "0").read_text(encoding="utf-8").startswith(error)
    assert (tmp_path / "1").read_text(encoding="utf-8").startswith("PeerError: ")
    assert not (tmp_path / folder).exists()


def test_a_run_folder_that_a_machine_does_not_see_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gather(world: World, value: object) -> list[object]:
        return [value, ("node2", False) if isinstance(value, tuple) else value]

    monkeypatch.setattr(World, "gather", gather)
    message = r"run: rank 0 has created .* not visible on node2\. Choose a --run folder on a file"
    with pytest.raises(ConfigError, match=message):
        session_of(tiny_config(), tmp_path / "run", World(0, 1, CPU))


def test_a_restarted_job_resumes_only_the_run_that_it_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job 7")
    session_of(tiny_config(), tmp_path / "run", World(0, 1, CPU))
    assert not continues_job(tmp_path / "run"), "the first start does not resume"
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert continues_job(tmp_path / "run")
    assert not continues_job(tmp_path / "other")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job 8")
    assert not continues_job(tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("loop=captured", "parallel=fsdp"), "does not work with parallel = 'fsdp'"),
        (("loop=captured", "activation_checkpointing=true"), "activation_checkpointing = true"),
        (("parallel=fsdp", "decoder_input.kind=free-running"), "only teacher forcing"),
        (
            ("parallel=fsdp", "minimum_risk={after=2}", "stopping.score=bleu"),
            "does not support training.minimum_risk",
        ),
    ],
)
def test_settings_that_do_not_work_together_are_rejected(
    changes: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny_config(*(f"training.{change}" for change in changes))


def run_out_of_memory(*_: object, **__: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")


def test_out_of_memory_after_the_backward_pass_on_several_ranks_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(tiny_config(), tmp_path / "x", World(0, 1, CPU))
    session.world = World(0, 2, CPU)
    monkeypatch.setattr(loop, "train_step", run_out_of_memory)
    with pytest.raises(TrainingError, match=r"after the backward pass.*training\.batch_tokens"):
        loop.take_step(session)


def test_out_of_memory_with_fsdp_is_an_error() -> None:
    with pytest.raises(TrainingError, match=r"'fsdp' cannot repeat the step.*batch_tokens"):
        Shards.abandon(object())  # type: ignore[arg-type]


def store_with(**values: str) -> HashStore:
    store = HashStore()
    for key, value in values.items():
        store.set(key.replace("_", "/"), value)
    return store


@pytest.mark.filterwarnings("ignore:torch.distributed")
@pytest.mark.parametrize("content", [None, b"", b"\xff" * 8, b"\x08" + bytes(7) + b"not JSON"])
def test_shards_that_cannot_be_read_are_an_error_with_advice(
    tmp_path: Path, content: bytes | None
) -> None:
    model = nn.Linear(2, 3)
    shards = tmp_path / "shards"
    sharding.write_shards(shards, model.state_dict())
    assert sharding.read_shards(shards, model).keys() == model.state_dict().keys()
    if content is None:
        shards.rename(tmp_path / "moved")
    else:
        for file in shards.iterdir():
            file.write_bytes(content)
    with pytest.raises(StorageError, match=r"shards: cannot be read: .*Copy the whole run again"):
        sharding.read_shards(shards, model)


@pytest.mark.filterwarnings("ignore:torch.distributed")
def test_an_error_of_another_rank_that_reads_shards_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Linear(2, 3)
    sharding.write_shards(tmp_path, model.state_dict())

    def load(*_: object, **__: object) -> None:
        raise CheckpointException("read", {1: (OSError("no disk"), StackSummary())})

    monkeypatch.setattr(sharding, "load", load)
    with pytest.raises(StorageError, match=r"cannot be read: rank 1: no disk\. Copy the whole run"):
        sharding.read_shards(tmp_path, model)


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "SECONDS_TO_REPORT", 0.1)
    monkeypatch.setattr(failures, "SECONDS_TO_PRINT", 0.0)


def failure(rank: int, error: Exception, **reported: str) -> pytest.ExceptionInfo[Exception]:
    """The exception that `report_failures` raises on a rank of three after an error."""
    world = World(rank, 3, CPU, store_with(**reported))
    with pytest.raises(Exception) as info, failures.report_failures(world):  # noqa: PT011
        raise error
    return info


TIMEOUT = RuntimeError("[gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1000ms")


@pytest.mark.usefixtures("short_wait")
def test_the_first_waiting_rank_names_the_ranks_that_do_not_answer() -> None:
    info = failure(0, TIMEOUT, seqloom_waiting_1="")
    assert info.type is TrainingError
    assert str(info.value).startswith("rank 2 of 3 died or did not answer within the time limit")
    assert "Timed out" in str(info.value)
    assert failure(1, TIMEOUT, seqloom_waiting_0="").type is PeerError


@pytest.mark.usefixtures("short_wait")
def test_an_error_is_raised_by_one_rank() -> None:
    assert failure(0, TIMEOUT, seqloom_error_2="x").type is PeerError
    assert failure(1, ConfigError("x"), seqloom_error_0="x").type is PeerError
    assert failure(1, ConfigError("x"), seqloom_error_0="y").type is ConfigError
    assert failure(2, ConfigError("x"), seqloom_error_1="x").type is PeerError
    assert failure(2, ConfigError("x"), seqloom_error_0="y", seqloom_error_1="x").type is PeerError
    assert failure(0, ConfigError("x")).type is ConfigError
    assert failure(1, RuntimeError("a bug")).type is RuntimeError


@pytest.mark.parametrize("error", [ConfigError("x"), TIMEOUT])
def test_a_rank_without_a_message_ends_after_the_rank_that_prints(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torchrun ends all ranks as soon as one of them has ended."""
    monkeypatch.setattr(failures, "SECONDS_TO_REPORT", 0.0)
    monkeypatch.setattr(failures, "SECONDS_TO_PRINT", 0.5)
    start = time.monotonic()
    assert failure(0, ConfigError("x")).type is ConfigError
    assert time.monotonic() - start < 0.5
    assert failure(1, error, seqloom_error_0="x").type is PeerError
    assert time.monotonic() - start >= 0.5


def test_a_rank_without_a_message_ends_when_the_store_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torchrun, the store ends with the rank that runs it."""
    monkeypatch.setattr(failures, "SECONDS_TO_REPORT", 0.0)
    ends = time.monotonic() + 0.3

    class EndingStore(HashStore):
        def check(self, keys: list[str]) -> bool:
            if time.monotonic() > ends:
                raise RuntimeError("connection closed")
            return super().check(keys)

    store = EndingStore()
    store.set("seqloom/error/0", "x")
    with pytest.raises(PeerError), failures.report_failures(World(1, 3, CPU, store)):
        raise ConfigError("x")
    assert ends <= time.monotonic() < ends + 5


def test_the_rank_that_repairs_damaged_data_reports_it(
    tmp_path: Path, isolated_cache: Path
) -> None:
    config = tiny_config("training.steps=1")
    train(config, tmp_path / "first")
    for path in (isolated_cache / "prepared").glob("*/00000/target.ids"):
        path.write_bytes(path.read_bytes()[::-1])

    def report(event: Event) -> None:
        if event.kind == "note" and "built again" in event.data["text"]:
            with (tmp_path / "notes").open("a") as file:
                file.write(event.data["text"].replace("\n", "") + "\n")

    run = lambda _: train(config, tmp_path / "second", report=report)  # noqa: E731
    assert run_on_ranks(2, run) == [0, 0]
    notes = (tmp_path / "notes").read_text().splitlines()
    assert len(notes) == 2, "one note for each of the splits train and dev"
