"""Lines that cannot be used are reported together, or skipped and counted."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import (
    ArrowConfig,
    CorpusConfig,
    CsvConfig,
    JsonlConfig,
    LinesConfig,
    ParallelConfig,
    ParquetConfig,
    TmxConfig,
    TsvConfig,
)
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import DataError
from seqloom.data.checks.doctor import examine
from seqloom.data.corpus.corpus import build_corpus
from seqloom.data.corpus.vocabularies import train_tokenizers
from seqloom.data.example import InvalidLine
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.readers.splits import MAX_LISTED_LINES, read_split

TABLE = pa.table({"source": ["one", None, "two", "x"], "target": ["eins", "x", "zwei", None]})


def parquet_file() -> bytes:
    file = io.BytesIO()
    pq.write_table(TABLE, file)
    return file.getvalue()


def arrow_file() -> bytes:
    file = io.BytesIO()
    with pa.ipc.new_stream(file, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return file.getvalue()


def tmx_unit(**texts: str) -> bytes:
    variants = (f'<tuv xml:lang="{k}"><seg>{text}</seg></tuv>' for k, text in texts.items())
    return f"<tu>{''.join(variants)}</tu>".encode()


FILES = {
    "parquet": parquet_file(),
    "arrow": arrow_file(),
    "tmx": b"<tmx><body>"
    + tmx_unit(de="one", en="eins")
    + tmx_unit(de="x")
    + tmx_unit(de="two", en="zwei")
    + tmx_unit(en="x", fr="y")
    + b"</body></tmx>",
    "tsv": b"one\teins\nonly this\ntwo\tzwei\n\xff\tdrei\n",
    "csv": b"source,target\none,eins\nonly this\ntwo,zwei\na,b,c\n",
    "jsonl": b'{"src": "one", "tgt": "eins"}\n{"src": "x"}\n{"src": "two", "tgt": "zwei"}\nno\n',
    "src": b"one\n\xff\ntwo\nthree\n",
    "tgt": b"eins\nx\nzwei\n\xfe\n",
}
CORPORA: dict[str, CorpusConfig] = {
    "tsv": TsvConfig(path="tsv"),
    "csv": CsvConfig(path="csv"),
    "jsonl": JsonlConfig(path="jsonl"),
    "parquet": ParquetConfig(path="parquet"),
    "arrow": ArrowConfig(path="arrow"),
    "tmx": TmxConfig(path="tmx", source="de", target="en"),
    "parallel": ParallelConfig(source="src", target="tgt"),
}
every_format = pytest.mark.parametrize("name", CORPORA)


def data(folder: Path, corpus: CorpusConfig, invalid_lines: str = "error") -> DataConfig:
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return DataConfig.model_validate(
        {"folder": str(folder), "train": (corpus,), "invalid_lines": invalid_lines}
    )


@every_format
def test_one_error_names_all_invalid_lines_and_the_setting_that_skips_them(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as caught:
        list(read_split(data(tmp_path, CORPORA[name]), "train"))
    message = str(caught.value)
    assert message.startswith("2 lines cannot be used:")
    assert message.count(f"\n  {tmp_path}/") == 2
    assert "data.invalid_lines=skip" in message


@every_format
def test_skipped_lines_are_reported_and_the_others_are_read(name: str, tmp_path: Path) -> None:
    skipped: list[InvalidLine] = []
    config = data(tmp_path, CORPORA[name], "skip")
    examples = list(read_split(config, "train", skipped.append))
    assert [(example.source, example.target) for example in examples] == [
        ("one", "eins"),
        ("two", "zwei"),
    ]
    assert len(skipped) == 2


def test_at_most_ten_lines_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("no tab\n" * 25)
    config = DataConfig(folder=str(tmp_path), train=(TsvConfig(path="bad"),))
    with pytest.raises(DataError) as caught:
        list(read_split(config, "train"))
    message = str(caught.value)
    assert message.startswith("25 lines cannot be used:")
    assert message.count("there is no second column") == MAX_LISTED_LINES == 10
    assert "… and 15 more" in message


def test_lines_of_plain_text_that_are_not_utf8_are_invalid(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"one\n\xff\ntwo\n")
    config = DataConfig(
        folder=str(tmp_path), train=(LinesConfig(path="text"),), invalid_lines="skip"
    )
    assert [example.target for example in read_split(config, "train")] == ["one", "two"]


def test_invalid_lines_of_held_out_data_are_reported_once(tmp_path: Path) -> None:
    config = data(tmp_path, TsvConfig(path="tsv"), "skip")
    skipped: list[InvalidLine] = []
    for split in ("train", "dev"):
        try:
            list(read_split(config, split, skipped.append))
        except DataError:
            assert split == "dev"  # two pairs are too few to hold one out
    assert len(skipped) == 2


def recipe(folder: Path, *settings: str):  # type: ignore[no-untyped-def]
    data(folder, TsvConfig(path="tsv"))
    tables = {
        "data": {"folder": str(folder), "train": {"kind": "tsv", "path": "tsv"}},
        "text": {"tokenizer": {"kind": "subwords", "size": 20}, "shared": True},
        "preset": "tiny",
    }
    return load_recipe(tables, settings).config


def test_a_data_error_in_vocabulary_training_stays_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2 lines cannot be used"):
        train_tokenizers(recipe(tmp_path))


def test_a_corpus_counts_its_skipped_lines(tmp_path: Path) -> None:
    config = recipe(tmp_path, "data.invalid_lines=skip")
    tokenizers = train_tokenizers(config)
    assert tokenizers.source is not None
    source = TextModality(tokenizers.source)
    request = CorpusRequest(config.data, "train", source, tokenizers.target)
    report = build_corpus(request).report
    assert (report.read, report.kept, report.dropped) == (4, 2, {"invalid line": 2})


def test_doctor_reports_invalid_lines_once_and_warns_about_skipped_ones(tmp_path: Path) -> None:
    check = examine(recipe(tmp_path), lambda split, examples: None)
    errors = [finding for finding in check.findings if finding.level == "error"]
    assert check.exit_code == DataError.exit_code == 65
    assert len(errors) == 1
    assert "2 lines cannot be used" in errors[0].what
    skipping = examine(recipe(tmp_path, "data.invalid_lines=skip"), lambda split, examples: None)
    assert any(
        finding.level == "warning" and "2 lines cannot be used and are skipped" in finding.what
        for finding in skipping.findings
    )
