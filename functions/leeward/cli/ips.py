"""`leeward inspect ips`: number of addresses that a node takes from its subnet.

Decides whose settings count (flags, then policies, then the aws-node DaemonSet) and how the result is printed;
`leeward.placement.cni` counts."""

import argparse
import re
from typing import Any

from leeward.adapters.folder.compute import built_in
from leeward.cli.context import ClusterContext, context_of
from leeward.cli.output import emit
from leeward.cli.tables import Table
from leeward.errors import InvalidInputError
from leeward.model.instance_type import InstanceType
from leeward.placement.accounting import Accounting, accounting_of
from leeward.placement.cni import CniSettings, NodeIps, node_ips

FLAGS = ("WARM_ENI_TARGET", "WARM_IP_TARGET", "MINIMUM_IP_TARGET", "MAX_ENI")
DESCRIPTION = """Counts the IPv4 addresses that a node of an instance type takes from its subnet under the VPC
CNI, with N pods that need an address of their own and M on the host's network. The CNI's settings are its
defaults, or with --snapshot those of the aws-node DaemonSet and of the policies; each flag wins over both."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the node, and the CNI's settings."""
    parser.add_argument("--instance-type", metavar="T", required=True, help="such as m5.large")
    parser.add_argument("--pods", metavar="N", type=count, required=True, help="pods that need an address")
    parser.add_argument(
        "--host-network-pods", metavar="M", type=count, default=0, help="pods beside them that need none"
    )
    for name in FLAGS:
        parser.add_argument(
            f"--{name.lower().replace('_', '-')}", dest=name, metavar="N", type=_setting, help=f"instead of {name}"
        )


def count(text: str) -> int:
    """Parse a whole number from 0 on. Raises ArgumentTypeError."""
    if not re.fullmatch(r"\d{1,6}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number, 0 to 999999")
    return int(text)


def _setting(text: str) -> str:
    """Check that the text is a whole number: a typing error must not count as the default. Negative numbers do, as in
    the CNI; empty is unset.
    """
    if text and not re.fullmatch(r"[+-]?\d{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number")
    return text


def run(arguments: argparse.Namespace) -> int:
    """Count and print the addresses."""
    context = None
    if arguments.snapshot is not None or arguments.cluster is not None:
        if arguments.snapshot is None:
            raise InvalidInputError("inspect ips: found no --snapshot, expected --snapshot DIR")
        context = context_of(arguments, "inspect ips")
    kind = _limits(arguments.instance_type, context)
    variables = {} if context is None else _variables(context)
    given = {name: value for name in FLAGS if (value := getattr(arguments, name)) is not None}
    settings = CniSettings.from_variables({**variables, **given})
    held = node_ips(settings, kind, arguments.pods, arguments.host_network_pods)
    document = to_json(held, accounting_of(settings))
    emit(document, arguments.view, lambda: _report(arguments.instance_type, document))
    return 0


def _limits(name: str, context: ClusterContext | None) -> InstanceType:
    kind = built_in(name) if context is None else context.ports.launches.instance_types([name]).get(name)
    if kind is None:
        folder = None if context is None else context.folder
        where = "the built-in table" if folder is None else f"{folder.path('instance-types')} or the table"
        raise InvalidInputError(
            f"inspect ips: --instance-type: found {name!r}, expected an EC2 instance type that is in {where}"
        )
    return kind


def _variables(context: ClusterContext) -> dict[str, str]:
    """Return the CNI's settings; the first policy that names one overrides it (docs/policy.md)."""
    overrides: dict[str, str] = {}
    for policy in context.ports.clusters.policies(context.cluster).policies:
        overrides = {**policy.cni, **overrides}
    return {**(context.facts().cni or {}), **overrides}


def to_json(held: NodeIps, accounting: Accounting) -> dict[str, Any]:
    """Return the document that `docs/schema/ips.json` describes."""
    return {
        "enis": held.enis,
        "maxEnis": held.max_enis,
        "ipsPerEni": list(held.ips_per_eni),
        "secondaryIps": held.secondary_ips,
        "unusedIps": held.unused_ips,
        "subnetIps": held.subnet_ips,
        "maxPods": held.max_pods,
        "unservablePods": held.unservable,
        "accounting": "on" if accounting.on else "off",
        "why": _why(held, accounting),
    }


def _why(held: NodeIps, accounting: Accounting) -> str:
    if not accounting.on:
        return f"{accounting.why}: placement counts no addresses; the figures are those of the CNI's default mode"
    rest = f"; {held.unservable} of the pods cannot be served" if held.unservable else ""
    enis = "1 interface takes an address" if held.enis == 1 else f"{held.enis} interfaces take an address each"
    return f"{accounting.why}: {enis}, and {held.secondary_ips} are for pods{rest}"


def _report(name: str, document: dict[str, Any]) -> list[Table | str]:
    table = Table(
        (
            "TYPE",
            "PODS-MAX",
            "ENIS",
            "ENIS-MAX",
            "IPS-PER-ENI",
            "IPS-SECONDARY",
            "IPS-UNUSED",
            "IPS-SUBNET",
            "UNSERVED",
        ),
        wide=frozenset({"ENIS-MAX", "IPS-PER-ENI"}),
        optional=("IPS-SECONDARY", "IPS-UNUSED", "ENIS"),
        kind="instancetype",
    )
    table.add(
        name,
        document["maxPods"],
        document["enis"],
        document["maxEnis"],
        ",".join(map(str, document["ipsPerEni"])),
        document["secondaryIps"],
        document["unusedIps"],
        document["subnetIps"],
        document["unservablePods"],
    )
    title = f"{name}: {count_of_ips(document['subnetIps'])} of its subnet, accounting {document['accounting']}"
    return [title, table, document["why"]]


def count_of_ips(number: int) -> str:
    """Return `1 address`, `12 addresses`."""
    return f"{number} address{'' if number == 1 else 'es'}"
