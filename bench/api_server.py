"""API server of a large cluster that answers only lists, as a real one does: `limit` and `continue` cut pages; with
`resourceVersion=0` the limit is ignored. Answers are generated while they are sent, so that its memory stays small."""

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench import raw_cluster

CHUNK = 500  # objects made at once


class Handler(BaseHTTPRequestHandler):
    """Handler of list requests: `pods` and `nodes` are their counts; every other list is empty."""

    protocol_version = "HTTP/1.1"
    pods = nodes = 0

    def do_GET(self) -> None:
        """Answer a list, compressed where the client accepts that."""
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        first, limit = int(query.get("continue", 0)), int(query.get("limit", 0))
        count, items = self._objects(parts.path.rsplit("/", 1)[-1], first)
        end = count if query.get("resourceVersion") == "0" or not limit else min(first + limit, count)
        rest = {"continue": str(end)} if end < count else {}
        packed = "gzip" in self.headers.get("Accept-Encoding", "")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        for piece in _packed(_body(islice(items, end - first), rest), packed=packed):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _objects(self, resource: str, first: int) -> tuple[int, Iterator[dict[str, Any]]]:
        match resource:
            case "pods":
                return self.pods, raw_cluster.pods(self.pods, self.nodes, first=first)
            case "nodes":
                return self.nodes, raw_cluster.nodes(self.nodes, first=first)
            case _:
                return 0, iter(())


def _body(items: Iterator[dict[str, Any]], metadata: dict[str, str]) -> Iterator[bytes]:
    yield b'{"metadata": %b, "items": [' % json.dumps({"resourceVersion": "1", **metadata}).encode()
    comma = b""
    while some := list(islice(items, CHUNK)):
        yield comma + json.dumps(some)[1:-1].encode()
        comma = b", "
    yield b"]}"


def _packed(pieces: Iterator[bytes], *, packed: bool) -> Iterator[bytes]:
    if not packed:
        yield from pieces
        return
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1) as file:
        for piece in pieces:
            file.write(piece)
            if buffer.tell():
                yield buffer.getvalue()
                buffer.seek(0)
                buffer.truncate()
    yield buffer.getvalue()


@contextmanager
def serving(pods: int, nodes: int) -> Iterator[str]:
    """Serve in a separate process and give the server's URL."""
    command = [sys.executable, "-m", "bench.api_server", str(pods), str(nodes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


if __name__ == "__main__":
    Handler.pods, Handler.nodes = int(sys.argv[1]), int(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
