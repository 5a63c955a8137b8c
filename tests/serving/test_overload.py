"""What happens to requests for which there is no place."""

import asyncio

import pytest
from starlette.types import Message

from seqloom.serving.app import ROUTERS, worked_routes
from seqloom.serving.gate import Gate, NoPlaceError, full
from seqloom.serving.guard import COMMON, Answer
from seqloom.serving.limits import Limits
from seqloom.serving.refusing import BEAT, LONGEST, PACE, Refusing


def test_the_guard_knows_every_route_that_makes_work() -> None:
    """One it does not know would be refused only after it went through the whole application."""
    known = worked_routes()
    asked = [
        getattr(route, "path", "")
        for router in ROUTERS
        for route in router.routes
        if "POST" in (getattr(route, "methods", None) or ())
    ]
    assert {"/api/translate", "/api/caption", "/api/explain", "/translate", "/detect"} <= set(known)
    assert sorted(known) == sorted(asked)


def test_who_has_a_place_is_never_refused_for_want_of_room() -> None:
    gate = Gate(Limits(in_flight=1, queue=1))

    async def all_at_once() -> tuple[int, int]:
        """Everybody asks for a place before anybody has entered, as hundreds do in one moment."""
        refused = entered = 0

        async def come() -> None:
            nonlocal refused, entered
            try:
                with gate.place():
                    await asyncio.sleep(0)
                    async with gate.admitted():
                        entered += 1
                        await asyncio.sleep(0.01)
            except NoPlaceError:
                refused += 1

        await asyncio.gather(*(come() for _ in range(5)))
        return entered, refused

    assert asyncio.run(all_at_once()) == (2, 3)
    assert (gate.places, gate.inside, gate.waiting) == (0, 0, 0)


@pytest.mark.parametrize("others", [0, 1])
def test_who_gives_up_in_the_moment_of_a_turn_takes_nobodys_room(others: int) -> None:
    """Neither who leaves nor who waits on is hurt, and all the room is there again in the end."""
    gate = Gate(Limits(in_flight=1, queue=5))

    async def meet() -> list[object]:
        await gate.enter()
        waiting = [asyncio.ensure_future(gate.enter()) for _ in range(1 + others)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # as a timeout does; nobody has looked at the queue since
        gate.leave()
        return await asyncio.gather(*waiting, return_exceptions=True)

    first, *rest = asyncio.run(meet())
    assert isinstance(first, asyncio.CancelledError)
    assert rest == [None] * others
    assert (gate.inside, gate.waiting) == (others, 0)


def test_a_refusal_that_is_kept_ready_says_what_any_other_would() -> None:
    problem = full(Limits(in_flight=3, queue=4))
    assert str(problem) == "3 requests are worked on and 4 wait; try again in a moment"

    async def told() -> tuple[list[Message], list[Message]]:
        ready: list[Message] = []
        usual: list[Message] = []

        async def keep(message: Message) -> None:
            ready.append(message)

        async def keep_usual(message: Message) -> None:
            usual.append(message)

        async def nothing() -> Message:
            raise AssertionError

        await Refusing(problem, COMMON).tell(keep)
        await problem.response()({"type": "http"}, nothing, Answer(keep_usual).send)
        return ready, usual

    ready, usual = asyncio.run(told())
    assert ready[0]["status"] == usual[0]["status"] == 503
    assert dict(ready[0]["headers"]) == dict(usual[0]["headers"])
    assert dict(ready[0]["headers"])[b"retry-after"] == b"1"
    assert ready[1]["body"] == usual[1]["body"]


def test_one_is_refused_at_once_and_many_in_beats() -> None:
    refusing = Refusing(full(Limits()), COMMON)
    now = 1000.01
    assert refusing.pause(now) == 0
    pauses = [refusing.pause(now) for _ in range(1000)]
    assert max(pauses) <= LONGEST + BEAT
    assert pauses == sorted(pauses), "who came first hears it first"
    beats = {round((now + pause) / BEAT, 6) for pause in pauses}
    assert all(beat == int(beat) for beat in beats)
    first = [pause for pause in pauses if pause == pauses[0]]
    assert len(first) <= BEAT / PACE


def test_a_refusal_after_a_quiet_moment_comes_at_once_again() -> None:
    refusing = Refusing(full(Limits()), COMMON)
    for _ in range(1000):
        refusing.pause(50.0)
    assert refusing.pause(50.0 + 2 * LONGEST) == 0


def test_the_place_is_free_before_the_answer_is_there() -> None:
    """Sixteen clients on sixteen places are never refused, however soon they ask again."""
    gate = Gate(Limits(in_flight=1, queue=0))
    free: list[bool] = []

    async def send(message: Message) -> None:
        free.append(not gate.full)

    async def answered() -> None:
        answer = Answer(send)
        with gate.place() as place:
            answer.ending = place.free
            await answer.send({"type": "http.response.start", "status": 200, "headers": []})
            await answer.send({"type": "http.response.body", "body": b"a", "more_body": True})
            await answer.send({"type": "http.response.body", "body": b"b"})

    asyncio.run(answered())
    assert free == [False, False, True]
    assert gate.places == 0, "freed once, not twice"


@pytest.mark.parametrize("closed", [True, False])
def test_a_place_is_given_back_whatever_happens(closed: bool) -> None:
    gate = Gate(Limits(in_flight=1, queue=0))

    def fail() -> None:
        with gate.place():
            gate.closed = closed
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert not gate.full
