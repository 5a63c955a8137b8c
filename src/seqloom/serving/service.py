"""Service: all that routes share."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from fastapi import Request

from seqloom.serving.gate import Gate
from seqloom.serving.keys import Keys, bearer
from seqloom.serving.limits import Limits
from seqloom.serving.problems import Problem, invalid
from seqloom.serving.served import Catalogue

T = TypeVar("T")


@dataclass(frozen=True)
class Service:
    """The runs, and on what terms they may be asked."""

    catalogue: Catalogue
    limits: Limits
    gate: Gate
    keys: Keys = field(default_factory=Keys)

    def check_texts(self, where: str, texts: Sequence[str]) -> None:
        """Not too many, none too long, and something in them."""
        limits = self.limits
        if len(texts) > limits.texts:
            raise too_much(where, f"{len(texts)} at once; at most {limits.texts} a request")
        for place, text in enumerate(texts):
            if len(text) > limits.characters:
                raise too_much(
                    f"{where}[{place}]",
                    f"has {len(text):,} characters; at most {limits.characters:,} a text",
                )

    def check_something(self, where: str, texts: Sequence[str]) -> None:
        """Blank texts among others are kept; nothing but blank ones is a mistake."""
        if not any(text.strip() for text in texts):
            raise invalid(where, "there is nothing in it but white space; give some text")

    def check_most(self, where: str, number: int | None, most: int) -> None:
        if number is not None and number > most:
            raise invalid(where, f"{number} is too large; at most {most} here")


def too_much(where: str, what: str) -> Problem:
    found = invalid(where, what)
    return Problem(413, "too-large", str(found), found.details)


# FastAPI takes what is not `async` to another thread and back, which costs a millisecond each time.
async def service_of(request: Request) -> Service:
    """What every route depends on."""
    service: Service = request.app.state.service
    return service


async def admitted_by_key(request: Request) -> None:
    """What every route of ours that works depends on."""
    service = await service_of(request)
    service.keys.check(bearer(request.headers.get("authorization")))


async def aside(function: Callable[[], T]) -> T:
    """In another thread, so that nobody else has to wait."""
    return await asyncio.to_thread(function)
