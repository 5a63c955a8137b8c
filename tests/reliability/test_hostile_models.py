"""Hostile run folders, with manifests that fit their files: loading refuses them in little time and memory."""

import json
import os
import pickle
import resource
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqloom.core.errors import SeqloomError
from seqloom.core.storage import MANIFEST, write_manifest
from seqloom.inference.run import load
from seqloom.runs.integrity import CONFIG, WEIGHTS
from seqloom.training.loop import train
from support.forking import SharedInteger, run_in_child
from support.load_testing import process_mib
from support.tiny_runs import tiny_config
from support.trials import IS_CAMPAIGN, save_results

pytestmark = pytest.mark.slow

MAX_SECONDS = 2.0
"""Maximum CPU time of the process. The elapsed time is not meaningful on a shared machine."""
MAX_MIB = 100.0
"""Maximum growth of the memory of the process."""
REFUSED = 7
"""Exit code of a child in which `load` raised an error of seqloom."""

Change = Callable[[Path], object]
"""Changes a run folder, whose only weights are in weights/best."""


class RunsCode:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def weights_folder(run: Path) -> Path:
    return next((run / "weights").iterdir())


def weights(content: bytes | Callable[[Path], bytes]) -> Change:
    """Replace the weights, and the manifest beside them.

    content: the new content, or a function of the path of the file
    """

    def change(run: Path) -> None:
        path = weights_folder(run) / WEIGHTS
        path.write_bytes(content if isinstance(content, bytes) else content(path))
        write_manifest(path.parent, step=int(path.parent.name.removeprefix("step-")))

    return change


def file(name: str, content: bytes | Callable[[str], str]) -> Change:
    """Replace a file of the run, and the manifest of the run.

    content: the new content, or a function of the old one
    """

    def change(run: Path) -> None:
        path = run / name
        text = content if isinstance(content, bytes) else content(path.read_text()).encode()
        path.write_bytes(text)
        write_listed(run)

    return change


def write_listed(run: Path) -> None:
    """Write the manifest of a run for the files that it lists."""
    hidden = [run / name for name in ("weights", "best", "metrics.jsonl") if (run / name).exists()]
    aside = run.with_name("aside")
    aside.mkdir()
    for path in hidden:
        path.rename(aside / path.name)
    write_manifest(run)
    for path in hidden:
        (aside / path.name).rename(path)
    aside.rmdir()


def header(content: object, size: int | None = None, data: bytes = bytes(64)) -> bytes:
    """A safetensors file.

    content: the header, as an object or as bytes
    size:    the size that the file states for the header. Default: the true size
    """
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def tensor(start: int, end: int, shape: object = (8,), dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def change_header(change: Callable[[dict[str, Any]], object]) -> Change:
    """Change the header of the weights."""

    def content(path: Path) -> bytes:
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        tensors = json.loads(data[8 : 8 + size])
        change(tensors)
        return header(tensors, data=data[8 + size :])

    return weights(content)


def link(name: str, target: str) -> Change:
    """Replace a file or folder by a symbolic link."""

    def change(run: Path) -> None:
        path = weights_folder(run) / WEIGHTS if name == WEIGHTS else run / name
        moved = run.with_name("outside")
        path.rename(moved)
        path.symlink_to(target or moved)

    return change


def pipe(run: Path) -> None:
    """A pipe in place of the weights: reading it would never end."""
    path = weights_folder(run) / WEIGHTS
    path.unlink()
    os.mkfifo(path)


def folder_for_file(run: Path) -> None:
    (run / CONFIG).unlink()
    (run / CONFIG).mkdir()


def manifest(change: Callable[[dict[str, Any]], object]) -> Change:
    """Change the manifest of the run without its seal."""

    def apply(run: Path) -> None:
        content = json.loads((run / MANIFEST).read_bytes())
        change(content)
        (run / MANIFEST).write_text(json.dumps(content))

    return apply


def pointer(content: bytes) -> Change:
    def change(run: Path) -> None:
        shutil.copytree(weights_folder(run), run.with_name("outside"))
        (run / "best").write_bytes(content)

    return change


def larger(name: str, old: str, new: str) -> Change:
    def replaced(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return file(name, replaced)


def first(tensors: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = next(tensors[name] for name in tensors if name != "__metadata__")
    return entry


SOURCE = "text/source.json"
HOSTILE: dict[str, Change] = {
    "pickle": weights(pickle.dumps({"a": 1})),
    "pickle with code": weights(lambda path: pickle.dumps(RunsCode(str(path.parents[3] / "ran")))),
    "empty weights": weights(b""),
    "seven bytes": weights(b"\x01" * 7),
    "header of 2^63 bytes": weights(header(b"{}", 2**63)),
    "header of 2^64 - 1 bytes": weights(header(b"{}", 2**64 - 1)),
    "header of a terabyte": weights(header(b"{}", 2**40)),
    "header beyond the end": weights(header(b"{}", 1000)),
    "empty header": weights(header(b"", 0)),
    "header without JSON": weights(header(b"no JSON")),
    "nested header": weights(header(b"[" * 100_000)),
    "header of 60 MB": weights(header(b"{}" + b" " * 60_000_000)),
    "overlapping tensors": weights(header({"a": tensor(0, 32), "b": tensor(16, 48)})),
    "offsets beyond the end": weights(header({"a": tensor(0, 4_000, (1_000,))})),
    "reversed offsets": weights(header({"a": tensor(32, 0)})),
    "negative offsets": weights(header({"a": tensor(-32, 0)})),
    "gap between tensors": weights(header({"a": tensor(0, 16, (4,)), "b": tensor(32, 64)})),
    "unknown type": weights(header({"a": tensor(0, 64, (8,), "object")})),
    "huge shape": weights(header({"a": tensor(0, 64, (2**40, 2**40))})),
    "negative shape": weights(header({"a": tensor(0, 64, (-16,))})),
    "200,000 tensors": weights(header({str(n): tensor(0, 0, (0,)) for n in range(200_000)})),
    "other names": change_header(lambda tensors: tensors.update({"x": tensors.pop([*tensors][-1])})),
    "wrong shape": change_header(lambda tensors: first(tensors)["shape"].reverse()),
    "wrong type": change_header(lambda tensors: first(tensors).update(dtype="I32")),
    "recipe is no TOML": file(CONFIG, b"\0\xff"),
    "recipe with an unknown key": file(CONFIG, lambda text: text + "\n[evil]\nx = 1\n"),
    "nested recipe": file(CONFIG, b"a = " + b"[" * 100_000),
    "recipe that names code": larger(CONFIG, 'kind = "recurrent"', 'kind = "os:system"'),
    "huge model": larger(CONFIG, "width = 8", "width = 1000000000"),
    "large model": larger(CONFIG, "width = 8", "width = 20000"),
    "many layers": larger(CONFIG, "layers = 1", "layers = 100000"),
    "vocabulary is no JSON": file(SOURCE, b"\x80\x04"),
    "vocabulary is a list": file(SOURCE, b"[]"),
    "nested vocabulary": file(SOURCE, b"[" * 100_000),
    "vocabulary of another kind": file(SOURCE, b'{"kind": "os:system"}'),
    "weights are a link": link(WEIGHTS, ""),
    "weights are a device": link(WEIGHTS, "/dev/zero"),
    "weights are a pipe": pipe,
    "recipe is a link": link(CONFIG, ""),
    "text folder is a link": link("text", ""),
    "weights folder is a link": link("weights", ""),
    "recipe is a folder": folder_for_file,
    "manifest with ..": manifest(lambda content: content["files"].update({"../x": {}})),
    "manifest without a seal": manifest(lambda content: content.pop("seal")),
    "manifest of a newer version": manifest(lambda content: content.update(schema=99)),
    "manifest with wrong types": manifest(lambda content: content.update(files=[1])),
    "pointer with ..": pointer(b"../outside\n"),
    "absolute pointer": pointer(b"/etc\n"),
    "pointer with NUL": pointer(b"best\0x\n"),
    "long pointer": pointer(b"a" * 100_000),
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without checkpoints, so that only the changed file is checked."""
    folder = tmp_path_factory.mktemp("hostile") / "run"
    train(tiny_config("training.steps=2"), folder)
    shutil.rmtree(folder / "checkpoints")
    (folder / "latest").unlink()
    load(folder)
    return folder


def try_to_load(folder: Path) -> tuple[int, float, float]:
    """Load a run in a child process. Returns the exit code, CPU seconds and MiB of growth."""
    growth, milliseconds = SharedInteger(), SharedInteger()

    def work() -> int:
        before = process_mib()
        try:
            load(folder).translate(["ab"])
        except SeqloomError:
            return REFUSED
        finally:
            milliseconds.set(int(1000 * time.process_time()))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            growth.set(int(peak - before))
        return 0

    return run_in_child(work), milliseconds.get() / 1000, growth.get()


def test_hostile_run_folders_are_refused(run: Path, tmp_path: Path) -> None:
    names = [*HOSTILE] if IS_CAMPAIGN else [*HOSTILE][::4]
    problems: list[str] = []
    slowest, largest = 0.0, 0.0
    for number, name in enumerate(names):
        folder = tmp_path / str(number) / "run"
        shutil.copytree(run, folder)
        HOSTILE[name](folder)
        code, seconds, growth = try_to_load(folder)
        slowest, largest = max(slowest, seconds), max(largest, growth)
        if code != REFUSED:
            problems.append(f"{name}: exit code {code}")
        if growth > MAX_MIB or seconds > MAX_SECONDS:
            problems.append(f"{name}: {seconds:.1f} s, {growth:.0f} MiB")
        if (folder.parent / "ran").exists():
            problems.append(f"{name}: code was run")
    assert not problems, "\n".join(problems)
    save_results(
        "hostile-models.folders",
        folders=len(names),
        refused=len(names),
        slowest_cpu_seconds=round(slowest, 2),
        grown_mib=largest,
    )
