"""The bundled multilingual and low-resource recipes on small data."""

import gzip
import json
import shutil
from itertools import permutations
from pathlib import Path

import pytest

import seqloom
from seqloom.config.loading.loader import load_recipe
from support.cli_runner import run_cli, set_options
from support.toy_languages import WORDS, write_languages

pytestmark = pytest.mark.slow

SMALL = [
    *(f"model.{side}.{setting}" for side in ("encoder", "decoder") for setting in (
        "width=16", "layers=2", "feedforward=16", "attention.heads=2"
    )),
    "training.steps=4",
    "training.batch_tokens=512",
    "training.evaluate_every=4",
    "training.evaluate_examples=8",
    "training.checkpoint_every=4",
    "training.schedule.warmup=1",
    "training.compile=false",
    "decoding.max_length=8",
    "text.tokenizer.size=SIZE",
]  # fmt: skip
RECIPES = {
    "multi30k-languages": ("train", "val", "test_2016_flickr"),
    "menyo20k-yo-en": ("train", "dev", "test"),
    "menyo20k-en-yo": ("train", "dev", "test"),
    "iwslt14-lowres-de-en": ("train-lowres.tok.lc", "valid.tok.lc", "test.tok.lc"),
}


@pytest.fixture(scope="module", params=sorted(RECIPES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def write_data(folder: Path, name: str) -> None:
    """Write a few hundred lines in the files that the recipe expects."""
    write_languages(folder, RECIPES[name], lines=100)
    if name.startswith("menyo"):
        for split in RECIPES[name]:
            sides = [
                gzip.decompress((folder / f"{split}.{language}.gz").read_bytes()).splitlines()
                for language in ("en", "fr")
            ]
            rows = [b"\t".join(pair) for pair in zip(*sides, strict=True)]
            (folder / f"{split}.tsv.gz").write_bytes(gzip.compress(b"\n".join(rows) + b"\n"))


@pytest.fixture(scope="module")
def run(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a small version of the recipe, moved after training."""
    folder = tmp_path_factory.mktemp("recipes")
    write_data(folder / "data", name)
    size = "110" if name == "multi30k-languages" else "60"
    settings = [
        f"data.folder={folder / 'data'}",
        *(setting.replace("SIZE", size) for setting in SMALL),
    ]
    result = run_cli("train", name, "--run", folder / "made", *set_options(*settings))
    assert result.exit_code == 0, result.stderr
    return Path(shutil.move(folder / "made", folder / "moved"))


def test_recipe_trains_evaluates_and_translates(run: Path, name: str) -> None:
    scored = run_cli("evaluate", run, "--json")
    assert scored.exit_code == 0, scored.stderr
    report = json.loads(scored.stdout)
    tokenised = name.startswith("iwslt14")
    assert report["scores"][0]["name"] == ("BLEU tokenised" if tokenised else "BLEU")
    assert ("tok:none" in report["scores"][0]["signature"]) == tokenised
    multilingual = name == "multi30k-languages"
    pairs = [f"{source}-{target}" for source, target in permutations(("en", "de", "fr", "cs"), 2)]
    assert sorted(part["part"] for part in report["parts"]) == (
        sorted(pairs) if multilingual else []
    )
    language = ("--to", "fr") if multilingual else ()
    line = " ".join(WORDS["en"][:3])
    result = run_cli("translate", run, *language, stdin=f"{line}\n".encode())
    assert result.exit_code == 0, result.stderr
    (output,) = seqloom.load(run).translate([line], to="fr" if multilingual else None)
    assert result.stdout == f"{output.text}\n"


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "multi30k-languages"])
def test_low_resource_recipe_sets_only_its_data_and_scores(name: str) -> None:
    """Everything else comes from the preset, so that presets can be compared."""
    resolved = load_recipe(name)
    own = {key for key, origin in resolved.origins.items() if origin == "recipe"}
    scored = {"task.kind", "task.scores", "training.stopping.score"}
    assert {key for key in own if not key.startswith("data.")} <= {"training.compile", *scored}
    plain = load_recipe(name, ["preset=small"]).config
    assert plain.data == resolved.config.data
    assert plain.training.steps != resolved.config.training.steps
