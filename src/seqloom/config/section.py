"""The parent of every section of a recipe: frozen, and no unknown keys."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of a recipe. The line under a field says what it does; `seqloom config` prints it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
