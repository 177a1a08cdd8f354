"""Raw Kubernetes objects with defaults, and worlds made of them."""

from dataclasses import replace

from leeward.scheduling.nodes import NodeSpec, NodeTemplate, TemplateOffering
from leeward.scheduling.packing import pack
from leeward.scheduling.pods import PodReader
from leeward.scheduling.volumes import Storage
from leeward.scheduling.world import World

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def a_node(name="n1", *, zone="a", cpu="4", memory="8Gi", pods="10", labels=None, taints=(), cordoned=False, **offers):
    return {
        "metadata": {"name": name, "labels": {ZONE: zone, HOST: name, **(labels or {})}},
        "spec": {"unschedulable": cordoned, "taints": list(taints)},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **offers}},
    }


def a_taint(key="dedicated", value="x", effect="NoSchedule"):
    return {"key": key, "value": value, "effect": effect}


def a_pod(name="p1", *, app="web", node="", cpu="1", memory="1Gi", namespace="default", labels=None, owner="", **spec):
    meta = {"name": name, "namespace": namespace, "labels": {"app": app, **(labels or {})}}
    if owner:
        meta["ownerReferences"] = [{"kind": owner, "name": app, "controller": True}]
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]
    return {"metadata": meta, "spec": {"containers": containers, **({"nodeName": node} if node else {}), **spec}}


def selecting(app="web"):
    return {"matchLabels": {"app": app}}


def a_term(key=HOST, app="web", **more):
    return {"topologyKey": key, "labelSelector": selecting(app), **more}


def near(*terms):
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def away(*terms):
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def on_nodes(*lines, fields=()):
    term = {"matchExpressions": list(lines), "matchFields": list(fields)}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def a_line(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def spread(key=ZONE, app="web", skew=1, hard=True, **more):
    unsatisfiable = "DoNotSchedule" if hard else "ScheduleAnyway"
    one = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": unsatisfiable, "labelSelector": selecting(app)}
    return {"topologySpreadConstraints": [{**one, **more}]}


def a_claim(name="data", *, volume="", storage_class="gp3", namespace="default"):
    spec = {"storageClassName": storage_class, **({"volumeName": volume} if volume else {})}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def a_volume(name="pv-1", *, zone=None, labels=None, driver="ebs.csi.aws.com"):
    spec = {"csi": {"driver": driver, "volumeHandle": name}}
    if zone:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [a_line(ZONE, "In", zone)]}]}}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def a_class(name="gp3", *, mode="WaitForFirstConsumer", zones=(), driver="ebs.csi.aws.com"):
    raw = {"metadata": {"name": name}, "provisioner": driver, "volumeBindingMode": mode}
    if zones:
        raw["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    return raw


def with_claims(*names):
    return {"volumes": [{"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}} for name in names]}


def a_csi_node(count=1, driver="ebs.csi.aws.com"):
    return {"spec": {"drivers": [{"name": driver, "allocatable": {"count": count}}]}}


def a_template(name="web", *, zones=("a",), price=0.1, max_nodes=None, **node):
    offerings = tuple(TemplateOffering(zone=zone, price=price) for zone in zones)
    return NodeTemplate(
        name=name, node=NodeSpec.from_json(a_node(name, **node)), offerings=offerings, max_nodes=max_nodes
    )


def a_daemon_set(name="agent", *, cpu="500m", **spec):
    template = {"metadata": {"labels": {"app": name}}, "spec": a_pod(cpu=cpu, **spec)["spec"]}
    return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"template": template}}


def a_world(nodes, pods, *, storage=None, namespaces=None, csi=None, daemons=(), launchable=(), closed=None):
    reader = PodReader(namespaces=namespaces, storage=Storage.from_json(**(storage or {})))
    specs = [NodeSpec.from_json(node, (csi or {}).get(node["metadata"]["name"])) for node in nodes]
    specs = [replace(spec, closed=(closed or {}).get(spec.name, "")) for spec in specs]
    daemon_pods = [reader.daemon(one) for one in daemons]
    return World(specs, reader.read_all(pods), daemons=daemon_pods, launchable=launchable)


def packed(nodes, pods, *, templates=(), at_most=None, **more):
    """What becomes of the pods without a node."""
    world = a_world(nodes, pods, **more)
    return pack(world, world.pending, templates=templates, at_most=at_most)


def went(nodes, pods, **more):
    """Pod name -> node name, of those that found a place."""
    return {pod.partition("/")[2]: node for pod, node in packed(nodes, pods, **more).placements.items()}


def fit_error(nodes, pods, **more):
    """The reason of the only pod without a place."""
    (only,) = packed(nodes, pods, **more).unplaced
    return only.why
