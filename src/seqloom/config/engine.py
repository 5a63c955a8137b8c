"""[engine]: what computes the outputs of a trained run."""

from typing import Literal

from seqloom.config.kinds import EngineKind
from seqloom.config.section import Section


class EngineConfig(Section):
    kind: EngineKind = "auto"
    """What computes outputs: auto takes ctranslate2 for Transformers on a CPU if it can; compiled
    is torch's own search as compiled code, for one text at a time on a CPU."""
    precision: Literal["auto", "int8", "float32"] = "auto"
    """Of ctranslate2. auto takes int8 where that is quicker (x86_64, aarch64) and was found to
    hold, else float32."""
