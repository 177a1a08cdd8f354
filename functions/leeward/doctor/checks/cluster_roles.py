"""Checks of each cluster's RBAC: its ClusterRoles allow what this version does, and are bound to Leeward's groups."""

from collections.abc import Iterator

from leeward.doctor import expected
from leeward.doctor.facts import Binding, ClusterRole, InspectedCluster, Rule
from leeward.doctor.finding import About, Check, Finding, State
from leeward.doctor.reading import UnreadFact

ASKS = "drain.singleReplicas: surge"


def roles(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that the cluster's ClusterRoles allow what this version does: those of an older version lack some of it."""
    for name in expected.NEEDED:
        about, found = _about(Check.CLUSTER_ROLE, name, cluster), cluster.roles[name]
        yield about.unknown(found) if isinstance(found, UnreadFact) else _role(about, name, found)


def bindings(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that each ClusterRole is bound to its groups."""
    for name in expected.NEEDED:
        about, found = _about(Check.BINDING, name, cluster), cluster.bindings[name]
        yield about.unknown(found) if isinstance(found, UnreadFact) else _binding(about, name, found)


def surge(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that the ClusterRoles for second replicas are there and bound where a policy asks for them, and only there:
    one of them allows to scale every Deployment of the cluster.
    """
    if isinstance(cluster.policies, UnreadFact):
        return  # the policies' own check says so
    asks = any(policy.drain.surge_single_replicas for policy in cluster.policies.policies)
    for name in expected.FOR_SURGE:
        about, role, binding = _about(Check.REPLICA_SURGE, name, cluster), cluster.roles[name], cluster.bindings[name]
        if isinstance(role, UnreadFact):
            yield about.unknown(role)
        elif isinstance(binding, UnreadFact):
            yield about.unknown(binding)
        elif asks:
            found = _role(about, name, role)
            yield found if found.state is not State.OK else _binding(about, name, binding)
        elif binding is not None:
            yield about.warning(f"it is bound although no policy says {ASKS}", f"kubectl delete -f {_manifest(name)}")
        else:
            yield about.ok(f"not bound: no policy says {ASKS}")


def _about(check: Check, name: str, cluster: InspectedCluster) -> About:
    return About(check, f"{name} in cluster {cluster.name}")


def _manifest(name: str) -> str:
    return expected.SURGE_MANIFEST if name in expected.FOR_SURGE else expected.ROLE_MANIFEST


def _role(about: About, name: str, found: ClusterRole | None) -> Finding:
    if found is None:
        return _unused(about, name, "it is not there")
    needed = {**expected.NEEDED, **expected.FOR_SURGE}[name]
    missing = sorted(rule for rule in needed if not _covered(rule, found))
    beyond = sorted(found.rules - needed)
    if missing:
        return _unused(about, name, f"it does not allow: {', '.join(map(_permission, missing))}")
    if beyond:
        said = f"it allows more than this version needs: {', '.join(map(_permission, beyond))}"
        return about.warning(said, _apply(name))
    return about.ok(f"{len(found.rules)} rules, as this version needs them")


def _unused(about: About, name: str, said: str) -> Finding:
    """Return a failure for a role that functions use, a warning for the one that only people and tools use."""
    used = name in expected.ENTERED_AS or name in expected.FOR_SURGE
    return about.failed(said, _apply(name)) if used else about.warning(said, _apply(name))


def _apply(name: str) -> str:
    return f"kubectl apply -f {_manifest(name)}"


def _covered(rule: Rule, role: ClusterRole) -> bool:
    group, resource, verb = rule
    return any(
        have_group in {group, "*"} and have_resource in {resource, "*"} and have_verb in {verb, "*"}
        for have_group, have_resource, have_verb in role.rules
    )


def _permission(rule: Rule) -> str:
    group, resource, verb = rule
    return f"{verb} {resource}{f'.{group}' if group else ''}"


def _binding(about: About, name: str, found: Binding | None) -> Finding:
    groups = expected.KUBERNETES_GROUPS[name]
    if found is None:
        return _unused(about, name, "it is not there")
    if found.role != name:  # what a binding refers to cannot be changed
        fix = f"kubectl delete clusterrolebinding {name}, then {_apply(name)}"
        return about.failed(f"it binds {found.role}, expected {name}", fix)
    missing = [group for group in groups if group not in found.groups]
    if missing:
        said = f"it binds {', '.join(found.groups) or 'no group'}, expected {', '.join(groups)}"
        return _unused(about, name, said)
    beyond = [group for group in found.groups if group not in groups]
    if beyond:
        return about.warning(f"it binds {', '.join(beyond)} as well, expected {', '.join(groups)}", _apply(name))
    return about.ok(f"bound to {', '.join(groups)}")
