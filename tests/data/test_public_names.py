"""The public names of seqloom.data."""

import subprocess
import sys

import pytest

import seqloom.data


@pytest.mark.parametrize("name", seqloom.data.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(seqloom.data, name) is not None
    assert name in dir(seqloom.data)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        seqloom.data.__getattr__("Nothing")


@pytest.mark.slow
def test_reading_text_files_does_not_import_torch() -> None:
    code = "import sys, seqloom.data.readers.text_files; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
