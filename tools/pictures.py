"""Draw the figures of the README and of docs/analysis from a trained translation run.

python tools/pictures.py runs/demo docs/pictures
python tools/pictures.py --example docs/pictures     # only the example of beam search; needs no run
"""

import sys
from pathlib import Path

import seqloom
from seqloom.analysis import search_example, trace_gradients, trace_loss_gradients
from seqloom.analysis.search_inspection import SearchInspection
from seqloom.config.schema.decoding import BeamConfig
from seqloom.viz.attention_figure import save_attention
from seqloom.viz.gradients import save_gradients
from seqloom.viz.loss_gradients import save_loss_gradients
from seqloom.viz.search_tree_figure import save_search_tree

ATTENTION_SENTENCE = "Ich habe ihn gestern gesehen."
SEARCH_SENTENCE = "Kannst du mir helfen?"
GRADIENT_SENTENCE = "Wir haben in diesem Jahr keine Zeit für einen langen Urlaub."


def main(run_folder: str, output_folder: str) -> None:
    output = Path(output_folder)
    save_search_tree(output / "search-example.png", search_example())
    if run_folder == "--example":
        return
    run = seqloom.load(run_folder)
    (prediction,) = run.translate([ATTENTION_SENTENCE], beam=5)
    assert prediction.attention is not None, f"{run_folder} has no attention to draw"
    save_attention(
        output / "attention.png",
        prediction.attention.tolist(),
        [piece.removeprefix("▁") for piece in prediction.pieces],
        [piece.removeprefix("▁") for piece in prediction.source_pieces],
        title=f"{ATTENTION_SENTENCE}\n{prediction.text}",
    )
    inspection = SearchInspection.of(run, SEARCH_SENTENCE, BeamConfig(width=4))
    save_search_tree(output / "search-tree.png", inspection.search())
    save_gradients(output / "gradients.png", trace_gradients(run, GRADIENT_SENTENCE))
    gradients = trace_loss_gradients(run, GRADIENT_SENTENCE)
    save_loss_gradients(output / "gradients-states.png", gradients, "states")
    head = gradients.head(1, 1)
    save_loss_gradients(output / "gradients-attention.png", gradients, "attention", head)
    save_loss_gradients(output / "gradients-weights.png", gradients, "weights")


if __name__ == "__main__":
    main(*sys.argv[1:])
