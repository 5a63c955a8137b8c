"""API keys are stored as SHA-256 digests."""

from pathlib import Path

import pytest

from seqloom.core.errors import DataError, NotFoundError
from seqloom.serving.server.api_keys import ApiKeys


def test_only_files_with_digests_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    for content, message in (
        ("open sesame\n", "not a SHA-256 digest"),
        ("\n", "contains no API key"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=f"{message}.*sha256sum") as caught:
            ApiKeys.read(path)
        assert "sesame" not in str(caught.value)
    with pytest.raises(NotFoundError, match="cannot read the API keys"):
        ApiKeys.read(tmp_path / "nowhere")
