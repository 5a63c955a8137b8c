"""Streaming: tokens as they are decided, as server-sent events.

event: start    which run, and how it chooses
event: token    a piece, its log-probability, and the text so far
event: done     the whole output, as any other route gives it
event: error    what went wrong after the start
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from fastapi.responses import StreamingResponse

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import SeqloomError
from seqloom.runs.batching import input_tokens
from seqloom.runs.options import PredictionOptions, greedy_config
from seqloom.runs.prediction import Prediction
from seqloom.serving.completing import check_completion, drawing, prepare_prompts
from seqloom.serving.manners import Item, Searching
from seqloom.serving.problems import invalid
from seqloom.serving.schema import CompleteRequest, TranslateRequest
from seqloom.serving.served import Served
from seqloom.serving.service import Service, aside
from seqloom.serving.showing import number, shown
from seqloom.serving.translating import check_translation, direct, make_plan
from seqloom.tasks.task import ModelInput


@dataclass(frozen=True)
class Stream:
    """One output, told token by token.

    start: what is told first
    """

    served: Served
    prepared: ModelInput
    decoding: DecodingConfig
    start: dict[str, Any]

    async def events(self) -> AsyncIterator[str]:
        """All of them, until the output is there. Who stops listening stops the search."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[tuple[int, float] | None] = asyncio.Queue()

        def hear(token: int, log_probability: float) -> None:
            loop.call_soon_threadsafe(heard.put_nowait, (token, log_probability))

        wish = PredictionOptions(attention=False)
        manner = Searching(self.served.speaker, self.decoding, wish, streamed=True)
        asking = asyncio.ensure_future(
            self.served.batcher.ask(
                manner, [Item(self.prepared)], [input_tokens(self.prepared)], hear
            )
        )
        asking.add_done_callback(lambda _: heard.put_nowait(None))
        try:
            yield event("start", self.start)
            async for record in self._told(heard):
                yield event("token", record)
            yield self._ending(asking)
        finally:
            asking.cancel()

    async def _told(
        self, heard: asyncio.Queue[tuple[int, float] | None]
    ) -> AsyncIterator[dict[str, Any]]:
        tokenizer = self.served.speaker.task.target_tokenizer
        tokens: list[int] = []
        while (next_one := await heard.get()) is not None:
            token, log_probability = next_one
            tokens.append(token)
            if len(tokens) <= len(self.prepared.prefix):
                continue  # what was given is nothing new
            yield {
                "step": len(tokens),
                "piece": tokenizer.pieces([token])[0],
                "log_probability": number(log_probability),
                "text": tokenizer.decode(tokens[self.prepared.hidden_prefix :]),
            }

    def _ending(self, asking: "asyncio.Future[list[Any]]") -> str:
        error = asking.exception()
        if isinstance(error, SeqloomError):
            return event("error", {"error": str(error), "kind": "unusable"})
        if error is not None:
            raise error
        [[output]] = asking.result()
        assert isinstance(output, Prediction)
        return event("done", shown(output).model_dump(mode="json"))


def event(name: str, content: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n"


async def stream_translation(service: Service, request: TranslateRequest) -> StreamingResponse:
    """Greedily, since a beam changes its mind until the end; one text, read at once."""
    check_translation(service, request.model_copy(update={"split": False}))
    if len(request.texts) > 1:
        raise invalid("texts", "one text is streamed at a time; send the others by themselves")
    if request.beam not in (None, 1) or request.n_best > 1:
        raise invalid(
            "beam" if request.n_best == 1 else "n_best",
            "tokens are decided one by one only by greedy search; leave it out, or use "
            "/api/translate",
        )
    direction = direct(service, request.run, request.source, request.target)
    decoding = greedy_config(direction.served.speaker.config.decoding)

    async def events() -> AsyncIterator[str]:
        async with service.gate.admitted():
            planned = await make_plan(direction, request.texts, False, request.prefix)
            start = {
                "run": direction.served.name,
                "source": direction.source,
                "target": direction.target,
            }
            stream = Stream(direction.served, planned.inputs[0], decoding, start)
            async for each in stream.events():
                yield each

    return await _begun(events())


async def stream_completion(service: Service, request: CompleteRequest) -> StreamingResponse:
    """One prompt, one text."""
    check_completion(service, request)
    if len(request.prompts) > 1 or request.samples > 1:
        raise invalid(
            "prompts" if len(request.prompts) > 1 else "samples",
            "one text is streamed at a time; ask for the others by themselves",
        )
    served = service.catalogue.choose(("language-model",), request.run)
    seed = secrets.randbelow(10**6) if request.seed is None else request.seed
    decoding = drawing(served.speaker, request, seed)

    async def events() -> AsyncIterator[str]:
        async with service.gate.admitted():
            [prepared] = await aside(lambda: prepare_prompts(served.speaker, request))
            start = {"run": served.name, "seed": seed if request.temperature else None}
            async for each in Stream(served, prepared, decoding, start).events():
                yield each

    return await _begun(events())


async def _begun(events: AsyncIterator[str]) -> StreamingResponse:
    """An answer whose first event is there: what is refused before it, is refused by its status."""
    first = await anext(events)

    async def all_of_them() -> AsyncIterator[str]:
        yield first
        async for each in events:
            yield each

    return StreamingResponse(
        all_of_them(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
