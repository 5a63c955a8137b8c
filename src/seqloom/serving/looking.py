"""Looking inside: how an output came about, and what if it had not.

One text at a time, in its turn among everybody's batches.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.inside.explain import explain
from seqloom.inside.explanation import Focus
from seqloom.inside.lecture import LectureScore, explain_lecture
from seqloom.nn.attention import Selection
from seqloom.runs.options import PredictionOptions
from seqloom.runs.prediction import Prediction
from seqloom.runs.question import Alternative, Question
from seqloom.runs.run import Run
from seqloom.runs.seeing import no_attention, refuse_sourceless
from seqloom.serving.problems import invalid
from seqloom.serving.schema_inside import (
    AlternativesAnswer,
    AlternativesRequest,
    AttentionAnswer,
    AttentionRequest,
    Choice,
    ContinueAnswer,
    ContinueRequest,
    ExplainAnswer,
    ExplainRequest,
    InsteadAnswer,
    InsteadRequest,
    LookRequest,
    SearchAnswer,
    SearchRequest,
)
from seqloom.serving.served import Served, TaskKind
from seqloom.serving.service import Service
from seqloom.serving.showing import number, shown
from seqloom.serving.translating import decoding_for, direct
from seqloom.text.vocabulary import END, PAD, START

READERS: tuple[TaskKind, ...] = ("translation", "labels", "language-model")
"""Runs that are asked with text; a captioner would take it for the name of a file."""

T = TypeVar("T")


class Look:
    """Who is asked about which text."""

    def __init__(self, service: Service, request: LookRequest) -> None:
        service.check_texts("text", [request.text])
        service.check_most("beam", request.beam, service.limits.beam)
        self._service = service
        self._request = request
        self.served, self.tag = _asked(service, request)
        self.run: Run = self.served.speaker

    @property
    def text(self) -> str:
        """With its tag, where the run needs one."""
        return self.run.languages.add_tag([self._request.text], self.tag)[0]

    def decoding(self, n_best: int = 1) -> DecodingConfig:
        request = self._request
        return decoding_for(self.run, request.beam, n_best, request.length_exponent)

    def question(self, n_best: int = 1) -> Question:
        return Question.of(self.run, self.text, self.decoding(n_best))

    async def answered(self, function: Callable[[], T]) -> T:
        """What a function finds out, in the thread of the run."""
        async with self._service.gate.admitted():
            found: T = await self.served.batcher.call(function)
        return found


def _asked(service: Service, request: LookRequest) -> tuple[Served, str | None]:
    chosen = service.catalogue.choose(READERS, request.run) if request.run else None
    if chosen is None or chosen.kind == "translation":
        direction = direct(service, request.run, None, request.target)
        return direction.served, direction.tag
    return chosen, None


async def attention(service: Service, request: AttentionRequest) -> AttentionAnswer:
    """Where every word looked, layer by layer and head by head."""
    look = Look(service, request)
    given = request.output
    if given is not None:
        service.check_texts("output", [given])

    def find() -> Prediction:
        refuse_sourceless(look.run)
        if given is not None:
            return look.run.score([look.text], [given], heads=True)[0]
        [[found]] = look.run.predict(
            [look.text], PredictionOptions(heads=True), decoding=look.decoding()
        )
        return found

    service.check_something("text", [request.text])
    output = await look.answered(find)
    if output.attention is None or output.heads is None:
        raise no_attention(look.run)
    every = output.attention_map(output.heads, merged=not request.pieces)
    mean = output.attention_map(output.attention, merged=not request.pieces)
    return AttentionAnswer(
        run=look.served.name,
        output=shown(output, alignment=True),
        outputs=list(mean.outputs),
        sources=list(mean.sources),
        weights=mean.weights.tolist(),
        heads=every.weights.transpose(1, 2, 0, 3).tolist(),
    )


async def search(service: Service, request: SearchRequest) -> SearchAnswer:
    """A whole search: every candidate of every step, and what became of it."""
    look = Look(service, request)
    service.check_most("n_best", request.n_best, service.limits.beam)
    question = look.question(request.n_best or 1)
    found = await look.answered(lambda: question.search(request.n_best))
    record = found.to_json()
    return SearchAnswer(
        run=look.served.name,
        outputs=[shown(one) for one in found.outputs],
        pieces=record["pieces"],
        record=finite(record["record"]),
    )


async def alternatives(service: Service, request: AlternativesRequest) -> AlternativesAnswer:
    """What else could stand at each step of an output."""
    look = Look(service, request)
    if request.tokens is not None:
        check_tokens(service, look.run, "tokens", request.tokens)
    question = look.question()

    def find() -> tuple[list[int], list[list[Alternative]]]:
        tokens = request.tokens
        if tokens is None:
            tokens = list(question.search(1).outputs[0].tokens)
        said = [token for token in tokens if token != END]
        return said, question.alternatives(said, request.count)

    tokens, steps = await look.answered(find)
    return AlternativesAnswer(
        run=look.served.name,
        tokens=tokens,
        pieces=[question.name_of(token) for token in tokens],
        steps=[[_choice(one) for one in step] for step in steps],
    )


async def go_on(service: Service, request: ContinueRequest) -> ContinueAnswer:
    """The best output that begins with given tokens."""
    look = Look(service, request)
    check_tokens(service, look.run, "begin", request.begin)
    question = look.question()
    found = await look.answered(lambda: question.decode_on(request.begin))
    return ContinueAnswer(run=look.served.name, output=shown(found))


async def instead(service: Service, request: InsteadRequest) -> InsteadAnswer:
    """Another word at a step of the best output, and what follows then."""
    look = Look(service, request)
    service.check_texts("piece", [request.piece])
    question = look.question()
    found = await look.answered(lambda: question.instead(request.step, request.piece))
    return InsteadAnswer(
        run=look.served.name,
        step=found.step,
        original=shown(found.original),
        changed=shown(found.changed),
        alternatives=[_choice(one) for one in found.alternatives],
    )


async def explanation(service: Service, request: ExplainRequest) -> ExplainAnswer:
    """One step of the decoder, laid open."""
    look = Look(service, request)
    if request.output is not None:
        service.check_texts("output", [request.output])
    found = await look.answered(
        lambda: explain(
            look.run,
            look.text,
            request.step,
            target=request.output,
            focus=Focus(request.layer, request.head),
            decoding=look.decoding(),
        )
    )
    return ExplainAnswer(run=look.served.name, explanation=finite(found.to_json()))


def lecture(score: LectureScore, choice: Selection) -> ExplainAnswer:
    """The example that lectures work out by hand."""
    return ExplainAnswer(run=None, explanation=finite(explain_lecture(score, choice).to_json()))


def check_tokens(service: Service, run: Run, where: str, tokens: Sequence[int]) -> None:
    """Tokens of the run's vocabulary, END at their end only."""
    size, most = run.task.target_tokenizer.size, service.limits.output_tokens
    service.check_most(f"{where}, tokens in all", len(tokens), most)
    for place, token in enumerate(tokens):
        last = place == len(tokens) - 1
        if not 0 <= token < size or token in (PAD, START) or (token == END and not last):
            raise invalid(
                f"{where}[{place}]",
                f"{token} cannot stand there; tokens are numbers up to {size - 1}, as other "
                "answers name them, and END only the last",
            )


def _choice(one: Alternative) -> Choice:
    return Choice(token=one.token, piece=one.piece, log_probability=number(one.log_probability))


def finite(value: Any) -> Any:
    """None where JSON has no number."""
    match value:
        case dict():
            return {key: finite(each) for key, each in value.items()}
        case list() | tuple():
            return [finite(each) for each in value]
        case float():
            return value if math.isfinite(value) else None
        case _:
            return value
