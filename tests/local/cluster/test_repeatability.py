"""The same calls at the same times give the same cluster, byte for byte, in whatever process."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from local.cluster.resources import BY_PLURAL
from tests.local.cluster.builders import Lab, a_budget, a_daemonset, a_job, a_stateful_set, a_workload

ZONE = "topology.kubernetes.io/zone"
SHY = {"matchLabels": {"app": "shy"}}
ROOT = Path(__file__).parents[3]


def a_day(seed: int = 0) -> str:
    """A bit of everything; a digest of all objects, facts and versions at the end."""
    lab = Lab(nodes=5, seed=seed)
    lab.create("daemonsets", a_daemonset())
    pods = lab.deployed(replicas=8)
    lab.create("poddisruptionbudgets", a_budget(maxUnavailable="25%"))
    lab.create("statefulsets", a_stateful_set(replicas=3))
    lab.create("jobs", a_job(seconds=100, spec={"completions": 6, "parallelism": 3}))
    even = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SHY}
    apart = [{"weight": 1, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": SHY, "namespaceSelector": {}}}]
    preference = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": apart}}
    lab.create("deployments", a_workload("shy", 4, topologySpreadConstraints=[even], affinity=preference))
    lab.run(20)
    lab.cluster.evict(pods[0])
    lab.cluster.evict("db-1")
    lab.cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    lab.cluster.set_node_ready("n2", "Unknown")
    lab.run(400)
    lab.cluster.delete("nodes", "n2")
    lab.run(100)
    state = {resource: lab.cluster.list(resource) for resource in BY_PLURAL}
    facts = [fact.as_json() for fact in lab.cluster.history.facts()]
    text = json.dumps([state, facts, lab.cluster.store.version])
    return hashlib.sha256(text.encode()).hexdigest()


def test_two_runs_in_one_process_agree_and_another_seed_does_not():
    assert a_day() == a_day()
    assert a_day() != a_day(seed=1)


def test_processes_with_different_hash_seeds_agree():
    command = "from tests.local.cluster.test_repeatability import a_day; print(a_day())"
    digests = {
        subprocess.run(
            [sys.executable, "-c", command],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {a_day()}


def test_time_never_runs_backwards_and_each_timer_sees_its_own_moment():
    lab = Lab(nodes=1)
    lab.deployed(replicas=1)
    lab.cluster.delete("pods", lab.pods()[0])
    lab.now += 1000
    lab.cluster.step(lab.now)  # one jump over everything that was due meanwhile
    moments = [fact.at for fact in lab.cluster.history.facts()]
    assert moments == sorted(moments)
    (deleted,) = (fact for fact in lab.cluster.history.facts() if fact.kind == "pod-deleted")
    assert deleted.at < lab.now - 900


def test_step_says_when_the_next_thing_is_due():
    lab = Lab(nodes=1, event_ttl=10_000.0)
    lab.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert lab.cluster.step(lab.now) == lab.now + 1.0
