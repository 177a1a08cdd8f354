"""`python -m local.cluster` as other processes see it: files, one line, a clean end."""

import json
import signal
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import urllib3
import yaml

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_writes_its_files_says_it_is_ready_and_stops_on_a_signal(tmp_path, number):
    directory = tmp_path / "cluster"
    command = [sys.executable, "-m", "local.cluster", "--name", "shop", "--dir", str(directory)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        endpoint = json.loads((directory / "endpoint.json").read_text())
        assert endpoint["name"] == "shop"
        assert endpoint["endpoint"] in line
        assert str(endpoint["port"]) in endpoint["endpoint"]
        assert answers(directory, endpoint["endpoint"]) == 200
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, rest, errors) == (0, "", "")


def answers(directory: Path, url: str) -> int:
    """The status of a list with what the files say: authority and token."""
    token = (directory / "admin-token").read_text()
    config = yaml.safe_load((directory / "kubeconfig").read_text())
    assert config["clusters"][0]["cluster"]["server"] == url
    assert config["users"][0]["user"]["token"] == token
    for secret in ("admin-token", "kubeconfig"):
        assert stat.S_IMODE((directory / secret).stat().st_mode) == 0o600
    context = ssl.create_default_context(cafile=directory / "ca.crt")
    with urllib3.PoolManager(ssl_context=context, retries=False) as pool:
        return pool.request("GET", url + "/api/v1/nodes", headers={"authorization": f"Bearer {token}"}).status


def test_a_port_that_is_taken_is_one_message_and_exit_1(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "local.cluster", "--port", port, "--dir", str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr == f"cannot listen on 127.0.0.1:{port}: Address already in use\n"
