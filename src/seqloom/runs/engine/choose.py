"""Which engine answers a request, and why."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from seqloom.config.decoding import DecodingConfig, MinimumBayesRiskConfig
from seqloom.config.engine import EngineConfig
from seqloom.core.errors import ConfigError, SeqloomError
from seqloom.decoding.build import build_search
from seqloom.decoding.search import Search
from seqloom.models.transformer import TransformerDecoder
from seqloom.runs.engine.agreement import Agreement
from seqloom.runs.engine.compiling import compile_search, compiled_reasons
from seqloom.runs.engine.convert import Precision
from seqloom.runs.engine.kept import Origin, find_or_make
from seqloom.runs.engine.package import ctranslate2
from seqloom.runs.engine.reasons import model_reasons, request_reasons
from seqloom.runs.engine.search import CTranslate2Engine
from seqloom.runs.predictor import Predictor
from seqloom.runs.wish import Wish
from seqloom.tasks.token_task import TokenTask

INT8_PAYS = platform.machine() in ("x86_64", "AMD64", "aarch64")
"""Is CTranslate2 quicker with rounded weights? By a quarter and more on these, as docs/benchmarks.md
shows; elsewhere it was not measured."""

Ready = tuple[CTranslate2Engine, Precision, Agreement]


@dataclass(frozen=True)
class Choice:
    """What answers, and what there is to say about it.

    engine: None is torch
    name:   "torch", "torch compiled", "ctranslate2 int8" or "ctranslate2 float32"
    why:    why it is torch, how long it took to compile, or how well the other agrees with it;
            blank: because it was asked for
    expected: no Transformer, so that nobody can have thought of another engine than torch
    compiled: torch searches by compiled code
    """

    engine: CTranslate2Engine | None
    name: str
    why: str = ""
    expected: bool = False
    compiled: bool = False

    def given(self, predictor: Predictor) -> Predictor:
        """The predictor, with this engine."""
        return replace(predictor, engine=self.engine, compiled=self.compiled)

    @property
    def note(self) -> str:
        return f"engine: {self.name} ({self.why})" if self.why else f"engine: {self.name}"


TORCH = Choice(None, "torch")


@dataclass(frozen=True)
class Engines:
    """The engines of one run, each made when it is first wanted and kept from then on."""

    origin: Origin
    task: TokenTask
    on_cpu: bool
    _known: dict[str, Ready | SeqloomError] = field(default_factory=dict)
    _compiled: dict[Search, float] = field(default_factory=dict)

    def choose(
        self, settings: EngineConfig, decoding: DecodingConfig, wish: Wish, waiting: bool = False
    ) -> Choice:
        """The engine for a request. What was asked for by name and cannot be is an error.

        waiting: somebody does, so that nothing is compiled now: torch does what is not ready
        """
        if settings.kind == "torch":
            return TORCH
        if settings.kind == "compiled":
            return self._compile(decoding, wish, waiting)
        try:
            self._refuse(decoding, wish, settings.kind == "auto")
            engine, precision, agreement = self._get(settings.precision)
        except SeqloomError as error:
            if settings.kind == "auto":
                expected = not isinstance(self.origin.model.decoder, TransformerDecoder)
                return Choice(None, "torch", str(error), expected)
            raise
        return Choice(engine, f"ctranslate2 {precision}", str(agreement))

    def _refuse(self, decoding: DecodingConfig, wish: Wish, automatic: bool) -> None:
        """Say everything that stands in the way."""
        task = self.task
        reasons = model_reasons(self.origin.model)
        if not (automatic and reasons):  # what is asked of such a model matters no more
            reasons += request_reasons(decoding, wish, task.signature, task.target_tokenizer)
        if automatic:
            reasons += [] if self.on_cpu else ["there is a GPU"]
            if reasons:
                raise ConfigError("; ".join(reasons))
        elif reasons:
            raise _cannot("ctranslate2", reasons)
        ctranslate2()

    def _compile(self, decoding: DecodingConfig, wish: Wish, waiting: bool) -> Choice:
        """torch, compiled for this search if it was not yet."""
        model = self.origin.model
        reasons = list(compiled_reasons(model, decoding, wish, self.on_cpu))
        if reasons and not waiting:
            raise _cannot("compiled", reasons)
        if reasons or isinstance(decoding, MinimumBayesRiskConfig):
            return Choice(None, "torch", "; ".join(reasons))
        search = build_search(decoding)
        if search not in self._compiled:
            if waiting:
                return Choice(None, "torch", "this search was not compiled when there was time")
            self._compiled[search] = compile_search(model, self.task.signature, decoding)
        took = f"compiled in {self._compiled[search]:.0f} s, for one text at a time"
        return Choice(None, "torch compiled", took, compiled=True)

    def _get(self, precision: str) -> Ready:
        """Made once, and if that failed, failed once."""
        if precision not in self._known:
            try:
                self._known[precision] = self._make(precision)
            except SeqloomError as error:
                self._known[precision] = error
        known = self._known[precision]
        if isinstance(known, SeqloomError):
            raise known
        return known

    def _make(self, precision: str) -> Ready:
        rounded = INT8_PAYS if precision == "auto" else precision == "int8"
        wanted: Precision = "int8" if rounded else "float32"
        engine, agreement = find_or_make(self.origin, wanted)
        if precision == "auto" and rounded and not agreement.close:
            return self._get("float32")
        return engine, wanted, agreement


def _cannot(engine: str, reasons: Sequence[str]) -> ConfigError:
    listed = "\n".join(f"  {reason}" for reason in reasons)
    return ConfigError(
        f"the engine '{engine}' cannot answer this:\n{listed}\n"
        "Use --engine auto or torch (engine='auto' in Python), or change what is listed."
    )
