"""An independent check of placements: kube-scheduler's filters written straight down over raw objects, nothing kept.

It shares no code with the room that it checks but the reading of quantities, and counts everything anew each time.
"""

from leeward.model.quantity import amounts

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HARD = ("NoSchedule", "NoExecute")


def labels(obj):
    return obj["metadata"].get("labels") or {}


def line_holds(line, have):
    key, operator, values = line["key"], line["operator"], line.get("values") or []
    match operator:
        case "In":
            return key in have and have[key] in values
        case "NotIn":
            return key not in have or have[key] not in values
        case "Exists":
            return key in have
        case "DoesNotExist":
            return key not in have
        case "Gt":
            return key in have and have[key].isdigit() and int(have[key]) > int(values[0])
        case "Lt":
            return key in have and have[key].isdigit() and int(have[key]) < int(values[0])
    raise AssertionError(operator)


def selects(selector, have):
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(have.get(k) == v for k, v in wanted.items()) and all(
        line_holds(line, have) for line in selector.get("matchExpressions") or []
    )


def tolerated(pod, taint):
    for one in pod["spec"].get("tolerations") or []:
        if one.get("effect") and one["effect"] != taint["effect"]:
            continue
        if one.get("operator") == "Exists" and one.get("key", "") in ("", taint["key"]):
            return True
        same = (one.get("key"), one.get("value", "")) == (taint["key"], taint.get("value", ""))
        if one.get("operator", "Equal") == "Equal" and same:
            return True
    return False


def hard_taint(pod, node):
    taints = [taint for taint in node["spec"].get("taints") or [] if taint["effect"] in HARD]
    return any(not tolerated(pod, taint) for taint in taints)


def any_term_holds(terms, node):
    named = {"metadata.name": node["metadata"]["name"]}
    for term in terms:
        lines, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
        holds = [line_holds(one, labels(node)) for one in lines] + [line_holds(one, named) for one in fields]
        if holds and all(holds):
            return True
    return False


def node_affinity(pod, node):
    if any(labels(node).get(k) != v for k, v in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    return required is None or any_term_holds(required["nodeSelectorTerms"], node)


def pod_terms(pod, kind):
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(REQUIRED) or []


def requests(pod):
    found = {"pods": 1}
    for container in pod["spec"]["containers"]:
        for name, amount in amounts((container.get("resources") or {}).get("requests")).items():
            found[name] = found.get(name, 0) + amount
    return found


def ports(pod):
    raw = [port for container in pod["spec"]["containers"] for port in container.get("ports") or []]
    return [(p["hostPort"], p.get("protocol", "TCP"), p.get("hostIP", "0.0.0.0")) for p in raw if p.get("hostPort")]


class SlowScheduler:
    """Nodes (raw, by name), pods with the node they are on, and what checks are asked about."""

    def __init__(self, nodes, placed, *, claims=(), volumes=(), limits=None):
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.placed = [(pod, node) for pod, node in placed if node in self.nodes]
        self.claims = {claim["metadata"]["name"]: claim for claim in claims}
        self.volumes = {volume["metadata"]["name"]: volume for volume in volumes}
        self.limits = limits or {}

    def on(self, node):
        return [pod for pod, where in self.placed if where == node]

    def refusal(self, pod, name):
        """The filter that refuses, empty when the pod may go there."""
        node = self.nodes[name]
        for check in (self.admits, self.has_ports, self.has_room, self.reaches_volumes, self.keeps_skew, self.likes):
            if not check(pod, node):
                return check.__name__
        return ""

    def admits(self, pod, node):
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if node["spec"].get("unschedulable") and not tolerated(pod, cordon):
            return False
        return not hard_taint(pod, node) and node_affinity(pod, node)

    def has_ports(self, pod, node):
        taken = [port for other in self.on(node["metadata"]["name"]) for port in ports(other)]
        return not any(
            a[:2] == b[:2] and (a[2] == b[2] or "0.0.0.0" in (a[2], b[2])) for a in ports(pod) for b in taken
        )

    def has_room(self, pod, node):
        name = node["metadata"]["name"]
        offers = amounts(node["status"]["allocatable"], down=True)
        for resource, amount in requests(pod).items():
            used = sum(requests(other).get(resource, 0) for other in self.on(name))
            if amount and used + amount > offers.get(resource, 0):
                return False
        if name in self.limits and self.claims_of(pod):
            attached = sum(len(self.claims_of(other)) for other in self.on(name))
            return attached + len(self.claims_of(pod)) <= self.limits[name]
        return True

    def claims_of(self, pod):
        named = (v.get("persistentVolumeClaim") for v in pod["spec"].get("volumes") or [])
        return [claim["claimName"] for claim in named if claim]

    def reaches_volumes(self, pod, node):
        for name in self.claims_of(pod):
            volume = self.volumes[self.claims[name]["spec"]["volumeName"]]
            required = (volume["spec"].get("nodeAffinity") or {}).get("required")
            if required and not any_term_holds(required["nodeSelectorTerms"], node):
                return False
        return True

    def keeps_skew(self, pod, node):
        hard = [
            one
            for one in pod["spec"].get("topologySpreadConstraints") or []
            if one["whenUnsatisfiable"] == "DoNotSchedule"
        ]
        return all(self.keeps_one(pod, node, one, [other["topologyKey"] for other in hard]) for one in hard)

    def keeps_one(self, pod, node, constraint, keys):
        key = constraint["topologyKey"]
        if key not in labels(node):
            return False
        counts = {}
        for name, other in self.nodes.items():
            if not all(one in labels(other) for one in keys):
                continue
            if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not node_affinity(pod, other):
                continue
            if constraint.get("nodeTaintsPolicy") == "Honor" and hard_taint(pod, other):
                continue
            counted = sum(self.counts(pod, constraint, one) for one in self.on(name))
            counts[labels(other)[key]] = counts.get(labels(other)[key], 0) + counted
        own = selects(constraint["labelSelector"], labels(pod))
        least = 0 if len(counts) < constraint.get("minDomains", 1) else min(counts.values(), default=0)
        return counts.get(labels(node)[key], 0) + own - least <= constraint["maxSkew"]

    def counts(self, pod, constraint, other):
        return (
            other["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and "deletionTimestamp" not in other["metadata"]
            and selects(constraint["labelSelector"], labels(other))
        )

    def meant(self, owner, term, other):
        names = term.get("namespaces") or [owner["metadata"]["namespace"]]
        anywhere = term.get("namespaceSelector") == {}
        return (anywhere or other["metadata"]["namespace"] in names) and selects(term["labelSelector"], labels(other))

    def shares(self, node, where, key):
        other = labels(self.nodes[where])
        return key in labels(node) and labels(node)[key] == other.get(key)

    def likes(self, pod, node):
        for term in pod_terms(pod, "podAntiAffinity"):
            if any(self.meant(pod, term, o) and self.shares(node, w, term["topologyKey"]) for o, w in self.placed):
                return False
        for other, where in self.placed:
            for term in pod_terms(other, "podAntiAffinity"):
                if self.meant(other, term, pod) and self.shares(node, where, term["topologyKey"]):
                    return False
        return self.is_near(pod, node)

    def is_near(self, pod, node):
        terms = pod_terms(pod, "podAffinity")
        if not all(term["topologyKey"] in labels(node) for term in terms):
            return False
        wanted = [(o, w) for o, w in self.placed if all(self.meant(pod, term, o) for term in terms)]
        keyed = [w for _, w in wanted if any(term["topologyKey"] in labels(self.nodes[w]) for term in terms)]
        if terms and not keyed and all(self.meant(pod, term, pod) for term in terms):
            return True
        return all(any(self.shares(node, w, term["topologyKey"]) for _, w in wanted) for term in terms)
