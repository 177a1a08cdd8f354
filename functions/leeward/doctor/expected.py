"""Parts of a deployment of this version, by their fixed names (`tests/infra/test_doctor.py` compares them with the
template), and the rules of its ClusterRoles (with `manifests/cluster-role.yaml`)."""

from collections.abc import Iterable, Mapping

from leeward.doctor.facts import Rule

FUNCTIONS = tuple(
    f"leeward-{name}"
    for name in (
        "interruption",
        "terminate",
        "drain",
        "reconciler",
        "upgrade",
        "disruption-planner",
        "disrupt",
        "sync",
        "notifications",
    )
)
ACTING = tuple(name for name in FUNCTIONS if name != "leeward-notifications")  # those that call EC2 and groups
CAPPED = "leeward-drain"  # its throttles are intended: the state machine retries
SYNC = "leeward-sync"
ENDPOINTS: Mapping[str, str] = {
    "dynamodb": "nothing works",
    "autoscaling": "nothing works",
    "ec2": "nothing works",
    "eks": "no cluster is found",
    "sts": "no cluster lets the functions in",
    "ssm": "no policy is read",
    "states": "nothing is started",
    "sqs": "no malformed message reaches the dead-letter queue",
    "elasticloadbalancing": "drains do not wait for load balancers",
    "monitoring": "alarms of policies cannot be read, so what they guard is held",
    "servicequotas": "pre-flight does not know the quotas",
    "pricing.api": "prices are missing",
    "arc-zonal-shift": "zonal shifts are not seen: nodes are launched into a zone that ARC has shifted away from",
}
"""Endpoints that functions in a VPC need -> what happens without."""
NICE_TO_HAVE = frozenset({"servicequotas", "pricing.api"})
RESERVED = 52  # concurrent executions, by the defaults of the settings

TERMINATIONS = "leeward-node-termination"
MACHINES = (
    TERMINATIONS,
    "leeward-node-group-upgrade",
    "leeward-managed-node-group-upgrade",
    "leeward-disruption",
)

TABLE = "leeward"
INDEX = "open"
QUEUE = "leeward-interruption"
STATE_CHANGES = "leeward-state-changes"
DEAD_LETTERS = "leeward-interruption-dead-letters"
UNDELIVERED = "leeward-notifications-undelivered"
READ_QUEUES = (QUEUE, STATE_CHANGES)  # by fn interruption
FAILING: Mapping[str, str] = {QUEUE: "OldestInterruptionRetried", STATE_CHANGES: "OldestStateChangeRetried"}
"""Queue -> metric of the age of its oldest message whose handling fails."""
METRICS = "Leeward"  # the CloudWatch namespace
QUEUES = (*READ_QUEUES, DEAD_LETTERS, UNDELIVERED)

PREFIX = "leeward-"  # of all rules and alarms
_OF_QUEUE = (
    "spot-interruption",
    "rebalance-recommendation",
    "scheduled-change",
    "capacity-reservation",
    "capacity-block",
    "zonal-shift",
    "execution-status",
)
QUEUE_RULES: Mapping[str, str] = {
    **{f"leeward-{name}": f":{QUEUE}" for name in _OF_QUEUE},
    "leeward-state-change": f":{STATE_CHANGES}",
    "leeward-lifecycle-action": f":{STATE_CHANGES}",
}
RULES: Mapping[str, str] = {
    **QUEUE_RULES,
    "leeward-upgrade-status": ":function:leeward-upgrade",
    "leeward-disruption-status": ":function:leeward-disruption-planner",
}
"""Rule -> how the ARN of its target ends."""
WEBHOOK_BUS = "leeward-notifications"  # only where a cluster names a webhook
SCHEDULES: Mapping[str, str] = {
    f"leeward-{name}-schedule": f":function:leeward-{name}" for name in ("reconciler", "sync", "disruption-planner")
}
SOURCES: Mapping[str, tuple[str, ...]] = {
    "leeward-interruption": tuple(f":{queue}" for queue in READ_QUEUES),
    "leeward-notifications": (f":table/{TABLE}/stream/",),
}
"""Function -> what the ARNs of its event sources contain."""

ALARMS = tuple(
    f"leeward-{name}"
    for name in (
        "calls-throttled",
        "dead-letters",
        "queue-age",
        "interruptions-failing",
        "interruption-errors",
        "state-changes-failing",
        "state-changes-age",
        *(
            f"{machine}-{end}"
            for machine in ("termination", "upgrade", "managed-upgrade", "disruption")
            for end in ("failed", "timed-out")
        ),
        *(f"{name}-stopped" for name in ("reconciler", "disruption-planner", "sync")),
        "drains-blocked-long",
        "events-undelivered",
        "facts-stale",
        "hooks-near-their-end",
        "interruption-throttled",
        "pause-forgotten",
    )
)

ROLE_MANIFEST = "manifests/cluster-role.yaml"
SURGE_MANIFEST = "manifests/replica-surge-role.yaml"  # only where a policy says drain.singleReplicas: surge
KUBERNETES_GROUPS: Mapping[str, tuple[str, ...]] = {
    "leeward-read": ("leeward:read",),
    "leeward-taint": ("leeward:taint",),
    "leeward-act": ("leeward:act",),
    "leeward-surge": ("leeward:act",),
    "leeward-surge-read": ("leeward:taint", "leeward:read"),
}
"""ClusterRole and ClusterRoleBinding -> the groups that are bound."""
ENTERED_AS: Mapping[str, str] = {"leeward-taint": "taintRole", "leeward-act": "actRole"}
"""ClusterRole of functions -> the key of the IAM role, in the setting CLUSTERS, with which they sign in."""
ENTERED_ELSEWHERE: Mapping[str, str] = {
    "drain": "leeward:act",
    **dict.fromkeys(
        ("interruption", "reconciler", "disruption-planner", "disrupt", "upgrade", "sync"), "leeward:taint"
    ),
}
"""Function -> the group with which its role in another account or Region signs in to the clusters there."""


def _rules(group: str, resources: Iterable[str], *verbs: str) -> frozenset[Rule]:
    return frozenset((group, resource, verb) for resource in resources for verb in verbs)


_BOTH = frozenset().union(  # what draining and planning read
    _rules("", ["nodes"], "get", "list"),
    _rules("", ["pods", "persistentvolumes"], "list"),
    _rules("policy", ["poddisruptionbudgets"], "list"),
    _rules("apps", ["daemonsets"], "get", "list"),
)
_PLANNING = _BOTH.union(
    _rules("", ["persistentvolumeclaims", "namespaces", "services"], "list"),
    _rules("storage.k8s.io", ["storageclasses", "csinodes"], "list"),
    _rules("discovery.k8s.io", ["endpointslices"], "list"),
)
_ATTACHMENTS = _rules("storage.k8s.io", ["volumeattachments"], "list")
_WRITES = _rules("", ["nodes"], "patch") | _rules("", ["events"], "create")
_LONE_PODS = _rules("apps", ["deployments", "replicasets"], "get") | _rules(
    "autoscaling", ["horizontalpodautoscalers"], "list"
)
NEEDED: Mapping[str, frozenset[Rule]] = {
    "leeward-read": _PLANNING | _ATTACHMENTS | _rules("", ["events"], "list"),
    "leeward-taint": _PLANNING | _WRITES,
    "leeward-act": _BOTH.union(
        _ATTACHMENTS,
        _rules("", ["services"], "list"),
        _WRITES,
        _rules("", ["nodes"], "delete"),
        _rules("", ["pods"], "get", "delete"),
        _rules("", ["pods/eviction"], "create"),
        _rules("", ["pods/status"], "patch"),
    ),
}
"""Rules of each ClusterRole of `ROLE_MANIFEST`."""
FOR_SURGE: Mapping[str, frozenset[Rule]] = {
    "leeward-surge": _LONE_PODS | _rules("apps", ["deployments/scale"], "patch"),
    "leeward-surge-read": _LONE_PODS,
}
"""Rules of each ClusterRole of `SURGE_MANIFEST`."""
