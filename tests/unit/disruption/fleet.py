"""Clusters with defaults, raw as Kubernetes and AWS do: `a_fleet().node("n1").pod("web-1", "n1").snapshot()`."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from leeward.cluster.facets import Known
from leeward.model import well_known
from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.instance import CapacityType, Instance
from leeward.model.launch import LaunchSettings
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.quantity import amounts
from leeward.model.subnet import Subnet
from leeward.node_template.build import ExpectedNode
from leeward.node_template.choices import Choices
from leeward.policy.document import (
    Budget,
    ClusterPolicies,
    ClusterSettings,
    DisruptionPolicy,
    GroupSelector,
    NodePolicy,
)
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodReader
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import launchable

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LONG_AGO = "2026-04-01T08:00:00Z"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
ROOM = {  # allocatable of each type, and dollars an hour on demand; spot is a third of it
    "small": ({"cpu": "1", "memory": "2Gi", "pods": "20"}, 0.03),
    "medium": ({"cpu": "2", "memory": "4Gi", "pods": "30"}, 0.06),
    "large": ({"cpu": "4", "memory": "8Gi", "pods": "60"}, 0.12),
    "huge": ({"cpu": "8", "memory": "16Gi", "pods": "110"}, 0.24),
}
PRICES = Prices(
    on_demand={name: price for name, (_, price) in ROOM.items()},
    spot={name: dict.fromkeys(ZONES, price / 3) for name, (_, price) in ROOM.items()},
)
NO_LIMIT = DisruptionPolicy(budgets=(), consolidate_after=timedelta())


def a_policy(name="web", *groups, disruption=NO_LIMIT, **rest):
    return NodePolicy(name=name, selector=GroupSelector(groups=groups or ("*",)), disruption=disruption, **rest)


def a_budget(nodes, *, percent=False, **rest):
    return Budget(nodes=nodes, percent=percent, **rest)


def rules(**changes):
    """Without budgets and waits, unless reported."""
    return replace(NO_LIMIT, **changes)


class Fleet:
    """Groups, nodes and pods under one name space; each method gives the fleet back."""

    def __init__(self, policies=(), *, now=NOON, prices=PRICES, **settings):
        self.policies = tuple(policies) or (a_policy(),)
        self.settings, self.now, self.prices = settings, now, prices
        self.groups, self.nodes, self.pods, self.budgets, self.daemons = {}, [], [], [], []
        self.instances, self.specs, self.labels, self.rest = {}, {}, {}, {}

    def group(self, name="web", *types, spot=False, minimum=0, maximum=100, zones=ZONES, mixed=False, **rest):
        self.groups[name] = {"types": types or ("medium",), "min": minimum, "max": maximum, "zones": zones}
        self.groups[name] |= {"capacity": None if mixed else CapacityType.SPOT if spot else CapacityType.ON_DEMAND}
        self.groups[name] |= {"labels": {}, "launch": LaunchSettings(), "taints": (), "fields": {}} | rest
        return self

    def node(self, name, *, group="web", type=None, zone=ZONES[0], created=LONG_AGO, ready=True, **rest):
        if group not in self.groups:
            self.group(group)
        kind = type or self.groups[group]["types"][0]
        labels = {well_known.ZONE_LABEL: zone, well_known.INSTANCE_TYPE_LABEL: kind, "kubernetes.io/hostname": name}
        meta = {"name": name, "creationTimestamp": created, "labels": labels | rest.get("labels", {})}
        spec = {"providerID": f"aws:///{zone}/i-{name}", "taints": rest.get("taints", [])}
        if rest.get("cordoned"):
            spec["unschedulable"] = True
        self.nodes.append(
            {
                "metadata": meta | {"annotations": rest.get("annotations", {})},
                "spec": spec,
                "status": {
                    "allocatable": ROOM[kind][0],
                    "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                },
            }
        )
        spot = rest.get("spot", self.groups[group]["capacity"] is CapacityType.SPOT)
        self.instances[f"i-{name}"] = {
            "group": group,
            "zone": zone,
            "type": kind,
            "spot": spot,
            "lifecycle": rest.get("lifecycle", "InService"),
            "protected": rest.get("protected", False),
            "template": rest.get("template"),
            "state": rest.get("state", "running"),
            "fields": rest.get("instance", {}),
        }
        return self

    def pod(self, name, node="", *, cpu="500m", memory="256Mi", started=LONG_AGO, owner="ReplicaSet", **rest):
        references = [] if owner is None else [_owner(owner, rest.pop("of", name))]
        labels, annotations = rest.pop("labels", {"app": name}), rest.pop("annotations", {})
        meta = {"namespace": "shop", "name": name, "uid": name, "labels": labels, "annotations": annotations}
        status = {"phase": rest.pop("phase", "Running" if node else "Pending")}
        if node:
            status |= {"startTime": started, "conditions": [{"type": "Ready", "status": "True"}]}
        if ended := rest.pop("ended", ""):
            status["containerStatuses"] = [{"name": "c", "state": {"terminated": {"finishedAt": ended}}}]
        if rest.pop("leaving", False):
            meta["deletionTimestamp"] = "2026-05-01T12:00:10Z"
        container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        self.pods.append(
            {
                "metadata": meta | {"ownerReferences": references},
                "spec": {"nodeName": node, "containers": [container], **rest},
                "status": status,
            }
        )
        return self

    def daemon(self, name, cpu="100m"):
        """A DaemonSet with a pod on every node that is there."""
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        template = {"metadata": {"labels": {"daemon": name}}, "spec": {"containers": [container]}}
        self.daemons.append({"metadata": {"namespace": "shop", "name": name}, "spec": {"template": template}})
        for node in [one["metadata"]["name"] for one in self.nodes]:
            self.pod(f"{name}-{node}", node, cpu=cpu, memory="0", owner="DaemonSet", of=name)
        return self

    def pdb(self, name, allowed, **labels):
        self.budgets.append(
            PodDisruptionBudget(
                namespace="shop", name=name, selector={"matchLabels": labels}, disruptions_allowed=allowed
            )
        )
        return self

    def having(self, **fields):
        """Fields of the ClusterSnapshot as they stand."""
        self.rest |= fields
        return self

    def snapshot(self):
        reader = PodReader()
        groups = {name: self._group(name) for name in self.groups}
        subnets = {f"subnet-{zone}": Subnet(id=f"subnet-{zone}", zone=zone) for zone in ZONES}
        settings = ClusterSettings(name="blue", **self.settings)
        return ClusterSnapshot(
            **{
                "cluster": "blue",
                "now": self.now,
                "policies": ClusterPolicies(settings=settings, policies=self.policies),
                "node_list": Known(tuple(Node.from_json(raw) for raw in self.nodes)),
                "pods": tuple(Pod.from_json(raw) for raw in self.pods),
                "budgets": tuple(self.budgets),
                "daemon_sets": frozenset(f"shop/{raw['metadata']['name']}" for raw in self.daemons),
                "groups": groups,
                "instances": {name: _instance(name, one) for name, one in self.instances.items()},
                "subnets": subnets,
                "prices": self.prices,
                "node_specs": tuple(NodeSpec.from_json(raw) for raw in self.nodes),
                "pod_specs": tuple(reader.read_all(self.pods)),
                "daemon_specs": tuple(reader.daemon(raw) for raw in self.daemons),
                "launchables": {name: self._launchable(group, subnets.values()) for name, group in groups.items()},
                **self.rest,
            }
        )

    def _group(self, name):
        from leeward.model.group import GroupInstance

        reported = self.groups[name]
        members = [
            GroupInstance(
                id=id_,
                zone=one["zone"],
                lifecycle=one["lifecycle"],
                type=one["type"],
                protected=one["protected"],
                template=one["template"],
            )
            for id_, one in self.instances.items()
            if one["group"] == name
        ]
        group = Group(
            name=name,
            tags={},
            minimum=reported["min"],
            maximum=reported["max"],
            desired=len(members),
            zones=reported["zones"],
            subnets=tuple(f"subnet-{zone}" for zone in reported["zones"]),
            instances=tuple(members),
        )
        return replace(group, **reported["fields"])

    def _launchable(self, group, subnets):
        reported = self.groups[group.name]
        found = Choices(types=reported["types"], zones=group.zones, capacity=reported["capacity"])
        expected = [
            ExpectedNode(
                name=f"{group.name}-template",
                group=group.name,
                labels={
                    well_known.INSTANCE_TYPE_LABEL: name,
                    well_known.ZONE_LABEL: group.zones[0],
                    **reported["labels"],
                },
                taints=reported["taints"],
                capacity=amounts(ROOM[name][0]),
                allocatable=amounts(ROOM[name][0], down=True),
            )
            for name in reported["types"]
        ]
        launches = dict.fromkeys(reported["types"], reported["launch"])
        return launchable(group, found, expected, subnets, self.prices, launches)


def a_fleet(*policies, **rest):
    return Fleet(policies, **rest)


def _owner(kind, name):
    api = "apps/v1"
    return {"apiVersion": api, "kind": kind, "name": name, "controller": True}


def _instance(name, reported):
    instance = Instance(
        id=name,
        state=reported["state"],
        type=reported["type"],
        zone=reported["zone"],
        subnet=f"subnet-{reported['zone']}",
        capacity_type=CapacityType.SPOT if reported["spot"] else CapacityType.ON_DEMAND,
        tags={well_known.GROUP_TAG: reported["group"]},
        launched=NOON - timedelta(days=30),
    )
    return replace(instance, **reported["fields"])
