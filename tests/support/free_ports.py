"""Ports for servers that a test starts."""

import random
import socket

FIRST, END = 20_000, 32_000
"""Range of the ports. Linux gives outgoing connections ports from 32,768 on, so no connection of another
test can take a port between its choice and the start of the server."""


def free_port(count: int = 1) -> int:
    """Return a port that is free together with the next `count` - 1 ports."""
    choose = random.SystemRandom().randrange
    while True:
        port = choose(FIRST, END)
        if all(map(_is_free, range(port, port + count))):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
