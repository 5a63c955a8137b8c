"""Detecting: which language a text is in, as far as anything here can tell."""

from pydantic import BaseModel

from seqloom.serving.judging import label
from seqloom.serving.problems import Problem
from seqloom.serving.schema import LabelRequest
from seqloom.serving.served import Served
from seqloom.serving.service import Service


class Detected(BaseModel):
    """confidence: 0 to 100; 0: nothing was detected, it is the only language that is read here"""

    confidence: float
    language: str


async def guesses(service: Service, text: str) -> list[Detected]:
    """The languages that a text may be in, the likeliest first."""
    judge = _judge(service)
    if judge is None:
        return [_only_language(service)]
    answer = await label(service, LabelRequest(run=judge.name, texts=[text], every=True))
    return [
        Detected(confidence=round(100 * one.probability, 1), language=one.label)
        for one in answer.labels[0]
    ]


async def common_language(service: Service, texts: list[str]) -> Detected:
    """The language that all these texts are in."""
    judge = _judge(service)
    if judge is None:
        return _only_language(service)
    answer = await label(service, LabelRequest(run=judge.name, texts=texts))
    found = [
        Detected(confidence=round(100 * each[0].probability, 1), language=each[0].label)
        for each in answer.labels
        if each
    ]
    if len({one.language for one in found}) > 1:
        raise _refused("source: the texts are in several languages; send each by itself")
    return min(found, key=lambda one: one.confidence)


def _sources(service: Service) -> set[str]:
    return {pair.source for served in service.catalogue.runs for pair in served.pairs}


def _judge(service: Service) -> Served | None:
    """A run that labels texts with the languages that are read here, if one is served."""
    sources = _sources(service)
    for served in service.catalogue.of(("labels",)):
        if sources and all(_is_label(served, code) for code in sources):
            return served
    return None


def _is_label(served: Served, code: str) -> bool:
    tokenizer = served.speaker.task.target_tokenizer
    tokens = tokenizer.encode(code)
    return len(tokens) == 1 and tokenizer.decode(tokens) == code


def _only_language(service: Service) -> Detected:
    sources = _sources(service)
    if len(sources) == 1:
        return Detected(confidence=0.0, language=sources.pop())
    known = ", ".join(sorted(sources)) or "none that is known by name"
    raise _refused(
        "source: this service cannot tell languages apart; say which one it is (read here: "
        f"{known}), or serve a run that labels texts with their language"
    )


def _refused(sentence: str) -> Problem:
    return Problem(400, "invalid", sentence)
