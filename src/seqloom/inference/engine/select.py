"""Chooses the engine for a request, and gives the reason for the choice."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from seqloom.config.schema.decoding import DecodingConfig, EngineConfig, MinimumBayesRiskConfig
from seqloom.config.schema.names import EngineKind
from seqloom.core.errors import ConfigError, SeqloomError
from seqloom.decoding.build import build_search
from seqloom.decoding.search import Search
from seqloom.inference.engine.compiled import compile_search, unsupported_by_compiled
from seqloom.inference.engine.convert import Precision
from seqloom.inference.engine.package import ctranslate2
from seqloom.inference.engine.store import Agreement, ModelOrigin, load_or_convert
from seqloom.inference.engine.support import unsupported_model, unsupported_request
from seqloom.inference.engine.translator import CTranslate2Engine
from seqloom.inference.options import PredictionOptions
from seqloom.inference.predictor import Predictor
from seqloom.tasks.token_task import TokenTask

INT8_IS_FASTER = platform.machine() in ("x86_64", "AMD64", "aarch64")
"""True on machines where CTranslate2 is at least a quarter faster with int8 weights than with
float32 (docs/benchmarks.md). Other machines were not measured."""


ENGINE_TITLES = {
    "torch": "torch",
    "torch bf16": "torch with bf16 weights",
    "torch compiled": "compiled torch",
    "ctranslate2 int8": "CTranslate2 with int8 weights",
    "ctranslate2 float32": "CTranslate2 with float32 weights",
}
"""Names of the engines in messages."""


class LoadedEngine(NamedTuple):
    """A loaded CTranslate2 model, its precision, and how closely its outputs agree with torch."""

    engine: CTranslate2Engine
    precision: Precision
    agreement: Agreement


@dataclass(frozen=True)
class EngineChoice:
    """The engine that serves a request.

    engine:   the CTranslate2 model. None for torch and for compiled torch.
    name:     "torch", "torch bf16", "torch compiled", "ctranslate2 int8" or "ctranslate2 float32"
    reason:   a remark on the choice. For torch: why it was chosen, or an empty text if the settings
              ask for torch. For compiled torch: the compilation time. For CTranslate2: how closely
              it agrees with torch.
    expected: True if the setting is "auto", but torch was chosen and the decoder is not a
              Transformer. CTranslate2 cannot run such a decoder, so the user need not see a reason.
    compiled: True for the compiled torch search
    precision: precision of torch; None for float32
    """

    engine: CTranslate2Engine | None
    name: str
    reason: str = ""
    expected: bool = False
    compiled: bool = False
    precision: torch.dtype | None = None

    def apply(self, predictor: Predictor) -> Predictor:
        """Return a copy of the predictor that uses this engine."""
        return replace(
            predictor, engine=self.engine, compiled=self.compiled, precision=self.precision
        )

    @property
    def note(self) -> str:
        """One line for the user: the name of the engine, and `reason` if it is not empty."""
        name = ENGINE_TITLES[self.name]
        if not self.reason:
            return f"Engine: {name}."
        if self.engine is None and not self.compiled:
            return f"Engine: {name} ({self.reason})."
        return f"Engine: {name}. {self.reason}."


TORCH = EngineChoice(None, "torch")
TORCH_BF16 = EngineChoice(None, "torch bf16", precision=torch.bfloat16)


@dataclass(frozen=True)
class Engines:
    """The engines of one run. Each engine is loaded on first use and then stays loaded."""

    origin: ModelOrigin
    task: TokenTask
    on_cpu: bool
    _loaded: dict[str, LoadedEngine | SeqloomError] = field(default_factory=dict)
    _compile_seconds: dict[Search, float] = field(default_factory=dict)

    def choose(
        self,
        settings: EngineConfig,
        decoding: DecodingConfig,
        options: PredictionOptions,
        compile_now: bool = True,
    ) -> EngineChoice:
        """Return the engine for a request.

        Raises a ConfigError if the settings select an engine that cannot serve the request. The
        exception is `compile_now=False` with the engine 'compiled', see below.

        compile_now: used only if the settings select the engine 'compiled'. If True, compile the
                     search on first use. If False, return plain torch instead of compiling, so that
                     no request waits. In this case, an unsupported request gets plain torch too.
        """
        if settings.precision == "bf16":
            self._check_bf16(settings.kind)
            return TORCH_BF16
        if settings.kind == "torch":
            return TORCH
        if settings.kind == "compiled":
            return self._choose_compiled(decoding, options, compile_now)
        try:
            self._check_ctranslate2(decoding, options, settings.kind == "auto")
            loaded = self._load(settings.precision)
        except SeqloomError as error:
            if settings.kind == "auto":
                expected = not self.origin.model.decoder.is_transformer
                return EngineChoice(None, "torch", str(error), expected)
            raise
        return EngineChoice(loaded.engine, f"ctranslate2 {loaded.precision}", str(loaded.agreement))

    def choose_for_inputs(
        self,
        count: int,
        settings: EngineConfig,
        decoding: DecodingConfig,
        options: PredictionOptions,
    ) -> EngineChoice:
        """Return the engine for a request with this number of model inputs.

        The engine 'compiled' decodes one input at a time. If the settings select this engine, but
        `count` is not 1, plain torch is returned.

        Raises a ConfigError if the settings select an engine that cannot serve the request.
        """
        if settings.kind == "compiled" and settings.precision != "bf16" and count != 1:
            self.check_compiled(decoding, options)
            return TORCH
        return self.choose(settings, decoding, options)

    def _check_bf16(self, kind: EngineKind) -> None:
        """Raise a ConfigError if this engine cannot decode in bf16."""
        if kind in ("ctranslate2", "compiled"):
            reason = f"the engine '{kind}' has no bf16"
        elif self.on_cpu:
            reason = "this run is on a CPU"
        else:
            return
        raise ConfigError(
            f"engine.precision = bf16 is for torch on a GPU, and {reason}. Use "
            "engine.precision=auto, or --engine torch on a machine with a GPU."
        )

    def check_compiled(self, decoding: DecodingConfig, options: PredictionOptions) -> None:
        """Raise a ConfigError if compiled torch cannot serve the request."""
        if reasons := self._reasons_against_compiled(decoding, options):
            raise _unsupported("compiled", reasons)

    def _reasons_against_compiled(
        self, decoding: DecodingConfig, options: PredictionOptions
    ) -> list[str]:
        return list(unsupported_by_compiled(self.origin.model, decoding, options, self.on_cpu))

    def _check_ctranslate2(
        self, decoding: DecodingConfig, options: PredictionOptions, automatic: bool
    ) -> None:
        """Raise a ConfigError if CTranslate2 cannot serve the request.

        The message of the error lists the reasons.

        automatic: True if the engine is set to "auto". In this case the error is also raised if
                   the run is on a GPU, because "auto" uses CTranslate2 only on a CPU.
        """
        task = self.task
        reasons = unsupported_model(self.origin.model)
        if not (automatic and reasons):  # for "auto", an unsupported model suffices
            reasons += unsupported_request(decoding, options, task.signature, task.target_tokenizer)
        if automatic:
            reasons += [] if self.on_cpu else ["there is a GPU"]
            if reasons:
                raise ConfigError("; ".join(reasons))
        elif reasons:
            raise _unsupported("ctranslate2", reasons)
        ctranslate2()

    def _choose_compiled(
        self, decoding: DecodingConfig, options: PredictionOptions, compile_now: bool
    ) -> EngineChoice:
        """Return the engine for a request if the settings select the engine 'compiled'.

        compile_now: if True, compile the search on first use, and raise a ConfigError if this is
                     not possible. If False, return plain torch if the search is not compiled yet.
        """
        if compile_now:
            self.check_compiled(decoding, options)
        reasons = self._reasons_against_compiled(decoding, options)
        if reasons or isinstance(decoding, MinimumBayesRiskConfig):
            return EngineChoice(None, "torch", "; ".join(reasons))
        search = build_search(decoding)
        if search not in self._compile_seconds:
            if not compile_now:
                return EngineChoice(None, "torch", "this search was not compiled at start-up")
            self._compile_seconds[search] = compile_search(
                self.origin.model, self.task.signature, decoding
            )
        seconds = self._compile_seconds[search]
        reason = f"It was compiled in {seconds:.0f} s, for one text at a time"
        return EngineChoice(None, "torch compiled", reason, compiled=True)

    def _load(self, precision: str) -> LoadedEngine:
        """Return the CTranslate2 model of this precision.

        If loading failed in an earlier call, the same error is raised again.
        """
        if precision not in self._loaded:
            try:
                self._loaded[precision] = self._convert(precision)
            except SeqloomError as error:
                self._loaded[precision] = error
        loaded = self._loaded[precision]
        if isinstance(loaded, SeqloomError):
            # Each `raise` adds to the traceback, which would keep the objects of all callers alive.
            raise loaded.with_traceback(None)
        return loaded

    def _convert(self, precision: str) -> LoadedEngine:
        use_int8 = INT8_IS_FASTER if precision == "auto" else precision == "int8"
        chosen: Precision = "int8" if use_int8 else "float32"
        engine, agreement = load_or_convert(self.origin, chosen)
        if precision == "auto" and use_int8 and not agreement.is_close:
            return self._load("float32")
        return LoadedEngine(engine, chosen, agreement)


def _unsupported(engine: str, reasons: Sequence[str]) -> ConfigError:
    listed = "\n".join(f"  {reason}" for reason in reasons)
    return ConfigError(
        f"the engine '{engine}' cannot serve this request:\n{listed}\n"
        "Use --engine auto or torch (engine='auto' in Python), or change the listed settings."
    )
