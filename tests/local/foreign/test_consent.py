"""What a person must say before a run uses a cluster of theirs."""

import argparse
import os
import re
import subprocess
import sys

import pytest

from local.cluster.kubeconfig import Endpoint, kubeconfig
from local.foreign.api import ApiClient
from local.foreign.consent import NotConfirmedError, add_options, confirmed
from local.foreign.kubeconfig import read
from tests.local.processes import processes_in


def options(*arguments):
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(arguments)


@pytest.fixture
def theirs(tmp_path):
    path = tmp_path / "config"
    path.write_text(kubeconfig(Endpoint(name="kind-x", url="https://h:1", port=1, ca_pem="", version="v1.36.2"), "t"))
    return path


@pytest.mark.parametrize("confirm", [(), ("--confirm", ""), ("--confirm", "kind-y")])
def test_a_cluster_is_not_used_before_its_context_was_confirmed(theirs, confirm):
    with pytest.raises(NotConfirmedError, match=r"https://h:1 with context kind-x.*add CONFIRM=kind-x"):
        confirmed(options("--cluster-kubeconfig", str(theirs), *confirm))
    assert confirmed(options("--cluster-kubeconfig", str(theirs), "--confirm", "kind-x")) == theirs


def test_the_kubeconfig_of_the_environment_is_never_used(theirs, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(theirs))
    assert confirmed(options()) is None


def test_a_file_that_is_no_kubeconfig_is_named(tmp_path):
    with pytest.raises(NotConfirmedError, match=r"absent: .*No such file"):
        confirmed(options("--cluster-kubeconfig", str(tmp_path / "absent"), "--confirm", "x"))


@pytest.mark.local
@pytest.mark.long
def test_the_demo_keeps_its_promises_on_a_cluster_that_was_started_separately_and_leaves_it_empty(tmp_path):
    slow = ("--pod-start", "1000000", "--termination-scale", "1000000")  # its kubelets do nothing
    command = [sys.executable, "-m", "local.cluster", "--name", "theirs", "--dir", str(tmp_path / "theirs"), *slow]
    folder = tmp_path / "demo"
    folder.mkdir()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as cluster:
        try:
            assert "ready" in cluster.stdout.readline()
            path = tmp_path / "theirs" / "kubeconfig"
            demo = subprocess.run(
                [sys.executable, "-m", "local.demo", "--cluster-kubeconfig", str(path), "--confirm", "theirs"],
                env={**os.environ, "TMPDIR": str(folder)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert demo.returncode == 0, demo.stdout + demo.stderr
            assert len(re.findall(r"^ +kept ", demo.stdout, re.MULTILINE)) == 10
            owner = ApiClient(read(path))
            for left in ("/api/v1/nodes", "/api/v1/pods", "/apis/apps/v1/deployments", "/apis/apps/v1/daemonsets"):
                assert owner.call("GET", left)["items"] == []
            assert processes_in(folder) == []
        finally:
            cluster.terminate()
