"""Draw how an English-French model turns an adjective and its noun around.

python tools/adjective_noun.py runs/en-fr docs/pictures/adjective-noun.png

The first of these sentences is drawn in which two neighbours change places by the model's own attention.
"""

import sys
from pathlib import Path

import seqloom
from seqloom.runs.prediction import Prediction
from seqloom.viz.attention import save_attention

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


def swapped(prediction: Prediction) -> bool:
    """Do two neighbours in the output look at two neighbours in the source, the other way around?"""
    source_of = {target: source for source, target in prediction.alignment}
    return any(
        source_of.get(target + 1, -1) == source - 1 and source > 0
        for target, source in source_of.items()
    )


def main(run: str, picture: str) -> None:
    found = seqloom.load(run).translate(SENTENCES, beam=5)
    for sentence, prediction in zip(SENTENCES, found, strict=True):
        if swapped(prediction) and prediction.attention is not None:
            title = f"{sentence}\n{prediction.text}"
            # In pieces: a full stop, which looks at a full stop, would blur the word before it.
            save_attention(
                Path(picture),
                prediction.attention.tolist(),
                [piece.removeprefix("▁") for piece in prediction.pieces],
                [piece.removeprefix("▁") for piece in prediction.source_pieces],
                title,
            )
            print(title)
            return
    told = "\n".join(
        f"  {one} -> {other.text}" for one, other in zip(SENTENCES, found, strict=True)
    )
    sys.exit(f"in none of these do two words change places by attention:\n{told}")


if __name__ == "__main__":
    main(*sys.argv[1:])
