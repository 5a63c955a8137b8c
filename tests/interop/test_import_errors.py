"""A folder that cannot be imported causes an error that says what is wrong and what to do."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seqloom.core.errors import ConfigError, DataError, NotFoundError, SeqloomError, StorageError
from seqloom.interop.importer import import_model


def change_settings(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))

    return change


def remove(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


def write(name: str, content: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return change


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def keep_only_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04")


def add_piece(folder: Path) -> None:
    path = folder / "vocab.json"
    table = json.loads(path.read_bytes())
    path.write_text(json.dumps({**table, "extra": len(table)}))


def rename_end(folder: Path) -> None:
    path = folder / "vocab.json"
    path.write_text(path.read_text().replace('"</s>"', '"<end>"'))


def shard(index: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "a.safetensors")
        text = json.dumps({"weight_map": index})
        (folder / "model.safetensors.index.json").write_text(text)

    return change


CASES: dict[str, tuple[Callable[[Path], None], type[SeqloomError], str]] = {
    "no settings": (
        remove("config.json"),
        NotFoundError,
        r"has no config\.json.*Supported: Hugging Face",
    ),
    "settings are not JSON": (write("config.json", b"{"), DataError, "is not valid JSON"),
    "settings are a list": (write("config.json", b"[]"), DataError, "is not a JSON object"),
    "another architecture": (
        change_settings(model_type="bart"),
        ConfigError,
        "models of the type 'bart'.*Supported: Hugging Face",
    ),
    "unsupported settings": (
        change_settings(activation_function="mish", scale_embedding=False),
        ConfigError,
        "(?s)activation_function: 'mish'.*scale_embedding",
    ),
    "a setting is missing": (
        change_settings(d_model=None),
        DataError,
        "'d_model' must be a whole number",
    ),
    "a setting that does not fit": (
        change_settings(encoder_layers=5),
        StorageError,
        r"(?s)encoder\.layers\.2.*is missing\nDownload all files of the model again\.$",
    ),
    "a start token that does not exist": (
        change_settings(decoder_start_token_id=9999),
        DataError,
        "decoder_start_token_id is 9999",
    ),
    "no tokenizer": (
        remove("vocab.json", "target.spm"),
        NotFoundError,
        r"Missing: vocab\.json, target\.spm\. Download all files",
    ),
    "another vocabulary": (
        add_piece,
        DataError,
        r"\d+ pieces, but the embedding matrix has \d+ rows",
    ),
    "a vocabulary without END": (rename_end, DataError, "has no </s>"),
    "ids that are no numbers": (
        write("vocab.json", b'{"</s>": "x"}'),
        DataError,
        "the token ids must be 0, 1, 2",
    ),
    "a sentencepiece model that is none": (
        write("source.spm", b"no model"),
        DataError,
        "is not a sentencepiece model",
    ),
    "no weights": (remove("model.safetensors"), NotFoundError, "has no weights"),
    "truncated weights": (truncate, StorageError, "is damaged or incomplete.*Download it again"),
    "only a pickle": (
        keep_only_pickle,
        DataError,
        r"(?s)pytorch_model\.bin, a pickle file.*python -c.*save_pretrained",
    ),
    "a missing shard": (
        shard({"a": "b.safetensors"}),
        NotFoundError,
        r"Missing: b\.safetensors",
    ),
    "a shard outside the folder": (
        shard({"a": "../a.safetensors"}),
        DataError,
        "names files outside the folder",
    ),
    "an index without names": (shard([]), DataError, "has no valid 'weight_map'"),
    "a weight that no shard contains": (
        shard({"absent": "a.safetensors"}),
        DataError,
        "lists weights that no file contains: absent",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_folder_that_cannot_be_imported_is_explained(
    name: str, marian: Path, tmp_path: Path
) -> None:
    change, kind, message = CASES[name]
    folder = shutil.copytree(marian, tmp_path / "model")
    change(folder)
    with pytest.raises(kind, match=message):
        import_model(folder, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["T5Config", "MT5Config", "UMT5Config"])
def test_t5_models_are_refused_with_the_reason_and_the_next_step(name: str, tmp_path: Path) -> None:
    import transformers

    getattr(transformers, name)().save_pretrained(tmp_path / "model")
    with pytest.raises(ConfigError, match=r"relative positions.*Use the model with transformers"):
        import_model(tmp_path / "model", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text("no model")
    with pytest.raises(NotFoundError, match="is not a model that seqloom can import"):
        import_model(tmp_path / "model.txt", tmp_path / "run")


def test_a_path_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no such folder"):
        import_model(tmp_path / "absent", tmp_path / "run")


def test_a_run_folder_is_not_imported(marian_run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a run folder already"):
        import_model(marian_run, tmp_path / "run")


def test_an_existing_folder_is_not_overwritten(marian: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="already exists"):
        import_model(marian, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_empty_folder_becomes_the_run(marian: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    import_model(marian, tmp_path / "run")
    assert (tmp_path / "run" / "config.toml").is_file()
