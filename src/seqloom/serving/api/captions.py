"""POST /api/caption: captions of an image."""

import asyncio
import io
import warnings
from typing import Annotated

from fastapi import APIRouter, Query, Request
from PIL import Image, UnidentifiedImageError

from seqloom.data.modalities.images import ImageModality
from seqloom.inference.options import OPTIONS, PredictionOptions
from seqloom.inference.run import Run
from seqloom.serving.api.decoding import choose_decoding
from seqloom.serving.api.schemas.predictions import CaptionResponse, Output
from seqloom.serving.errors import ERROR_RESPONSES, ApiError, wrong_content_type
from seqloom.serving.server.limits import check_maximum
from seqloom.serving.server.service import WITH_KEY, ServiceDependency
from seqloom.tasks.task import ModelInput

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF")
IMAGE_BODY = {
    "requestBody": {
        "required": True,
        "description": f"The bytes of an image file: {', '.join(FORMATS)}.",
        "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}},
    }
}
# Pillow's warning about large images is not needed, because `prepare_image` rejects such images.
# The filter is set once for the whole process, because all threads share the warning filters.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES, tags=["predict"])


@router.post("/caption", dependencies=WITH_KEY, openapi_extra=IMAGE_BODY)
async def caption(
    request: Request,
    service: ServiceDependency,
    run: Annotated[
        str | None,
        Query(description="Name of the run. Default: the only run that supports the request."),
    ] = None,
    beam: Annotated[int | None, Query(ge=1, description=OPTIONS["beam"].help)] = None,
    n_best: Annotated[int, Query(ge=1, description=OPTIONS["n_best"].help)] = 1,
) -> CaptionResponse:
    """Caption an image, with attention weights. The body is the image file."""
    content_type = request.headers.get("content-type", "")
    if not content_type.lower().startswith("image/"):
        raise wrong_content_type(
            f"an image ({', '.join(FORMATS)}), sent with a type such as 'Content-Type: image/jpeg'",
            content_type,
        )
    content = await request.body()
    options = PredictionOptions(n_best, beam=beam, attention=True)
    check_maximum("beam", beam, service.limits.beam)
    check_maximum("n_best", n_best, service.limits.n_best)
    loaded = service.catalogue.choose(("captioning",), run)
    decoding = choose_decoding(loaded.token_run, options)
    if not content:
        raise ApiError(422, "unusable", "the body is empty; send the bytes of an image")
    max_pixels = service.limits.image_pixels
    async with service.admission.admit():
        prepared = await asyncio.to_thread(prepare_image, loaded.token_run, content, max_pixels)
        [predictions] = await loaded.search([prepared], decoding, options)
    outputs = [Output.from_prediction(prediction, attention=True) for prediction in predictions]
    return CaptionResponse(run=loaded.name, outputs=outputs, grid=_grid(outputs[0].attention))


def prepare_image(run: Run, content: bytes, max_pixels: int) -> ModelInput:
    """Decode an image file into a model input.

    The size of the image is read from the file header and checked before the image is decoded.
    """
    modality = run.task.modality
    assert isinstance(modality, ImageModality)
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            width, height = image.size
    except Image.DecompressionBombError as error:
        raise ApiError(
            413, "too-large", f"the image is too large ({error}); send a smaller one"
        ) from error
    except (UnidentifiedImageError, OSError, ValueError) as error:
        raise ApiError(
            422,
            "unusable",
            f"the body cannot be read as an image ({error}); send a complete file in one of the "
            f"formats {', '.join(FORMATS)}",
        ) from error
    if width * height > max_pixels:
        raise ApiError(
            413,
            "too-large",
            f"the image has {width:,} × {height:,} pixels; the limit is {max_pixels:,} in total; "
            "send a smaller image",
        )
    return ModelInput(modality.decode(content, "the image in the request"), ())


def _grid(attention: list[list[float]] | None) -> tuple[int, int] | None:
    """Return (rows, columns) of the grid into which the encoder divides an image.

    The grid is square, and each token has one attention weight per grid cell. So both numbers are
    the square root of the number of weights. Returns None if there are no weights, or if their
    number is not a square.

    attention: the weights of each token
    """
    if not attention:
        return None
    side = round(len(attention[0]) ** 0.5)
    return (side, side) if side * side == len(attention[0]) else None
