"""Text of a first policy: what a cluster has, each line explained.

Decides what is written out and what stays a comment: interruptions and drains are on, voluntary disruption and repair
are left to the reader. Names come from the cluster, so each is quoted or made visible."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from leeward.model import well_known
from leeward.model.counts import count_of
from leeward.model.group import TERMINATING, Group, LifecycleHook
from leeward.model.instance import CapacityType, Instance
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.visible import visible

NAME_LABELS = ("app.kubernetes.io/name", "k8s-app", "app")
CONTROLLERS: Mapping[str, str] = {
    "aws-node-termination-handler": "it drains nodes for the same events: remove it before you deploy Leeward",
    "karpenter": "nodes of its own are left alone; they are in no Auto Scaling group",
    "cluster-autoscaler": "it goes on to scale the groups; Leeward removes no node that it is removing",
    "aws-cluster-autoscaler": "it goes on to scale the groups; Leeward removes no node that it is removing",
}
"""Value of a name label of a pod -> what that means beside Leeward."""
MOST_NAMED = 10  # objects of one kind in a comment
LONGEST = 100  # characters of a name in a comment


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstPolicyFacts:
    """Contents of the cluster. `hooks` by group; `unread`: what could not be read, a sentence each."""

    cluster: str
    groups: Sequence[Group]
    hooks: Mapping[str, Sequence[LifecycleHook]] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)
    pods: Sequence[Pod] = ()
    budgets: Sequence[PodDisruptionBudget] = ()
    unread: Sequence[str] = ()


def first_policy(facts: FirstPolicyFacts) -> str:
    """Return the YAML document, which `leeward policy validate` accepts. There must be at least one group."""
    return "\n".join([*_head(facts), *_selector(facts), *_interruption(facts), *_drain(facts), *_opt_in(), ""])


def _head(facts: FirstPolicyFacts) -> Iterator[str]:
    yield f"# A first policy for cluster {_shown(facts.cluster)}, from what it has. Change it, then check it:"
    yield "#   leeward policy validate THIS-FILE"
    for sentence in facts.unread:
        yield f"# Not read: {_shown(sentence)}"
    for name, meaning in _controllers(facts.pods):
        yield f"# {name} runs here: {meaning}."
    yield "apiVersion: leeward.dev/v1"
    yield "kind: NodePolicy"
    yield "metadata:"
    yield "  name: first # yours to choose; it is in events, in reasons and in the names of parameters"
    yield "spec:"


def _controllers(pods: Iterable[Pod]) -> Iterator[tuple[str, str]]:
    named = {pod.labels.get(label) for pod in pods for label in NAME_LABELS}
    yield from ((name, meaning) for name, meaning in CONTROLLERS.items() if name in named)


def _selector(facts: FirstPolicyFacts) -> Iterator[str]:
    yield "  # The Auto Scaling groups that Leeward looks after. It leaves every other group alone."
    yield '  # "web-*" would take all groups whose names begin so, `tags: {team: web}` those with that tag.'
    yield "  selector:"
    yield "    groups:"
    for group in sorted(facts.groups, key=lambda one: one.name):
        yield f"      - {_quoted(group.name)} # {_members(group, facts.instances)}"


def _members(group: Group, instances: Mapping[str, Instance]) -> str:
    known = [instances[one.id] for one in group.instances if one.id in instances]
    spot = sum(one.capacity_type is CapacityType.SPOT for one in known)
    kinds = [f"{spot} spot" if spot else "", f"{len(known) - spot} on-demand" if len(known) > spot else ""]
    types = sorted({one.type for one in known})
    said = [count_of(len(group.instances), "node"), *(kind for kind in kinds if kind), *types[:3]]
    more = ["and more types"] if len(types) > 3 else []
    owner = ["an EKS managed node group"] if group.nodegroup else []
    return _shown(", ".join([*said, *more, *owner]))


def _interruption(facts: FirstPolicyFacts) -> Iterator[str]:
    yield "  # AWS takes a node away (spot warning, maintenance, scale-in): a new node first, then a drain."
    yield "  interruption:"
    yield "    enabled: true"
    yield "    # A rebalance recommendation comes before most spot warnings: ignore, cordon or replace the node."
    yield "    rebalanceRecommendation: replace"
    rebalancing = [group.name for group in facts.groups if group.capacity_rebalance]
    if rebalancing:
        yield f"    # CapacityRebalance is on: these groups launch for it themselves: {_listed(rebalancing)}"
    ending = {hook.name for hooks in facts.hooks.values() for hook in hooks if hook.transition == TERMINATING}
    theirs = sorted(ending - {well_known.TERMINATE_HOOK})
    if theirs:
        yield "    # Terminate hooks that groups have already. Their owners answer them; name here those"
        yield "    # that Leeward is to answer, when the node is drained."
        yield f"    # hooks: [{', '.join(_quoted(name) for name in theirs[:MOST_NAMED])}]"


def _drain(facts: FirstPolicyFacts) -> Iterator[str]:
    yield "  # How pods leave a node: by the Eviction API, so that PodDisruptionBudgets are respected."
    yield "  drain:"
    yield "    # A pod that has not left after this long is reported and the node returned to service (or see `force`)."
    yield "    timeout: 15m"
    yield "    # true: such a pod is deleted, whatever its budget says."
    yield "    force: false"
    yield "    # An empty node waits so long for load balancers that still send it traffic; auto: only where one can."
    yield "    settle: 60s"
    none = [f"{one.namespace}/{one.name}" for one in facts.budgets if one.expected_pods and not one.disruptions_allowed]
    if none:
        yield f"    # These PodDisruptionBudgets allow no eviction now: {_listed(none)}"
        yield "    # `leeward blockers` says which nodes they hold, and what to change."


def _opt_in() -> Iterator[str]:
    yield "  # Without this section no node that runs well is removed or replaced. These are its defaults."
    yield "  # What they would do and save: leeward plan --what-if consolidation"
    yield "  # disruption:"
    yield "  #   consolidationPolicy: WhenEmptyOrUnderutilized # or WhenEmpty: only empty nodes; or Never"
    yield "  #   drift: true # replace nodes that their group would launch differently now"
    yield "  #   expireAfter: Never # or 720h: no node older than thirty days"
    yield '  #   budgets: [{nodes: "10%"}] # at most so many of these nodes at once'
    yield "  # Without this section no node is replaced because it is NotReady or fails EC2's status checks."
    yield "  # repair:"
    yield "  #   notReadyAfter: 30m"
    yield "  #   impairedAfter: 2m"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(_shown(name) for name in sorted(names)[:MOST_NAMED])
    return f"{shown} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else shown


def _shown(text: str) -> str:
    """Return a text of the cluster as one line of a comment."""
    return " ".join(visible(text).split())[:LONGEST]


def _quoted(name: str) -> str:
    """Return the name in double quotes, everything but printable ASCII escaped."""
    return yaml.safe_dump(name, default_style='"', width=float("inf")).strip()
