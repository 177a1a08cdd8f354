"""Blockers of one node, collected and ordered.

Decides which sources of blockers apply; the modules beside this one decide what each source reports."""

from collections.abc import Iterator
from datetime import datetime

from leeward.blockers.blocker import Blocker
from leeward.blockers.inputs import NodeInputs
from leeward.blockers.nodes import of_foreign_taints, of_hooks, of_opt_outs, of_volumes
from leeward.blockers.obstacles import of_record
from leeward.blockers.pods import of_plan, of_pods
from leeward.policy.document import DrainPolicy
from leeward.termination.drain_plan import plan_drain, with_surges


def blockers(inputs: NodeInputs, now: datetime) -> tuple[Blocker, ...]:
    """Return everything that holds up the termination of the node, by pod; blockers without a pod come last.

    Pods are judged by the drain that would begin now under the policy, with the record's drain options where there is
    one. A pod blocks if that drain cannot evict it; where `singleReplicas: surge` adds a second replica, if it cannot
    evict it even then. An obstacle that a drain under way has recorded blocks as well. Daemon pods and static pods
    block no drain, as in kubectl.
    """
    policy = inputs.policy.drain if inputs.policy else DrainPolicy()
    collected = [*of_volumes(inputs, policy, now), *of_hooks(inputs), *of_opt_outs(inputs)]
    collected += of_foreign_taints(inputs.node, now)
    if not inputs.instance_ended:
        collected += [*_planned(inputs, policy, now), *of_record(inputs, policy), *of_pods(inputs, now)]
    return tuple(sorted(collected, key=_order))


def _planned(inputs: NodeInputs, policy: DrainPolicy, now: datetime) -> Iterator[Blocker]:
    plan = plan_drain(
        node=inputs.node,
        pods=inputs.pods,
        budgets=inputs.budgets,
        daemon_sets=inputs.daemon_sets,
        policy=policy,
        now=now,
        deadline=inputs.deadline,
        options=inputs.options,
    )
    return of_plan(with_surges(plan, inputs.surged, inputs.budgets), inputs)


def _order(blocker: Blocker) -> tuple[bool, str, str, str]:
    return blocker.pod is None, blocker.pod or "", blocker.kind.value, blocker.object
