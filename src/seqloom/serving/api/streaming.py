"""POST /api/translate/stream and /api/complete/stream: tokens as server-sent events.

event: start    the run and its settings
event: token    a token, its log-probability, and the text so far
event: done     the complete output, in the same format as in the routes without streaming
event: error    an error that occurred after the event `start`
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import SeqloomError
from seqloom.core.finite_json import to_json_number
from seqloom.inference.options import PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.search_settings import completion_search, greedy_config
from seqloom.inference.texts.segments import PreparedTexts, TextOutputs
from seqloom.serving.api.completion import (
    check_completion,
    choose_seed,
    prepare_prompts,
)
from seqloom.serving.api.schemas.predictions import (
    CompleteRequest,
    Output,
    TranslateRequest,
)
from seqloom.serving.api.translation import (
    check_translation,
    choose_direction,
    prepare_texts,
    repeat_segments,
)
from seqloom.serving.errors import ERROR_RESPONSES, format_event, invalid_field
from seqloom.serving.server.catalogue import LoadedRun
from seqloom.serving.server.service import WITH_KEY_AND_JSON, ServiceDependency
from seqloom.tasks.task import ModelInput

EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "event": {
            "enum": ["start", "token", "done", "error"],
            "description": "start, then token for each token, then done or error.",
        },
        "data": {"type": "string", "description": "A JSON object."},
    },
    "required": ["event", "data"],
}
STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    **ERROR_RESPONSES,
    200: {
        "description": "Events: start, token …, done or error.",
        "content": {"text/event-stream": {"schema": EVENT_SCHEMA}},
    },
}

router = APIRouter(
    prefix="/api", dependencies=WITH_KEY_AND_JSON, responses=STREAM_RESPONSES, tags=["stream"]
)


@router.post("/translate/stream", response_class=StreamingResponse)
async def stream_translation(
    request: TranslateRequest, service: ServiceDependency
) -> StreamingResponse:
    """Translate one text and stream the tokens. Uses greedy search.

    The sentences of the text are translated one after another. Beam search cannot be streamed,
    because its best hypothesis changes until the end.
    """
    check_translation(service, request)
    if len(request.texts) > 1:
        raise invalid_field("texts", "only one text can be streamed per request")
    options = request.search_options()
    if options.beam not in (None, 1) or options.n_best > 1:
        raise invalid_field(
            "beam" if options.n_best == 1 else "n_best",
            "only greedy search can be streamed; omit this field or use /api/translate",
        )
    if options.glossary is not None:
        raise invalid_field(
            "glossary",
            "cannot be streamed, because its phrases can change tokens that were sent already; use "
            "/api/translate",
        )
    direction = choose_direction(service, request.run, request.source, request.target)
    loaded = direction.loaded
    decoding = greedy_config(loaded.token_run.config.decoding)

    async def events() -> AsyncIterator[str]:
        async with service.admission.admit():
            prepared = await prepare_texts(direction, request.texts, options, decoding)
            start = {
                "run": loaded.name,
                "source": direction.source,
                "target": direction.target,
                "warnings": loaded.token_run.source_tags.warnings(request.texts, "text"),
            }
            async for event in _stream_segments(loaded, prepared, decoding, start):
                yield event

    return await respond_with_events(events())


@router.post("/complete/stream", response_class=StreamingResponse)
async def stream_completion(
    request: CompleteRequest, service: ServiceDependency
) -> StreamingResponse:
    """Complete one prompt and stream the tokens."""
    check_completion(service, request)
    options = request.options
    if len(request.prompts) > 1 or options.n_best > 1:
        raise invalid_field(
            "prompts" if len(request.prompts) > 1 else "samples",
            "only one text can be streamed per request",
        )
    loaded = service.catalogue.choose(("language-model",), request.run)
    options = choose_seed(options)
    decoding = completion_search(loaded.token_run.config.decoding, options)

    async def events() -> AsyncIterator[str]:
        async with service.admission.admit():
            [prepared] = await asyncio.to_thread(prepare_prompts, loaded.token_run, request)
            start = {"run": loaded.name, "seed": options.seed if options.temperature else None}
            yield format_event("start", start)
            stream = OutputStream(loaded, decoding)
            async for event in stream.events(prepared, 0):
                yield event
            if stream.prediction is not None:
                yield _done_event(stream.prediction)

    return await respond_with_events(events())


async def _stream_segments(
    loaded: LoadedRun, prepared: PreparedTexts, decoding: DecodingConfig, start: dict[str, Any]
) -> AsyncIterator[str]:
    """Translate the segments of one text in turn, and yield the events of the stream.

    start: content of the first event
    """
    [text] = prepared.texts
    stream, outputs = OutputStream(loaded, decoding), TextOutputs(prepared.task, text)
    before = ""
    yield format_event("start", start)
    for index, segment in enumerate(text.segments):
        before += segment.before if text.keeps_spaces else ""
        if segment.input is None:
            before += segment.source
            continue
        before += segment.protected.leading
        async for event in stream.events(segment.input, segment.sample_index, before):
            yield event
        if stream.prediction is None:  # the last event was an error
            return
        outputs.found[index] = [stream.prediction]
        before += stream.prediction.text + segment.protected.trailing
    await repeat_segments(loaded, [outputs], decoding, stream.options)
    [prediction] = outputs.finish()
    yield _done_event(prediction)


class OutputStream:
    """Searches for outputs, and yields an event for each of their tokens.

    prediction: the output of the last search; None if it failed
    step:       number of tokens of all finished outputs
    """

    def __init__(self, loaded: LoadedRun, decoding: DecodingConfig) -> None:
        self.loaded = loaded
        self.decoding = decoding
        self.options = PredictionOptions(attention=False)
        self.prediction: Prediction | None = None
        self.step = 0

    async def events(
        self, prepared: ModelInput, sample_index: int, before: str = ""
    ) -> AsyncIterator[str]:
        """Search for one output, and yield the events of its tokens, or an error event.

        Closing the iterator cancels the search.

        before: text of the previous outputs. The text in each event starts with it.
        """
        tokenizer = self.loaded.token_run.task.target_tokenizer
        tokens: list[int] = list(prepared.prefix)
        try:
            async with aclosing(self.tokens(prepared, sample_index)) as new_tokens:
                async for token, log_probability in new_tokens:
                    tokens.append(token)
                    yield format_event(
                        "token",
                        {
                            "step": self.step + len(tokens),
                            "piece": tokenizer.pieces([token])[0],
                            "log_probability": to_json_number(log_probability),
                            "text": before + tokenizer.decode(tokens[prepared.hidden_prefix :]),
                        },
                    )
        except SeqloomError as error:
            yield format_event("error", {"error": str(error), "kind": "unusable"})
            return
        assert self.prediction is not None
        self.step += len(self.prediction.pieces)

    async def tokens(
        self, prepared: ModelInput, sample_index: int
    ) -> AsyncGenerator[tuple[int, float]]:
        """Search for one output, and yield its tokens and their log-probabilities.

        The tokens of the prefix are left out, because the client has sent them itself. Closing the
        iterator cancels the search.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[tuple[int, float] | None] = asyncio.Queue()

        def on_token(token: int, log_probability: float) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, (token, log_probability))

        search = asyncio.ensure_future(
            self.loaded.search(
                [prepared], self.decoding, self.options, on_token, sample_indices=[sample_index]
            )
        )
        search.add_done_callback(lambda _: queue.put_nowait(None))
        self.prediction = None
        position = 0
        try:
            while (item := await queue.get()) is not None:
                position += 1
                if position > len(prepared.prefix):
                    yield item
            [[self.prediction]] = search.result()
        finally:
            search.cancel()


def _done_event(prediction: Prediction) -> str:
    return format_event("done", Output.from_prediction(prediction).model_dump(mode="json"))


async def respond_with_events(events: AsyncIterator[str]) -> StreamingResponse:
    """Wait for the first event, then start the response.

    So an error before the first event results in an error response, not in a stream with status
    200.
    """
    first_event = await anext(events)

    async def all_events() -> AsyncIterator[str]:
        yield first_event
        async for event in events:
            yield event

    return StreamingResponse(
        all_events(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
