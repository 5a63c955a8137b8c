"""Draw the pictures of the README and of docs/inside from a trained run.

python tools/pictures.py runs/demo docs/pictures
"""

import sys
from pathlib import Path

import seqloom
from seqloom.config.schema.decoding import BeamConfig
from seqloom.inside.gradients import trace
from seqloom.runs.question import Question
from seqloom.viz.attention import save_attention
from seqloom.viz.gradients import save_gradients
from seqloom.viz.tree_picture import save_tree

QUESTION = "Kannst du mir helfen?"
SENTENCE = "Ich habe ihn gestern gesehen."
LONGER = "Wir haben in diesem Jahr keine Zeit für einen langen Urlaub."


def main(run: str, folder: str) -> None:
    loaded = seqloom.load(run)
    (prediction,) = loaded.translate([SENTENCE], beam=5)
    assert prediction.attention is not None, f"{run} has no attention to draw"
    save_attention(
        Path(folder) / "attention.png",
        prediction.attention.tolist(),
        [piece.removeprefix("▁") for piece in prediction.pieces],
        [piece.removeprefix("▁") for piece in prediction.source_pieces],
        title=f"{SENTENCE}\n{prediction.text}",
    )
    asked = Question.of(loaded, QUESTION, BeamConfig(width=4))
    save_tree(Path(folder) / "search-tree.png", asked.search())
    save_gradients(Path(folder) / "gradients.png", trace(loaded, LONGER))


if __name__ == "__main__":
    main(*sys.argv[1:])
