"""A user's webhook: an HTTP server that keeps what it is sent, and can be out of order for a while."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Webhook:
    """`received`: bodies in the order of their arrival; `refused`: those that were answered with 503 instead."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.refused: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self._refuse = ""

    def refuse_once(self, event: str) -> None:
        """Answer the next event of this kind with 503."""
        self._refuse = event

    def about(self, instance: str) -> list[dict[str, Any]]:
        """What was reported of one instance."""
        return [body for body in self.received if body.get("instance") == instance]

    def types_in(self, group: str) -> list[str]:
        """Types of what was reported of upgrades and runs in a group, in the order of their arrival."""
        return [body["event"] for body in self.received if body.get("group") == group and "instance" not in body]

    def take(self, headers: dict[str, str], body: dict[str, Any]) -> int:
        """One delivery; answers its HTTP status."""
        self.headers.append(headers)
        if body["event"] == self._refuse:
            self._refuse = ""
            self.refused.append(body)
            return 503
        self.received.append(body)
        return 200


@contextmanager
def listening() -> Iterator[Webhook]:
    """Serve on a free port of this machine."""
    webhook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(webhook.take({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    webhook.url = f"http://127.0.0.1:{server.server_port}/reported"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield webhook
    finally:
        server.shutdown()
        server.server_close()
