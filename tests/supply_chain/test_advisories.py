"""`make audit`: pip-audit and npm themselves, against a source on this machine that answers, is silent or refuses."""

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from supply_chain import advisories
from supply_chain.advisories import Audit, audit_npm, audit_python, audits, main
from supply_chain.locks import ASSET
from tests.infra.conftest import ROOT

WEAK = {"cronsim": "PYSEC-2026-1", "yaml": "Stack overflow in the parser"}


class Source:
    """Advisory source: `weak` names the packages with a weakness; `status` other than 200 refuses."""

    def __init__(self):
        self.weak, self.status, self.wait, self.url, self.cache = set(), 200, 0.0, "", ""

    def answer(self, path, body):
        time.sleep(self.wait)
        if "npm" in path:
            return {name: [_npm_advisory(name)] for name in self.weak & {"yaml"}}
        name = json.loads(body)["package"]["name"]
        return {"vulns": [_osv_advisory(name)] if name in self.weak else []}


def _npm_advisory(name):
    about = {"title": WEAK[name], "url": "about-it", "severity": "high"}
    return {"id": 1, "vulnerable_versions": "<3", "cwe": [], "cvss": {"score": 7}, **about}


def _osv_advisory(name):
    events = [{"introduced": "0"}, {"fixed": "99.1"}]
    affected = {"package": {"ecosystem": "PyPI", "name": name}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    return {"id": WEAK[name], "summary": "bad", "details": "bad", "affected": [affected]}


@pytest.fixture
def source(tmp_path):
    source = Source()
    source.cache = str(tmp_path)  # npm keeps what it once computed from an advisory

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps(source.answer(self.path, body)).encode()
            try:
                self.send_response(source.status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            except OSError:  # the caller has given up
                return

        def do_GET(self):
            self.send_error(404)  # npm asks for other versions of a weak package; a 5xx would be tried again for long

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    source.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield source
    server.shutdown()
    server.server_close()


def ask(source, seconds=30.0):
    return audit_python(ROOT / ASSET, "osv", seconds=seconds, options=[f"--osv-url={source.url}/v1/query"])


def ask_npm(source, seconds=30.0):
    return audit_npm(ROOT, seconds=seconds, options=["--registry", source.url, "--cache", source.cache])


def test_a_weakness_of_the_asset_is_named_with_its_fix(source):
    source.weak = {"cronsim"}
    assert str(ask(source)) == f"{ASSET}: cronsim 2.8 has PYSEC-2026-1, fixed in 99.1"


def test_a_source_that_knows_no_weakness_says_so(source):
    assert str(ask(source)) == f"{ASSET}: no known weakness"


def test_a_weakness_that_npm_knows_is_named_once(source):
    source.weak = {"yaml"}
    assert str(ask_npm(source)) == "package-lock.json: yaml <3 has Stack overflow in the parser (about-it)"


def test_npm_without_a_weakness(source):
    assert str(ask_npm(source)) == "package-lock.json: no known weakness"


@pytest.mark.parametrize("status", [405, 503])
def test_a_source_that_refuses_is_not_run_and_no_failure(source, status):
    source.status = status
    for audit in (ask(source), ask_npm(source)):
        assert str(audit).endswith(": not run: no advisory source answered")
        assert audit.weaknesses == ()


def test_a_source_that_is_silent_costs_its_seconds_and_no_more(source):
    source.wait = 20.0
    began = time.monotonic()
    assert not ask(source, seconds=3.0).answered
    assert not ask_npm(source, seconds=3.0).answered
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(("answered", "asked"), [(False, 2), (True, 3)])
def test_without_an_answer_for_the_asset_no_other_lock_is_asked_for(monkeypatch, answered, asked):
    calls = []

    def python(lock, source, *, seconds):
        calls.append((lock.name, source))
        return Audit(lock=lock.name, answered=answered)

    monkeypatch.setattr(advisories, "audit_python", python)
    monkeypatch.setattr(
        advisories, "audit_npm", lambda _, *, seconds: Audit(lock="package-lock.json", answered=answered)
    )
    assert [audit.answered for audit in audits(ROOT)] == [answered] * 4
    assert len(calls) == asked


@pytest.mark.parametrize(("weaknesses", "code"), [((), 0), (("cronsim 2.8 has X",), 1)])
def test_only_a_weakness_fails_the_build(monkeypatch, capsys, weaknesses, code):
    found = [Audit(lock="a", answered=True, weaknesses=weaknesses), Audit(lock="b", answered=False)]
    monkeypatch.setattr(advisories, "audits", lambda _: iter(found))
    assert main() == code
    assert capsys.readouterr().out.endswith("b: not run: no advisory source answered\n")


def test_it_runs_as_the_makefile_runs_it():
    """In too short a time for any answer: one line for each lock, and no traceback."""
    assert "check: lint types audit" in (ROOT / "Makefile").read_text()
    script = "from supply_chain import advisories as a; a.SOURCES = (); a.FIRST_ANSWER = 0.01; a.main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.partition(": ")[2] for line in done.stdout.splitlines()] == [
        "not run: no advisory source answered"
    ] * 4
