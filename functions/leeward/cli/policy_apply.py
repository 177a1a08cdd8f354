"""`leeward policy apply`: write the policies of a cluster for which the deployment names none.

Decides when files may be applied; the functions see the new set within a minute, the whole of it or none."""

import argparse
from collections.abc import Callable
from dataclasses import replace

from leeward.cli.confirmation import check_can_ask, confirm
from leeward.cli.live import live_ports
from leeward.cli.member import profile_of
from leeward.cli.output import emit
from leeward.cli.pause.switch import served_clusters
from leeward.errors import InvalidInputError, InvalidPolicyError, RecordChangedError, TerminalError
from leeward.policy.document import LARGEST_SET, AppliedPolicies, ClusterPolicies, ClusterSettings
from leeward.policy.write import parameters

APPLY = "policy apply"


def apply(
    arguments: argparse.Namespace, policies: ClusterPolicies, diff: Callable[[ClusterPolicies, ClusterPolicies], str]
) -> int:
    """Print the difference, ask, and write the policies. Nothing is written where nothing differs. `diff`: of the
    policies in force and the wanted ones, empty if they mean the same. Raises InvalidInputError or InvalidPolicyError
    for what cannot be applied, TerminalError where the deployment names policies, DeclinedError for any answer but yes,
    RecordChangedError where another caller was faster.
    """
    from leeward.adapters import wiring  # late: --help needs no AWS library

    check_can_ask(arguments, APPLY, "replaces the policies of the cluster")
    wanted = _documents(policies)
    deployment = wiring.command_line_deployment(arguments.region, **profile_of(arguments))
    identity, served = deployment.identity(), served_clusters(deployment, APPLY)
    if arguments.cluster not in served:
        raise InvalidInputError(
            f"--cluster: found {arguments.cluster!r}, expected one that the deployment serves: {', '.join(served)}"
        )
    ports = live_ports(arguments)
    record = ports.policy_store.read(arguments.cluster)
    in_force = ports.clusters.policies(arguments.cluster)
    _check_source(in_force, record)
    difference = diff(in_force, policies)
    if difference:
        confirm(arguments, [f"cluster {arguments.cluster}: its policies will be:", *difference.splitlines()])
        changed = replace(record, documents=wanted, by=identity.arn, at=arguments.now)
        written = ports.policy_store.write(changed)
        if written is None:
            raise _another_was_faster(arguments.cluster)
        record = written
    said = "applied" if difference else "nothing to apply, the files say what is in force"
    text = f"cluster {arguments.cluster}: {said}, version {record.version}"
    document = {"applied": bool(difference), "version": record.version, "diff": difference}
    emit(document, arguments.view, lambda: f"{text}; functions see it within 60 s" if difference else text)
    return 0


def _documents(policies: ClusterPolicies) -> tuple[tuple[str, str], ...]:
    if not policies.policies:
        raise InvalidPolicyError("policies: found no NodePolicy in the files, expected at least one")
    if policies.settings.webhook is not None:
        raise InvalidPolicyError(
            "spec.webhook: found a URL, expected none in applied policies: the webhook is a part of the deployment "
            "(docs/deploy.md)"
        )
    documents = tuple(parameters(policies))
    size = AppliedPolicies(cluster="", documents=documents).size
    if size > LARGEST_SET:
        raise InvalidPolicyError(f"policies: found {size} bytes as canonical JSON, expected at most {LARGEST_SET}")
    return documents


def _check_source(in_force: ClusterPolicies, record: AppliedPolicies) -> None:
    cluster = record.cluster
    named = in_force.policies or in_force.settings != ClusterSettings(name=in_force.settings.name)
    if named and not in_force.applied:
        raise TerminalError(
            f"{APPLY}: cluster {cluster}: the deployment names its policies: change the files and deploy again; or "
            "leave `policies` out of the cluster's settings, deploy, and apply"
        )
    if in_force.applied not in {0, record.version}:
        raise _another_was_faster(cluster)


def _another_was_faster(cluster: str) -> RecordChangedError:
    return RecordChangedError(f"cluster {cluster}: another caller has applied policies at this moment: try again")
