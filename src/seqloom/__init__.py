"""seqloom trains, analyses, evaluates and serves sequence-to-sequence models.

import seqloom

run = seqloom.load("runs/demo")
for prediction in run.translate(["Das gefällt mir."], beam=5):
    print(prediction.text, prediction.score)
"""

from typing import TYPE_CHECKING, Any

from seqloom.core.allocator import set_mimalloc_purge_delay
from seqloom.core.errors import SeqloomError

set_mimalloc_purge_delay()

if TYPE_CHECKING:
    from seqloom.config.schema.decoding import (
        BeamConfig,
        ExhaustiveConfig,
        GreedyConfig,
        SampleConfig,
    )
    from seqloom.inference.forecaster import Forecaster, load_forecaster
    from seqloom.inference.prediction import Prediction
    from seqloom.inference.run import Run, load
    from seqloom.runs.recipe import load_recipe
    from seqloom.training.fine_tuning.fine_tune import fine_tune
    from seqloom.training.loop import train

__version__ = "0.1.0"
__all__ = [
    "BeamConfig",
    "ExhaustiveConfig",
    "Forecaster",
    "GreedyConfig",
    "Prediction",
    "Run",
    "SampleConfig",
    "SeqloomError",
    "fine_tune",
    "load",
    "load_forecaster",
    "load_recipe",
    "train",
]

_HOMES = {
    "BeamConfig": "seqloom.config.schema.decoding",
    "ExhaustiveConfig": "seqloom.config.schema.decoding",
    "GreedyConfig": "seqloom.config.schema.decoding",
    "SampleConfig": "seqloom.config.schema.decoding",
    "Forecaster": "seqloom.inference.forecaster",
    "load_forecaster": "seqloom.inference.forecaster",
    "Prediction": "seqloom.inference.prediction",
    "Run": "seqloom.inference.run",
    "load": "seqloom.inference.run",
    "load_recipe": "seqloom.runs.recipe",
    "fine_tune": "seqloom.training.fine_tuning.fine_tune",
    "train": "seqloom.training.loop",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used.

    Importing torch takes seconds. `import seqloom` does not import it, so that `seqloom --help`
    starts quickly.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'seqloom' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
