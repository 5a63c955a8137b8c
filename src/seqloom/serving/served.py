"""Served: the runs behind the service, and which of them is meant."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import nn

from seqloom.config.schema.names import EngineKind
from seqloom.config.schema.task import TranslationConfig
from seqloom.runs.forecaster import Forecaster, is_forecaster, load_forecaster
from seqloom.runs.options import TEXT_ONLY
from seqloom.runs.run import Run, load
from seqloom.serving.batcher import Batcher
from seqloom.serving.languages import Pair, named_pairs, pairs_of
from seqloom.serving.problems import Problem

TaskKind = Literal["translation", "labels", "language-model", "captioning", "forecast"]
DOES: dict[TaskKind, str] = {
    "translation": "translates",
    "labels": "labels texts",
    "language-model": "completes texts",
    "captioning": "captions images",
    "forecast": "forecasts numbers",
}
ROUTES: dict[TaskKind, str] = {
    "translation": "/api/translate",
    "labels": "/api/label",
    "language-model": "/api/complete",
    "captioning": "/api/caption",
    "forecast": "/api/forecast",
}


@dataclass(frozen=True)
class Served:
    """A run, loaded, and the thread that works for it.

    pairs:  the languages it translates between, as far as anybody says
    engine: what computes its outputs, and why
    """

    name: str
    run: Run | Forecaster
    batcher: Batcher
    pairs: tuple[Pair, ...]
    engine: str

    @property
    def kind(self) -> TaskKind:
        return self.run.config.task.kind

    @property
    def speaker(self) -> Run:
        """The run, known to put out tokens."""
        assert isinstance(self.run, Run)
        return self.run

    @property
    def forecaster(self) -> Forecaster:
        assert isinstance(self.run, Forecaster)
        return self.run

    @property
    def parameters(self) -> int:
        return sum(one.numel() for one in _parts(self.run.model))

    @property
    def memory(self) -> int:
        """Bytes that the weights take."""
        return sum(one.numel() * one.element_size() for one in _parts(self.run.model))


def _parts(model: nn.Module) -> list[nn.Parameter]:
    return list(model.parameters())


@dataclass(frozen=True)
class Catalogue:
    """All runs that are served."""

    runs: tuple[Served, ...]

    def close(self) -> None:
        for served in self.runs:
            served.batcher.close()

    def named(self, name: str) -> Served:
        for served in self.runs:
            if served.name == name:
                return served
        known = ", ".join(served.name for served in self.runs)
        raise Problem(404, "no-such-run", f"there is no run '{name}' here; there are: {known}")

    def choose(self, kinds: Sequence[TaskKind], name: str | None) -> Served:
        """The run of this name, or the only one that does such things."""
        if name is not None:
            served = self.named(name)
            if served.kind not in kinds:
                raise Problem(
                    422,
                    "unusable",
                    f"the run '{name}' {DOES[served.kind]}; ask it at {ROUTES[served.kind]}",
                )
            return served
        able = self.of(kinds)
        if not able:
            here = ", ".join(f"{one.name} {DOES[one.kind]}" for one in self.runs)
            wanted = " or ".join(DOES[kind] for kind in kinds)
            raise Problem(404, "no-such-run", f"no run here {wanted}; there are: {here}")
        if len(able) > 1:
            names = ", ".join(served.name for served in able)
            raise Problem(422, "invalid", f"run: say which one is meant; there are: {names}")
        return able[0]

    def of(self, kinds: Sequence[TaskKind]) -> list[Served]:
        return [served for served in self.runs if served.kind in kinds]

    def between(self, source: str | None, target: str | None) -> tuple[Served, Pair]:
        """The first run that translates from one language to the other; None: to or from any."""
        pairs = [(served, pair) for served in self.runs for pair in served.pairs]
        for served, pair in pairs:
            if source in (None, pair.source) and target in (None, pair.target):
                return served, pair
        known = ", ".join(dict.fromkeys(str(pair) for _, pair in pairs)) or "none by name"
        raise Problem(
            400,
            "unusable",
            f"nothing here translates from {source or 'any language'} to "
            f"{target or 'any language'}; what there is: {known}",
        )


Opened = Callable[[str], Batcher]
"""Makes the thread that works for a run of this name."""


def load_catalogue(
    folders: Sequence[Path], engine: EngineKind | None, languages: Sequence[str], opened: Opened
) -> Catalogue:
    """Every run, checked and loaded, and its engine made ready."""
    names = _names(folders)
    given = named_pairs(languages, names)
    found = []
    for folder, name in zip(folders, names, strict=True):
        run: Run | Forecaster
        run = load_forecaster(folder) if is_forecaster(folder) else load(folder, engine=engine)
        pairs = (given[name],) if name in given else pairs_of(run.config)
        found.append(Served(name, run, opened(name), pairs, _engine(run)))
    return Catalogue(tuple(found))


def _names(folders: Sequence[Path]) -> list[str]:
    """What each folder is called; of several that are called the same, the later ones by number."""
    names: list[str] = []
    for folder in folders:
        own = folder.resolve().name or "run"
        same = sum(name == own or name.rpartition("-")[0] == own for name in names)
        names.append(f"{own}-{same + 1}" if own in names else own)
    return names


def _engine(run: Run | Forecaster) -> str:
    """What answers a plain request, made ready now rather than by the first who asks."""
    if isinstance(run, Forecaster):
        return "torch"
    if not isinstance(run.config.task, TranslationConfig):
        return "torch"
    return run.choose_engine(TEXT_ONLY).name
