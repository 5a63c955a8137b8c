"""The wheel and the source archive are complete, and the installed wheel works on its own."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from seqloom import __version__

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "seqloom"
MAX_WHEEL_BYTES = 10_000_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("hatchling") is None, reason="hatchling is not installed; run `make setup`"
    ),
]


def run_process(*arguments: object, folder: Path, stdin: str = "", **environment: str) -> str:
    process = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **environment},
        input=stdin,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    run_process("-m", "hatchling", "build", "-d", folder, folder=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(archives: Path) -> Path:
    (path,) = archives.glob("*.whl")
    return path


def package_files() -> set[str]:
    """All files of the package, relative to `src`."""
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == package_files()
    for needed in (
        "seqloom/py.typed",
        "seqloom/recipes/demo.toml",
        "seqloom/recipes/presets/small.toml",
        "seqloom/bundled/tatoeba-de-en.train.tsv.gz",
        "seqloom/serving/static/index.html",
    ):
        assert needed in names


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size <= MAX_WHEEL_BYTES


def test_the_metadata_has_version_licence_and_python(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    metadata = HeaderParser().parsestr(archive.read(name).decode())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == project["requires-python"]
    assert {name.rpartition("/")[2] for name in archive.namelist()} >= {"LICENSE", "NOTICE"}


def test_the_source_archive_has_what_a_build_needs(archives: Path) -> None:
    (path,) = archives.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in package_files()} <= names
    assert {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "NOTICE"} <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "bench/"))]


@pytest.mark.long
def test_the_installed_wheel_trains_the_quick_demo_and_translates(
    wheel: Path, tmp_path: Path
) -> None:
    """The process sees the installed wheel and the dependencies, but not the source tree."""
    installed, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    install = ("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", installed)
    run_process(*install, wheel, folder=empty)

    def run_installed(*arguments: str, stdin: str = "") -> str:
        return run_process(
            *arguments,
            folder=empty,
            stdin=stdin,
            PYTHONPATH=str(installed),
            XDG_CACHE_HOME=str(tmp_path / "cache"),
        )

    location = run_installed("-c", "import seqloom; print(seqloom.__file__)")
    assert Path(location.strip()).is_relative_to(installed)
    demo = run_installed("-m", "seqloom", "demo", "--quick")
    assert "test sentences" in demo
    run_folder = "runs/demo-quick"
    translation = run_installed("-m", "seqloom", "translate", run_folder, stdin="Ich habe Hunger.")
    assert len(translation.split()) >= 2
