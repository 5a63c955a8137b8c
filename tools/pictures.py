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
from seqloom.viz.attention_matrix import draw_attention_matrix
from seqloom.viz.gradients import draw_gradients_figure, draw_loss_gradients_figure
from seqloom.viz.search_tree import draw_search_tree

ATTENTION_SENTENCE = "Ich habe ihn gestern gesehen."
SEARCH_SENTENCE = "Kannst du mir helfen?"
GRADIENT_SENTENCE = "Wir haben in diesem Jahr keine Zeit für einen langen Urlaub."


def main(run_folder: str, output_folder: str) -> None:
    output = Path(output_folder)
    draw_search_tree(search_example()).save(output / "search-example.png")
    if run_folder == "--example":
        return
    run = seqloom.load(run_folder)
    (prediction,) = run.translate([ATTENTION_SENTENCE], beam=5)
    assert prediction.attention is not None, f"{run_folder} has no attention to draw"
    draw_attention_matrix(
        prediction.attention.tolist(),
        [piece.removeprefix("▁") for piece in prediction.pieces],
        [piece.removeprefix("▁") for piece in prediction.source_pieces],
        title=f"{ATTENTION_SENTENCE}\n{prediction.text}",
    ).save(output / "attention.png")
    inspection = SearchInspection.of(run, SEARCH_SENTENCE, BeamConfig(width=4))
    draw_search_tree(inspection.search(), 3).save(output / "search-tree.png")
    draw_gradients_figure(trace_gradients(run, GRADIENT_SENTENCE)).save(output / "gradients.png")
    gradients = trace_loss_gradients(run, GRADIENT_SENTENCE)
    draw_loss_gradients_figure(gradients, "states").save(output / "gradients-states.png")
    head = gradients.head(1, 1)
    draw_loss_gradients_figure(gradients, "attention", head).save(
        output / "gradients-attention.png"
    )
    draw_loss_gradients_figure(gradients, "weights").save(output / "gradients-weights.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
