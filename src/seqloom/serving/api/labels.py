"""POST /api/label: labels of texts or of their tokens, with probabilities."""

import asyncio
import math

from fastapi import APIRouter

from seqloom.inference.options import PredictionOptions
from seqloom.inference.search_settings import beam_config
from seqloom.inference.texts.input_reports import unknown_messages
from seqloom.serving.api.schemas.predictions import LabelProbability, LabelRequest, LabelResponse
from seqloom.serving.errors import ERROR_RESPONSES
from seqloom.serving.server.limits import check_not_blank
from seqloom.serving.server.service import WITH_KEY_AND_JSON, Service, ServiceDependency
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import SPECIAL_TOKENS

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES, tags=["predict"])


@router.post("/label", dependencies=WITH_KEY_AND_JSON)
async def label(request: LabelRequest, service: ServiceDependency) -> LabelResponse:
    """Label texts, or the tokens of texts. Blank texts have no label."""
    service.limits.check_texts("texts", request.texts)
    check_not_blank("texts", request.texts)
    async with service.admission.admit():
        return await label_texts(service, request)


async def label_texts(service: Service, request: LabelRequest) -> LabelResponse:
    """Label the texts of an admitted request."""
    loaded = service.catalogue.choose(("labels",), request.run)
    run = loaded.token_run
    count = run.task.target_tokenizer.size - len(SPECIAL_TOKENS) if request.every else 1
    decoding = beam_config(run.config.decoding, count) if request.every else run.config.decoding

    def prepare() -> list[ModelInput]:
        inputs = [run.task.prepare(text) for text in request.texts if text.strip()]
        run.predictor.check_input_lengths(inputs)
        return inputs

    inputs = await asyncio.to_thread(prepare)
    predictions = iter(
        await loaded.search(inputs, decoding, PredictionOptions(count, attention=False))
    )
    return LabelResponse(
        run=loaded.name,
        labels=[
            [
                LabelProbability(
                    label=prediction.text, probability=math.exp(sum(prediction.log_probabilities))
                )
                for prediction in next(predictions)
            ]
            if text.strip()
            else []
            for text in request.texts
        ],
        warnings=[
            *run.source_tags.warnings(request.texts, "text"),
            *unknown_messages(run.task, request.texts, "text"),
        ],
    )
