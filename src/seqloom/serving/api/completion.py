"""POST /api/complete: continues prompts with a language model."""

import asyncio
import secrets

from fastapi import APIRouter

from seqloom.config.schema.decoding import GreedyConfig, SampleConfig
from seqloom.inference.options import PredictionOptions, greedy_config, sampling_config
from seqloom.inference.run import Run
from seqloom.serving.api.schemas.predictions import (
    CompleteRequest,
    CompleteResponse,
    Completion,
    Output,
)
from seqloom.serving.errors import ERROR_RESPONSES, invalid_field
from seqloom.serving.server.limits import check_maximum
from seqloom.serving.server.service import WITH_KEY_AND_JSON, Service, ServiceDependency
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import UNKNOWN

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES, tags=["predict"])


@router.post("/complete", dependencies=WITH_KEY_AND_JSON)
async def complete(request: CompleteRequest, service: ServiceDependency) -> CompleteResponse:
    """Complete prompts with a language model."""
    check_completion(service, request)
    loaded = service.catalogue.choose(("language-model",), request.run)
    seed = choose_seed(request)
    decoding = completion_decoding(loaded.token_run, request, seed)
    async with service.admission.admit():
        inputs = await asyncio.to_thread(prepare_prompts, loaded.token_run, request)
        predictions = await loaded.search(
            inputs, decoding, PredictionOptions(request.samples, attention=False)
        )
    return CompleteResponse(
        run=loaded.name,
        seed=seed if request.temperature else None,
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
    check_maximum("samples", request.samples, service.limits.n_best)
    check_maximum("max_length", request.max_length, service.limits.output_tokens)
    check_temperature(request.temperature, "samples", request.samples)


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


def choose_seed(request: CompleteRequest) -> int:
    return secrets.randbelow(10**6) if request.seed is None else request.seed


def completion_decoding(
    run: Run, request: CompleteRequest, seed: int
) -> SampleConfig | GreedyConfig:
    """Return the decoding configuration of a request.

    It selects greedy search if the temperature is 0, and otherwise sampling with the settings of
    the request.
    """
    changes: dict[str, object] = {"stop_at_newline": request.stop_at_newline}
    if request.max_length is not None:
        changes |= {"max_length": request.max_length, "min_length": 0}
    if request.temperature == 0:
        return greedy_config(run.config.decoding).model_copy(update=changes)
    changes |= {
        "temperature": request.temperature,
        "top_k": request.top_k,
        "top_p": request.top_p,
        "seed": seed,
    }
    return sampling_config(run.config.decoding, request.samples).model_copy(update=changes)


def prepare_prompts(run: Run, request: CompleteRequest) -> list[ModelInput]:
    """Tokenise the prompts.

    Raises DataError if a prompt is too long for the model. Raises a 422 error if a prompt already
    has `max_length` tokens or more.
    """
    inputs = [run.task.prepare(prompt) for prompt in request.prompts]
    run.predictor.check_input_lengths(inputs)
    max_length = request.max_length
    for index, prepared in enumerate(inputs):
        if max_length is not None and len(prepared.prefix) >= max_length:
            raise invalid_field(
                "max_length",
                f"prompts[{index}] already has {len(prepared.prefix)} tokens; use a max_length "
                f"above {len(prepared.prefix)}",
            )
    return inputs
