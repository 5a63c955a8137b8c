"""The base class of all sections of a recipe."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of a recipe. Sections are immutable and reject unknown keys.

    The docstring under each field describes the setting; `seqloom config` prints it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
