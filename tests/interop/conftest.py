"""Models of transformers that several tests use, and their imports."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_models import LANGUAGES, write_marian

from seqloom.interop.importer import import_model


@pytest.fixture(scope="session", autouse=True)
def quiet_transformers() -> Iterator[None]:
    """Turn off the progress bars and warnings of transformers."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    yield


@pytest.fixture(scope="session")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian model with one target language."""
    return write_marian(tmp_path_factory.mktemp("marian") / "opus-mt-de-en", trained=True)


@pytest.fixture(scope="session")
def marian_run(marian: Path) -> Path:
    run = marian.parent / "run"
    import_model(marian, run)
    return run


@pytest.fixture(scope="session")
def multilingual_marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian model with the target languages `LANGUAGES`."""
    return write_marian(tmp_path_factory.mktemp("multilingual") / "opus-mt-en-mul", LANGUAGES)
