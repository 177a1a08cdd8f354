"""Ports for servers that need theirs before they start."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Reserve a port on loopback that the system gives to no other process while the block lasts.

    It is bound and not listened on: Linux lets a server that sets SO_REUSEADDR, as ours do, bind it during the block. A
    port that was only free a moment ago can be another process's once a server has started, where many processes run
    concurrently. Other systems refuse a second bind; there a port that was free a moment ago must suffice.
    """
    with socket.socket() as holding:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holding.bind(("127.0.0.1", 0))
        port = int(holding.getsockname()[1])
        if sys.platform != "linux":
            holding.close()
        yield port
