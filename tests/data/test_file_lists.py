"""Several files of one corpus: lists of paths and patterns, for every reader of text files."""

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.data.example import Example
from seqloom.data.preparation.request import fingerprint
from seqloom.data.readers.splits import read_split, split_files
from seqloom.inference.evaluation.groups import score_groups
from seqloom.tasks.build import learn_task
from seqloom.tasks.token_task import TokenTask
from support.tiny_runs import tiny_config


def table(texts: Iterable[str]) -> pa.Table:
    return pa.table(
        {"source": list(texts), "target": [text.upper() for text in texts]},
        pa.schema([("source", pa.string()), ("target", pa.string())]),
    )


def parquet_file(texts: Iterable[str]) -> bytes:
    file = io.BytesIO()
    pq.write_table(table(texts), file)
    return file.getvalue()


def arrow_file(texts: Iterable[str]) -> bytes:
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table(texts).schema) as writer:
        writer.write_table(table(texts))
    return file.getvalue()


def tmx_file(texts: Iterable[str]) -> bytes:
    units = "".join(
        f'<tu><tuv xml:lang="de"><seg>{text}</seg></tuv>'
        f'<tuv xml:lang="en"><seg>{text.upper()}</seg></tuv></tu>'
        for text in texts
    )
    return f'<tmx version="1.4"><header/><body>{units}</body></tmx>'.encode()


FORMATS: dict[str, Callable[[str], bytes]] = {
    "tsv": lambda texts: "".join(f"{text}\t{text.upper()}\n" for text in texts).encode(),
    "csv": lambda texts: (
        "source,target\n" + "".join(f"{text},{text.upper()}\n" for text in texts)
    ).encode(),
    "jsonl": lambda texts: "".join(
        json.dumps({"src": text, "tgt": text.upper()}) + "\n" for text in texts
    ).encode(),
    "parquet": parquet_file,
    "arrow": arrow_file,
    "tmx": tmx_file,
    "lines": lambda texts: "".join(f"{text}\n" for text in texts).encode(),
    "long-text": lambda texts: "".join(f"{text}\n" for text in texts).encode(),
    "frames": lambda texts: (
        "sequence,label,x\n" + "".join(f"{text},up,{ord(text[0])}\n" for text in texts)
    ).encode(),
}
"""The content of a file with these texts, for each kind of corpus with a single path."""
LANGUAGES = {"tmx": {"source": "de", "target": "en"}}
"""Further settings of each kind of corpus that needs them."""


def corpus(kind: str, path: str | list[str]) -> dict[str, Any]:
    return {"kind": kind, "path": path, **LANGUAGES.get(kind, {})}


def data_config(folder: Path, *train: dict[str, Any], **rest: Any) -> DataConfig:
    return DataConfig.model_validate({"folder": str(folder), "train": list(train), **rest})


def write_files(folder: Path, kind: str) -> None:
    """Files 1, 2 and 10 with two texts each, and all texts in the file `all`."""
    folder.mkdir(exist_ok=True)
    for name, texts in {"1": "ab", "10": "cd", "2": "ef"}.items():
        (folder / f"{name}.part").write_bytes(FORMATS[kind](texts))
    (folder / "all").write_bytes(FORMATS[kind]("abcdef"))


def examples_of(config: DataConfig) -> list[Example]:
    return list(read_split(config, "train"))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    "path", ["parts/*.part", ["parts/1.part", "parts/10.part", "parts/2.part"], "**/*.part"]
)
def test_several_files_are_read_as_one_corpus_in_order(
    tmp_path: Path, kind: str, path: str | list[str]
) -> None:
    write_files(tmp_path / "parts", kind)
    several = examples_of(data_config(tmp_path, corpus(kind, path)))
    single = examples_of(data_config(tmp_path, corpus(kind, "parts/all")))
    texts = [(example.source, example.target) for example in several]
    assert texts == [(example.source, example.target) for example in single]
    assert len(texts) == 6
    assert {(example.group, example.corpus) for example in several} == {("", "")}
    files = [Path(example.where.rpartition(":")[0]).name for example in several]
    assert files == ["1.part"] * 2 + ["10.part"] * 2 + ["2.part"] * 2
    # Line numbers start again in each file.
    assert several[0].where.rpartition(":")[2] == several[2].where.rpartition(":")[2]


@pytest.mark.parametrize("kind", FORMATS)
def test_fingerprint_covers_every_file(tmp_path: Path, kind: str) -> None:
    write_files(tmp_path, kind)
    config = data_config(tmp_path, corpus(kind, "*.part"))
    seen = {fingerprint(config, "train")}
    for path in sorted(tmp_path.glob("*.part")):
        path.write_bytes(FORMATS[kind]("xy"))
        seen.add(fingerprint(config, "train"))
    (tmp_path / "3.part").write_bytes(FORMATS[kind]("z"))
    seen.add(fingerprint(config, "train"))
    assert len(seen) == 5


@pytest.mark.parametrize("kind", FORMATS)
def test_single_file_has_the_same_fingerprint_as_a_list_of_it(tmp_path: Path, kind: str) -> None:
    write_files(tmp_path, kind)
    paths = ("all", ["all"], "al*")
    configs = [data_config(tmp_path, corpus(kind, path)) for path in paths]
    assert len({fingerprint(config, "train") for config in configs}) == 1


@pytest.mark.parametrize("kind", FORMATS)
def test_pattern_without_a_file_is_an_error_that_names_pattern_and_folder(
    tmp_path: Path, kind: str
) -> None:
    config = data_config(tmp_path, corpus(kind, ["no/*.x", "nor.x"]))
    with pytest.raises(NotFoundError) as caught:
        examples_of(config)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"no file matches the pattern 'no/*.x' in the folder {tmp_path}; ")
    assert second.startswith(f"{tmp_path}/nor.x: there is no such file")


def test_pattern_that_repeats_a_file_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, "tsv")
    config = data_config(tmp_path, {"kind": "tsv", "path": ["1.part", "*.part"]})
    with pytest.raises(DataError, match=r"1\.part and \*\.part name this file more than once"):
        examples_of(config)


@pytest.mark.parametrize("path", ["a[1].tsv", "~/a[1].tsv"])
def test_file_whose_name_looks_like_a_pattern_is_read_itself(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("a[1].tsv", "a1.tsv"):
        (tmp_path / name).write_text(f"{name}\tx\n", encoding="utf-8")
    config = data_config(tmp_path, {"kind": "tsv", "path": path})
    assert [example.source for example in examples_of(config)] == ["a[1].tsv"]


def test_special_characters_in_the_data_folder_are_not_a_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "data [old]*"
    write_files(folder, "tsv")
    config = data_config(folder, {"kind": "tsv", "path": "*.part"})
    assert len(examples_of(config)) == 6


def write_pairs(folder: Path, *names: str) -> None:
    for name in names:
        stem, language = name.split(".")
        lines = [f"{stem} {language} {number}\n" for number in (1, 2)]
        (folder / name).write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "target"),
    [("*.de", "*.en"), (["a.de", "b.de"], "*.en"), (["b.de", "a.de"], ["b.en", "a.en"])],
)
def test_parallel_files_are_matched_in_order(
    tmp_path: Path, source: str | list[str], target: str | list[str]
) -> None:
    write_pairs(tmp_path, "a.de", "a.en", "b.de", "b.en")
    corpus = {"kind": "parallel", "source": source, "target": target, "references": [target]}
    examples = examples_of(data_config(tmp_path, corpus))
    assert len(examples) == 4
    for example in examples:
        assert example.target == example.source.replace("de", "en")
        assert example.references == (example.target, example.target)
        stem, _, number = example.source.split()
        assert example.where == f"{tmp_path}/{stem}.de:{number}"


def test_lines_of_parallel_files_are_counted_over_all_files(tmp_path: Path) -> None:
    write_pairs(tmp_path, "a.de", "a.en", "b.de", "b.en")
    corpus = {"kind": "parallel", "source": "*.de", "target": "*.en"}
    some = data_config(tmp_path, {**corpus, "first_line": 2, "last_line": 3})
    assert [example.source for example in examples_of(some)] == ["a de 2", "b de 1"]
    past = data_config(tmp_path, {**corpus, "last_line": 5})
    with pytest.raises(DataError, match=r"a\.de to .*b\.de: together have 4 lines"):
        examples_of(past)


@pytest.mark.parametrize(
    ("names", "target", "message"),
    [
        (
            ("a.de", "b.de", "a.en"),
            "*.en",
            "data.train.source names 2 files, data.train.target names 1 file; these settings",
        ),
        (
            ("a.de", "b.de", "a.en", "c.en"),
            "*.en",
            "c.en would be paired with .*b.de, but . stands for 'c' in one name and for 'b'",
        ),
    ],
)
def test_parallel_files_without_a_partner_are_an_error(
    tmp_path: Path, names: tuple[str, ...], target: str, message: str
) -> None:
    write_pairs(tmp_path, *names)
    config = data_config(tmp_path, {"kind": "parallel", "source": "*.de", "target": target})
    for read in (examples_of, lambda config: fingerprint(config, "train")):
        with pytest.raises(DataError, match=message):
            read(config)


def test_fingerprint_depends_on_which_parallel_files_belong_together(tmp_path: Path) -> None:
    write_pairs(tmp_path, *(f"{name}.{language}" for name in "abc" for language in ("de", "en")))
    sources = (["a.de", "b.de", "c.de"], ["a.de", "c.de", "b.de"])
    target = ["a.en", "b.en", "c.en"]
    configs = [
        data_config(tmp_path, {"kind": "parallel", "source": source, "target": target})
        for source in sources
    ]
    assert fingerprint(configs[0], "train") != fingerprint(configs[1], "train")


def test_languages_can_use_patterns(tmp_path: Path) -> None:
    write_pairs(tmp_path, "a.de", "a.en", "b.de", "b.en")
    corpus = {"kind": "languages", "path": "*.{language}", "pairs": ["de-en", "en-de"]}
    examples = examples_of(data_config(tmp_path, corpus, dev=[corpus]))
    assert [example.group for example in examples] == ["de-en"] * 4 + ["en-de"] * 4


@pytest.mark.parametrize("value", [[], [3], ["a", 3], {"a": 1}])
def test_path_must_be_a_string_or_a_list_of_strings(value: object) -> None:
    tables = {
        "data": {"train": {"kind": "tsv", "path": value}},
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 1},
    }
    with pytest.raises(ConfigError, match=r"data\.train\.path: must (not be empty|be a string)"):
        load_recipe(tables)


def test_settings_on_the_command_line_can_be_lists_of_files() -> None:
    config = tiny_config('data.train={kind="tsv", path="a"}', 'data.train.path=["b", "c*"]')
    assert config.data.train[0].model_dump()["path"] == ("b", "c*")


def test_files_of_a_split_are_listed_and_missing_ones_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, "tsv")
    config = data_config(tmp_path, {"kind": "tsv", "path": ["*.part", "missing"]})
    assert [path.name for path in split_files(config, "train")] == ["1.part", "10.part", "2.part"]


@given(st.permutations(["a", "b", "c"]))
def test_list_keeps_its_order(order: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name in order:
            (Path(folder) / name).write_text(f"{name}\tx\n", encoding="utf-8")
        config = data_config(Path(folder), {"kind": "tsv", "path": order})
        assert [example.source for example in examples_of(config)] == order


@pytest.mark.parametrize(
    ("settings", "groups", "corpora"),
    [
        (({}, {}), {""}, {"data.test[0]", "data.test[1]"}),
        (({"name": "one"}, {"name": "two"}), {"one", "two"}, {"one", "two"}),
        (({"name": "one"}, {}), {"one", "data.test[1]"}, {"one", "data.test[1]"}),
    ],
)
def test_scores_by_corpus_are_reported_only_if_a_corpus_has_a_name(
    tmp_path: Path, settings: tuple[dict[str, str], ...], groups: set[str], corpora: set[str]
) -> None:
    write_files(tmp_path, "tsv")
    test = [
        {"kind": "tsv", "path": f"{name}.part", **named}
        for name, named in zip(("1", "2"), settings, strict=True)
    ]
    config = data_config(tmp_path, {"kind": "tsv", "path": "all"}, test=test)
    examples = list(read_split(config, "test"))
    assert {example.group for example in examples} == groups
    assert {example.corpus for example in examples} == corpora
    task = learn_task(tiny_config())
    assert isinstance(task, TokenTask)
    parts = score_groups(task, examples, [example.target for example in examples])
    assert {part.part for part in parts} == (groups - {""})
