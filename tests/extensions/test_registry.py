"""Finding extensions by "module:Name", by entry points and by decorators."""

import sys
from collections.abc import Iterator
from pathlib import Path

import custom_parts
import pytest

from seqloom import extensions
from seqloom.config.loading.loader import load_recipe
from seqloom.core.errors import ConfigError
from seqloom.extensions import registry
from seqloom.extensions.identity import extension_version
from seqloom.extensions.registry import POINTS, ExtensionError, find_extension, registered_names
from support.tiny_runs import tiny_config

SCORE = "model.decoder.attention.score.kind"


@pytest.fixture
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No registered names, before and after the test."""
    monkeypatch.setattr(registry, "_registered", {point: {} for point in POINTS})
    registry._entry_points.cache_clear()
    yield
    registry._entry_points.cache_clear()


@pytest.fixture
def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_registry: None
) -> Iterator[Path]:
    """A folder on the path with an installed package `speechparts`, which registers two names."""
    (tmp_path / "speechparts.py").write_text(
        "from custom_parts import Cosine as Base\n"
        "class Cosine(Base):\n    'A cosine.'\n"
        "def same(hypotheses: list, references: list) -> float:\n    return 50.0\n",
        encoding="utf-8",
    )
    metadata = tmp_path / "speech_parts-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: speech-parts\nVersion: 1.2\n", encoding="utf-8")
    (metadata / "top_level.txt").write_text("speechparts\n", encoding="utf-8")
    (metadata / "RECORD").write_text("speechparts.py,,\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(
        "[seqloom.score]\nown-cosine = speechparts:Cosine\ndot = speechparts:Cosine\n"
        "broken = speechparts:Missing\ngone = nomodule:Missing\n"
        "[seqloom.metric]\nsame = speechparts:same\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("speechparts", None)


def test_an_entry_point_registers_a_name(installed: Path) -> None:
    config = tiny_config(f"{SCORE}=own-cosine", "task.scores=['bleu', 'same']")
    assert {kind.kind for kind in config.extensions.values()} == {"own-cosine", "same"}
    assert find_extension("score", "own-cosine").__module__ == "speechparts"
    assert registered_names("metric") == ["same"]


def test_built_in_names_have_priority(installed: Path) -> None:
    assert not tiny_config(f"{SCORE}=dot", "model.decoder.width=16").extensions


def test_the_version_names_the_package_and_its_source(installed: Path) -> None:
    version = extension_version(find_extension("score", "own-cosine"))
    assert (version.module, version.name) == ("speechparts", "Cosine")
    assert version.distribution == "speech-parts 1.2"
    assert len(version.sha256) == 64
    (installed / "speechparts.py").write_text("# changed", encoding="utf-8")
    assert extension_version(find_extension("score", "own-cosine")).sha256 != version.sha256


def test_a_broken_entry_point_is_a_clear_error(installed: Path) -> None:
    with pytest.raises(ConfigError, match=r"score: the module 'speechparts' .* has no 'Missing'"):
        tiny_config(f"{SCORE}=broken")
    with pytest.raises(ConfigError, match="'gone' is nomodule:Missing, and its module 'nomodule'"):
        tiny_config(f"{SCORE}=gone")


@pytest.mark.usefixtures("clean_registry")
def test_a_decorator_registers_a_name() -> None:
    assert extensions.score("my-cosine")(custom_parts.Cosine) is custom_parts.Cosine
    config = tiny_config(f"{SCORE}=my-cosine")
    assert config.extensions["model.decoder.attention.score"].kind == "my-cosine"


@pytest.mark.usefixtures("clean_registry")
def test_the_error_about_an_unknown_kind_lists_registered_names() -> None:
    extensions.score("own-cosine")(custom_parts.Cosine)
    with pytest.raises(
        ConfigError, match=r"or 'own-cosine' or 'module:Name', not 'own-cosin'.*'own-cosine'"
    ):
        tiny_config(f"{SCORE}=own-cosin")


@pytest.mark.usefixtures("clean_registry")
def test_the_error_about_an_unknown_metric_suggests_registered_names() -> None:
    extensions.metric("same-length")(custom_parts.exact_length)
    with pytest.raises(ConfigError, match=r"task.scores\[0\]: .*did you mean 'same-length'\?"):
        tiny_config("task.scores=['same-lenth']")


def test_a_recipe_without_extensions_does_not_read_the_installed_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_entry_points", lambda _: pytest.fail("packages were read"))
    assert not tiny_config("task.scores=['bleu']", "text.tokenizer.kind=words").extensions


@pytest.mark.usefixtures("clean_registry")
def test_a_name_belongs_to_one_extension() -> None:
    extensions.score("cosine")(custom_parts.Cosine)
    extensions.score("cosine")(custom_parts.Cosine)  # for example, a notebook cell that runs again
    extensions.metric("cosine")(custom_parts.exact_length)  # names of different points may be equal
    with pytest.raises(
        ExtensionError, match="already registered for the score custom_parts:Cosine"
    ):
        extensions.score("cosine")(custom_parts.WeightedDot)


@pytest.mark.parametrize("name", ["", "a:b", "Cosine", "a b", "-a"])
def test_a_name_consists_of_lower_case_words(name: str) -> None:
    with pytest.raises(ExtensionError, match="must consist of lower-case letters"):
        extensions.score(name)


@pytest.mark.parametrize("point", POINTS)
def test_every_point_has_a_decorator(point: str, clean_registry: None) -> None:
    register = getattr(extensions, point)
    assert register("new")(custom_parts.Cosine) is custom_parts.Cosine
    assert registered_names(point) == ["new"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("nomodule:Name", "the module 'nomodule' is not on the Python path; install"),
        ("custom_parts.inner:Name", "the module 'custom_parts.inner' is not on the Python path"),
        ("custom_parts:Nothing", r"custom_parts.py\) has no 'Nothing'; correct the name"),
        ("custom_parts:F", "is a module, not a class or a function"),
        (":Name", "must have the form 'module:Name'"),
        ("custom_parts:", "must have the form 'module:Name'"),
        ("a b:c", "must have the form 'module:Name'"),
    ],
)
def test_an_extension_that_cannot_be_found_is_a_config_error(kind: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"model.decoder.attention.score: .*{problem}"):
        tiny_config(f"{SCORE}='{kind}'")


def test_the_error_about_a_module_in_the_current_directory_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nearby.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/seqloom", "train", "mine.toml"])
    with pytest.raises(ConfigError, match=r"so run: PYTHONPATH=\. seqloom train mine\.toml"):
        tiny_config(f"{SCORE}='nearby:Name'")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (
            "import nothing_like_this",
            "needs the module 'nothing_like_this', which is not installed",
        ),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("def f(:", "cannot be imported: SyntaxError"),
    ],
)
def test_a_module_that_fails_on_import_is_a_config_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, problem: str
) -> None:
    (tmp_path / "failing_part.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=f"'failing_part' {problem}"):
        tiny_config(f"{SCORE}='failing_part:Name'")


def test_a_recipe_without_extensions_imports_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load_part", lambda *_: pytest.fail("an extension was loaded"))
    assert not load_recipe("demo").config.extensions
