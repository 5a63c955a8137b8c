"""GET /v1/models and POST /v1/completions, so that OpenAI clients work unchanged."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse

from seqloom.core.errors import SeqloomError
from seqloom.core.finite_json import to_json_number
from seqloom.decoding.forced import alternatives
from seqloom.inference.options import PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.search_settings import completion_search
from seqloom.serving.api.completion import check_temperature, choose_seed
from seqloom.serving.api.openai.outputs import (
    IncrementalText,
    OutputTokens,
    StopFilter,
    output_tokens,
    token_text,
)
from seqloom.serving.api.openai.schemas import (
    CompletionChoice,
    FinishReason,
    OpenAiCompletion,
    OpenAiCompletionRequest,
    OpenAiModel,
    OpenAiModels,
    TokenLogprobs,
    TokenUsage,
)
from seqloom.serving.api.streaming import OutputStream, respond_with_events
from seqloom.serving.errors import OPENAI_ERROR_RESPONSES, invalid_field, openai_error_body
from seqloom.serving.server.catalogue import LoadedRun
from seqloom.serving.server.limits import check_maximum
from seqloom.serving.server.service import (
    WITH_KEY,
    WITH_KEY_AND_JSON,
    Service,
    ServiceDependency,
)
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END

DEFAULT_MAX_TOKENS = 16
MAX_STOPS = 4
END_OF_STREAM = "data: [DONE]\n\n"

router = APIRouter(prefix="/v1", responses=OPENAI_ERROR_RESPONSES, tags=["OpenAI"])


@router.get("/models", dependencies=WITH_KEY)
async def list_openai_models(service: ServiceDependency) -> OpenAiModels:
    """List the language models."""
    runs = service.catalogue.of_kinds(("language-model",))
    return OpenAiModels(data=[_describe(loaded) for loaded in runs])


@router.get("/models/{model}", dependencies=WITH_KEY)
async def get_openai_model(
    model: Annotated[str, Path(description="Name of a language-model run.")],
    service: ServiceDependency,
) -> OpenAiModel:
    """Describe a language model."""
    return _describe(service.catalogue.choose(("language-model",), model))


def _describe(loaded: LoadedRun) -> OpenAiModel:
    return OpenAiModel(id=loaded.name, created=int(loaded.run.folder.stat().st_mtime))


@router.post("/completions", dependencies=WITH_KEY_AND_JSON, response_model=OpenAiCompletion)
async def create_completion(
    request: OpenAiCompletionRequest, service: ServiceDependency
) -> OpenAiCompletion | StreamingResponse:
    """Complete prompts with a language model."""
    _check_request(service, request)
    loaded = service.catalogue.choose(("language-model",), request.model)
    work = CompletionWork(service, loaded, request)
    if not request.stream:
        return await work.complete()
    can_stream_tokens = len(request.prompts) == 1 and work.count == 1 and not request.logprobs
    return await respond_with_events(
        work.stream_tokens() if can_stream_tokens else work.stream_outputs()
    )


def _check_request(service: Service, request: OpenAiCompletionRequest) -> None:
    limits = service.limits
    limits.check_texts("prompt", request.prompts)
    check_maximum("max_tokens", request.max_tokens, limits.output_tokens)
    check_maximum("n", request.n, limits.n_best)
    if not request.prompts:
        raise invalid_field("prompt", "the list is empty; send at least one text")
    if len(request.stops) > MAX_STOPS or "" in request.stops:
        raise invalid_field("stop", f"send at most {MAX_STOPS} texts, none of them empty")
    if request.echo and request.logprobs is not None:
        raise invalid_field(
            "echo",
            "cannot be combined with logprobs; /api/score returns the probabilities of texts",
        )
    check_temperature(request.temperature, "n", request.n or 1)
    unsupported = {
        "best_of": request.best_of not in (None, request.n or 1),
        "suffix": bool(request.suffix),
        "frequency_penalty": bool(request.frequency_penalty),
        "presence_penalty": bool(request.presence_penalty),
        "logit_bias": bool(request.logit_bias),
    }
    for field, is_used in unsupported.items():
        if is_used:
            raise invalid_field(field, "this option is not supported; omit it")


@dataclass(frozen=True)
class PreparedPrompt:
    """A prompt and its model input. The input contains the maximum length of the output."""

    text: str
    prepared: ModelInput


class CompletionWork:
    """Processes one completion request.

    count: number of outputs per prompt
    """

    def __init__(
        self, service: Service, loaded: LoadedRun, request: OpenAiCompletionRequest
    ) -> None:
        self._service, self._loaded, self._request = service, loaded, request
        self.count = request.n or 1
        self._identifier = f"cmpl-{secrets.token_hex(12)}"
        self._created = int(time.time())
        self._options = choose_seed(
            PredictionOptions(
                self.count,
                temperature=1.0 if request.temperature is None else request.temperature,
                top_k=0,
                top_p=1.0 if request.top_p is None else request.top_p,
                seed=request.seed,
                stop_at_newline=False,
                attention=False,
            )
        )
        self._decoding = completion_search(loaded.token_run.config.decoding, self._options)

    async def complete(self) -> OpenAiCompletion:
        async with self._service.admission.admit():
            prompts = await asyncio.to_thread(self._prepare)
            outputs = await self._search(prompts)
            choices = []
            for index, (prompt, output) in enumerate(outputs):
                tops = await self._top_tokens(prompt, output)
                choices.append(self._choice(index, prompt, output, tops))
        return self._response(choices, self._usage(prompts, [output for _, output in outputs]))

    async def stream_outputs(self) -> AsyncIterator[str]:
        """Yield the events of a stream, one for each complete output.

        Used if tokens cannot be sent as they are generated.
        """
        response = await self.complete()
        for choice in response.choices:
            yield _event(self._response([choice]))
        async for event in self._end_stream(response.usage):
            yield event

    async def stream_tokens(self) -> AsyncIterator[str]:
        """Yield the events of a stream that has one output: one event for each token, then the end.

        With `echo`, the prompt comes first.
        """
        async with self._service.admission.admit():
            [prompt] = await asyncio.to_thread(self._prepare)
            if self._request.echo:
                yield _event(self._response([self._part(prompt.text)]))
            stream = OutputStream(self._loaded, self._decoding)
            text, stop_filter = self._incremental_text(prompt), StopFilter(self._request.stops)
            offset, count = len(prompt.text), 0
            try:
                async with aclosing(stream.tokens(prompt.prepared, 0)) as tokens:
                    async for token, log_probability in tokens:
                        if token == END:
                            continue
                        count += 1
                        new = stop_filter.feed(text.add(token))
                        yield _event(self._response([self._part(new, log_probability, offset)]))
                        offset += len(new)
                        if stop_filter.stopped:
                            break
            except SeqloomError as error:
                yield f"data: {json.dumps(openai_error_body(str(error), 'unusable'))}\n\n"
                return
        has_ended = stream.prediction is not None and stream.prediction.finished
        reason: FinishReason = "stop" if has_ended or stop_filter.stopped else "length"
        rest = stop_filter.feed(text.flush()) + stop_filter.flush()
        last = CompletionChoice(index=0, text=rest, finish_reason=reason)
        yield _event(self._response([last]))
        prompt_tokens = len(prompt.prepared.prefix)
        async for event in self._end_stream(_usage(prompt_tokens, count)):
            yield event

    async def _end_stream(self, usage: TokenUsage | None) -> AsyncIterator[str]:
        options = self._request.stream_options
        if options is not None and options.include_usage:
            yield _event(self._response([], usage))
        yield END_OF_STREAM

    def _prepare(self) -> list[PreparedPrompt]:
        run = self._loaded.token_run
        max_tokens = self._request.max_tokens or DEFAULT_MAX_TOKENS
        inputs = [run.task.prepare(prompt) for prompt in self._request.prompts]
        run.predictor.check_input_lengths(inputs)
        return [
            PreparedPrompt(text, replace(item, max_length=len(item.prefix) + max_tokens))
            for text, item in zip(self._request.prompts, inputs, strict=True)
        ]

    async def _search(
        self, prompts: Sequence[PreparedPrompt]
    ) -> list[tuple[PreparedPrompt, OutputTokens]]:
        predictions = await self._loaded.search(
            [prompt.prepared for prompt in prompts],
            self._decoding,
            self._options,
        )
        return [
            (prompt, self._output(prompt, prediction))
            for prompt, outputs in zip(prompts, predictions, strict=True)
            for prediction in outputs
        ]

    def _output(self, prompt: PreparedPrompt, prediction: Prediction) -> OutputTokens:
        start = len(prompt.prepared.prefix)
        tokens = [token for token in prediction.tokens[start:] if token != END]
        values = prediction.log_probabilities[start:]
        text = self._incremental_text(prompt)
        return output_tokens(text, tokens, values, self._request.stops, prediction.finished)

    def _incremental_text(self, prompt: PreparedPrompt) -> IncrementalText:
        tokenizer = self._loaded.token_run.task.target_tokenizer
        hidden = prompt.prepared.hidden_prefix
        return IncrementalText(
            lambda tokens: tokenizer.decode(list(tokens)[hidden:]), prompt.prepared.prefix
        )

    async def _top_tokens(
        self, prompt: PreparedPrompt, output: OutputTokens
    ) -> list[dict[str, float | None]] | None:
        """Return the likeliest tokens at each position of an output; None if not requested."""
        count = self._request.logprobs
        if not count:
            return None
        run, prepared = self._loaded.token_run, prompt.prepared
        tokens = [*prepared.prefix, *output.tokens]

        def find() -> list[dict[str, float | None]]:
            with torch.inference_mode():
                memory = run.predictor.encode([prepared])
                steps = alternatives(run.model.decoder, memory, tokens, count)
            return [
                {
                    token_text(run.task.target_tokenizer, tokens[:position], token): to_json_number(
                        value
                    )
                    for token, value in steps[position]
                }
                for position in range(len(prepared.prefix), len(tokens))
            ]

        result: list[dict[str, float | None]] = await self._loaded.batcher.call(find)
        return result

    def _choice(
        self,
        index: int,
        prompt: PreparedPrompt,
        output: OutputTokens,
        tops: list[dict[str, float | None]] | None,
    ) -> CompletionChoice:
        logprobs = None
        if self._request.logprobs is not None:
            offset, offsets = len(prompt.text), []
            for text in output.texts:
                offsets.append(offset)
                offset += len(text)
            logprobs = TokenLogprobs(
                tokens=list(output.texts),
                token_logprobs=[to_json_number(value) for value in output.log_probabilities],
                top_logprobs=tops,
                text_offset=offsets,
            )
        return CompletionChoice(
            index=index,
            text=(prompt.text if self._request.echo else "") + "".join(output.texts),
            logprobs=logprobs,
            finish_reason=output.finish_reason,
        )

    def _part(
        self, text: str, log_probability: float | None = None, offset: int = 0
    ) -> CompletionChoice:
        """Return a part of a streamed output: the text of one token, or the prompt."""
        logprobs = None
        if self._request.logprobs is not None and log_probability is not None:
            logprobs = TokenLogprobs(
                tokens=[text],
                token_logprobs=[to_json_number(log_probability)],
                top_logprobs=None,
                text_offset=[offset],
            )
        return CompletionChoice(index=0, text=text, logprobs=logprobs, finish_reason=None)

    def _usage(
        self, prompts: Sequence[PreparedPrompt], outputs: Sequence[OutputTokens]
    ) -> TokenUsage:
        return _usage(
            sum(len(prompt.prepared.prefix) for prompt in prompts),
            sum(len(output.tokens) for output in outputs),
        )

    def _response(
        self, choices: list[CompletionChoice], usage: TokenUsage | None = None
    ) -> OpenAiCompletion:
        return OpenAiCompletion(
            id=self._identifier,
            created=self._created,
            model=self._loaded.name,
            choices=choices,
            usage=usage,
        )


def _usage(prompt_tokens: int, completion_tokens: int) -> TokenUsage:
    return TokenUsage(
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        total_tokens=prompt_tokens + completion_tokens,
    )


def _event(response: OpenAiCompletion) -> str:
    content: dict[str, Any] = response.model_dump(mode="json")
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"
