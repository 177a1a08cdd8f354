"""Settings that user data declares: each is read, or its attribute is unknown and a warning names it."""

import base64
import json

import pytest

from leeward.model.quantity import CPU, EPHEMERAL_STORAGE, PODS
from leeward.node_template.provenance import Provenance
from leeward.node_template.user_data import kubelet_settings
from tests.unit.node_template.builders import a_launch, an_expected_node

CALL = "#!/bin/bash\n/etc/eks/bootstrap.sh blue --kubelet-extra-args"
EVERYTHING = "labels taints maxPods capacity"


def node_config(*, config=None, flags=None, head=(), **spec):
    """A NodeConfig as JSON, which is YAML as well."""
    kubelet = {"config": config, "flags": flags} if config or flags else spec.pop("kubelet", {})
    document = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", **dict(head)}
    return json.dumps({**document, "spec": {"kubelet": kubelet, **spec}})


def toml(*rows):
    return "[settings.kubernetes]\ncluster-name = 'blue'\nmax-pods = 40\n" + "\n".join(rows)


def command(text, *, essential=True, mode="always"):
    commands = f"[['apiclient', {text}]]"
    return toml(
        f"[settings.bootstrap-commands.x]\ncommands = {commands}\nessential = {str(essential).lower()}\nmode = '{mode}'"
    )


def row_of(text, kind="m5.large"):
    """The labels, max pods, CPU and disk of a node, and which of its attributes are unknown."""
    node = an_expected_node(launch=a_launch(kind, text))
    origins = kubelet_settings(base64.b64encode(text.encode()).decode()).provenance
    unknown = [attribute.value for attribute, origin in origins.items() if origin is Provenance.UNKNOWN]
    said = [warning for warning in node.warnings if warning.startswith("user data:")]
    assert bool(said) == bool(unknown), (text, node.warnings)
    team = node.labels.get("team", "-")
    return f"{team} {node.capacity[PODS]} pods {node.allocatable[CPU]}m | {' '.join(unknown) or '-'}"


PLAIN = "- 29 pods 1930m | -"

SETTINGS = {
    node_config(flags=["--node-labels=team=red"]): "red 29 pods 1930m | -",
    # pods per core: the smaller of both counts
    node_config(config={"podsPerCore": 4}): "- 8 pods 1930m | -",
    node_config(config={"podsPerCore": 40}): PLAIN,
    node_config(config={"podsPerCore": 0}): PLAIN,
    node_config(config={"podsPerCore": 4, "maxPods": 5}): "- 5 pods 1930m | -",
    node_config(config={"podsPerCore": "many"}): "- 29 pods 1930m | maxPods",
    node_config(config={"podsPerCore": 4}, flags=["--pods-per-core=5"]): "- 10 pods 1930m | -",
    f"{CALL} --pods-per-core=4": "- 8 pods 1930m | -",
    f"{CALL} '--pods-per-core=4 --max-pods=7'": "- 7 pods 1930m | -",
    f"{CALL} --pods-per-core=$N": "- 29 pods 1930m | maxPods",
    f'[ $X ] && A=--pods-per-core=4\n{CALL[12:]} "$A"': "- 8 pods 1930m | maxPods",
    # reserved CPUs take the place of all reserved CPU
    node_config(config={"reservedSystemCPUs": "0"}): "- 29 pods 1000m | -",
    node_config(config={"reservedSystemCPUs": "0", "kubeReserved": {"cpu": "500m"}}): "- 29 pods 1000m | -",
    node_config(config={"reservedSystemCPUs": "all"}): "- 29 pods 1930m | capacity",
    node_config(flags=["--reserved-cpus=0-1"]): "- 29 pods 0m | -",
    f"{CALL} '--reserved-cpus=0,0 --kube-reserved=cpu=100m'": "- 29 pods 1000m | -",
    f"{CALL} --reserved-cpus=1-x": "- 29 pods 1930m | capacity",
    f'[ $X ] && A=--reserved-cpus=1\n{CALL[12:]} "$A"': "- 29 pods 930m | capacity",
    # kubelet's configuration from elsewhere
    f"{CALL} '--config=/etc/mine.json --node-labels=team=red'": "red 29 pods 1930m | taints maxPods capacity",
    node_config(flags=["--config-dir=/etc/mine.d"]): "- 29 pods 1930m | taints maxPods capacity",
    # a NodeConfig that nodeadm refuses, or that has keys of another version
    node_config(kubelet={"flags": {"node-labels": "team=red"}}): f"- 29 pods 1930m | {EVERYTHING}",
    node_config(kubelet={"flags": "--node-labels=team=red"}): f"- 29 pods 1930m | {EVERYTHING}",
    node_config(kubelet={"config": [{"maxPods": 7}]}): f"- 29 pods 1930m | {EVERYTHING}",
    node_config(kubelet={"labels": {"team": "red"}}): f"- 29 pods 1930m | {EVERYTHING}",
    node_config(kubeletConfig={"maxPods": 7}): f"- 29 pods 1930m | {EVERYTHING}",
    node_config(config={"maxPods": 7}, head={"apiVersion": "node.eks.aws/v1beta9"}.items()): (
        f"- 7 pods 1930m | {EVERYTHING}"
    ),
    node_config(config={"max-pods": 7}): "- 29 pods 1930m | maxPods",
    node_config(config={"maxPods": 7, "nodeLabels": {"team": "red"}}): "- 7 pods 1930m | labels",
    node_config(config={"reservedCpus": "0,1"}): "- 29 pods 1930m | capacity",
    "#!/bin/bash\nsed -i s,MAX_PODS,20,g /etc/systemd/system/kubelet.service\n": f"- 29 pods 1930m | {EVERYTHING}",
    node_config(config={"kubeReserved": ["cpu=1"]}): "- 29 pods 1930m | capacity",
    node_config(config={"registerWithTaints": {"key": "a", "effect": "NoSchedule"}}): "- 29 pods 1930m | taints",
    node_config(config={"registerWithTaints": [{"key": "a b", "effect": "NoSchedule"}]}): "- 29 pods 1930m | taints",
    node_config(instance={"localStorage": {"strategy": "RAID5"}}): "- 29 pods 1930m | capacity",
    node_config(instance={"storage": {"volumes": [{"device": "/dev/sdb", "mountTargets": ["/var/lib/kubelet"]}]}}): (
        "- 29 pods 1930m | capacity"
    ),
    node_config(containerd={"config": "x"}, cluster={"name": "blue"}, featureGates={"InstanceIdNodeName": True}): PLAIN,
    # Bottlerocket
    toml(): "- 40 pods 1930m | -",
    command("'set', 'kubernetes.max-pods=20'"): "- 20 pods 1930m | -",
    command("'set', 'settings.kubernetes.max-pods=20', 'motd=x'"): "- 20 pods 1930m | -",
    command("'set', 'kubernetes.node-labels.team=red'"): "red 40 pods 1930m | -",
    command("""'set', '--json', '{"settings": {"kubernetes": {"max-pods": 20}}}'"""): "- 20 pods 1930m | -",
    command("'set', 'kubernetes.kube-reserved.cpu=100m'"): "- 40 pods 1900m | -",
    command("'set', 'kubernetes.max-pods=20'", mode="off"): "- 40 pods 1930m | -",
    command("'set', 'kubernetes.max-pods=20'", essential=False): "- 20 pods 1930m | maxPods",
    command("'set', 'kubernetes.node-labels.team=red'", essential=False): "- 40 pods 1930m | labels",
    command("'set', 'kubernetes.max-pods=many'"): "- 29 pods 1930m | maxPods",
    command("'set', 'motd=x'", essential=False): "- 40 pods 1930m | -",
    command("'apply', 's3://x/y'"): f"- 40 pods 1930m | {EVERYTHING}",
    toml("[settings.kubernetes.node-taints]", "'a' = ['b c:NoSchedule']"): "- 40 pods 1930m | taints",
    toml("[settings.kubernetes.node-labels]", "team = 'red'", "list = ['a']"): "red 40 pods 1930m | labels",
    toml(
        "[settings.bootstrap-containers.x]",
        "mode = 'once'",
        f"user-data = '{base64.b64encode(b'apiclient set kubernetes.max-pods=20').decode()}'",
    ): f"- 40 pods 1930m | {EVERYTHING}",
}


def test_each_setting_is_read_or_unknown_with_a_warning():
    assert {text: row for text, expected in SETTINGS.items() if (row := row_of(text)) != expected} == {}


@pytest.mark.parametrize(("essential", "gib"), [(True, 442), (False, 20)])
def test_a_bootstrap_command_may_bind_kubelets_files_to_local_disks(essential, gib):
    bind = "'ephemeral-storage', 'bind', '--dirs', '/var/lib/containerd', '/var/lib/kubelet'"
    node = an_expected_node(launch=a_launch("i3.large", command(bind, essential=essential)))
    assert node.capacity[EPHEMERAL_STORAGE] // 1024**3 == gib


def test_a_set_of_cpus_out_of_all_proportion_is_unknown():
    assert kubelet_settings(base64.b64encode(f"{CALL} --reserved-cpus={'0-9999,' * 8000}".encode()).decode()).warnings
