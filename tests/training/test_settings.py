"""Every training setting has its effect."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from seqloom.config.schema.training import AdamWConfig
from seqloom.core.signature import Signature, Tokens
from seqloom.data.readers.splits import read_split
from seqloom.inference.run import load
from seqloom.models.build import build_model
from seqloom.tasks.losses import Objective
from seqloom.training import loop
from seqloom.training.distributed import World
from seqloom.training.evaluation import evaluate
from seqloom.training.loop import train
from seqloom.training.optimizer import build_optimizer
from seqloom.training.progress import ProgressMeter
from seqloom.training.session import Session
from seqloom.training.setup import open_session
from support.tiny_runs import NO_DROPOUT, TRANSFORMER, read_events, tiny_config

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
DROPOUT = ("model.encoder.dropout=0.5", "model.decoder.dropout=0.5")


def session_of(folder: Path, *changes: str) -> Session:
    """A session before its first step."""
    session = open_session(
        tiny_config(*changes), folder, False, World(0, 1, CPU), lambda event: None
    )
    session.event_log.close()
    return session


def gradient_norm(model: nn.Module) -> float:
    gradients = [p.grad.norm() for p in model.parameters() if p.grad is not None]
    return float(torch.stack(gradients).norm())


def test_the_gradient_norm_is_clipped_and_the_original_norm_is_reported(tmp_path: Path) -> None:
    free = session_of(tmp_path / "free", *NO_DROPOUT, "training.clip=none")
    norm = loop.take_step(free).norm
    assert gradient_norm(free.model) == pytest.approx(float(norm), rel=1e-4)
    clipped = session_of(tmp_path / "clipped", *NO_DROPOUT, f"training.clip={float(norm) / 10}")
    result = loop.take_step(clipped)
    assert float(result.norm) == pytest.approx(float(norm), rel=1e-4)
    assert gradient_norm(clipped.model) == pytest.approx(float(norm) / 10, rel=1e-3)


def test_weight_decay_applies_to_matrices_only() -> None:
    signature = Signature(Tokens(12), Tokens(12), shared=False)
    model = build_model(tiny_config(*TRANSFORMER).model, signature)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
        parameter.grad = torch.zeros_like(parameter)  # only the decay changes the weights
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    build_optimizer(AdamWConfig(learning_rate=0.1, weight_decay=0.5), model).step()
    unchanged = {name for name, now in model.named_parameters() if torch.equal(now, before[name])}
    assert unchanged == {name for name, weight in before.items() if weight.dim() == 1}
    assert any("norm" in name for name in unchanged)
    assert any("bias" in name for name in unchanged)
    for name, now in model.named_parameters():
        if name not in unchanged:
            assert torch.allclose(now, before[name] * (1 - 0.1 * 0.5))


def test_groups_are_sampled_by_the_temperature_of_the_recipe(tmp_path: Path) -> None:
    tables = [
        f"{{kind='synthetic', task='{task}', examples={n}, max_length=4, symbols=4}}"
        for task, n in (("reverse", 50), ("copy", 10))
    ]
    changes = (f"data.train=[{', '.join(tables)}]", "data.temperature=1e9")
    stream = session_of(tmp_path / "run", *changes).stream
    indices = [index for batch in stream._plan(0).batches for index in batch.tolist()]
    assert [sum(i < 50 for i in indices), sum(i >= 50 for i in indices)] == [30, 30]


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_training_minimises_the_smoothed_loss(smoothing: float, tmp_path: Path) -> None:
    changes = (*NO_DROPOUT, f"training.label_smoothing={smoothing}")
    twin = session_of(tmp_path / "twin", *changes)
    batch = next(twin.stream)
    losses = {
        amount: float(twin.task.loss(twin.model, batch, Objective(amount)).detach())
        / batch.num_targets
        for amount in (0.0, 0.3)
    }
    assert losses[0.0] != pytest.approx(losses[0.3], rel=1e-3)
    result = loop.take_step(session_of(tmp_path / "run", *changes))
    assert float(result.loss) == pytest.approx(losses[smoothing], rel=1e-5)


def step_seeds(session: Session, steps: int) -> list[int]:
    """The random seed of each step."""
    seeds: list[int] = []
    handle = session.model.register_forward_pre_hook(
        lambda module, arguments: seeds.append(torch.initial_seed())
    )
    for _ in range(steps):
        loop.take_step(session)
    handle.remove()
    return seeds


def test_random_draws_depend_only_on_seed_step_and_batch(tmp_path: Path) -> None:
    first = step_seeds(session_of(tmp_path / "first"), 4)
    assert len(set(first)) == 4
    later = session_of(tmp_path / "later")
    later.step = 2
    torch.rand(17)  # earlier draws have no effect
    assert step_seeds(later, 2) == first[2:]
    other_seed = step_seeds(session_of(tmp_path / "seed", "training.seed=2"), 4)
    two_batches = step_seeds(session_of(tmp_path / "two", "training.accumulate=2"), 4)
    assert two_batches[::2] == first
    assert len({*two_batches, *other_seed}) == 12


@pytest.mark.parametrize(
    ("precision", "kind"),
    [("fp32", torch.float32), ("auto", torch.float32), ("bf16", torch.bfloat16)],
)
def test_linear_layers_run_in_the_precision_of_the_recipe_with_fp32_weights(
    precision: str, kind: torch.dtype, tmp_path: Path
) -> None:
    session = session_of(tmp_path / "run", *TRANSFORMER, f"training.precision={precision}")
    dtypes: set[torch.dtype] = set()

    def record_dtype(module: nn.Module, arguments: object, output: Tensor) -> None:
        dtypes.add(output.dtype)

    for module in session.model.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_hook(record_dtype)
    loop.take_step(session)
    assert dtypes == {kind}
    assert {weight.dtype for weight in session.model.parameters()} == {torch.float32}


@pytest.mark.parametrize(("seconds", "reason", "step"), [(59.0, "done", 2), (61.0, "time", 1)])
def test_max_minutes_is_measured_in_minutes(
    seconds: float, reason: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProgressMeter, "seconds", lambda meter: seconds)
    config = tiny_config("training.steps=2", "training.stopping.max_minutes=1.0")
    summary = train(config, tmp_path / "run")
    assert (summary.reason, summary.step) == (reason, step)


def test_the_dev_loss_is_computed_without_dropout_and_label_smoothing(tmp_path: Path) -> None:
    config = tiny_config(*DROPOUT, "training.steps=4", "training.label_smoothing=0.2")
    train(config, tmp_path / "run")
    (logged,) = (
        line["loss"] for line in read_events(tmp_path / "run") if line["event"] == "evaluate"
    )
    run = load(tmp_path / "run")
    pairs = [(example.source, example.target) for example in read_split(config.data, "dev")]
    scored = run.score(*map(list, zip(*pairs, strict=True)))
    each = [value for one in scored for value in one.log_probabilities]
    assert logged == pytest.approx(-sum(each) / len(each), rel=1e-4)


def test_dropout_is_active_again_after_an_evaluation(tmp_path: Path) -> None:
    config = tiny_config(*DROPOUT)
    session = open_session(config, tmp_path / "run", False, World(0, 1, CPU), lambda event: None)
    modes: list[bool] = []
    session.model.register_forward_pre_hook(lambda module, arguments: modes.append(module.training))
    loop.take_step(session)
    evaluate(session, lambda: None)
    loop.take_step(session)
    session.event_log.close()
    assert modes[0]
    assert modes[-1]
    assert not any(modes[1:-1])
    assert len(modes) > 2


@pytest.mark.parametrize("merge", [True, False])
def test_merge_references_groups_the_targets_of_a_dev_source(merge: bool, tmp_path: Path) -> None:
    pairs = [("ab", "ba"), ("cd", "dc"), ("ab", "bb"), ("ab", "b")]
    lines = [json.dumps({"src": source, "tgt": target}) for source, target in pairs]
    (tmp_path / "dev.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    session = session_of(
        tmp_path / "run",
        f"data.dev={{kind='jsonl', path='{tmp_path / 'dev.jsonl'}'}}",
        f"data.merge_references={str(merge).lower()}",
    )
    found = [(example.source, *example.references) for example in session.dev_examples]
    assert found == ([("ab", "ba", "bb", "b"), ("cd", "dc")] if merge else pairs)
    assert len(session.dev) == len(pairs)  # the loss uses all pairs in both cases
