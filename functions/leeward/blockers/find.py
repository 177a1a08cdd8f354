"""Collection of all blockers of one node."""

from collections.abc import Iterator
from datetime import datetime

from leeward.blockers.blocker import Blocker
from leeward.blockers.nodes import of_hooks, of_opt_outs, of_volumes
from leeward.blockers.obstacles import of_record
from leeward.blockers.pods import of_plan, of_pods
from leeward.blockers.scene import NodeScene
from leeward.policy.document import DrainPolicy
from leeward.termination.drain_plan import plan_drain
from leeward.termination.lone_pods import with_surges


def blockers(scene: NodeScene, now: datetime) -> tuple[Blocker, ...]:
    """Return everything that holds up the node, by pod; blockers without a pod come last.

    A drain that begins now is planned with the policy, without a flag of kubectl's. A pod that it could not evict
    blocks; where `singleReplicas: surge` adds a second replica, one that it could not evict even then. So does an
    obstacle that a drain under way has recorded. Daemon pods and static pods block no drain, as in kubectl.
    """
    policy = scene.policy.drain if scene.policy else DrainPolicy()
    found = [*of_volumes(scene, policy, now), *of_hooks(scene), *of_opt_outs(scene)]
    if not scene.gone:
        found += [*_planned(scene, policy, now), *of_record(scene, policy), *of_pods(scene, now)]
    return tuple(sorted(found, key=lambda one: (one.pod is None, one.pod or "", one.kind.value, one.object)))


def _planned(scene: NodeScene, policy: DrainPolicy, now: datetime) -> Iterator[Blocker]:
    plan = plan_drain(
        node=scene.node,
        pods=scene.pods,
        budgets=scene.budgets,
        daemon_sets=scene.daemon_sets,
        policy=policy,
        now=now,
        deadline=scene.deadline,
        options=scene.options,
    )
    return of_plan(with_surges(plan, scene.surged, scene.budgets), scene)
