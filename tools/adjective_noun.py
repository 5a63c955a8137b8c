"""Draw the attention of an English-French model where it swaps an adjective and its noun.

python tools/adjective_noun.py runs/en-fr docs/pictures/adjective-noun.png

Draws the first of the sentences below in which two neighbouring words swap places, according to
the alignment that the model's attention gives.
"""

import sys
from pathlib import Path

import seqloom
from seqloom.inference.prediction import Prediction
from seqloom.viz.attention_matrix import draw_attention_matrix

SENTENCES = (
    "This is an interesting book.",
    "He has a black dog.",
    "I bought a black hat.",
    "She bought a red car.",
    "I have a white cat.",
    "He drives an old green car.",
    "She wore a blue dress.",
    "It was an easy question.",
    "I like red wine.",
    "She has blue eyes.",
    "He is a rich man.",
)


def has_swap(prediction: Prediction) -> bool:
    """True if two neighbouring output words align with neighbouring source words in reverse order."""
    source_of = {target: source for source, target in prediction.alignment}
    return any(
        source_of.get(target + 1, -1) == source - 1 and source > 0
        for target, source in source_of.items()
    )


def main(run_folder: str, image_path: str) -> None:
    predictions = seqloom.load(run_folder).translate(SENTENCES, beam=5)
    for sentence, prediction in zip(SENTENCES, predictions, strict=True):
        if has_swap(prediction) and prediction.attention is not None:
            title = f"{sentence}\n{prediction.text}"
            # Draw pieces, not words: the full stop attends to the full stop of the source, and
            # merging it with the last word would blur that word's attention.
            draw_attention_matrix(
                prediction.attention.tolist(),
                [piece.removeprefix("▁") for piece in prediction.pieces],
                [piece.removeprefix("▁") for piece in prediction.source_pieces],
                title,
            ).save(Path(image_path))
            print(title)
            return
    outputs = "\n".join(
        f"  {sentence} -> {prediction.text}"
        for sentence, prediction in zip(SENTENCES, predictions, strict=True)
    )
    sys.exit(f"No two words swap places in any of these translations:\n{outputs}")


if __name__ == "__main__":
    main(*sys.argv[1:])
