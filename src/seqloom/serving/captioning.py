"""Captioning: an image that was sent, in words."""

import io
import warnings

from PIL import Image, UnidentifiedImageError

from seqloom.core.errors import SeqloomError
from seqloom.core.signature import Pixels
from seqloom.data.images import pixels_of
from seqloom.runs.batching import input_tokens
from seqloom.runs.options import PredictionOptions
from seqloom.runs.run import Run
from seqloom.serving.manners import Item, Searching
from seqloom.serving.problems import Problem, unusable
from seqloom.serving.schema import CaptionAnswer
from seqloom.serving.service import Service, aside
from seqloom.serving.showing import shown
from seqloom.serving.translating import decoding_for
from seqloom.tasks.task import ModelInput

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF")
SENT = "the image that was sent"
# Images that are too large are refused below. A filter that comes and goes belongs to all threads.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


async def caption(
    service: Service, content: bytes, run: str | None, beam: int | None, n_best: int
) -> CaptionAnswer:
    """What is on an image, and where each word looked."""
    service.check_most("beam", beam, service.limits.beam)
    service.check_most("n_best", n_best, service.limits.n_best)
    served = service.catalogue.choose(("captioning",), run)
    speaker = served.speaker
    decoding = decoding_for(speaker, beam, n_best, None)
    if not content:
        raise _broken("there is no image; send its bytes as the body")
    async with service.gate.admitted():
        prepared = await aside(lambda: prepare_image(speaker, content, service.limits.image_pixels))
        try:
            [found] = await served.batcher.ask(
                Searching(speaker, decoding, PredictionOptions(n_best)),
                [Item(prepared)],
                [input_tokens(prepared)],
            )
        except SeqloomError as error:
            raise unusable(error) from error
    outputs = [shown(one, attention=True) for one in found]
    return CaptionAnswer(run=served.name, outputs=outputs, grid=_grid(outputs[0].attention))


def prepare_image(run: Run, content: bytes, most_pixels: int) -> ModelInput:
    """Its size is looked at before a single pixel is decoded."""
    assert isinstance(run.task.signature.source, Pixels)
    assert run.task.image_size is not None
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            width, height = image.size
    except Image.DecompressionBombError as error:
        raise Problem(
            413, "too-large", f"the image is too large ({error}); make it smaller"
        ) from error
    except (UnidentifiedImageError, OSError, ValueError) as error:
        raise _broken(
            f"what was sent cannot be read as an image ({error}); send one of "
            f"{', '.join(FORMATS)}, whole"
        ) from error
    if width * height > most_pixels:
        raise Problem(
            413,
            "too-large",
            f"the image has {width:,} × {height:,} pixels; at most {most_pixels:,} in all: "
            "make it smaller",
        )
    return ModelInput(None, (), pixels_of(content, SENT, run.task.image_size))


def _broken(sentence: str) -> Problem:
    return Problem(422, "unusable", sentence)


def _grid(attention: list[list[float]] | None) -> tuple[int, int] | None:
    """Images are looked at through a square of cells."""
    if not attention:
        return None
    side = round(len(attention[0]) ** 0.5)
    return (side, side) if side * side == len(attention[0]) else None
