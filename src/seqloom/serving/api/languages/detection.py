"""Language detection by a loaded run that labels texts with their language."""

from pydantic import BaseModel, Field

from seqloom.serving.api.labels import label_texts
from seqloom.serving.api.languages.codes import match_language
from seqloom.serving.api.schemas.predictions import LabelRequest
from seqloom.serving.errors import ApiError
from seqloom.serving.server.catalogue import LoadedRun
from seqloom.serving.server.service import Service
from seqloom.text.vocabulary import SPECIAL_TOKENS


class DetectedLanguage(BaseModel):
    """A possible language of a text."""

    confidence: float = Field(
        description="Probability of the language in percent. 0 if the service has no run that "
        "detects languages: the language is then the only source language of the service."
    )
    language: str = Field(description="Code of the language.")


async def detect_languages(service: Service, texts: list[str]) -> list[list[DetectedLanguage]]:
    """Return the possible languages of each text of an admitted request, likeliest first.

    Only source languages of the service are returned. A run that labels texts with their language
    detects the languages. If the service has no such run and exactly one source language, this
    language is returned with confidence 0. Raises a 400 error if the service has no such run and
    several source languages.
    """
    detector = _find_detector(service)
    if detector is None:
        return [[_only_source_language(service)] for _ in texts]
    sources = _source_languages(service)
    response = await label_texts(service, LabelRequest(run=detector.name, texts=texts, every=True))
    return [
        [
            DetectedLanguage(confidence=round(100 * item.probability, 1), language=language)
            for item in labels
            if (language := match_language(item.label, sources)) is not None
        ]
        for labels in response.labels
    ]


async def detect_common_language(service: Service, texts: list[str]) -> DetectedLanguage:
    """Return the language of the texts of an admitted request.

    Raises a 400 error if the texts are in different languages.

    The confidence of the result is the lowest confidence of all texts. Blank texts are ignored.
    """
    written = [text for text in texts if text.strip()]
    detected = [languages[0] for languages in await detect_languages(service, written)]
    if len({item.language for item in detected}) > 1:
        raise ApiError(
            400, "invalid", "source: the texts are in several languages; send them separately"
        )
    return min(detected, key=lambda item: item.confidence)


def _source_languages(service: Service) -> set[str]:
    return {pair.source for pair in service.catalogue.language_pairs}


def _find_detector(service: Service) -> LoadedRun | None:
    """Return a run that detects the language of texts. None if there is none.

    The labels of this run must include all source languages of the service.
    """
    sources = _source_languages(service)
    for loaded in service.catalogue.of_kinds(("labels",)):
        if sources and all(_has_label(loaded, code) for code in sources):
            return loaded
    return None


def _has_label(loaded: LoadedRun, code: str) -> bool:
    tokenizer = loaded.token_run.task.target_tokenizer
    labels = tokenizer.pieces(list(range(len(SPECIAL_TOKENS), tokenizer.size)))
    return match_language(code, labels) is not None


def _only_source_language(service: Service) -> DetectedLanguage:
    sources = _source_languages(service)
    if len(sources) == 1:
        return DetectedLanguage(confidence=0.0, language=sources.pop())
    available = ", ".join(sorted(sources)) or "none"
    raise ApiError(
        400,
        "invalid",
        f"source: this service cannot detect languages; choose one of its source languages "
        f"({available}), or serve a run that labels texts with their language",
    )
