"""Checks of each cluster: EKS has it, it admits Leeward's functions, and they reach it.

The caller's permissions say nothing about the functions: the checks read their access entry, and the facts that fn sync
has recorded show whether it reached the cluster."""

from collections.abc import Iterator

from leeward.doctor import expected
from leeward.doctor.entries import entries_of
from leeward.doctor.facts import Facts, Function, InspectedCluster
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import ErrorCause, UnreadFact
from leeward.model.facts import FRESH_FOR, FactKind, fresh_for
from leeward.model.node_owners import FOREIGN_TAINTS, forgotten_taints
from leeward.model.times import format_instant

FROM_THE_CLUSTER = frozenset({FactKind.NODES, FactKind.CNI})  # facts that only its API server has
_SYNC_LOG = "aws logs tail /aws/lambda/leeward-sync --since 30m"
_CONFIG_MAP = "CONFIG_MAP"


def served(facts: Facts) -> Iterator[Finding]:
    """Check that the deployment serves the cluster."""
    if facts.serves is None and not facts.requested_cluster:
        missing = next((found for found in facts.functions.values() if isinstance(found, UnreadFact)), None)
        about = About(Check.CLUSTER, "all clusters")
        if missing is not None:
            yield about.unknown(missing)
        else:
            yield about.failed("the functions' setting CLUSTERS cannot be understood", "cdk deploy")
    elif facts.serves is not None and facts.requested_cluster and facts.requested_cluster not in facts.serves:
        yield About(Check.CLUSTER, f"cluster {facts.requested_cluster}").failed(
            f"this deployment serves {', '.join(facts.serves) or 'none'}, not this one",
            "add it to clusters of the settings and cdk deploy",
        )


def described(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that EKS has the cluster, and that it works."""
    about, found = About(Check.CLUSTER, f"cluster {cluster.name}"), cluster.described
    if isinstance(found, UnreadFact):
        yield about.unknown(found)
    elif found is None:
        yield about.failed(
            "EKS knows no such cluster here", "correct clusters[].name or region in the settings, cdk deploy"
        )
    elif found.status in {"ACTIVE", "UPDATING"}:
        yield about.ok(f"{found.status}, Kubernetes {found.version}")
    else:
        yield about.failed(f"its status is {found.status}", f"aws eks describe-cluster --name {cluster.name}")


def access(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that the cluster knows each role that Leeward's functions assume, as a member of the role's group alone."""
    wanted = entries_of(cluster.served)
    for name, entry in cluster.entries.items():
        about = About(Check.ACCESS_ENTRY, f"{name} in cluster {cluster.name}")
        role, group = wanted[name].role, wanted[name].group
        if isinstance(entry, UnreadFact):
            yield about.unknown(entry)
        elif entry is None:
            yield _by_config_map(about, cluster, role, group)
        elif entry != (group,):
            named = ", ".join(entry) or "none"
            judged = about.warning if group in entry else about.failed
            yield judged(
                f"the access entry of {role} has the groups {named}, expected {group}",
                f"aws eks update-access-entry --cluster-name {cluster.name} --principal-arn {role} "
                f"--kubernetes-groups {group}",
            )
        else:
            yield about.ok(f"its access entry has the group {group}")


def _by_config_map(about: About, cluster: InspectedCluster, role: str, group: str) -> Finding:
    """Check the ConfigMap aws-auth: without an entry it may name the role, where the cluster uses it."""
    mapped = cluster.aws_auth
    mode = (
        "" if isinstance(cluster.described, UnreadFact) or not cluster.described else cluster.described.authentication
    )
    if isinstance(mapped, UnreadFact) and mode != "API":
        return about.unknown(mapped)
    if isinstance(mapped, str) and mode != "API" and role in mapped and group in mapped:
        return about.ok("the ConfigMap aws-auth names its role")
    if mode == _CONFIG_MAP:
        return about.failed(
            f"the ConfigMap kube-system/aws-auth does not name {role}",
            f"add it to mapRoles with the group {group} (docs/deploy.md, access to the cluster)",
        )
    return about.failed(
        f"the cluster has no access entry for {role}: its functions do not get in",
        f"aws eks create-access-entry --cluster-name {cluster.name} --principal-arn {role} --kubernetes-groups {group}",
    )


def api_server(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that the API server answers. A private one cannot be reached from everywhere, which says nothing about the
    functions.
    """
    about, found = About(Check.API_SERVER, f"cluster {cluster.name}"), cluster.version
    described = cluster.described
    private = not isinstance(described, UnreadFact) and described is not None and not described.public
    if not isinstance(found, UnreadFact):
        yield about.ok(found)
    elif found.cause is ErrorCause.DENIED or private or isinstance(described, UnreadFact) or described is None:
        yield about.unknown(found)
    else:
        yield about.failed(
            found.reason,
            f"aws eks describe-cluster --name {cluster.name}: look at status, endpoint and publicAccessCidrs",
        )


def sync(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Check when fn sync ran last: it keeps the hooks in place, and records its facts with every run."""
    about, found = About(Check.SYNC, f"cluster {cluster.name}"), cluster.synced
    if isinstance(found, UnreadFact):
        yield about.unknown(found)
        return
    if not found:
        said = "fn sync has written nothing down yet"
        if _just_deployed(facts):
            yield about.warning(said, "it runs every five minutes: run leeward doctor again")
        else:
            yield about.failed(said, _SYNC_LOG)
        return
    last = max(found.values())
    if facts.now - last > FRESH_FOR:
        yield about.failed(f"fn sync ran last at {format_instant(last)}: hooks are not kept in place", _SYNC_LOG)
        return
    old = [kind for kind, at in found.items() if facts.now - at > fresh_for(kind) and kind not in FROM_THE_CLUSTER]
    if old:
        named = ", ".join(f"{kind.value} of {format_instant(found[kind])}" for kind in old)
        yield about.warning(
            f"facts that it could not read again are old: {named}", f"{_SYNC_LOG}: a warning names the call"
        )
    else:
        yield about.ok(f"fn sync ran at {format_instant(last)}")


def reach(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Check whether fn sync reaches the cluster: the only observation of it by a function itself."""
    about, found = About(Check.REACH, f"cluster {cluster.name}"), cluster.synced
    if isinstance(found, UnreadFact):
        yield about.unknown(found)
        return
    if not found or facts.now - max(found.values()) > FRESH_FOR:
        return  # it did not run: whether it reaches the cluster is unknown
    seen = found.get(FactKind.NODES)
    if seen is None or facts.now - seen > FRESH_FOR:
        last = f"since {format_instant(seen)}" if seen else "yet"
        yield about.failed(
            f"fn sync runs, and has not got into the cluster {last}",
            f"{_SYNC_LOG}: a warning says why (access entry, ClusterRole, or port 443 of the cluster's security group)",
        )
    else:
        yield about.ok(f"fn sync saw its nodes at {format_instant(seen)}")


def other_deployments(cluster: InspectedCluster) -> Iterator[Finding]:
    """Report nodes that another deployment of Leeward is terminating: both act on the same cluster."""
    if not cluster.foreign and not isinstance(cluster.members, UnreadFact):
        yield About(Check.OTHER_DEPLOYMENT, f"cluster {cluster.name}").ok(
            "no other deployment is terminating its nodes"
        )
    for node, owner in sorted(cluster.foreign.items()):
        who = f"deployment {owner}" if owner else "a taint without an owner"
        yield About(Check.OTHER_DEPLOYMENT, f"node {node} in cluster {cluster.name}").warning(
            f"{who} is terminating it: this deployment leaves its taint alone and counts it as disrupting",
            f"let one deployment serve the cluster (clusters of the settings); if {who} is gone: "
            f"kubectl taint node {node} leeward.dev/disrupted- && kubectl uncordon {node}",
        )


def left_behind_taints(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Report taints of other controllers that are hours old: pods stay away from such a node, and nothing ends it."""
    forgotten = {node.name: taints for node in cluster.tainted if (taints := forgotten_taints(node, facts.now))}
    if not forgotten and not isinstance(cluster.members, UnreadFact):
        yield About(Check.FOREIGN_TAINT, f"cluster {cluster.name}").ok("no other controller has left a taint behind")
    for node, taints in sorted(forgotten.items()):
        for key, since in sorted(taints.items()):
            yield About(Check.FOREIGN_TAINT, f"node {node} in cluster {cluster.name}").warning(
                f"{FOREIGN_TAINTS[key]} tainted it at {format_instant(since)} ({key}) and has not removed it since: "
                "pods stay away from it, and budgets count it as disrupted no more",
                f"kubectl taint node {node} {key}-",
            )


def _just_deployed(facts: Facts) -> bool:
    found = facts.functions.get(expected.SYNC)
    return isinstance(found, Function) and found.modified is not None and facts.now - found.modified < FRESH_FOR
