"""A server on loopback that accepts every connection and then does not do what it should: real sockets, real hangs."""

import contextlib
import json
import socket
import threading
import time


class HangingServer:
    """`answer(connection, request)` runs in a thread for each request; the default never answers."""

    def __init__(self, answer=None):
        self._answer = answer or never
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open = []
        self.asked = []
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        for one in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError):
            while request := connection.recv(65536):
                words = request.split(b" ", 2)
                self.asked.append(f"{words[0].decode()} {words[1].decode()}")
                self._answer(connection, self.asked[-1])


def never(_connection, _request):
    """Accepts, reads, says nothing."""


def after(seconds, body=None):
    """A good answer, too late."""

    def answer(connection, _request):
        time.sleep(seconds)
        connection.sendall(_response(body or {"items": []}))

    return answer


def byte_by_byte(seconds, body=None):
    """A good answer of which a byte comes every so many seconds: no single read times out."""

    def answer(connection, _request):
        for byte in _response(body or {"items": []}):
            connection.sendall(bytes([byte]))
            time.sleep(seconds)

    return answer


def writes_hang(body):
    """Reads are answered from a watch cache, writes wait for etcd."""

    def answer(connection, request):
        if request.startswith("GET"):
            connection.sendall(_response(body))

    return answer


def _response(body):
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data) + data
