"""seqloom translate-files: many files, blocks, shards and continued commands."""

import gzip
import json
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from seqloom.cli.inputs import read_portions
from seqloom.core.errors import SeqloomError
from seqloom.jobs.batch_translation import input_files, output_folder, worker_processes
from seqloom.jobs.batch_translation.block_translator import BlockTranslator, Shard
from seqloom.jobs.batch_translation.portions import portion_lines
from support.cli_runner import CliResult, run_cli

LINES = ["ab", "", "cd", "abcd", "c", "ba", "dd"]
BLOCK = 3


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.jobs.batch_translation.portions.CPU_PORTION", BLOCK)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A folder with three text files of 7, 5 and 0 lines, of which two are compressed."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (folder / "b.txt.gz").write_bytes(gzip.compress("\n".join(LINES[:5]).encode()))
    (folder / "c.txt.zst").write_bytes(zstandard.compress(b""))
    return folder


@pytest.fixture
def translated_blocks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The file and the index of each block that is translated."""
    blocks: list[tuple[int, int]] = []
    translate = BlockTranslator.translate

    def record(self: BlockTranslator, block: input_files.Block) -> Any:
        blocks.append((block.file, block.index))
        return translate(self, block)

    monkeypatch.setattr(BlockTranslator, "translate", record)
    return blocks


def translate(run: Path, inputs: Path, output: Path, *options: object) -> CliResult:
    return run_cli("translate-files", run, f"{inputs}/*", "--output", output, *options)


def expected_lines(run: Path, file: Path) -> str:
    """The output of `translate`."""
    return run_cli("translate", run, file).stdout


def assert_complete(run: Path, inputs: Path, output: Path) -> None:
    a, b = (expected_lines(run, inputs / name) for name in ("a.txt", "b.txt.gz"))
    assert (output / "a.txt").read_text(encoding="utf-8") == a
    assert gzip.decompress((output / "b.txt.gz").read_bytes()).decode() == b
    assert zstandard.decompress((output / "c.txt.zst").read_bytes(), 10) == b""
    names = {path.name for path in output.iterdir()}
    assert names == {"translation.json", "a.txt", "b.txt.gz", "c.txt.zst"}


@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
def test_blocks_equal_the_portions_of_translate(
    device_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise lines would be decoded in other batches, and outputs could differ."""
    monkeypatch.setattr("seqloom.jobs.batch_translation.portions.GPU_PORTION", 5)
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{number}\n" for number in range(12)), encoding="utf-8")
    lines = portion_lines(device_type)
    assert lines == {"cpu": BLOCK, "cuda": 5}[device_type]
    [file] = input_files.find_input_files([str(path)], None, "translation")
    blocks = [block.texts for block in input_files.read_blocks(file, 0, lines)]
    assert blocks == list(read_portions([path], device_type))
    assert [len(texts) for texts in blocks] == input_files.block_sizes(file, lines)
    assert {len(texts) for texts in blocks[:-1]} == {lines}


@pytest.mark.slow
def test_outputs_equal_those_of_single_files(reverse: Path, inputs: Path, tmp_path: Path) -> None:
    result = translate(reverse, inputs, tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count(": complete\n") == 3
    assert_complete(reverse, inputs, tmp_path / "out")
    again = translate(reverse, inputs, tmp_path / "out")
    assert (again.exit_code, again.stderr) == (0, "")


@pytest.mark.slow
def test_interrupted_command_continues_without_repeating_a_block(
    reverse: Path,
    inputs: Path,
    tmp_path: Path,
    translated_blocks: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "out"
    for _ in range(5):
        with monkeypatch.context() as patch:
            count = len(translated_blocks)
            translate_block = BlockTranslator.translate

            def interrupt(
                self: BlockTranslator,
                block: input_files.Block,
                count: int = count,
                translate_block: Any = translate_block,
            ) -> Any:
                if len(translated_blocks) > count:
                    raise KeyboardInterrupt
                return translate_block(self, block)

            patch.setattr(BlockTranslator, "translate", interrupt)
            result = translate(reverse, inputs, output)
        if result.exit_code == 0:
            break
        assert result.exit_code == 130
        assert "keeps the finished blocks. To continue, run: seqloom translate" in result.stderr
    assert result.exit_code == 0
    assert translated_blocks == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert_complete(reverse, inputs, output)


@pytest.mark.slow
def test_blocks_that_a_killed_command_leaves_are_removed(
    reverse: Path, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is killed after it has joined a file and before it removes the blocks."""
    output = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(output_folder.OutputFolder, "_remove_blocks", lambda self, folder: None)
        assert translate(reverse, inputs, output).exit_code == 0
    assert len(list((output / ".blocks" / "a.txt").iterdir())) == 3
    assert translate(reverse, inputs, output).exit_code == 0
    assert_complete(reverse, inputs, output)


@pytest.mark.slow
def test_shards_translate_each_block_once_and_the_last_one_joins(
    reverse: Path, inputs: Path, tmp_path: Path, translated_blocks: list[tuple[int, int]]
) -> None:
    output = tmp_path / "out"
    results = [translate(reverse, inputs, output, "--shard", f"{i}/3") for i in (2, 3, 1)]
    assert [result.exit_code for result in results] == [0, 0, 0], results
    assert "wait for blocks of other shards" in results[0].stderr
    assert f"{output / 'a.txt'}: complete" in results[2].stderr
    assert sorted(translated_blocks) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert_complete(reverse, inputs, output)


@given(count=st.integers(1, 20), file=st.integers(0, 1_000), block=st.integers(0, 10**6))
def test_every_block_belongs_to_one_shard(count: int, file: int, block: int) -> None:
    owners = [number for number in range(1, count + 1) if Shard(number, count).has(file, block)]
    assert len(owners) == 1


@pytest.mark.slow
def test_records_and_rows_keep_their_fields(reverse: Path, tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    records = [
        f'{{"n": {n}.50, "text": {json.dumps(line)}, "x": {{}} }} ' for n, line in enumerate(LINES)
    ]
    (folder / "a.jsonl").write_text("\n".join(records), encoding="utf-8")
    table = pyarrow.table({"n": range(len(LINES)), "text": LINES})
    pyarrow.parquet.write_table(table, folder / "b.parquet", row_group_size=2)
    (folder / "c.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    result = translate(
        reverse, folder, output, "--field", "text", "--output-field", "out", "--scores"
    )
    assert result.exit_code == 0, result.stderr
    translations = expected_lines(reverse, folder / "c.txt").splitlines()
    lines = (output / "a.jsonl").read_text(encoding="utf-8").splitlines()
    for line, record, translation in zip(lines, records, translations, strict=True):
        assert line.startswith(record.rstrip()[:-1])
        assert json.loads(line)["out"] == translation
    rows = pyarrow.parquet.read_table(output / "b.parquet")
    assert rows.select(["n", "text"]).equals(table)
    assert rows["out"].to_pylist() == translations
    assert rows["score"].to_pylist() == [json.loads(line)["score"] for line in lines]


@pytest.mark.slow
def test_changed_request_or_input_is_an_error(reverse: Path, inputs: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert translate(reverse, inputs, output, "--shard", "1/2").exit_code == 0
    result = translate(reverse, inputs, output, "--beam", 2)
    assert result.exit_code == 78
    assert "differ in --beam" in result.stderr
    (inputs / "a.txt").write_text("ab\n", encoding="utf-8")
    result = translate(reverse, inputs, output)
    assert result.exit_code == 78
    assert "differ in input files" in result.stderr
    assert "add --overwrite" in result.stderr
    assert translate(reverse, inputs, output, "--overwrite").exit_code == 0
    assert_complete(reverse, inputs, output)


@pytest.mark.slow
def test_blocks_that_an_interrupted_overwrite_leaves_are_not_used_by_another_command(
    reverse: Path, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first command stops in its middle. `--overwrite` stops before it has removed the blocks."""
    output = tmp_path / "out"
    assert translate(reverse, inputs, output, "--shard", "1/2").exit_code == 0

    def fail(path: Path) -> None:
        raise OSError(28, "interrupted", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(f"{output_folder.__name__}.shutil.rmtree", fail)
        assert translate(reverse, inputs, output, "--beam", 2, "--overwrite").exit_code == 74
    result = translate(reverse, inputs, output, "--beam", 2)
    assert result.exit_code == 78
    assert "differ in --beam" in result.stderr


@pytest.mark.slow
def test_input_that_changes_during_the_translation_is_not_joined(
    reverse: Path, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translate_block = BlockTranslator.translate

    def change(self: BlockTranslator, block: input_files.Block) -> Any:
        (inputs / "a.txt").write_text("ab\n", encoding="utf-8")
        return translate_block(self, block)

    monkeypatch.setattr(BlockTranslator, "translate", change)
    result = translate(reverse, inputs, tmp_path / "out")
    assert result.exit_code == 74
    assert "a.txt: was changed while it was translated" in result.stderr
    assert not (tmp_path / "out" / "a.txt").exists()


@pytest.mark.slow
def test_existing_files_are_kept_without_overwrite(
    reverse: Path, inputs: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "a.txt").write_text("old", encoding="utf-8")
    result = translate(reverse, inputs, output)
    assert result.exit_code == 78
    assert "already contains output files: a.txt. Add --overwrite" in result.stderr
    assert (output / "a.txt").read_text(encoding="utf-8") == "old"


@pytest.mark.slow
def test_invalid_records_of_a_block_are_listed_together(reverse: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    lines = ['{"text": "ab"}', "[]", "{", '{"other": 1}', '{"text": 5}', '{"text": "\\ud800"}']
    lines[0] = '{"text": "ab", "translation": 1}'
    (folder / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqloom.jobs.batch_translation.portions.CPU_PORTION", 10)
        result = translate(reverse, folder, tmp_path / "out", "--field", "text")
    assert result.exit_code == 65
    for message in (
        "a.jsonl:1: has a field 'translation' already; choose another name",
        "a.jsonl:2: must be a JSON object",
        "a.jsonl:3: is not JSON",
        "a.jsonl:4: has no field 'text', only 'other'; set --field",
        "a.jsonl:5: 'text' is not a string but 5",
        "a.jsonl:6: character 1 of 'text' is half of a surrogate pair",
    ):
        assert message in result.stderr


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["x.txt", "sub/x.txt"], [], "x.txt: 2 input files have this name"),
        (["x.jsonl"], [], "x.jsonl: is a file with fields. Name the field with the texts: --field"),
        (["x.txt"], ["--field", "t"], "--field t: all input files are plain text"),
        (["x.jsonl"], ["--field", "t", "--output-field", "t"], "--output-field t: is the field"),
        (["x.jsonl"], ["--field", "t", "--json"], "--json and --n-best work only with plain text"),
        (["x.txt"], ["--shard", "3/2"], "--shard 3/2: must be I/N"),
        (["x.txt"], ["--shard", "1/2", "--overwrite"], "--overwrite does not work with --shard"),
        (["x.txt"], ["--shard", "1/2", "--ray", "local"], "--shard does not work with --ray"),
        ([], [], "no file matches the pattern"),
    ],
)
def test_unusable_options_are_rejected_before_the_run_is_loaded(
    recipes: Path, tmp_path: Path, names: list[str], options: list[str], message: str
) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    for name in names:
        (tmp_path / "in" / name).write_text("ab\n", encoding="utf-8")
    result = run_cli(
        *("translate-files", tmp_path / "run", f"{tmp_path}/in/**/*", *options),
        *("--output", tmp_path / "out"),
    )
    assert result.exit_code in (66, 78)
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_missing_files_are_listed_together(tmp_path: Path) -> None:
    inputs = (tmp_path / "no.txt", tmp_path, f"{tmp_path}/x*")
    result = run_cli("translate-files", tmp_path, *inputs, "--output", tmp_path / "out")
    assert result.exit_code == 66
    for message in ("no.txt: no such file", "is a folder; add a pattern", "no file matches"):
        assert message in result.stderr


@pytest.mark.slow
def test_terminal_shows_the_finished_lines(reverse: Path, inputs: Path, tmp_path: Path) -> None:
    options = (f"{inputs}/*", "--output", tmp_path / "out")
    result = run_cli("translate-files", reverse, *options, terminal=True)
    assert result.exit_code == 0
    assert "/12 lines" in result.stderr


def test_workers_that_always_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> Iterator[None]:
        raise BrokenProcessPool
        yield

    monkeypatch.setattr(worker_processes, "_translate_with_pool", end)
    with pytest.raises(SeqloomError, match="worker processes ended 3 times"):
        list(worker_processes.translate_with_processes(None, iter(()), 2, 1))  # type: ignore[arg-type]


def test_outputs_never_replace_inputs(reverse: Path, inputs: Path) -> None:
    result = translate(reverse, inputs, inputs)
    assert result.exit_code == 78
    assert "the output would replace this input file" in result.stderr
