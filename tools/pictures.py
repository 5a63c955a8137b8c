"""Draw the pictures of the README from a trained run.

python tools/pictures.py runs/demo docs/pictures
"""

import sys
from pathlib import Path

import seqloom
from seqloom.viz.attention import save_attention

SENTENCE = "Ich habe ihn gestern gesehen."


def main(run: str, folder: str) -> None:
    (prediction,) = seqloom.load(run).translate([SENTENCE], beam=5)
    assert prediction.attention is not None, f"{run} has no attention to draw"
    save_attention(
        Path(folder) / "attention.png",
        prediction.attention.tolist(),
        [piece.removeprefix("▁") for piece in prediction.pieces],
        [piece.removeprefix("▁") for piece in prediction.source_pieces],
        title=f"{SENTENCE}\n{prediction.text}",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
