"""The catalogue of loaded runs. It selects the run for a request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.config.schema.names import EngineKind
from seqloom.config.schema.task import TaskConfig, TranslationConfig
from seqloom.extensions.registry import built_in_parts
from seqloom.inference.batching import input_tokens
from seqloom.inference.forecaster import Forecaster, is_forecaster, load_forecaster
from seqloom.inference.options import TEXT_ONLY, PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run, load
from seqloom.serving.api.languages.pairs import (
    LanguagePair,
    parse_language_options,
    recipe_language_pairs,
)
from seqloom.serving.errors import ApiError
from seqloom.serving.server.batcher import Batcher, OnToken
from seqloom.serving.server.jobs import SearchInput, SearchJobType
from seqloom.tasks.task import ModelInput


@dataclass(frozen=True)
class LoadedRun:
    """A run and the batcher that processes its jobs.

    pairs:  language pairs that the run translates; empty if they are unknown
    engine: name of the inference engine, such as "torch", for requests that need only the text of
            the outputs
    """

    name: str
    run: Run | Forecaster
    batcher: Batcher
    pairs: tuple[LanguagePair, ...]
    engine: str

    @property
    def task(self) -> TaskConfig:
        return self.run.config.task

    @property
    def kind(self) -> str:
        return self.task.kind

    @property
    def token_run(self) -> Run:
        """The run. Raises an AssertionError if it is a forecasting run."""
        assert isinstance(self.run, Run)
        return self.run

    @property
    def forecaster(self) -> Forecaster:
        """The run. Raises an AssertionError if it is not a forecasting run."""
        assert isinstance(self.run, Forecaster)
        return self.run

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.run.model.parameters())

    @property
    def memory(self) -> int:
        """Size of the weights in bytes."""
        return sum(
            parameter.numel() * parameter.element_size()
            for parameter in self.run.model.parameters()
        )

    async def search(
        self,
        inputs: Sequence[ModelInput],
        decoding: DecodingConfig,
        options: PredictionOptions,
        on_token: OnToken | None = None,
        *,
        sample_indices: Sequence[int] | None = None,
        torch_only: bool = False,
    ) -> list[list[Prediction]]:
        """Search for the outputs of each input. Inputs of several requests can share a batch.

        sample_indices: one number per input, from which sampling derives the random seed of the
                        input. Default: 0, 1, …
        torch_only:     True to use the engine torch, even if the run has a faster one
        """
        if not inputs:
            return []
        job_type = SearchJobType(
            self.token_run,
            decoding,
            options.of_search(),
            streamed=on_token is not None,
            torch_only=torch_only,
        )
        indices = range(len(inputs)) if sample_indices is None else sample_indices
        payloads = [SearchInput(*item) for item in zip(inputs, indices, strict=True)]
        sizes = [input_tokens(prepared) for prepared in inputs]
        predictions: list[Any] = await self.batcher.submit(job_type, payloads, sizes, on_token)
        return predictions


@dataclass(frozen=True)
class Catalogue:
    """All loaded runs."""

    runs: tuple[LoadedRun, ...]

    def close(self) -> None:
        for loaded in self.runs:
            loaded.batcher.close()

    @property
    def language_pairs(self) -> list[LanguagePair]:
        """The language pairs of all runs, in the order of the runs."""
        return [pair for loaded in self.runs for pair in loaded.pairs]

    def get(self, name: str) -> LoadedRun:
        """Return the run with this name. Raises a 404 error if no run has this name."""
        for loaded in self.runs:
            if loaded.name == name:
                return loaded
        names = ", ".join(loaded.name for loaded in self.runs)
        raise ApiError(404, "no-such-run", f"there is no run '{name}'; available runs: {names}")

    def choose(self, kinds: Sequence[str], name: str | None) -> LoadedRun:
        """Return the run with this name. If the name is None, return the only suitable run.

        A run is suitable if the kind of its task is in `kinds`. Raises ApiError if the named run
        does not exist or is not suitable. Without a name, raises ApiError unless exactly one run is
        suitable.
        """
        if name is not None:
            loaded = self.get(name)
            if loaded.kind not in kinds:
                raise ApiError(
                    422,
                    "unusable",
                    f"the run '{name}' {loaded.task.action}; use {loaded.task.route}",
                )
            return loaded
        candidates = self.of_kinds(kinds)
        if not candidates:
            available = ", ".join(f"{loaded.name} {loaded.task.action}" for loaded in self.runs)
            required = " or ".join(built_in_parts("task")[kind].action for kind in kinds)
            raise ApiError(404, "no-such-run", f"no run {required}; available runs: {available}")
        if len(candidates) > 1:
            names = ", ".join(loaded.name for loaded in candidates)
            raise ApiError(
                422, "invalid", f"run: several runs support this request; choose one of {names}"
            )
        return candidates[0]

    def of_kinds(self, kinds: Sequence[str]) -> list[LoadedRun]:
        return [loaded for loaded in self.runs if loaded.kind in kinds]

    def find_pair(self, source: str | None, target: str | None) -> tuple[LoadedRun, LanguagePair]:
        """Return the first run that translates from source to target, with its language pair.

        If `source` or `target` is None, any language matches.

        Raises a 400 error if no run matches.
        """
        for loaded in self.runs:
            for pair in loaded.pairs:
                if pair.matches(source, target):
                    return loaded, pair
        pairs = ", ".join(dict.fromkeys(map(str, self.language_pairs))) or "none"
        raise ApiError(
            400,
            "unusable",
            f"no run translates from {source or 'any language'} to {target or 'any language'}; "
            f"available language pairs: {pairs}",
        )


def load_catalogue(
    folders: Sequence[Path],
    engine: EngineKind | None,
    languages: Sequence[str],
    create_batcher: Callable[[str], Batcher],
    settings: Sequence[str] = (),
) -> Catalogue:
    """Load the run of each folder and prepare its engine. Returns all loaded runs.

    Loading checks the integrity of the run folder.

    languages:      language pairs of runs whose recipe does not name them, for example "de:en", or
                    "demo=de:en" for the run demo
    create_batcher: creates the batcher of a run, given its name
    settings:       changes to the recipe of every run
    """
    names = _unique_names(folders)
    explicit_pairs = parse_language_options(languages, names)
    runs = []
    for folder, name in zip(folders, names, strict=True):
        run: Run | Forecaster
        run = (
            load_forecaster(folder, settings)
            if is_forecaster(folder)
            else load(folder, settings, engine)
        )
        pairs = (
            (explicit_pairs[name],) if name in explicit_pairs else recipe_language_pairs(run.config)
        )
        runs.append(LoadedRun(name, run, create_batcher(name), pairs, _prepare_engine(run)))
    return Catalogue(tuple(runs))


def _unique_names(folders: Sequence[Path]) -> list[str]:
    """Return a name for each run: the name of its folder.

    If folders have the same name, a number is added to the second and later ones: demo, demo-2.
    A number is skipped if the result would be the name of another folder.
    """
    folder_names = [folder.resolve().name or "run" for folder in folders]
    names: list[str] = []
    for name in folder_names:
        numbered = (f"{name}-{number}" for number in count(2))
        unused = (each for each in numbered if each not in {*names, *folder_names})
        names.append(next(unused) if name in names else name)
    return names


def _prepare_engine(run: Run | Forecaster) -> str:
    """Load the inference engine of a run, so that the first request does not wait for it.

    Returns the name of the engine. For a translation run, this is the engine for requests that need
    only the text of the outputs. For other runs, loads nothing and returns "torch".
    """
    if isinstance(run, Forecaster):
        return "torch"
    if not isinstance(run.config.task, TranslationConfig):
        return "torch"
    return run.choose_engine(TEXT_ONLY).name
