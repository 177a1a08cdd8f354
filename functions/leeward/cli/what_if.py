"""`leeward plan --what-if METHOD`: the cluster as if its policies had switched a method on.

Decides what switching on means: Karpenter's usual values where the policy has none. Budgets, windows, opt-outs and a
pause stay as they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # --help needs none of them
    from leeward.policy.document import NodePolicy
    from leeward.snapshot.cluster import ClusterSnapshot

EXPIRES_AFTER = timedelta(hours=720)  # Karpenter's default


class WhatIf(StrEnum):
    """Closed set of `--what-if`."""

    CONSOLIDATION = "consolidation"
    DRIFT = "drift"
    EXPIRATION = "expiration"


def switched_on(snapshot: ClusterSnapshot, method: WhatIf) -> ClusterSnapshot:
    """Return the snapshot with the method switched on for the cluster and in every policy, those without a disruption
    section included.
    """
    settings = snapshot.policies.settings
    match method:
        case WhatIf.CONSOLIDATION:
            settings = replace(settings, consolidation=True, emptiness=True)
        case WhatIf.DRIFT:
            settings = replace(settings, drift=True)
        case WhatIf.EXPIRATION:
            settings = replace(settings, expiration=True)
    policies = tuple(_with(policy, method) for policy in snapshot.policies.policies)
    return replace(snapshot, policies=replace(snapshot.policies, settings=settings, policies=policies))


def _with(policy: NodePolicy, method: WhatIf) -> NodePolicy:
    from leeward.disruption.methods.emptiness import CONSOLIDATING, UNDERUTILIZED
    from leeward.policy.document import DisruptionPolicy

    rules = replace(policy.disruption, present=True)
    match method:
        case WhatIf.CONSOLIDATION:
            after = DisruptionPolicy().consolidate_after if rules.consolidate_after is None else rules.consolidate_after
            chosen = rules.consolidation_policy if rules.consolidation_policy in CONSOLIDATING else UNDERUTILIZED
            rules = replace(rules, consolidation_policy=chosen, consolidate_after=after)
        case WhatIf.DRIFT:
            rules = replace(rules, drift=True)
        case WhatIf.EXPIRATION:
            rules = replace(rules, expire_after=rules.expire_after or EXPIRES_AFTER)
    return replace(policy, disruption=rules)
