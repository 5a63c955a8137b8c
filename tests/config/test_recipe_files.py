"""Files and folders that are not recipes are recognised, and the message says what to do."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest
import zstandard

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe
from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.core.file_kinds import OFFICE_FILES, SIGNATURES, recognise


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("pairs.tsv", "a\tb\n", "tsv"),
        ("pairs.csv", "source,target\na,b\n", "csv"),
        ("pairs.jsonl", '{"src": "a", "tgt": "b"}\n', "jsonl"),
        ("pairs.txt", "a\tb\nc\td\n", "tsv"),
        ("pairs.txt", '{"src": "a", "tgt": "b"}\n', "jsonl"),
    ],
)
def test_a_data_file_is_answered_with_the_recipe_to_write(
    name: str, content: str, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ConfigError, match="is a data file, not a recipe") as caught:
        load_recipe(path)
    message = str(caught.value)
    assert f'train = {{kind = "{kind}", path = "{path}"}}' in message
    assert "seqloom doctor my.toml" in message
    assert f"seqloom new {path} --recipe my.toml" in message


TMX = '<tmx><body><tu><tuv xml:lang="sv-SE"><seg>a</seg></tuv><tuv lang="FI">'


@pytest.mark.parametrize(
    ("name", "content", "settings"),
    [
        ("m.tmx", TMX.encode(), 'kind = "tmx", {path}, source = "sv-SE", target = "FI"'),
        (
            "m.tmx.gz",
            gzip.compress(b"x", mtime=0),
            'kind = "tmx", {path}, source = "de", target = "en"',
        ),
        ("m.tsv.zst", zstandard.compress(b"x"), 'kind = "tsv", {path}'),
        ("m", b"PAR1\0", 'kind = "parquet", {path}, source = "source", target = "target"'),
    ],
)
def test_settings_of_the_offered_recipe_come_from_the_file(
    name: str, content: bytes, settings: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    expected = settings.replace("{path}", f'path = "{path}"')
    with pytest.raises(ConfigError, match="is a data file, not a recipe") as caught:
        load_recipe(path)
    assert f"train = {{{expected}}}" in str(caught.value)


@pytest.mark.parametrize("split", ["", "train"])
def test_saved_dataset_is_answered_with_the_recipe_to_write(split: str, tmp_path: Path) -> None:
    (tmp_path / split).mkdir(exist_ok=True)
    (tmp_path / split / "state.json").write_text("{}")
    (tmp_path / "dataset_dict.json").write_text("{}")
    with pytest.raises(NotFoundError, match="is a Hugging Face dataset") as caught:
        load_recipe(tmp_path)
    assert f'kind = "arrow", path = "{tmp_path / split}"' in str(caught.value)


@pytest.mark.parametrize("member", OFFICE_FILES)
def test_office_documents_are_recognised(member: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "x")
    with pytest.raises(ConfigError, match=f"is {OFFICE_FILES[member][0]}, not a recipe"):
        load_recipe(path)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_formats_are_recognised_by_their_first_bytes(signature: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(signature + b"\0" * 20)
    kind = recognise(path)
    assert kind is not None
    assert (kind.name, kind.advice) == SIGNATURES[signature]


def test_archives_are_recognised_whole_or_damaged(tmp_path: Path) -> None:
    path = tmp_path / "file.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "x")
        archive.writestr("b.txt", "x")
    kind = recognise(path)
    assert kind is not None
    assert kind.name == "a zip archive with 2 files"
    path.write_bytes(path.read_bytes()[:30])
    damaged = recognise(path)
    assert damaged is not None
    assert damaged.name == "a damaged zip archive"


def test_model_folders_of_other_toolkits_are_recognised(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "marian"}))
    with pytest.raises(NotFoundError, match=r"is a Hugging Face model \(marian\); give a recipe"):
        load_recipe(tmp_path)
    (tmp_path / "model.bin").touch()
    with pytest.raises(NotFoundError, match="is a CTranslate2 model; give a recipe"):
        load_recipe(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1}'])
def test_other_folders_are_just_folders(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    assert recognise(tmp_path) is None
    with pytest.raises(NotFoundError, match="is a folder; give a recipe"):
        load_recipe(tmp_path)


def test_a_run_folder_stands_for_its_recipe(tmp_path: Path) -> None:
    config = load_recipe("demo").config
    (tmp_path / "config.toml").write_text(format_recipe(config))
    assert load_recipe(tmp_path).config == config
