"""Completing: beginnings finished by a language model."""

import secrets

from seqloom.config.schema.decoding import GreedyConfig, SampleConfig
from seqloom.core.errors import SeqloomError
from seqloom.runs.batching import input_tokens
from seqloom.runs.options import PredictionOptions, greedy_config, sampling_config
from seqloom.runs.run import Run
from seqloom.serving.manners import Item, Searching
from seqloom.serving.problems import invalid, unusable
from seqloom.serving.schema import CompleteAnswer, Completed, CompleteRequest
from seqloom.serving.service import Service, aside
from seqloom.serving.showing import shown
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import UNKNOWN


def check_completion(service: Service, request: CompleteRequest) -> None:
    service.check_texts("prompts", request.prompts)
    service.check_most("samples", request.samples, service.limits.n_best)
    service.check_most("max_length", request.max_length, service.limits.output_tokens)
    if request.temperature == 0 and request.samples > 1:
        raise invalid("samples", "the likeliest text is one text; ask for 1, or raise temperature")


def drawing(run: Run, request: CompleteRequest, seed: int) -> SampleConfig | GreedyConfig:
    """How tokens are chosen."""
    changes: dict[str, object] = {"one_line": request.one_line}
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
    """What each prompt begins with, found to fit."""
    prepared = [run.task.prepare(prompt) for prompt in request.prompts]
    run.predictor.check_input_lengths(prepared)
    most = request.max_length
    for place, one in enumerate(prepared):
        if most is not None and len(one.prefix) >= most:
            raise invalid(
                "max_length",
                f"prompts[{place}] has {len(one.prefix)} tokens already; ask for more than {most}",
            )
    return prepared


async def complete(service: Service, request: CompleteRequest) -> CompleteAnswer:
    """Prompts in, texts out."""
    check_completion(service, request)
    served = service.catalogue.choose(("language-model",), request.run)
    run = served.speaker
    seed = secrets.randbelow(10**6) if request.seed is None else request.seed
    manner = Searching(
        run, drawing(run, request, seed), PredictionOptions(request.samples, attention=False)
    )
    async with service.gate.admitted():
        prepared = await aside(lambda: prepare_prompts(run, request))
        items = [Item(one, number) for number, one in enumerate(prepared)]
        try:
            found = await served.batcher.ask(manner, items, [input_tokens(one) for one in prepared])
        except SeqloomError as error:
            raise unusable(error) from error
    return CompleteAnswer(
        run=served.name,
        seed=seed if request.temperature else None,
        completions=[
            Completed(
                prompt=prompt,
                unknown=UNKNOWN in one.prefix,
                outputs=[shown(output) for output in outputs],
            )
            for prompt, one, outputs in zip(request.prompts, prepared, found, strict=True)
        ],
    )
