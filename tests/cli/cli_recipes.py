"""Two small recipes that train in about a second: a translator and a language model."""

from pathlib import Path

from support.cli_runner import run_cli, set_options

REVERSE = """
[data]
train = { kind = "synthetic", task = "reverse", examples = 400, max_length = 4, symbols = 4 }
dev = { kind = "synthetic", task = "reverse", examples = 20, max_length = 4, symbols = 4 }
test = { kind = "synthetic", task = "reverse", examples = 20, max_length = 4, symbols = 4 }

[text.tokenizer]
kind = "characters"

[model.encoder]
kind = "recurrent"
width = 12

[model.decoder]
kind = "recurrent"
width = 24

[training]
steps = 60
batch_tokens = 256
evaluate_every = 30
checkpoint_every = 30
optimizer.learning_rate = 0.01
schedule = { kind = "constant" }
"""

SENTENCES = """
task.kind = "language-model"

[data]
train = { kind = "lines", path = "sentences.txt" }
dev = { kind = "lines", path = "sentences.txt" }

[text.tokenizer]
kind = "characters"

[model.encoder]
kind = "none"

[model.decoder]
kind = "recurrent"
width = 16
initial_state = "zeros"
attention.kind = "none"

[training]
steps = 20
evaluate_every = 20
batch_tokens = 256
optimizer.learning_rate = 0.01
schedule = { kind = "constant" }
"""


def write_recipes(folder: Path) -> Path:
    """Write reverse.toml and sentences.toml, with the data of the latter."""
    (folder / "reverse.toml").write_text(REVERSE, encoding="utf-8")
    sentences = "".join(f"I see {thing}.\n" for thing in ("you", "it", "a cat", "a dog", "Tom"))
    (folder / "sentences.txt").write_text(sentences * 8, encoding="utf-8")
    recipe = SENTENCES.replace("sentences.txt", str(folder / "sentences.txt"))
    (folder / "sentences.toml").write_text(recipe, encoding="utf-8")
    return folder


def train_recipe(recipes: Path, name: str, *settings: str, run_name: str | None = None) -> Path:
    """Train a recipe in the folder that `write_recipes` filled, and return the run folder.

    settings: changes to the recipe, as for --set
    run_name: name of the run folder. Default: the name of the recipe
    """
    run_folder = recipes / "runs" / (run_name or name)
    recipe = recipes / f"{name}.toml"
    result = run_cli("train", recipe, "--run", run_folder, *set_options(*settings))
    assert result.exit_code == 0, result.stderr
    return run_folder
