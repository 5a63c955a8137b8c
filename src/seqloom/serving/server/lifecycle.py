"""The server process from its start to its end: listening, loading, signals, shutdown."""

import asyncio
import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from seqloom.core.errors import StorageError
from seqloom.serving.http.options import HttpOptions
from seqloom.serving.http.stack import HeadMiddleware, wrap_app
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.middleware import RequestMiddleware, RequestObserver
from seqloom.serving.server.startup import StartupApp

if TYPE_CHECKING:
    from seqloom.serving.server.loading import LoadedApp

BACKLOG = 1024
"""Maximum number of connections that the operating system queues until the server accepts them."""
READ_BUFFER_BYTES = 64 * 1024
"""The HTTP server rejects a request whose headers do not fit into a buffer of this size. The limit is
not exact: the buffer may grow by the bytes that arrive together."""
SWITCH_INTERVAL = 0.0005
"""If the event loop waits for the interpreter lock, a thread that runs a model must release the
lock after this many seconds. The event loop needs the lock several times for each response. With
Python's default of 5 ms, a rejection would take as long as a translation."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def find_free_address(host: str, port: int) -> Address:
    """Return the address to listen on.

    Raises StorageError if the server cannot listen there, for example because another process uses
    the port. The HTTP server would not report this, because it lets processes share a port.

    port: 0 selects any free port
    """
    try:
        family, _, _, _, socket_address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(socket_address)
            bound = probe.getsockname()
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"{host}:{port}: cannot listen there ({reason}); choose another address with --host "
            "and --port"
        ) from error
    return Address(bound[0], bound[1])


@dataclass(frozen=True)
class ServerCallbacks:
    """Functions that `HttpServer` calls.

    listening: called when the static page is available, before the runs are loaded
    ready:     called when the runs are loaded
    stopped_while_loading: called if a stop signal arrives before the runs are loaded. Must end the
               process, because the loading thread cannot be interrupted. No request is being
               processed at that time.
    """

    listening: Callable[[], None]
    ready: Callable[["LoadedApp"], None]
    stopped_while_loading: Callable[[], NoReturn]


class HttpServer:
    """Runs the HTTP server and loads the application.

    The server calls the `StartupApp`, which forwards requests once the application is loaded.

    load: loads the runs and builds the application
    """

    def __init__(
        self,
        address: Address,
        load: Callable[[], "LoadedApp"],
        *,
        limits: Limits,
        admission: AdmissionControl,
        observe_request: RequestObserver,
        callbacks: ServerCallbacks,
        options: HttpOptions,
    ) -> None:
        self._address, self._load, self._callbacks = address, load, callbacks
        self._admission = admission
        self._startup = StartupApp()
        middleware = RequestMiddleware(
            HeadMiddleware(self._startup),
            limits=limits,
            admission=admission,
            observe=observe_request,
            model_routes=self._startup.model_routes,
            options=options,
        )
        header_milliseconds = max(1, round(limits.header_seconds * 1000))
        self._server = Server(
            wrap_app(middleware, options),
            address.host,
            address.port,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=BACKLOG,
            backpressure=BACKLOG,
            http1_settings=HTTP1Settings(
                header_read_timeout=header_milliseconds, max_buffer_size=READ_BUFFER_BYTES
            ),
            log_enabled=False,
        )

    def run(self, *, listens_while_loading: bool = True) -> None:
        """Listen, load the runs, and serve requests until a stop signal arrives.

        After the signal, finishes the admitted requests and returns. A second signal ends the
        process immediately.

        listens_while_loading: if False, load the runs before listening, because other processes
                               serve the same port
        """
        sys.setswitchinterval(SWITCH_INTERVAL)
        loaded = asyncio.run(self._serve(listens_while_loading))
        loaded.service.catalogue.close()

    async def _serve(self, listens_while_loading: bool) -> "LoadedApp":
        self._set_signal_handlers(self._callbacks.stopped_while_loading)
        if not listens_while_loading:
            loaded = await self._load_app()
            await self._server.serve()
            return loaded
        loading = asyncio.ensure_future(self._listen_and_load())
        try:
            await self._server.serve()
        finally:
            if not loading.done():
                loading.cancel()
        return await loading

    async def _listen_and_load(self) -> "LoadedApp":
        await _wait_until_listening(self._address)
        self._callbacks.listening()
        try:
            return await self._load_app()
        except BaseException:
            self._server.stop()  # type: ignore[no-untyped-call]
            raise

    async def _load_app(self) -> "LoadedApp":
        loaded = await _run_in_daemon_thread(self._load)
        self._startup.set_app(loaded.app, loaded.model_routes)
        # The loaded objects live until the process ends. `freeze` excludes them from garbage
        # collections, which would otherwise spend milliseconds on traversing them each time.
        gc.enable()
        gc.freeze()
        self._set_signal_handlers(self._stop)
        self._callbacks.ready(loaded)
        return loaded

    def _set_signal_handlers(self, handler: Callable[[], None]) -> None:
        for signal_number in STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(signal_number, handler)

    def _stop(self) -> None:
        for signal_number in STOP_SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(signal_number)
        self._admission.close()
        self._server.stop()  # type: ignore[no-untyped-call]


async def _wait_until_listening(address: Address) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(address.host, address.port)
        except OSError:
            await asyncio.sleep(0.01)
            continue
        writer.close()
        return


async def _run_in_daemon_thread(load: Callable[[], "LoadedApp"]) -> "LoadedApp":
    """Call `load` in a daemon thread and return its result.

    Unlike a thread of `asyncio.to_thread`, a daemon thread does not keep the process alive.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[LoadedApp] = loop.create_future()

    def work() -> None:
        try:
            loop.call_soon_threadsafe(result.set_result, load())
        except BaseException as error:
            loop.call_soon_threadsafe(result.set_exception, error)

    threading.Thread(target=work, name="loading", daemon=True).start()
    return await result
