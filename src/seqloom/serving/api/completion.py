"""POST /api/complete: continues prompts with a language model."""

import asyncio
import secrets
from dataclasses import replace

from fastapi import APIRouter

from seqloom.inference.options import PredictionOptions
from seqloom.inference.run import Run
from seqloom.inference.search_settings import completion_search
from seqloom.serving.api.schemas.predictions import (
    CompleteRequest,
    CompleteResponse,
    Completion,
    Output,
)
from seqloom.serving.errors import ERROR_RESPONSES, invalid_field
from seqloom.serving.server.service import WITH_KEY_AND_JSON, Service, ServiceDependency
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import UNKNOWN

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES, tags=["predict"])


@router.post("/complete", dependencies=WITH_KEY_AND_JSON)
async def complete(request: CompleteRequest, service: ServiceDependency) -> CompleteResponse:
    """Complete prompts with a language model."""
    check_completion(service, request)
    loaded = service.catalogue.choose(("language-model",), request.run)
    options = choose_seed(replace(request.options, attention=False))
    decoding = completion_search(loaded.token_run.config.decoding, options)
    async with service.admission.admit():
        inputs = await asyncio.to_thread(prepare_prompts, loaded.token_run, request)
        predictions = await loaded.search(inputs, decoding, options)
    return CompleteResponse(
        run=loaded.name,
        seed=options.seed if options.temperature else None,
        completions=[
            Completion(
                prompt=prompt,
                unknown=UNKNOWN in prepared.prefix,
                outputs=[Output.from_prediction(prediction) for prediction in outputs],
            )
            for prompt, prepared, outputs in zip(request.prompts, inputs, predictions, strict=True)
        ],
    )


def check_completion(service: Service, request: CompleteRequest) -> None:
    service.limits.check_texts("prompts", request.prompts)
    service.limits.check_options(request)
    check_temperature(request.options.temperature, "samples", request.options.n_best)


def check_temperature(temperature: float | None, field: str, count: int) -> None:
    """Raise a 422 error if a request asks for several outputs with temperature 0.

    With temperature 0, the outputs would all be equal.

    field: name of the field that contains the number of outputs
    count: number of outputs
    """
    if temperature == 0 and count > 1:
        raise invalid_field(
            field,
            f"with temperature 0, all outputs are equal; use {field} = 1 or raise temperature",
        )


def choose_seed(options: PredictionOptions) -> PredictionOptions:
    """Return the options with a random seed, unless they have one already."""
    return options if options.seed is not None else replace(options, seed=secrets.randbelow(10**6))


def prepare_prompts(run: Run, request: CompleteRequest) -> list[ModelInput]:
    """Tokenise the prompts.

    Raises DataError if a prompt is too long for the model. Raises a 422 error if a prompt already
    has `max_length` tokens or more.
    """
    inputs = [run.task.prepare(prompt) for prompt in request.prompts]
    run.predictor.check_input_lengths(inputs)
    max_length = request.options.max_length
    for index, prepared in enumerate(inputs):
        if max_length is not None and len(prepared.prefix) >= max_length:
            raise invalid_field(
                "max_length",
                f"prompts[{index}] already has {len(prepared.prefix)} tokens; use a max_length "
                f"above {len(prepared.prefix)}",
            )
    return inputs
