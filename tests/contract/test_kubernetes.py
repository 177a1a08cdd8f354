"""What every `ports.kubernetes.Kubernetes` does: the client over TLS and RBAC on an emulated cluster, the simulation's
on the same model without HTTP, and the fake of other tests.

The fake is filled with what the client has read, so that all stand before the same nodes, pods and budgets."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from leeward.adapters.aws.access import Grant
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.kubernetes.answers import ApiRequest
from leeward.adapters.kubernetes.api import ClusterApi
from leeward.adapters.kubernetes.client import ClusterClient, Endpoint
from leeward.adapters.kubernetes.token import TokenSource
from leeward.adapters.wiring import SystemClock
from leeward.errors import AccessDeniedError, ObjectGoneError
from leeward.model.node import Taint
from leeward.model.pod import Deployment
from leeward.model.subnet import Subnet
from leeward.placement.cni import variables_of
from leeward.placement.restrictions import of_volume
from leeward.ports.kubernetes import EvictionRefusedError, Listed
from local.cluster.authn import AccessEntry
from local.cluster.faults import Effect
from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from local.cluster.server import ClusterServer
from local.cluster.settings import ClusterSettings
from simulation.kubernetes import SimKubernetes
from tests.fakes.clock import FakeClock
from tests.fakes.kubernetes import FakeKubernetes

NOW = datetime(2026, 3, 2, 10, 2, tzinfo=UTC)
TAINT = Taint(key="leeward.dev/disrupted", effect="NoSchedule", value="manual")
ROLES = {
    "AKIDREAD": ("leeward-blue-read", ("leeward:read",)),
    "AKIDTAINT": ("leeward-blue-taint", ("leeward:taint",)),
    "AKIDACT": ("leeward-blue-act", ("leeward:act",)),
    "AKIDANY": ("leeward-blue-any", ("leeward:read", "leeward:act")),
}
ARN = "arn:aws:iam::111122223333:role/{}"
DNS = Deployment.from_json(
    {"metadata": {"name": "dns", "namespace": "kube-system", "resourceVersion": "1"}, "spec": {"replicas": 1}}
)
VOLUME = {
    "metadata": {"name": "pv-1", "labels": {"topology.kubernetes.io/zone": "us-east-1b"}},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
}
ATTACHMENT = {
    "metadata": {"name": "csi-1"},
    "spec": {"attacher": "ebs.csi.aws.com", "nodeName": "node-a", "source": {"persistentVolumeName": "pv-1"}},
}
AWS_NODE = {
    "metadata": {"name": "aws-node"},
    "spec": {
        "selector": {"matchLabels": {"k8s-app": "aws-node"}},
        "template": {
            "metadata": {"labels": {"k8s-app": "aws-node"}},
            "spec": {
                "nodeSelector": {"no": "node"},
                "containers": [{"name": "aws-node", "image": "i", "env": [{"name": "MAX_ENI", "value": "2"}]}],
            },
        },
    },
}
RESOURCES = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}


def identify(url, cluster):
    """What STS would say about the signer of a token."""
    key = parse_qs(urlsplit(url).query)["X-Amz-Credential"][0].split("/")[0]
    return f"arn:aws:sts::111122223333:assumed-role/{ROLES[key][0]}/leeward" if key in ROLES else None


class KubeConfig:
    """As `EksKubeConfig`, with the emulated cluster's address in the place of DescribeCluster's answer."""

    def __init__(self, aws, server, access_key):
        self._endpoint = Endpoint(url=server.url, ca=server.ca_pem)
        self._key = access_key
        self._tokens = TokenSource(aws, SystemClock(), self, cluster="blue", region="us-east-1")
        self.token = self._tokens.token

    def endpoint(self, *, fresh=False):
        return self._endpoint

    def grant(self, *, fresh=False):
        return Grant(access_key=self._key, secret_key="not-a-secret")


class Emulated:
    """A cluster of two nodes; `api` is the client, `events()` what was written."""

    def __init__(self, aws, server):
        self.aws, self.server = aws, server
        self.clients = []
        self.api = self.connect("AKIDANY")

    def connect(self, access_key):
        client = ClusterClient("blue", KubeConfig(self.aws, self.server, access_key), SystemClock())
        self.clients.append(client)
        return ClusterApi(client)

    def events(self):
        return events_of(self.server.model)


class Faked:
    """The same cluster as the client has read it."""

    def __init__(self, api):
        nodes = api.nodes()
        pods = [pod for node in nodes for pod in api.pods_on(node.name)]
        self.api = FakeKubernetes(nodes, pods, api.budgets(), api.daemon_sets())
        self.api.cni, self.api.volume_list = api.aws_node(), list(api.volumes())
        self.api.attachment_list = list(api.attachments())
        readable = (Listed.NODES, Listed.PODS, Listed.DAEMON_SETS, Listed.VOLUMES)
        self.api.raw = {what: list(api.read(what, dict)) for what in readable}

    def events(self):
        return [(e.about.rsplit("/", 1)[-1], e.reason, "Warning" if e.warning else "Normal") for e in self.api.events]


class Simulated:
    """The same cluster in virtual time."""

    def __init__(self):
        clock = FakeClock()
        settings = ClusterSettings(pod_start=0.0, pod_gc_period=0, pod_gc_quarantine=0.0)
        self.model = Cluster(clock=lambda: clock.now().timestamp(), settings=settings)
        fill(self.model)
        self.model.step(self.model.now())
        self.api = SimKubernetes(self.model, clock)

    def events(self):
        return events_of(self.model)


def events_of(model):
    written = [e for e in model.list("events") if e["source"].get("component") == "leeward"]
    return [(event["involvedObject"]["name"], event["reason"], event["type"]) for event in written]


@pytest.fixture(scope="module")
def aws():
    """Only where STS is, for the tokens: made once, because a first client costs more than a test."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        clients = AwsClients()
        clients.get("sts", region="us-east-1")
        yield clients


@pytest.fixture
def emulated(aws):
    entries = [AccessEntry(principal_arn=ARN.format(role), groups=groups) for role, groups in ROLES.values()]
    settings = ClusterSettings(pod_start=0.0, pod_gc_period=0, pod_gc_quarantine=0.0)
    with ClusterServer(name="blue", settings=settings, identify=identify, access_entries=entries) as server:
        with server.lock:
            fill(server.model)
        wait_until(lambda: all(ready(pod) for pod in server.model.list("pods")))
        cluster = Emulated(aws, server)
        yield cluster
        for client in cluster.clients:
            client.close()


@pytest.fixture(params=["the client", "the fake", "the simulation"])
def cluster(request):
    if request.param == "the simulation":
        return Simulated()
    emulated = request.getfixturevalue("emulated")
    return emulated if request.param == "the client" else Faked(emulated.api)


def fill(model):
    texts = [path.read_text() for path in sorted(Path("manifests").glob("*.yaml"))]
    for document in yaml.safe_load_all("---\n".join(texts)):
        model.create(RESOURCES[document["kind"]], document)
    model.create("namespaces", {"metadata": {"name": "shop"}})
    for name in ("node-a", "node-b"):
        model.add_node(NodeSpec(name=name, instance_id=f"i-{name[-1]}"))
    for name, app in [("web-1", "web"), ("web-2", "web"), ("free", "free"), ("twice", "twice")]:
        model.create("pods", a_pod(name, app), "shop")
    for name, app, least in [("web", "web", 2), ("twice-1", "twice", 0), ("twice-2", "twice", 0)]:
        spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
        model.create("poddisruptionbudgets", {"metadata": {"name": name}, "spec": spec}, "shop")
    model.create("persistentvolumes", VOLUME)
    model.create("volumeattachments", ATTACHMENT)
    model.create("daemonsets", AWS_NODE, "kube-system")


def a_pod(name, app):
    spec = {"nodeName": "node-a", "containers": [{"name": "main", "image": "i"}], "terminationGracePeriodSeconds": 30}
    return {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec}


def ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", ()))


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the emulated cluster did not come up"
        time.sleep(0.01)


def pods(cluster):
    return {pod.name: pod for pod in cluster.api.pods_on("node-a")}


def leaving(cluster, name):
    pod = pods(cluster).get(name)
    return pod is None or pod.deletion is not None


def test_nodes_are_known_by_their_instances(cluster):
    assert {node.name: node.instance_id for node in cluster.api.nodes()} == {"node-a": "i-a", "node-b": "i-b"}
    assert {node.name for node in cluster.api.nodes()} == {"node-a", "node-b"}
    assert cluster.api.node("node-a").ready
    assert cluster.api.node("node-c") is None


def test_pods_are_those_of_the_node_alone(cluster):
    assert set(pods(cluster)) == {"web-1", "web-2", "free", "twice"}
    assert list(cluster.api.pods_on("node-b")) == []


def test_all_pods_are_those_of_all_nodes(cluster):
    assert {pod.key for pod in cluster.api.pods()} == {f"shop/{name}" for name in ("web-1", "web-2", "free", "twice")}


def test_the_cni_is_read_with_its_settings(cluster):
    assert variables_of(cluster.api.aws_node()) == {"MAX_ENI": "2"}


def test_attachments_are_read_with_their_node_and_their_volume(cluster):
    (attachment,) = cluster.api.attachments()
    assert (attachment.name, attachment.node, attachment.volume) == ("csi-1", "node-a", "pv-1")
    assert (attachment.attached, attachment.deletion) == (False, None)


def test_volumes_are_read_with_their_phase_and_the_zone_that_they_are_in(cluster):
    (volume,) = cluster.api.volumes()
    assert volume["status"] == {"phase": "Available"}
    (restriction,) = of_volume("shop/db", volume)
    assert restriction.allows(Subnet(id="s", zone="us-east-1b"))
    assert not restriction.allows(Subnet(id="s", zone="us-east-1a"))


def test_raw_objects_are_parsed_as_they_come(cluster):
    def named(what):
        return set(cluster.api.read(what, lambda raw: raw["metadata"]["name"]))

    assert named(Listed.NODES) == {node.name for node in cluster.api.nodes()}
    assert named(Listed.PODS) == {"web-1", "web-2", "free", "twice"}
    assert named(Listed.DAEMON_SETS) == {"aws-node"}
    assert len(named(Listed.VOLUMES)) == 1


@pytest.mark.parametrize(("key", "but"), [("AKIDREAD", set()), ("AKIDTAINT", {Listed.ATTACHMENTS})])
def test_the_roles_that_plan_may_read_all_that_plans_are_made_from_and_a_stranger_may_not(emulated, key, but):
    reader = emulated.connect(key)
    readable = set(Listed) - but
    assert {what for what in readable if reader.read(what, dict) is not None} == readable
    with pytest.raises(AccessDeniedError):
        emulated.connect("AKIDSTRANGER").read(Listed.CSI_NODES, dict)


def test_a_label_is_put_on_where_it_is_missing_and_one_that_is_there_stays(cluster):
    wanted = {"leeward.dev/subnet-id": "subnet-a"}
    for _ in range(2):
        assert cluster.api.label(cluster.api.node("node-a"), wanted).labels["leeward.dev/subnet-id"] == "subnet-a"
    other = cluster.api.label(cluster.api.node("node-a"), {"leeward.dev/subnet-id": "subnet-b"})
    assert other.labels["leeward.dev/subnet-id"] == "subnet-a"
    assert cluster.api.node("node-a").labels["leeward.dev/subnet-id"] == "subnet-a"


def test_a_node_that_is_gone_cannot_be_labelled(cluster):
    node = cluster.api.node("node-b")
    cluster.api.delete_node(node)
    with pytest.raises(ObjectGoneError):
        cluster.api.label(node, {"leeward.dev/subnet-id": "subnet-a"})


def test_annotations_are_written_over_and_taken_off_and_a_repeat_changes_nothing(cluster):
    since = {"leeward.dev/drifted-since": "2026-03-01T00:00:00Z", "leeward.dev/drift-reasons": "ami"}
    stale = cluster.api.annotate(cluster.api.node("node-a"), since)
    cluster.api.taint(stale, TAINT)
    changes = {"leeward.dev/drifted-since": "2026-03-02T00:00:00Z", "leeward.dev/drift-reasons": None}
    for _ in range(2):
        found = cluster.api.annotate(stale, changes)
        assert found.annotations["leeward.dev/drifted-since"] == "2026-03-02T00:00:00Z"
        assert "leeward.dev/drift-reasons" not in found.annotations
        assert found.tainted
    assert cluster.api.annotate(found, changes).resource_version == found.resource_version
    assert cluster.api.node("node-a").annotations == found.annotations


def test_a_node_that_is_gone_cannot_be_annotated(cluster):
    node = cluster.api.node("node-b")
    cluster.api.delete_node(node)
    with pytest.raises(ObjectGoneError):
        cluster.api.annotate(node, {"leeward.dev/expired": "true"})


ENDS = {"leeward.dev/terminates-at": "2026-03-02T11:30:00Z"}


def test_pods_are_annotated_and_the_annotation_is_removed_while_everything_else_stays(cluster):
    before = pods(cluster)
    for _ in range(2):
        cluster.api.annotate_pods([before["web-1"], before["free"]], ENDS)()
    after = pods(cluster)
    assert {name for name, pod in after.items() if "leeward.dev/terminates-at" in pod.annotations} == {"web-1", "free"}
    assert after["free"].annotations["leeward.dev/terminates-at"] == "2026-03-02T11:30:00Z"
    cluster.api.annotate_pods([after["web-1"], after["free"]], dict.fromkeys(ENDS))()
    assert pods(cluster) == before


def test_the_successor_of_a_pod_and_one_that_is_gone_are_not_annotated(cluster):
    pod = pods(cluster)["free"]
    strangers = [replace(pod, uid="uid-earlier"), replace(pod, name="never-there")]
    cluster.api.annotate_pods(strangers, ENDS)()
    assert pods(cluster)["free"].annotations == pod.annotations


FINALIZER = "leeward.dev/termination"


def test_a_finalizer_keeps_a_deleted_node_until_it_is_taken_off(cluster):
    before = cluster.api.node("node-b")
    for _ in range(2):
        stale = cluster.api.add_finalizer(before, FINALIZER)
        assert stale.finalizers == (FINALIZER,)
    cluster.api.delete_node(stale)
    assert cluster.api.node("node-b").deleting
    assert cluster.api.node("node-b").finalizers == (FINALIZER,)
    for _ in range(2):
        cluster.api.remove_finalizer(stale, FINALIZER)
        assert cluster.api.node("node-b") is None


def test_a_finalizer_is_taken_off_a_node_that_stays_and_others_are_left(cluster):
    node = cluster.api.add_finalizer(
        cluster.api.add_finalizer(cluster.api.node("node-a"), "other.dev/backup"), FINALIZER
    )
    cluster.api.remove_finalizer(node, FINALIZER)
    assert cluster.api.node("node-a").finalizers == ("other.dev/backup",)
    cluster.api.remove_finalizer(node, FINALIZER)
    assert not cluster.api.node("node-a").deleting


def test_a_node_that_is_being_deleted_takes_no_finalizer_and_one_that_is_gone_cannot_be_held(cluster):
    node = cluster.api.add_finalizer(cluster.api.node("node-a"), "other.dev/backup")
    cluster.api.delete_node(node)
    assert cluster.api.add_finalizer(cluster.api.node("node-a"), FINALIZER).finalizers == ("other.dev/backup",)
    cluster.api.remove_finalizer(node, "other.dev/backup")
    with pytest.raises(ObjectGoneError):
        cluster.api.add_finalizer(node, FINALIZER)


def test_a_node_is_stripped_of_all_that_is_ours_and_of_nothing_else(cluster):
    api = cluster.api
    node = api.label(api.node("node-a"), {"leeward.dev/subnet-id": "subnet-a", "team": "web"})
    theirs = {"leeward.dev/do-not-disrupt": "true", "team": "web"}
    kept = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
    node = api.annotate(node, {**theirs, "leeward.dev/expired": "true", "leeward.dev/kept-for": "web", kept: "true"})
    node = api.add_finalizer(api.add_finalizer(node, "other.dev/backup"), FINALIZER)
    before = node.taints
    node = api.taint(api.cordon(node, "upgrade-1", exclude=True), TAINT)
    for _ in range(2):
        api.strip(node, TAINT.value)
        bare = api.node("node-a")
        assert (bare.taints, bare.unschedulable, bare.finalizers) == (before, False, ("other.dev/backup",))
        assert not [key for key in bare.labels if key.startswith("leeward.dev/") or "exclude-from" in key]
        assert {key: bare.annotations.get(key) for key in theirs} == theirs
        assert bare.annotations.keys() & {"leeward.dev/expired", "leeward.dev/kept-for", kept} == set()
        assert bare.labels["team"] == "web"


def test_what_another_owner_keeps_from_cluster_autoscaler_outlives_the_stripping(cluster):
    theirs = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    cluster.api.strip(
        cluster.api.annotate(cluster.api.node("node-a"), {**theirs, "leeward.dev/expired": "true"}), TAINT.value
    )
    assert cluster.api.node("node-a").annotations.items() >= theirs.items()


def test_a_cordon_of_another_owner_outlives_the_stripping(cluster):
    theirs = cluster.api.taint(cluster.api.node("node-a"), Taint(key="another/owner", effect="NoExecute"))
    cluster.api.strip(cluster.api.taint(theirs, TAINT), TAINT.value)
    node = cluster.api.node("node-a")
    assert (node.unschedulable, node.tainted) == (True, False)
    assert "another/owner" in {taint.key for taint in node.taints}


def test_budgets_come_with_what_they_allow(cluster):
    assert {budget.name: budget.disruptions_allowed for budget in cluster.api.budgets()}["web"] == 0


def test_a_tainted_node_is_cordoned_too_and_tainting_it_again_changes_nothing(cluster):
    tainted = cluster.api.taint(cluster.api.node("node-a"), TAINT)
    again = cluster.api.taint(cluster.api.node("node-a"), replace(TAINT, value="spot_interruption"))
    assert (tainted.tainted, tainted.unschedulable) == (True, True)
    assert [taint.value for taint in again.taints if taint.key == TAINT.key] == ["manual"]


def test_a_node_that_changed_since_it_was_read_is_tainted_all_the_same(cluster):
    stale = cluster.api.node("node-a")
    cluster.api.taint(stale, Taint(key="another/owner", effect="NoExecute"))
    cluster.api.taint(stale, TAINT)
    assert {TAINT.key, "another/owner"} <= {taint.key for taint in cluster.api.node("node-a").taints}


def test_a_node_can_be_tainted_without_being_cordoned(cluster):
    assert not cluster.api.taint(cluster.api.node("node-a"), TAINT, unschedulable=False).unschedulable


def test_untainting_puts_a_node_back_into_service(cluster):
    other = Taint(key="another/owner", effect="NoSchedule")
    cluster.api.taint(cluster.api.taint(cluster.api.node("node-a"), other, unschedulable=False), TAINT)
    for _ in range(2):
        node = cluster.api.untaint(cluster.api.node("node-a"), TAINT)
        assert not node.tainted
        assert not node.unschedulable
    assert other.key in {taint.key for taint in node.taints}


def test_a_node_is_taken_out_of_load_balancers_with_its_mark_and_put_back_with_it(cluster):
    label = "node.kubernetes.io/exclude-from-external-load-balancers"
    for _ in range(2):
        assert cluster.api.taint(cluster.api.node("node-a"), TAINT, exclude=True).labels[label] == "true"
    assert label not in cluster.api.untaint(cluster.api.node("node-a"), TAINT).labels
    cluster.api.label(cluster.api.node("node-b"), {label: "theirs"})
    cluster.api.taint(cluster.api.node("node-b"), TAINT, exclude=True)
    assert cluster.api.untaint(cluster.api.node("node-b"), TAINT).labels[label] == "theirs"


def test_a_node_keeps_its_mark_where_a_drain_has_begun_since_it_was_read(cluster):
    """The decision to give the node back is older than the termination."""
    read = cluster.api.taint(cluster.api.node("node-a"), TAINT)
    cluster.api.taint(cluster.api.node("node-a"), TAINT, exclude=True)
    node = cluster.api.untaint(read, TAINT)
    assert (node.tainted, node.unschedulable) == (True, True)
    assert not cluster.api.untaint(node, TAINT).taken_out


def test_a_node_that_has_changed_otherwise_since_it_was_read_is_returned(cluster):
    read = cluster.api.taint(cluster.api.node("node-a"), TAINT)
    cluster.api.label(cluster.api.node("node-a"), {"team": "shop"})
    assert not cluster.api.untaint(read, TAINT).tainted


def test_a_cordon_that_was_there_before_stays_when_the_mark_comes_off(cluster):
    """An operator's: taking it away would put a node into service that its operator wants out of it."""
    theirs = Taint(key="another/owner", effect="NoExecute")
    cluster.api.taint(cluster.api.node("node-a"), theirs)
    for _ in range(2):
        cluster.api.taint(cluster.api.node("node-a"), TAINT)
    for _ in range(2):
        node = cluster.api.untaint(cluster.api.node("node-a"), TAINT)
        assert (node.tainted, node.unschedulable) == (False, True)
    assert "leeward.dev/cordoned-by-drain" not in node.annotations


def test_a_node_that_is_gone_or_replaced_cannot_be_tainted(cluster):
    node = cluster.api.node("node-b")
    with pytest.raises(ObjectGoneError):
        cluster.api.taint(replace(node, uid="of-its-predecessor", resource_version="1"), TAINT)
    cluster.api.delete_node(node)
    with pytest.raises(ObjectGoneError):
        cluster.api.taint(node, TAINT)


def test_a_pod_without_a_budget_is_evicted(cluster):
    cluster.api.evict(pods(cluster)["free"])
    assert leaving(cluster, "free")
    assert not leaving(cluster, "web-1")


def test_an_eviction_may_shorten_the_pods_grace(cluster):
    free, web = (pods(cluster)[name] for name in ("free", "web-1"))
    cluster.api.evict(free, web.grace_seconds - 20)
    cluster.api.delete_pod(web)
    earlier = pods(cluster)["web-1"].deletion - pods(cluster)["free"].deletion
    assert timedelta(seconds=18) <= earlier <= timedelta(seconds=22)


def test_a_budget_that_allows_none_forbids_the_eviction_by_name(cluster):
    with pytest.raises(EvictionRefusedError) as raised:
        cluster.api.evict(pods(cluster)["web-1"])
    assert (raised.value.budgets, raised.value.permanent) == (("shop/web",), False)
    assert not leaving(cluster, "web-1")


def test_several_budgets_forbid_the_eviction_for_good(cluster):
    with pytest.raises(EvictionRefusedError) as raised:
        cluster.api.evict(pods(cluster)["twice"])
    assert raised.value.permanent


def test_the_successor_of_a_pod_is_neither_evicted_nor_deleted(cluster):
    predecessor = replace(pods(cluster)["free"], uid="of-its-predecessor")
    cluster.api.evict(predecessor)
    cluster.api.delete_pod(predecessor)
    assert not leaving(cluster, "free")


def test_a_pod_that_was_never_there_counts_as_gone(cluster):
    ghost = replace(pods(cluster)["free"], name="ghost")
    cluster.api.evict(ghost)
    cluster.api.delete_pod(ghost)


def test_a_forced_deletion_asks_no_budget(cluster):
    cluster.api.delete_pod(pods(cluster)["web-1"], 1)
    assert leaving(cluster, "web-1")


def test_a_node_object_is_removed_once_and_its_successor_never(cluster):
    node = cluster.api.node("node-b")
    cluster.api.delete_node(replace(node, uid="of-its-predecessor"))
    assert cluster.api.node("node-b") is not None
    for _ in range(2):
        cluster.api.delete_node(node)
    assert cluster.api.node("node-b") is None


def test_an_event_is_written_once_in_ten_minutes(cluster):
    node, pod = cluster.api.node("node-a"), pods(cluster)["free"]
    for minutes in (0, 3, 10):
        now = NOW + timedelta(minutes=minutes)
        cluster.api.event(node, reason="DrainBlocked", message="m", warning=True, now=now)
    cluster.api.event(pod, reason="Evicted", message="m", warning=False, now=NOW)
    blocked, evicted = ("node-a", "DrainBlocked", "Warning"), ("free", "Evicted", "Normal")
    assert sorted(cluster.events()) == sorted([blocked, blocked, evicted])


def test_the_read_role_reads_everything_and_changes_nothing(emulated):
    reader = emulated.connect("AKIDREAD")
    node = reader.node("node-a")
    assert len(reader.nodes()) == 2
    assert len(reader.pods_on("node-a")) == 4
    assert (len(reader.budgets()), reader.daemon_sets()) == (3, frozenset({"kube-system/aws-node"}))
    for forbidden in (
        lambda: reader.taint(node, TAINT),
        lambda: reader.evict(emulated.api.pods_on("node-a")[0]),
        lambda: reader.delete_node(node),
    ):
        with pytest.raises(AccessDeniedError, match="not allowed to"):
            forbidden()
    written = emulated.events()
    reader.event(node, reason="R", message="m", warning=False, now=NOW)  # best effort: lost, and nothing fails
    assert emulated.events() == written


def test_the_tainting_role_marks_nodes_and_neither_evicts_nor_deletes_nor_scales(emulated):
    tainting = emulated.connect("AKIDTAINT")
    node, pod = tainting.node("node-a"), emulated.api.pods_on("node-a")[0]
    marked = tainting.taint(node, TAINT)
    assert TAINT not in tainting.untaint(marked, TAINT).taints
    tainting.event(node, reason="R", message="m", warning=False, now=NOW)
    assert ("node-a", "R", "Normal") in emulated.events()
    for forbidden in (
        lambda: tainting.evict(pod),
        lambda: tainting.delete_pod(pod),
        lambda: tainting.delete_node(node),
        lambda: tainting.scale(DNS, 0),
    ):
        with pytest.raises(AccessDeniedError, match="not allowed to"):
            forbidden()


@pytest.mark.parametrize("key", ["AKIDREAD", "AKIDTAINT", "AKIDACT"])
def test_without_the_surge_manifest_no_role_scales(emulated, key):
    for kind in ("clusterrolebindings", "clusterroles"):
        for name in ("leeward-surge", "leeward-surge-read"):
            with emulated.server.lock:
                emulated.server.model.delete(kind, name)
    with pytest.raises(AccessDeniedError, match="not allowed to patch deployments/scale"):
        emulated.connect(key).scale(DNS, 0)


def test_the_draining_role_annotates_pods_and_no_role_changes_their_images(emulated):
    draining = emulated.connect("AKIDACT")
    pod = pods(emulated)["free"]
    draining.annotate_pods([pod], ENDS)()
    assert pods(emulated)["free"].annotations.items() >= ENDS.items()
    emulated.connect("AKIDTAINT").annotate_pods([pod], dict.fromkeys(ENDS))()
    assert pods(emulated)["free"].annotations.items() >= ENDS.items(), "denied, and nothing fails"
    image = {"spec": {"containers": [{"name": "main", "image": "theirs"}]}}
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    merge = {"method": "PATCH", "body": image, "content_type": "application/strategic-merge-patch+json"}
    with pytest.raises(AccessDeniedError, match="not allowed to patch pods"):
        draining._client.ask(ApiRequest(verb="patch", resource="pods", path=path, **merge))
    answer = draining._client.ask(ApiRequest(verb="patch", resource="pods/status", path=f"{path}/status", **merge))
    assert answer["spec"]["containers"][0]["image"] == "i", "the status subresource keeps the spec"


def test_a_principal_without_an_access_entry_is_denied(emulated):
    with pytest.raises(AccessDeniedError, match="token is not accepted"):
        emulated.connect("AKIDSTRANGER").nodes()


def test_throttling_and_faults_of_the_server_are_ridden_out(emulated):
    emulated.server.faults.add(Effect(status=429), count=1, retry_after=0)
    emulated.server.faults.add(Effect(status=500), count=2)
    assert len(emulated.api.nodes()) == 2
