"""Sets of nodes decided by a node's labels, taints and cordon alone, computed once for all pods with the same question.

Each question names kube-scheduler's filter plugin. Its answer depends on few labels, so nodes that agree in those share
one answer."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from leeward.model.node import Taint
from leeward.model.pod import Toleration
from leeward.model.well_known import DISRUPTED_TAINT
from leeward.scheduling.fleet import Fleet
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.selectors import LabelRequirement, NodeChoice, NodeTerm, label_keys
from leeward.scheduling.volumes import TOPOLOGY_LABELS

CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
DRAINING = (CORDON, Taint(key=DISRUPTED_TAINT, effect="NoSchedule"))  # every draining node has both
HARD = ("NoSchedule", "NoExecute")


class Question(Protocol):
    """Question about every node. `keys`: the labels that the answer depends on; `by_name`: whether the name matters."""

    @property
    def keys(self) -> frozenset[str]: ...

    @property
    def by_name(self) -> bool: ...

    def refusal(self, node: NodeSpec) -> str:
        """Return why the node is refused, in kube-scheduler's words; empty: it is accepted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Filters NodeUnschedulable, TaintToleration and NodeAffinity, in their order, and the platform of a plan."""

    tolerations: tuple[Toleration, ...]
    nodes: NodeChoice
    platform: tuple[LabelRequirement, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        return self.nodes.keys.union(one.key for one in self.platform)

    @property
    def by_name(self) -> bool:
        return self.nodes.by_name

    def refusal(self, node: NodeSpec) -> str:
        """Return why not. A cordon is tolerated like the taint of the same name; PreferNoSchedule refuses no pod."""
        if node.closed:
            return node.closed
        if node.unschedulable and _untolerated(self.tolerations, (CORDON,), HARD):
            return "node(s) were unschedulable"
        taint = _untolerated(self.tolerations, node.taints, HARD)
        if taint is not None:
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
        if not _matches(self.nodes, node):
            return "node(s) didn't match Pod's node affinity/selector"
        if self.platform and not _matches(NodeChoice(selector=self.platform), node):
            return "node(s) were of another operating system or architecture"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeReach:
    """Filters VolumeBinding (a volume's node affinity) and VolumeZone (a volume's zone labels)."""

    reach: tuple[tuple[NodeTerm, ...], ...]
    zones: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(TOPOLOGY_LABELS).union(*(label_keys(terms) for terms in self.reach))

    @property
    def by_name(self) -> bool:
        return any(term.fields for terms in self.reach for term in terms)

    def refusal(self, node: NodeSpec) -> str:
        """Return why the node is refused. A node without any zone or region label passes VolumeZone: a cluster without
        zones has no zone constraints.
        """
        for terms in self.reach:
            if not any(term.matches(node.name, node.labels) for term in terms):
                return "node(s) had volume node affinity conflict"
        if any(key in node.labels for key in TOPOLOGY_LABELS):
            for key, values in self.zones:
                if node.labels.get(key) not in values:
                    return "node(s) had no available volume zone"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadScope:
    """Nodes whose pods a PodTopologySpread constraint counts. `nodes` and `tolerations` where they are honoured
    (nodeAffinityPolicy, nodeTaintsPolicy); `required`: the topology keys that a node must have to be counted.
    """

    required: frozenset[str]
    nodes: NodeChoice | None = None
    tolerations: tuple[Toleration, ...] | None = None

    @property
    def keys(self) -> frozenset[str]:
        return self.required | (self.nodes.keys if self.nodes else frozenset())

    @property
    def by_name(self) -> bool:
        return self.nodes is not None and self.nodes.by_name

    @property
    def counts_draining(self) -> bool:
        """True if draining nodes count: a cordon and our taint are taints like any others."""
        return self.tolerations is None or _untolerated(self.tolerations, DRAINING, HARD) is None

    def refusal(self, node: NodeSpec) -> str:
        """Return why the node is not counted. A cordon is no taint here: kubelets add one of that name beside it."""
        counted = (
            self.required <= node.labels.keys()
            and (self.nodes is None or _matches(self.nodes, node))
            and (self.tolerations is None or _untolerated(self.tolerations, node.taints, HARD) is None)
        )
        return "" if counted else "not counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferred:
    """Preferred node affinity term."""

    term: NodeTerm

    @property
    def keys(self) -> frozenset[str]:
        return label_keys((self.term,))

    @property
    def by_name(self) -> bool:
        return bool(self.term.fields)

    def refusal(self, node: NodeSpec) -> str:
        return "" if self.term.matches(node.name, node.labels) else "not preferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcoming:
    """Nodes without a PreferNoSchedule taint that the pod does not tolerate."""

    tolerations: tuple[Toleration, ...]
    keys: frozenset[str] = frozenset()
    by_name: bool = False

    def refusal(self, node: NodeSpec) -> str:
        return "" if _untolerated(self.tolerations, node.taints, ("PreferNoSchedule",)) is None else "not preferred"


class NodeSet:
    """Nodes that a question accepts; nodes added since are evaluated at the next call."""

    __slots__ = ("_answers", "_fleet", "_keys", "_question", "_upto", "mask", "refused")

    def __init__(self, fleet: Fleet, question: Question) -> None:
        self._fleet, self._question = fleet, question
        self._keys = tuple(sorted(question.keys))
        self._answers: dict[object, str] = {}
        self._upto = 0
        self.mask = 0
        self.refused: dict[str, int] = {}  # reason -> nodes

    def nodes(self) -> int:
        """Return the accepted nodes as a mask, present or not."""
        if self._upto != len(self._fleet.nodes):
            for number in range(self._upto, len(self._fleet.nodes)):
                self._look(number)
            self._upto = len(self._fleet.nodes)
        return self.mask

    def _look(self, number: int) -> None:
        node, bit = self._fleet.nodes[number], self._fleet.bits[number]
        why = self._answer(node)
        if why:
            self.refused[why] = self.refused.get(why, 0) | bit
        else:
            self.mask |= bit

    def _answer(self, node: NodeSpec) -> str:
        if self._question.by_name:
            return self._question.refusal(node)
        labels = tuple(node.labels.get(key) for key in self._keys)
        alike = (labels, node.variants, node.taints, node.unschedulable, node.closed)
        found = self._answers.get(alike)
        if found is None:
            found = self._answers[alike] = self._question.refusal(node)
        return found


def _matches(choice: NodeChoice, node: NodeSpec) -> bool:
    """Return whether the choice accepts the node, whichever of its types is launched."""
    if not node.variants:
        return choice.matches(node.name, node.labels)
    return all(choice.matches(node.name, {**node.labels, **dict(variant)}) for variant in node.variants)


def _untolerated(
    tolerations: tuple[Toleration, ...], taints: Iterable[Taint], effects: tuple[str, ...]
) -> Taint | None:
    """Return the first taint with one of the effects that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not any(t.tolerates(taint.key, taint.value, taint.effect) for t in tolerations):
            return taint
    return None
