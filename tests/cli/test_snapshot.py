import copy
import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leeward.adapters.folder.files import FILES
from leeward.adapters.folder.reader import Folder
from leeward.adapters.folder.wiring import folder_ports
from leeward.cli.main import main
from leeward.model.times import parse_instant
from tests.cli.command import NOON, SMALL, a_snapshot


def ports_of(directory, cluster=""):
    return folder_ports(Folder(directory, cluster), parse_instant(NOON), print)


def test_a_folder_becomes_nodes_pods_budgets_instances_groups_hooks_and_policies():
    ports = ports_of(SMALL, "prod")
    api = ports.clusters.kubernetes("prod")
    assert [node.name for node in api.nodes()] == ["node-a", "node-b", "node-gone", "node-other"]
    assert {pod.key for pod in api.pods_on("node-b")} == {"shop/web-2", "shop/lonely", "shop/done"}
    assert [budget.name for budget in api.budgets()] == ["db"]
    assert api.daemon_sets() == {"kube-system/aws-node"}
    assert ports.instances.describe(["i-0a"])["i-0a"].group == "web-1"
    assert ports.groups.describe(["web-1"])["web-1"].maximum == 4
    assert [hook.heartbeat_timeout for hook in ports.groups.hooks("web-1")] == [300]
    policies = ports.clusters.policies("prod")
    assert [policy.name for policy in policies.policies] == ["web"]
    assert not policies.settings.drift


def hooks_output(*groups):
    return {"LifecycleHooks": [{"LifecycleHookName": "h", "AutoScalingGroupName": group} for group in groups]}


@pytest.mark.parametrize("join", [json.dumps, lambda outputs: "\n".join(map(json.dumps, outputs))])
def test_the_outputs_of_a_call_for_each_group_may_be_a_list_or_follow_one_another(tmp_path, join):
    (tmp_path / "lifecycle-hooks.json").write_text(join([hooks_output("a"), hooks_output("b", "a")]))
    groups = ports_of(tmp_path).groups
    assert {group: len(groups.hooks(group)) for group in ("a", "b")} == {"a": 2, "b": 1}


def test_null_counts_as_absent_as_in_kubernetes(tmp_path):
    node = {"metadata": {"name": "n", "deletionTimestamp": None, "labels": None}, "spec": None, "status": None}
    (tmp_path / "nodes.json").write_text(json.dumps({"items": [node]}))
    (node,) = ports_of(tmp_path).clusters.kubernetes("").nodes()
    assert (node.deleting, node.labels) == (False, {})


def test_a_whole_number_may_be_written_with_a_fraction_of_zero(tmp_path):
    (tmp_path / "auto-scaling-groups.json").write_text(
        '{"AutoScalingGroups": [{"AutoScalingGroupName": "a", "MaxSize": 4.0}]}'
    )
    maximum = ports_of(tmp_path).groups.describe(["a"])["a"].maximum
    assert (maximum, type(maximum)) == (4, int)


def test_a_file_that_a_command_does_not_need_may_be_broken(leeward, tmp_path):
    folder = a_snapshot(tmp_path, lifecycle_hooks="{")
    assert leeward("drain", "node-b", "--force", "--snapshot", folder, "--now", NOON).code == 0


def items(*objects):
    return {"items": list(objects)}


def meta(**rest):
    return {"metadata": {"name": "x", **rest}}


BROKEN = [
    ("nodes", "", "document: found an empty file, expected JSON, the output of: kubectl get nodes -o json"),
    ("nodes", "not json", 'line 1 column 1: found "not json" (Expecting value), expected JSON'),
    ("nodes", '{"items": [}', 'line 1 column 12: found "}" (Expecting value), expected JSON'),
    ("nodes", "[" * 100_000, "document: found JSON out of all proportion, expected JSON"),
    ("nodes", "[" + "9" * 5000 + "]", "document: found JSON out of all proportion, expected JSON"),
    ("nodes", {"kind": "Status"}, "document: found a mapping, expected a mapping with items"),
    ("nodes", {"items": {}}, "items: found a mapping, expected a list"),
    ("nodes", {"items": ["x"]}, 'items[0]: found "x", expected a mapping'),
    ("nodes", items({"spec": {}}), "items[0].metadata: found nothing, expected a value"),
    ("nodes", items({"metadata": {}}), "items[0].metadata.name: found nothing, expected a value"),
    ("nodes", items({"metadata": {"name": ""}}), 'items[0].metadata.name: found "", expected text that is not empty'),
    ("nodes", items(meta(labels=["a"])), "items[0].metadata.labels: found a list, expected a mapping"),
    ("nodes", items(meta(labels={"a/b": 1})), 'items[0].metadata.labels["a/b"]: found 1, expected text'),
    (
        "nodes",
        items(meta(creationTimestamp="now")),
        'items[0].metadata.creationTimestamp: found "now", expected a time',
    ),
    ("nodes", items({**meta(), "kind": "Pod"}), 'items[0].kind: found "Pod", expected Node'),
    ("nodes", items({**meta(), "spec": {"taints": [{"effect": "x"}]}}), "items[0].spec.taints[0].key: found nothing"),
    ("nodes", items({**meta(), "status": {"conditions": {}}}), "items[0].status.conditions: found a mapping, expected"),
    ("pods", items(meta(ownerReferences=[{"controller": True}])), "items[0].metadata.ownerReferences[0].kind: found"),
    (
        "pods",
        items({**meta(), "spec": {"terminationGracePeriodSeconds": "30"}}),
        "items[0].spec.terminationGracePeriod",
    ),
    (
        "pods",
        items({**meta(), "spec": {"volumes": [{"persistentVolumeClaim": {}}]}}),
        "items[0].spec.volumes[0].persis",
    ),
    ("pods", items(meta(deletionTimestamp=5)), "items[0].metadata.deletionTimestamp: found 5, expected a time"),
    (
        "pods",
        items({**meta(), "spec": {"terminationGracePeriodSeconds": 1.5}}),
        "items[0].spec.terminationGracePeriodSeconds: found 1.5, expected whole seconds",
    ),
    ("pdbs", items({**meta(), "status": {"disruptionsAllowed": "1"}}), "items[0].status.disruptionsAllowed: found"),
    (
        "pdbs",
        items({**meta(), "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Has"}]}}}),
        'items[0].spec.selector.matchExpressions[0].operator: found "Has", expected one of In, NotIn, Exists',
    ),
    ("daemonsets", items(meta(), 5), "items[1]: found 5, expected a mapping"),
    ("instances", {"Reservations": [{}]}, "Reservations[0]: found a mapping, expected a mapping with Instances"),
    ("instances", {"Reservations": [{"Instances": [{}]}]}, "Reservations[0].Instances[0].InstanceId: found nothing"),
    (
        "instances",
        {"Reservations": [{"Instances": [{"InstanceId": "i-1", "State": "running"}]}]},
        'Reservations[0].Instances[0].State: found "running", expected a mapping',
    ),
    ("auto-scaling-groups", {"AutoScalingGroups": [{}]}, "AutoScalingGroups[0].AutoScalingGroupName: found nothing"),
    (
        "auto-scaling-groups",
        {"AutoScalingGroups": [{"AutoScalingGroupName": "a", "MaxSize": "4"}]},
        'AutoScalingGroups[0].MaxSize: found "4", expected a whole number',
    ),
    ("lifecycle-hooks", hooks_output(""), 'LifecycleHooks[0].AutoScalingGroupName: found "", expected text'),
    ("lifecycle-hooks", [hooks_output("a"), hooks_output(1)], "[1].LifecycleHooks[0].AutoScalingGroupName: found 1"),
]


@pytest.mark.parametrize(("name", "content", "message"), BROKEN, ids=[f"{case[0]}: {case[2][:30]}" for case in BROKEN])
def test_a_broken_file_is_named_with_path_found_and_expected(leeward, tmp_path, name, content, message):
    folder = a_snapshot(tmp_path, **{name: content})
    reads = ["uninstall"] if name == "lifecycle-hooks" else ["drain", "node-a"]  # a drain needs no hooks
    reported = leeward.refuses(*reads, "--snapshot", folder)
    assert reported.startswith(f"{folder}/{name}.json: {message}")
    assert FILES[name].command in reported


def test_a_file_that_is_no_text_is_refused(leeward, tmp_path):
    folder = a_snapshot(tmp_path)
    (folder / "pods.json").write_bytes(b"\xff\xfe{\x00}")
    assert f"{folder}/pods.json: byte 1: found text that is not UTF-8" in leeward.refuses(
        "drain", "node-a", "--snapshot", folder
    )
    (folder / "pods.json").unlink()
    (folder / "pods.json").mkdir()
    assert leeward.refuses("drain", "node-a", "--snapshot", folder).startswith(f"{folder}/pods.json: found a file that")


NONSENSE = [None, "", "x", 0, -1, 10**30, 1.5, True, [], {}, [None], {"a": []}, "2024-05-01T12:00:00Z", float("inf")]


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from places(value[key], (*path, key))


def replaced(document, path, value):
    document = copy.deepcopy(document)
    if not path:
        return value
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sampled_from(["nodes", "pods", "pdbs", "daemonsets", "instances", "auto-scaling-groups", "lifecycle-hooks"]),
    st.sampled_from(NONSENSE),
    st.integers(0, 2**32),
    st.sampled_from(["drain node-a", "drain --group web-1", "blockers", "uninstall", "plan", "drift"]),
)
def test_whatever_stands_in_a_file_there_is_an_exit_code_and_no_traceback(tmp_path, name, nonsense, seed, command):
    document = json.loads((SMALL / f"{name}.json").read_text())
    path = random.Random(seed).choice(list(places(document)))
    folder = a_snapshot(tmp_path, **{name: json.dumps(replaced(document, path, nonsense))})
    assert main([*command.split(), "--snapshot", str(folder), "--now", NOON, "-o", "json"]) in {0, 1, 2}
