"""Checks of each cluster's policies: they can be parsed, select a group, and switch nothing off."""

from collections.abc import Iterator

from leeward.doctor.facts import InspectedCluster
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import ErrorCause, UnreadFact
from leeward.model.counts import count_of
from leeward.model.group import Group
from leeward.model.instance import cluster_of
from leeward.model.pause import Pause, PauseScope
from leeward.model.times import format_instant
from leeward.model.zonal_shift import Evacuation
from leeward.policy.document import ClusterPolicies

_CORRECT = "correct the policy file that the settings name and cdk deploy"


def written(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that policies exist, and that this version understands them."""
    about, found = About(Check.POLICIES, f"cluster {cluster.name}"), cluster.policies
    if isinstance(found, UnreadFact):
        yield about.failed(found.reason, _CORRECT) if found.cause is ErrorCause.INVALID else about.unknown(found)
    elif not found.policies:
        yield about.failed(
            f"there is no policy below /leeward/{cluster.name}/policies, and none was applied: no group is selected",
            f"leeward policy apply FILE --cluster {cluster.name}; or name files in clusters[].policies and cdk deploy",
        )
    else:
        yield about.ok(", ".join(policy.name for policy in found.policies))


def switches(cluster: InspectedCluster) -> Iterator[Finding]:
    """Report features that were switched off on purpose, and may have been forgotten."""
    if isinstance(cluster.policies, UnreadFact):
        return
    about, settings = About(Check.SWITCHES, f"cluster {cluster.name}"), cluster.policies.settings
    pauses = cluster.policies.pauses
    for pause in pauses.pauses:
        yield _paused(cluster.name, pause)
    if pauses.unreadable:
        yield about.failed(
            f"the pause switch cannot be read, so nothing voluntary begins: {pauses.unreadable}",
            "allow dynamodb:GetItem on pause#* of the table",
        )
    if not settings.interruption:
        yield about.warning(
            "interruption is off: nodes that are taken back are not drained",
            "interruption: true in its ClusterSettings and cdk deploy, when that is over",
        )
    evacuations = () if isinstance(cluster.zones, UnreadFact) else cluster.zones.evacuations
    for evacuation in evacuations:
        if evacuation.closed:
            yield _evacuated(cluster.name, evacuation)
    if not pauses.pauses and not pauses.unreadable and settings.interruption:
        yield about.ok("not paused")


def _paused(cluster: str, pause: Pause) -> Finding:
    """Report who has paused the cluster or the group, why, since and until when, and the command that ends it."""
    about = About(Check.SWITCHES, f"group {pause.group}" if pause.group else f"cluster {cluster}")
    stops = "nothing is begun, interruptions are not handled"
    if pause.scope is PauseScope.VOLUNTARY:
        stops = "no disruption, repair or upgrade begins"
    found = f"paused by {pause.by} since {format_instant(pause.since)} {pause.end}, {stops}: {pause.why}"
    group = f" --group {pause.group}" if pause.group else ""
    return about.warning(found, f"leeward resume --cluster {cluster}{group} when that is over")


def _evacuated(cluster: str, evacuation: Evacuation) -> Finding:
    """Report which zone an operator has closed, and the command that opens it."""
    about = About(Check.SWITCHES, f"cluster {cluster}")
    why = f": {evacuation.why}" if evacuation.why else ""
    found = f"{evacuation.sentence} by {evacuation.by}: no node is launched there, and its nodes are replaced{why}"
    return about.warning(found, f"leeward zone return {evacuation.zone} --cluster {cluster} when that is over")


def selection(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that each policy selects a group: one with a misspelled name selects none, without any error."""
    policies = cluster.policies
    if isinstance(policies, UnreadFact) or not policies.policies:
        return
    if isinstance(cluster.groups, UnreadFact):
        yield About(Check.SELECTION, f"cluster {cluster.name}").unknown(cluster.groups)
        return
    groups = [group for group in cluster.groups if cluster_of(group.tags, [cluster.name])]
    any_selected = any(policies.policy_of(group) for group in groups)
    for number, policy in enumerate(policies.policies):
        about = About(Check.SELECTION, f"policy {policy.name} of cluster {cluster.name}")
        mine = [group.name for group in groups if policies.policy_of(group) is policy]
        if mine:
            yield about.ok(f"selects {', '.join(sorted(mine))}")
        else:
            yield _none(about, number, policies, groups, alone=not any_selected)


def _none(about: About, number: int, policies: ClusterPolicies, groups: list[Group], *, alone: bool) -> Finding:
    """Report a policy that selects no group: no policy selects one, or only this policy is idle; an earlier one may
    have taken its groups.
    """
    policy = policies.policies[number]
    would = [group for group in groups if policy.selector.selects(group.name, group.tags)]
    if would:
        takers = (policies.policy_of(group) for group in would)
        named = ", ".join(sorted({taker.name for taker in takers if taker}))
        return about.warning(
            f"selects nothing: {named} stands before it and selects its groups",
            "put it before, or narrow the other's selector",
        )
    wanted = [*policy.selector.groups, *(f"{key}={value}" for key, value in policy.selector.tags.items())]
    said = f"selects nothing: none of the cluster's {count_of(len(groups), 'group')} matches {', '.join(wanted)}"
    return (
        about.failed(said, f"{_CORRECT}, or tag the group")
        if alone
        else about.warning(said, f"{_CORRECT}, or tag the group")
    )
