"""The server: one process, one event loop, and signals that end it well."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from starlette.types import ASGIApp

from seqloom.core.errors import StorageError
from seqloom.serving.service import Service

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


def leave_a_core() -> None:
    """To the event loop. Threads that share one with it wait for each other in every operation:
    answers take longer and fewer come. Whoever sets OMP_NUM_THREADS knows better."""
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() - 1))


def run_server(app: ASGIApp, service: Service, address: Address, ready: Callable[[], None]) -> None:
    """Serve until a signal comes; then answer what is under way and return.

    A second signal ends the process at once, as if nobody had asked it to wait.
    """
    # What was loaded stays until the end: to look through it again and again costs milliseconds.
    gc.freeze()
    sys.setswitchinterval(TURN)
    asyncio.run(_serve(app, service, address, ready))
    service.catalogue.close()


async def _serve(
    app: ASGIApp, service: Service, address: Address, ready: Callable[[], None]
) -> None:
    milliseconds = max(1, round(service.limits.header_seconds * 1000))
    server = Server(
        app,
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
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for each in ENDING:
            loop.remove_signal_handler(each)
        service.gate.close()
        server.stop()  # type: ignore[no-untyped-call]

    for each in ENDING:
        loop.add_signal_handler(each, stop)
    told = asyncio.ensure_future(_tell_when_open(address, ready))
    try:
        await server.serve()
    finally:
        told.cancel()


async def _tell_when_open(address: Address, ready: Callable[[], None]) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(address.host, address.port)
        except OSError:
            await asyncio.sleep(0.01)
            continue
        writer.close()
        ready()
        return
