"""Names that both the command line's help and the schema know. Nothing heavy is imported here."""

from typing import Literal

EngineKind = Literal["auto", "torch", "ctranslate2"]
