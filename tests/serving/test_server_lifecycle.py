"""Addresses of the server, and names of its runs."""

from pathlib import Path

import pytest

from in_process_server import respond
from seqloom.core.errors import StorageError
from seqloom.serving.server.batcher import Batcher
from seqloom.serving.server.catalogue import load_catalogue
from seqloom.serving.server.lifecycle import find_free_address
from server_process import ServerProcess, run_serve_command


def test_an_invalid_address_is_reported() -> None:
    with pytest.raises(StorageError, match=r"256\.0\.0\.1:0: cannot listen there"):
        find_free_address("256.0.0.1", 0)


@pytest.mark.slow
def test_an_address_in_use_is_reported(server: ServerProcess, runs: dict[str, Path]) -> None:
    result = run_serve_command(runs["reverser"], "--port", server.port)
    assert result.returncode == 74
    expected = f"127.0.0.1:{server.port}: cannot listen there (Address already in use)"
    assert expected in result.stderr


@pytest.mark.slow
def test_runs_with_the_same_name_get_a_number(runs: dict[str, Path]) -> None:
    catalogue = load_catalogue([runs["reverser"], runs["reverser"]], None, [], Batcher)
    served = respond("GET", "/api/runs", catalogue=catalogue).json()["runs"]
    catalogue.close()
    assert [run["name"] for run in served] == ["reverser", "reverser-2"]
