"""seqloom translate --output: killed at random points, then continued."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

import seqloom
from seqloom.cli.main import run
from seqloom.jobs.batch_translation.output_file import FileLines, OutputFile
from support.faults import faulty_disk
from support.forking import SharedInteger, run_in_child
from support.tiny_runs import tiny_config
from support.trials import count_trials, save_results

pytestmark = pytest.mark.slow

KILLS = count_trials(1, 30)
"""Minimum number of kills per output format."""
KILLS_OF_AN_OUTPUT = 3
"""Maximum number of kills before a translation continues to its end."""
FORMATS = {
    "text": (),
    "scores": ("--scores", "--alignments"),
    "json": ("--json",),
    "n-best": ("--n-best", "2", "--beam", "3"),
    "samples": ("--set", "decoding={kind='sample', samples=2}", "--n-best", "2"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and an input file in which some lines are blank."""
    folder = tmp_path_factory.mktemp("translate")
    seqloom.train(tiny_config(), folder / "run")
    generator = random.Random(0)
    lines = ["".join(generator.choices("abcd", k=generator.randrange(5))) for _ in range(20)]
    (folder / "input").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def translate(folder: Path, output: Path, *options: str) -> int:
    """Run `seqloom translate` with portions of three lines. Returns the exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqloom.jobs.batch_translation.portions.CPU_PORTION", 3)
        arguments = [str(folder / "run"), str(folder / "input"), "--output", str(output), *options]
        patch.setattr(sys, "argv", ["seqloom", "translate", *arguments])
        try:
            run()
        except SystemExit as exit_status:
            return int(exit_status.code or 0)
        return 0


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("name", FORMATS)
def test_output_is_identical_after_kills_before_random_disk_operations(
    folder: Path, tmp_path: Path, name: str
) -> None:
    expected, output, options = tmp_path / "expected", tmp_path / "output", FORMATS[name]
    count = SharedInteger()

    def count_operations() -> int:
        with faulty_disk(None) as disk:
            code = translate(folder, expected, *options)
        count.set(disk.count)
        return code

    assert run_in_child(count_operations) == 0
    generator = random.Random(name)
    killed = 0
    while killed < KILLS:
        output.unlink(missing_ok=True)
        operations = [generator.randrange(count.get()) for _ in range(KILLS_OF_AN_OUTPUT)]
        killed += translate_with_kills(folder, output, options, operations)
        assert output.read_bytes() == expected.read_bytes()
        assert not OutputFile(output).partial.exists()
    save_results(f"kills.translation-{name}", kills=killed, identical_results=killed)


def translate_with_kills(
    folder: Path, output: Path, options: tuple[str, ...], operations: list[int]
) -> int:
    """Kill a translation before each of these disk operations, then let it end.

    Returns the number of kills, which is lower if the output is complete before the last one.
    """
    killed = 0
    for fatal in operations:

        def translate_until_killed(fatal: int = fatal) -> int:
            with faulty_disk(fatal, kill):
                return translate(folder, output, *options)

        code = run_in_child(translate_until_killed)
        if code == 0:
            break  # fewer operations were left
        assert code == -signal.SIGKILL
        killed += 1
        if output.exists():
            break  # killed after the rename: the output is complete
    if not output.exists():
        assert run_in_child(lambda: translate(folder, output, *options)) == 0
    return killed


def test_output_is_identical_after_kills_within_a_line(folder: Path, tmp_path: Path) -> None:
    expected, output = tmp_path / "expected", tmp_path / "output"
    assert run_in_child(lambda: translate(folder, expected)) == 0

    def translate_until_killed() -> int:
        lines = 0
        write = FileLines.write

        def write_half(self: FileLines, line: str) -> None:
            nonlocal lines
            lines += 1
            if lines < 8:
                write(self, line)
            else:
                # The torn line is longer than all lines that follow.
                self._partial.write(line.encode()[:1] + b"\xc3" * 10_000)
                self._partial.flush()
                kill()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FileLines, "write", write_half)
            return translate(folder, output)

    codes = [run_in_child(translate_until_killed) for _ in range(4)]
    assert codes == [*[-signal.SIGKILL] * 3, 0]
    assert output.read_bytes() == expected.read_bytes()


def test_ctrl_c_keeps_finished_portions_and_says_how_to_continue(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    expected, output = tmp_path / "expected", tmp_path / "output"
    assert run_in_child(lambda: translate(folder, expected)) == 0
    capfd.readouterr()

    def translate_until_interrupted() -> int:
        end_portion = FileLines.end_portion

        def interrupt(self: FileLines, finished: int) -> None:
            if finished == 9:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)  # the signal arrives before the end
            end_portion(self, finished)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FileLines, "end_portion", interrupt)
            return translate(folder, output, "--overwrite")

    output.write_text("old\n", encoding="utf-8")
    assert run_in_child(translate_until_interrupted) == 130
    command = f"seqloom translate {folder}/run {folder}/input --output {output}"
    assert capfd.readouterr().err == (
        f"Interrupted. {output}.partial has the translations of the first 6 input lines. To "
        f"continue, run: {command}\n"
    )
    assert output.read_text(encoding="utf-8") == "old\n"
    finished = b"".join(expected.read_bytes().splitlines(keepends=True)[:6])
    assert OutputFile(output).partial.read_bytes() == finished
    # The interrupted command had permission to replace the old file.
    assert run_in_child(lambda: translate(folder, output)) == 0
    assert "continues after line 6 of the input" in capfd.readouterr().err
    assert output.read_bytes() == expected.read_bytes()
