"""Translating: texts are cut, searched for in batches with everybody else's, and joined again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.core.errors import SeqloomError
from seqloom.decoding.rules import LONGEST
from seqloom.runs.batching import input_tokens
from seqloom.runs.options import PredictionOptions, Probabilities, beam_config
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run
from seqloom.serving.languages import Pair
from seqloom.serving.manners import Item, Searching
from seqloom.serving.problems import invalid, unusable
from seqloom.serving.schema import (
    TranslateAnswer,
    Translated,
    TranslatedPart,
    TranslateRequest,
)
from seqloom.serving.sentences import Cut, cut, whole
from seqloom.serving.served import Served
from seqloom.serving.service import Service, aside
from seqloom.serving.showing import shown
from seqloom.tasks.task import ModelInput

SHORT = 200
"""Characters that take about as long to prepare, a third of a millisecond, as the way to another thread
and back while a model computes."""


@dataclass(frozen=True)
class Direction:
    """Which run is asked, and for what.

    tag:  what is put before texts; None: the run does one thing only
    pair: the languages, as far as anybody says
    """

    served: Served
    tag: str | None
    source: str | None
    target: str | None


def direct(service: Service, run: str | None, source: str | None, target: str | None) -> Direction:
    """The run that is meant by its name, or by languages."""
    catalogue = service.catalogue
    if run is None and (source or target) and any(one.pairs for one in catalogue.runs):
        return _direction(*catalogue.between(source, target), target)
    served = catalogue.choose(("translation",), run)
    return _direction(served, _pair(served, source, target), target)


def _direction(served: Served, pair: Pair | None, target: str | None) -> Direction:
    directions = served.speaker.languages
    source, told = (pair.source, pair.target) if pair else (None, None)
    if not directions.tags:
        return Direction(served, None, source, told)
    wanted = target or (told if len(served.pairs) == 1 else None)
    if wanted is None:
        raise invalid("target", f"say what to translate into; there are: {directions.names}")
    try:
        [tag] = directions.path(wanted)
    except SeqloomError:
        raise invalid(
            "target", f"'{wanted}' is not known to {served.name}; there are: {directions.names}"
        ) from None
    return Direction(served, tag, source, wanted)


def _pair(served: Served, source: str | None, target: str | None) -> Pair | None:
    """The languages of a run that was chosen otherwise; what is said of them must be true."""
    if served.speaker.languages.tags and not served.pairs:
        return None
    for pair in served.pairs:
        if source in (None, pair.source) and target in (None, pair.target):
            return pair
    if served.pairs:
        known = ", ".join(map(str, served.pairs))
        raise invalid(
            "target" if target else "source",
            f"{served.name} does not translate from {source or 'any'} to {target or 'any'}; it "
            f"knows: {known}",
        )
    if source or target:
        raise invalid(
            "source" if source else "target",
            f"nobody has said which languages {served.name} translates; leave it out, or start "
            f"the service with --languages {source or 'de'}:{target or 'en'}",
        )
    return None


@dataclass(frozen=True)
class Plan:
    """Texts, cut and prepared.

    cuts:   each text in its parts
    inputs: the parts of all texts, in order
    """

    cuts: tuple[Cut, ...]
    inputs: tuple[ModelInput, ...]


def plan(direction: Direction, texts: Sequence[str], split: bool, prefix: str | None) -> Plan:
    """What is read at once, each part found to fit by itself: one that does not hurts nobody."""
    run = direction.served.speaker

    def prepare(text: str) -> ModelInput:
        return run.task.prepare(run.languages.add_tag([text], direction.tag)[0])

    most = longest_part(run)
    cuts = tuple(
        cut(text, lambda part: input_tokens(prepare(part)) <= most) if split else whole(text)
        for text in texts
    )
    inputs = [prepare(part.text) for each in cuts for part in each.parts]
    if prefix is not None:
        begin = tuple(run.task.target_tokenizer.encode(prefix.strip()))
        inputs = [replace(one, prefix=(*one.prefix, *begin)) for one in inputs]
    run.predictor.check_input_lengths(inputs)
    return Plan(cuts, tuple(inputs))


async def make_plan(
    direction: Direction, texts: Sequence[str], split: bool, prefix: str | None
) -> Plan:
    """The same, without keeping others waiting: what takes long is done in another thread."""
    if sum(map(len, texts)) <= SHORT:
        return plan(direction, texts, split, prefix)
    return await aside(lambda: plan(direction, texts, split, prefix))


def longest_part(run: Run) -> int:
    """Tokens of a part, END included, that leave room for an output a third longer."""
    room = [run.config.decoding.max_length or LONGEST, run.model.max_target_length]
    output = min(one for one in room if one is not None)
    read = run.model.max_source_length
    return output * 3 // 4 if read is None else min(read, output * 3 // 4)


def decoding_for(
    run: Run, beam: int | None, n_best: int, length_exponent: float | None
) -> DecodingConfig:
    """As the recipe says, where nothing else is asked for; wide enough for n_best."""
    decoding = run.config.decoding
    if beam is not None:
        if beam < n_best:
            raise invalid("n_best", f"{n_best} outputs need a beam of {n_best} or more, not {beam}")
        decoding = beam_config(decoding, beam)
    elif n_best > width_of(decoding, n_best):
        decoding = beam_config(decoding, n_best)
    if length_exponent is not None:
        decoding = decoding.model_copy(update={"length_exponent": length_exponent})
    return decoding


def width_of(decoding: DecodingConfig, otherwise: int = 1) -> int:
    """Outputs that a search has to offer."""
    match decoding:
        case BeamConfig(width=width):
            return width
        case GreedyConfig():
            return 1
        case _:
            return otherwise


def check_translation(service: Service, request: TranslateRequest) -> None:
    service.check_texts("texts", request.texts)
    service.check_something("texts", request.texts)
    service.check_most("beam", request.beam, service.limits.beam)
    service.check_most("n_best", request.n_best, service.limits.n_best)
    if request.prefix is not None:
        service.check_texts("prefix", [request.prefix])
        if len(request.texts) > 1 or request.split:
            raise invalid("prefix", "needs one text alone, and split = false: whose would it be?")


async def translate(
    service: Service, request: TranslateRequest, probabilities: Probabilities = "tokens"
) -> TranslateAnswer:
    """Texts in, translations out.

    probabilities: less than "tokens" where whoever asks puts them out nowhere
    """
    check_translation(service, request)
    direction = direct(service, request.run, request.source, request.target)
    run = direction.served.speaker
    decoding = decoding_for(run, request.beam, request.n_best, request.length_exponent)
    looking = request.attention or request.alignment or request.heads
    wish = PredictionOptions(
        request.n_best, attention=looking, heads=request.heads, probabilities=probabilities
    )
    async with service.gate.admitted():
        planned = await make_plan(direction, request.texts, request.split, request.prefix)
        found = await search(direction, planned.inputs, decoding, wish)
    parts = iter(found)
    return TranslateAnswer(
        run=direction.served.name,
        source=direction.source,
        target=direction.target,
        beam=width_of(decoding) if isinstance(decoding, BeamConfig | GreedyConfig) else None,
        translations=[
            _joined(each, [next(parts) for _ in each.parts], request) for each in planned.cuts
        ],
    )


async def search(
    direction: Direction,
    inputs: Sequence[ModelInput],
    decoding: DecodingConfig,
    wish: PredictionOptions,
) -> list[list[Prediction]]:
    """The outputs of each input; an input's number is its place here."""
    served = direction.served
    items = [Item(one, number) for number, one in enumerate(inputs)]
    sizes = [input_tokens(one) for one in inputs]
    try:
        found = await served.batcher.ask(Searching(served.speaker, decoding, wish), items, sizes)
    except SeqloomError as error:
        raise unusable(error) from error
    shown_to = served.speaker.languages.without_tag
    return [[shown_to(one, direction.tag) for one in outputs] for outputs in found]


def _joined(
    each: Cut, found: Sequence[Sequence[Prediction]], request: TranslateRequest
) -> Translated:
    parts = [
        TranslatedPart(
            before=part.before,
            source=part.text,
            outputs=[
                shown(
                    one,
                    alignment=request.alignment,
                    attention=request.attention,
                    heads=request.heads,
                )
                for one in outputs
            ],
        )
        for part, outputs in zip(each.parts, found, strict=True)
    ]
    versions = [
        # A part that has no further version keeps its last one.
        each.join([outputs[min(place, len(outputs) - 1)].text for outputs in found])
        for place in range(request.n_best)
    ]
    text, *others = dict.fromkeys(versions)
    return Translated(text=text, alternatives=others, parts=parts)
