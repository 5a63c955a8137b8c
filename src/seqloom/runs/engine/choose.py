"""Which engine answers a request, and why."""

import platform
from dataclasses import dataclass, field

from seqloom.config.decoding import DecodingConfig
from seqloom.config.engine import EngineConfig
from seqloom.core.errors import ConfigError, SeqloomError
from seqloom.models.transformer import TransformerDecoder
from seqloom.runs.engine.agreement import Agreement
from seqloom.runs.engine.convert import Precision, ctranslate2
from seqloom.runs.engine.kept import Origin, find_or_make
from seqloom.runs.engine.reasons import model_reasons, request_reasons
from seqloom.runs.engine.search import CTranslate2Engine
from seqloom.runs.predictor import Wish
from seqloom.tasks.tokens import TokenTask

INT8_PAYS = platform.machine() in ("x86_64", "AMD64")
"""Is CTranslate2 quicker with rounded weights? By a third on x86_64; on aarch64 it is slower so, as
docs/benchmarks.md shows."""

Ready = tuple[CTranslate2Engine, Precision, Agreement]


@dataclass(frozen=True)
class Choice:
    """What answers, and what there is to say about it.

    engine: None is torch
    name:   "torch", "ctranslate2 int8" or "ctranslate2 float32"
    why:    why it is torch, or how well the other agrees with it; blank: because it was asked for
    expected: no Transformer, so that nobody can have thought of another engine than torch
    """

    engine: CTranslate2Engine | None
    name: str
    why: str = ""
    expected: bool = False

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

    def choose(self, settings: EngineConfig, decoding: DecodingConfig, wish: Wish) -> Choice:
        """The engine for a request. What was asked for by name and cannot be is an error."""
        if settings.kind == "torch":
            return TORCH
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
            listed = "\n".join(f"  {reason}" for reason in reasons)
            raise ConfigError(
                f"the engine 'ctranslate2' cannot answer this:\n{listed}\n"
                "Use --engine auto or torch (engine='auto' in Python), or change what is listed."
            )
        ctranslate2()

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
