"""An HTTP server on a free port that answers from a list, for what a well-behaved API server never does."""

import gzip
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

RESET = "reset"  # close the connection without an answer
GARBAGE = "garbage"  # 200 with a body that is cut short


@dataclass
class Reply:
    """`body` as JSON; bytes go out as they are."""

    status: int = 200
    body: object = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    raw_path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: object


class ScriptedServer:
    """Answers each request with the next of `script`; the last one repeats. `seen` are the requests."""

    def __init__(self, *script):
        self.script = list(script) or [Reply()]
        self.seen: list[Seen] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_request(self):
                parts = urlsplit(self.path)
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                body = json.loads(raw) if raw else None
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.seen.append(Seen(self.command, parts.path, self.path, query, headers, body))
                outer._answer(self, outer.script.pop(0) if len(outer.script) > 1 else outer.script[0])

            do_GET = do_POST = do_PATCH = do_DELETE = handle_request

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler, reply):
        if reply == RESET:
            handler.close_connection = True
            handler.connection.close()
            return
        if callable(reply):
            reply = reply(self.seen[-1])
        data = b'{"items": [' if reply == GARBAGE else _bytes(reply.body)
        status, headers = (200, {}) if reply == GARBAGE else (reply.status, reply.headers)
        if "gzip" in self.seen[-1].headers.get("accept-encoding", ""):
            data, headers = gzip.compress(data, 1), {**headers, "Content-Encoding": "gzip"}
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)


def _bytes(body):
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def status(code, message="", *, reason="", causes=(), **headers):
    """A Kubernetes Status."""
    body = {"kind": "Status", "status": "Failure", "code": code, "message": message, "reason": reason}
    return Reply(code, {**body, "details": {"causes": list(causes)}}, headers)
