"""The command `seqloom caption`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from seqloom.cli.options import EnsembleMembers, Json, RunFolder, RunSettings, argument, option
from seqloom.cli.output import print_json, print_line, print_message
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.process.progress import progress_bar
from seqloom.core.errors import ConfigError
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.inference.prediction import Prediction
    from seqloom.inference.run import Run
    from seqloom.viz.caption_attention import CaptionAttention


@with_prediction_options("caption")
def caption(
    run_folder: RunFolder,
    images: Annotated[
        list[str],
        argument("IMAGE...", "Image files, or images in a zip archive (photos.zip/dog.jpg)."),
    ],
    show: Annotated[
        Path | None, option("FILE", "Draw the attention of each word (.png, .svg or .pdf).")
    ] = None,
    options: PredictionOptions = DEFAULT_OPTIONS,
    json: Json = False,
    settings: RunSettings = None,
    ensemble: EnsembleMembers = None,
) -> None:
    """Describe images, one line per image."""
    from seqloom.cli.recipe_settings import change_decoding, load_run
    from seqloom.viz.caption_attention import draw_caption_attention

    run, settings = load_run([run_folder, *(ensemble or ())], settings)
    decoding = change_decoding(run.config, settings)
    options = replace(options, decoding=decoding, attention=True)
    with progress_bar("captioning", "images") as advance:
        captions = run.caption(images, options, progress=advance)
    for image, prediction in zip(images, captions, strict=True):
        if json:
            print_json({"image": image, **prediction.to_json()})
        else:
            print_line(prediction.text)
    if show is not None:
        pairs = zip(images, captions, strict=True)
        draw_caption_attention([_attention_figure(run, image, each) for image, each in pairs]).save(
            show
        )
        print_message(f"{show}: attention of each word")


def _attention_figure(run: Run, image: str, prediction: Prediction) -> CaptionAttention:
    """Return a figure that shows, for each token of the caption, its attention to the image.

    The image is cropped to its central square, because the model reads only this part.
    """
    from seqloom.data.modalities.images import ImageModality
    from seqloom.viz.caption_attention import CaptionAttention

    if prediction.attention is None:
        raise ConfigError(
            f"{run.folder}: the decoder of this model has no attention to draw. Train with "
            "model.decoder.attention.kind = 'attention'."
        )
    modality = run.task.modality
    assert isinstance(modality, ImageModality)
    centre = modality.centre(modality.prepare(image))
    return CaptionAttention(
        prediction.text, centre, prediction.pieces, prediction.attention.tolist()
    )
