"""Clients that never pause: many connections in one thread, which costs the machine they share with
the server little. What they ask is one and the same, as bytes."""

import selectors
import socket
import time
from dataclasses import dataclass

RETRY = b"\r\nretry-after: "


@dataclass(eq=False)
class Connection:
    """One request after another."""

    socket: socket.socket
    asked: float = 0.0
    heard: bytes = b""

    def ask(self, request: bytes) -> None:
        self.heard, self.asked = b"", time.monotonic()
        self.socket.sendall(request)

    def hear(self) -> int | None:
        """The status, when the whole answer is there."""
        part = self.socket.recv(65536)
        assert part, f"the server hung up after {self.heard[:200]!r}"
        self.heard += part
        head, found, body = self.heard.partition(b"\r\n\r\n")
        if not found:
            return None
        headers = head.lower()
        size = int(headers.partition(b"\r\ncontent-length: ")[2].split(b"\r\n", 1)[0])
        if len(body) < size:
            return None
        status = int(head[9:12])
        assert status != 503 or int(headers.partition(RETRY)[2].split(b"\r\n", 1)[0]) >= 1
        return status


def post(path: str, body: str) -> bytes:
    """A request, as it is sent."""
    content = body.encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def flood(port: int, request: bytes, clients: int, seconds: float) -> list[tuple[int, float]]:
    """Status and seconds of all that is asked by so many; who has asked hears the answer out."""
    found: list[tuple[int, float]] = []
    with selectors.DefaultSelector() as selector:
        for _ in range(clients):
            opened = socket.create_connection(("127.0.0.1", port), timeout=30)
            selector.register(opened, selectors.EVENT_READ, Connection(opened))
        end = time.monotonic() + seconds
        for key in list(selector.get_map().values()):
            key.data.ask(request)
        while selector.get_map():
            ready = selector.select(30)
            assert ready, "nobody was answered for 30 s"
            for key, _ in ready:
                status = key.data.hear()
                if status is None:
                    continue
                now = time.monotonic()
                found.append((status, now - key.data.asked))
                if now < end:
                    key.data.ask(request)
                else:
                    selector.unregister(key.fileobj)
                    key.data.socket.close()
    return found
