"""Ports for servers that must be told theirs before they start."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port on loopback that the system gives to nobody else while the block lasts.

    It is bound and not listened on: Linux lets a server that sets SO_REUSEADDR, as ours do, take it meanwhile. A port
    that was merely free a moment ago can be anybody's by the time that a server has started, where many things run
    side by side. Elsewhere a second bind is refused, and being free a moment ago must do."""
    with socket.socket() as holding:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holding.bind(("127.0.0.1", 0))
        port = int(holding.getsockname()[1])
        if sys.platform != "linux":
            holding.close()
        yield port
