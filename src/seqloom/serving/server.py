"""The server: one process, one event loop, and signals that end it well."""

import asyncio
import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from seqloom.core.errors import StorageError
from seqloom.serving.door import Door
from seqloom.serving.gate import Gate
from seqloom.serving.guard import Guard, Seen
from seqloom.serving.limits import Limits

if TYPE_CHECKING:
    from seqloom.serving.assembling import Assembled

BACKLOG = 1024
"""Connections that the system keeps for us before we look at them."""
TURN = 0.0005
"""Seconds after which a thread that computes lets the event loop in. An answer needs several such
turns; with Python's usual 5 ms each, a refusal would wait as long as a translation."""
ENDING = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def free_address(host: str, port: int) -> Address:
    """This address, if nobody else has it; port 0: any that is free.

    The server lets several processes share a port, so it would not notice that it is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        family, _, _, _, place = found
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            bound = probe.getsockname()
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"{host}:{port}: cannot be opened ({reason}); choose another with --host and --port"
        ) from error
    return Address(bound[0], bound[1])


@dataclass(frozen=True)
class Entrance:
    """What is there from the first moment, before anything is loaded."""

    limits: Limits
    gate: Gate
    seen: Seen
    door: Door = field(default_factory=Door)

    def guard(self) -> Guard:
        return Guard(self.door, self.limits, self.seen, self.gate, self.door.worked)


@dataclass(frozen=True)
class Sayings:
    """What is told to whoever started the server.

    listening: the page can be fetched; the rest is on its way
    ready:     everything is there
    leaving:   a signal came before it was. Nothing is under way, and a thread that loads cannot be
               interrupted: this ends the process and does not return
    """

    listening: Callable[[], None]
    ready: Callable[["Assembled"], None]
    leaving: Callable[[], NoReturn]


def run_server(
    entrance: Entrance, address: Address, load: Callable[[], "Assembled"], say: Sayings
) -> None:
    """Listen, load, and serve until a signal comes; then answer what is under way and return.

    A second signal ends the process at once, as if nobody had asked it to wait.
    """
    sys.setswitchinterval(TURN)
    assembled = asyncio.run(_Serving(entrance, address, load, say).run())
    assembled.service.catalogue.close()


class _Serving:
    """From listening to the end."""

    def __init__(
        self, entrance: Entrance, address: Address, load: Callable[[], "Assembled"], say: Sayings
    ) -> None:
        self._entrance, self._address, self._load, self._say = entrance, address, load, say
        milliseconds = max(1, round(entrance.limits.header_seconds * 1000))
        self._server = Server(
            entrance.guard(),
            address.host,
            address.port,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=BACKLOG,
            backpressure=BACKLOG,
            http1_settings=HTTP1Settings(header_read_timeout=milliseconds),
            log_enabled=False,
        )

    async def run(self) -> "Assembled":
        self._on_signals(self._say.leaving)
        opening = asyncio.ensure_future(self._open())
        try:
            await self._server.serve()
        finally:
            if not opening.done():
                opening.cancel()
        return await opening

    async def _open(self) -> "Assembled":
        await _until_listening(self._address)
        self._say.listening()
        try:
            assembled = await _in_a_thread(self._load)
        except BaseException:
            self._server.stop()  # type: ignore[no-untyped-call]
            raise
        self._entrance.door.open(assembled.app, assembled.worked)
        # What was loaded stays until the end: to look through it again and again costs milliseconds.
        gc.enable()
        gc.freeze()
        self._on_signals(self._stop)
        self._say.ready(assembled)
        return assembled

    def _on_signals(self, act: Callable[[], None]) -> None:
        for each in ENDING:
            asyncio.get_running_loop().add_signal_handler(each, act)

    def _stop(self) -> None:
        for each in ENDING:
            asyncio.get_running_loop().remove_signal_handler(each)
        self._entrance.gate.close()
        self._server.stop()  # type: ignore[no-untyped-call]


async def _until_listening(address: Address) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(address.host, address.port)
        except OSError:
            await asyncio.sleep(0.01)
            continue
        writer.close()
        return


async def _in_a_thread(load: Callable[[], "Assembled"]) -> "Assembled":
    """In one that nobody waits for when the process ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Assembled] = loop.create_future()

    def work() -> None:
        try:
            loop.call_soon_threadsafe(done.set_result, load())
        except BaseException as error:
            loop.call_soon_threadsafe(done.set_exception, error)

    threading.Thread(target=work, name="loading", daemon=True).start()
    return await done
