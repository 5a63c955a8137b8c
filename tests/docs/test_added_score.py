"""A score that is added as CONTRIBUTING.md says is trained, explained, drawn and differentiated.

The tests add it to a copy of the repository. They change only the three files that the page names.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seqloom.config.loading.toml import format_recipe
from support.source_folder import SOURCE
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PART = '''
class CosineScore(AttentionScore):
    """score(q, k) = cos(q, k) / temperature"""

    formula = "q · k / (|q| |k| τ)"
    query_gradient = "Σ ∂L/∂e · (k̂ - cos(q, k) q̂) / (|q| τ)"
    key_gradient = "∂L/∂e · (q̂ - cos(q, k) k̂) / (|k| τ)"
    gradient_note = "q̂ = q / |q|, k̂ = k / |k|"
    compares_directly = True

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def prepare(self, keys: Tensor) -> Tensor:
        return nn.functional.normalize(keys, dim=-1)

    def compare(self, queries: Tensor, prepared: Tensor, position_ids: PositionIds = 0) -> Tensor:
        queries = nn.functional.normalize(queries, dim=-1)
        return queries @ prepared.transpose(-2, -1) / self.temperature
'''
SETTINGS = '''
class CosineScoreConfig(ScoreConfig):
    """Cosine: score(q, k) = cos(q, k) / temperature."""

    builds: ClassVar[str] = "seqloom.nn.attention:CosineScore"
    compares_directly: ClassVar[bool] = True
    kind: Literal["cosine"] = "cosine"
    temperature: float = Field(1.0, gt=0)
    """Divisor of the cosine. Default: 1.0."""
'''
ZOO = '\n    "cosine": {"kind": "cosine", "temperature": 0.5},'
ADDITIONS = {
    "src/seqloom/nn/attention.py": ("\n\ndef map_heads", PART),
    "src/seqloom/config/schema/attention.py": ("\n\nclass ScoreExtensionConfig", SETTINGS),
    "tests/claims/zoo.py": ("\n}\nPOSITIONAL_SCORES", ZOO),
}
"""Maps each changed file to the text before which the addition is inserted, and the addition."""


def run(folder: Path, *arguments: object) -> str:
    """Run Python with the changed package."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and of the tests, with the score, and a run that was trained with it."""
    folder = tmp_path_factory.mktemp("changed")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE / "seqloom", folder / "src" / "seqloom", ignore=ignored)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, (place, addition) in ADDITIONS.items():
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert text.count(place) == 1, f"{name}: {place!r}"
        path.write_text(text.replace(place, f"\n{addition}{place}", 1), encoding="utf-8")
    recipe = format_recipe(tiny_config("model.encoder.width=4"))
    score = 'kind = "bilinear"'
    assert recipe.count(score) == 1
    recipe = recipe.replace(score, 'kind = "cosine"\ntemperature = 0.5')
    (folder / "cosine.toml").write_text(recipe, encoding="utf-8")
    run(folder, "-m", "seqloom", "train", "cosine.toml", "--run", "run")
    return folder


def test_the_page_names_the_changed_files() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    entry = page.split("- **an attention score**")[1].split("- **a position encoding**")[0]
    assert re.findall(r"^  - `([^`]+)`", entry, re.MULTILINE) == list(ADDITIONS)


def test_an_added_score_is_explained_and_differentiated(changed: Path) -> None:
    explained = run(changed, "-m", "seqloom", "explain", "run", "abc")
    assert "q · k / (|q| |k| τ)" in explained
    options = ("--at", "attention", "--step", 1)
    gradients = run(changed, "-m", "seqloom", "gradients", "run", "abc", *options)
    assert "Σ ∂L/∂e · (k̂ - cos(q, k) q̂) / (|q| τ)" in gradients
    assert "q̂ = q / |q|" in gradients


def test_an_added_score_is_drawn(changed: Path) -> None:
    run(changed, "-m", "seqloom", "draw", "encoder-decoder", "run", "abc", "--out", "model.svg")
    assert (changed / "model.svg").is_file()


def test_the_claims_hold_for_an_added_score(changed: Path) -> None:
    tests = "tests/claims/test_every_decoder.py"
    claim = "cosine and stepping_equals_teacher_forcing"
    output = run(
        changed, "-m", "pytest", "-q", "-n", 0, "-p", "no:cacheprovider", tests, "-k", claim
    )
    assert " passed" in output
