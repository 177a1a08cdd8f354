"""Pods of one template are read once; whatever makes a difference is read anew."""

import pytest

from leeward.scheduling.pods import PodReader
from leeward.scheduling.volumes import Storage

SELECTOR = {"matchLabels": {"app": "web"}}
TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": SELECTOR}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["v"]}
CONTAINER = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
PLAIN = {"containers": [CONTAINER]}
OTHERS = [
    {"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "2"}}}]},
    {"containers": [{**CONTAINER, "ports": [{"containerPort": 1, "hostPort": 1}]}]},
    {"containers": [CONTAINER, CONTAINER]},
    {**PLAIN, "initContainers": [{"resources": {"requests": {"cpu": "3"}}}]},
    {**PLAIN, "initContainers": [{"resources": {"requests": {"cpu": "3"}}, "restartPolicy": "Always"}]},
    {**PLAIN, "resources": {"requests": {"cpu": "4"}}},
    {**PLAIN, "overhead": {"cpu": "1"}},
    {**PLAIN, "nodeSelector": {"zone": "a"}},
    {**PLAIN, "tolerations": [{"key": "k", "operator": "Exists"}]},
    {**PLAIN, "schedulingGates": [{"name": "g"}]},
    {**PLAIN, "topologySpreadConstraints": [{**SPREAD, "labelSelector": SELECTOR}]},
    {**PLAIN, "affinity": {"podAffinity": {REQUIRED: [TERM]}}},
    {**PLAIN, "affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}},
    {**PLAIN, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
]
STORAGE = Storage.from_json(
    claims=[{"metadata": {"name": "c"}, "spec": {"volumeName": "pv"}}],
    volumes=[{"metadata": {"name": "pv"}, "spec": {"csi": {"driver": "ebs.csi.aws.com"}}}],
)


def a_raw_pod(name, spec, namespace="default", **labels):
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}


def test_pods_whose_specs_read_the_same_share_their_needs_whatever_their_names_and_volumes_of_their_own():
    reader = PodReader()
    tokens = [{"name": "kube-api-access-x7k2p", "projected": {}}]
    first = reader.read(a_raw_pod("a", PLAIN, app="web"))
    assert reader.read(a_raw_pod("b", {**PLAIN, "volumes": tokens, "nodeName": "n1"}, app="x")).needs is first.needs


@pytest.mark.parametrize("spec", OTHERS, ids=range(len(OTHERS)))
def test_a_pod_that_differs_in_one_part_is_read_as_if_it_were_alone(spec):
    reader = PodReader(storage=STORAGE)
    plain = reader.read(a_raw_pod("a", PLAIN)).needs
    other = reader.read(a_raw_pod("b", spec)).needs
    assert other == PodReader(storage=STORAGE).read(a_raw_pod("b", spec)).needs
    assert other != plain


def test_rules_about_other_pods_are_read_against_the_pods_own_labels_and_namespace():
    reader, spec = PodReader(), {**PLAIN, "topologySpreadConstraints": [{**SPREAD, "labelSelector": SELECTOR}]}
    pods = [reader.read(a_raw_pod("a", spec, v=version)) for version in ("1", "2")]
    pods.append(reader.read(a_raw_pod("a", spec, "shop", v="2")))
    assert len({pod.needs for pod in pods}) == 3


def test_the_same_labels_and_spec_with_another_claim_ask_for_another_volume():
    claims = [{"metadata": {"name": name}, "spec": {"volumeName": name}} for name in ("c1", "c2")]
    zones = {"c1": "a", "c2": "b"}
    volumes = [{"metadata": {"name": n, "labels": {"topology.kubernetes.io/zone": zones[n]}}} for n in zones]
    reader = PodReader(storage=Storage.from_json(claims=claims, volumes=volumes))
    specs = [{**PLAIN, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]} for name in zones]
    found = [reader.read(a_raw_pod("a", spec)).needs.volumes.zones for spec in specs]
    assert [values for ((_, values),) in found] == [("a",), ("b",)]
