"""Addresses of the server, and names of its runs."""

from pathlib import Path

import pytest

from seqloom.config.schema.decoding import BeamConfig
from seqloom.core.errors import StorageError
from seqloom.serving.server.batcher import Batcher
from seqloom.serving.server.catalogue import load_catalogue
from seqloom.serving.server.lifecycle import find_free_address
from support.in_process_server import respond
from support.server_process import ServerProcess, run_serve_command


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
def test_settings_change_the_search_of_all_runs(runs: dict[str, Path]) -> None:
    settings = ["decoding={kind='beam', width=3, length_penalty=0.5}"]
    folders = [runs["reverser"], runs["reverser"]]
    catalogue = load_catalogue(folders, None, [], Batcher, settings)
    served = respond("GET", "/api/runs", catalogue=catalogue).json()["runs"]
    catalogue.close()
    assert len(served) == 2
    for loaded in catalogue.runs:
        assert loaded.run.config.decoding == BeamConfig(width=3, length_penalty=0.5)


@pytest.mark.slow
def test_an_invalid_setting_is_reported(runs: dict[str, Path]) -> None:
    result = run_serve_command(runs["reverser"], "--set", "decoding.widht=3")
    assert result.returncode == 78
    assert "decoding.widht: there is no such setting; did you mean 'width'?" in result.stderr


@pytest.mark.slow
def test_runs_with_the_same_name_get_a_number(runs: dict[str, Path]) -> None:
    catalogue = load_catalogue([runs["reverser"], runs["reverser"]], None, [], Batcher)
    served = respond("GET", "/api/runs", catalogue=catalogue).json()["runs"]
    catalogue.close()
    assert [run["name"] for run in served] == ["reverser", "reverser-2"]
