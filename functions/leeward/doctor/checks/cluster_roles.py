"""Checks of each cluster's RBAC: its ClusterRoles allow what this version does, and are bound to Leeward's groups."""

from collections.abc import Callable, Iterator, Mapping

from leeward.doctor import expected
from leeward.doctor.facts import Binding, ClusterRole, InspectedCluster, Rule
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Read, T, Unavailable

APPLY = f"kubectl apply -f {expected.ROLE_MANIFEST}"


def roles(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that the cluster's ClusterRoles allow what this version does: those of an older version lack some of it."""
    return _each(Check.CLUSTER_ROLE, cluster, cluster.roles, _role)


def _each(
    check: Check,
    cluster: InspectedCluster,
    there: Mapping[str, Read[T | None]],
    judged: Callable[[About, str, T | None], Finding],
) -> Iterator[Finding]:
    for name, found in there.items():
        about = About(check, f"{name} in cluster {cluster.name}")
        if isinstance(found, Unavailable):
            yield about.unknown(found)
        else:
            yield judged(about, name, found)


def _role(about: About, name: str, found: ClusterRole | None) -> Finding:
    if found is None:
        return _unused(about, name, "it is not there")
    missing = sorted(rule for rule in expected.NEEDED[name] if not _covered(rule, found))
    beyond = sorted(found.rules - expected.NEEDED[name])
    if missing:
        return _unused(about, name, f"it does not allow: {', '.join(map(_permission, missing))}")
    if beyond:
        return about.warning(f"it allows more than this version needs: {', '.join(map(_permission, beyond))}", APPLY)
    return about.ok(f"{len(found.rules)} rules, as this version needs them")


def _unused(about: About, name: str, said: str) -> Finding:
    """Return a failure for the role that the functions use, a warning for the other one, which people and tools use."""
    return about.failed(said, APPLY) if name == expected.ENTERED_AS else about.warning(said, APPLY)


def _covered(rule: Rule, role: ClusterRole) -> bool:
    group, resource, verb = rule
    return any(
        have_group in {group, "*"} and have_resource in {resource, "*"} and have_verb in {verb, "*"}
        for have_group, have_resource, have_verb in role.rules
    )


def _permission(rule: Rule) -> str:
    group, resource, verb = rule
    return f"{verb} {resource}{f'.{group}' if group else ''}"


def bindings(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that each ClusterRole is bound to its group."""
    return _each(Check.BINDING, cluster, cluster.bindings, _binding)


def _binding(about: About, name: str, found: Binding | None) -> Finding:
    group = expected.KUBERNETES_GROUPS[name]
    if found is None:
        return _unused(about, name, "it is not there")
    if found.role != name:  # what a binding refers to cannot be changed
        fix = f"kubectl delete clusterrolebinding {name}, then {APPLY}"
        return about.failed(f"it binds {found.role}, expected {name}", fix)
    if group not in found.groups:
        return _unused(about, name, f"it binds {', '.join(found.groups) or 'no group'}, expected {group}")
    return about.ok(f"bound to {group}")
