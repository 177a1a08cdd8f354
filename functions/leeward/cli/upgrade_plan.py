"""`leeward upgrade plan`: from a folder, live, or as pre-flight found it before the latest upgrade.

Decides where the plan comes from, how it is printed and the exit code; `leeward.upgrade` makes it."""

import argparse
from collections.abc import Callable

from leeward.cli.output import emit
from leeward.cli.upgrade_live import live_ports
from leeward.cli.upgrade_scene import at_most_one, offline_preflight
from leeward.cli.upgrade_tables import plan_table, recorded_table
from leeward.errors import InvalidInputError
from leeward.policy.document import NodePolicy, Selector
from leeward.ports import Ports
from leeward.upgrade.observation import described, fresh_record, policy_of
from leeward.upgrade.preflight.findings import Code, blocking
from leeward.upgrade.preflight.gather import gather_preflight
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.preflight.plan import Plan, plan_upgrade
from leeward.upgrade.record import UpgradeRequest

PortsOf = Callable[[argparse.Namespace], Ports]


def plan(arguments: argparse.Namespace, ports_of: PortsOf = live_ports) -> int:
    """Print the plan; return 1 when a blocker is found that is not overridden."""
    if arguments.recorded:
        return _recorded(arguments, ports_of)
    live = arguments.snapshot is None and arguments.cluster
    preflight = live_preflight(arguments, ports_of(arguments)) if live else offline_preflight(arguments)
    made = plan_upgrade(preflight, seed=arguments.seed)
    overridden = frozenset(arguments.override)
    emit(made.to_json(), arguments.output, lambda: plan_table(made, preflight, overridden))
    return int(bool(blocking(made.findings, overridden)))


def live_preflight(arguments: argparse.Namespace, ports: Ports) -> Preflight:
    """Gather the inputs from which a start with these arguments would be judged now. Raises InvalidInputError for a
    group that does not exist.
    """
    at_most_one(arguments)
    group = described(arguments.group, ports.groups)
    policy = policy_of(arguments.cluster, group, ports.clusters) or NodePolicy(name="(defaults)", selector=Selector())
    asked = UpgradeRequest(
        image=arguments.ami or "",
        template_version=arguments.launch_template_version or "",
        kubernetes=arguments.kubernetes_version or "",
        force=arguments.force,
    )
    return gather_preflight(fresh_record(group, arguments.cluster, policy, asked, ports.clock), ports)


def _recorded(arguments: argparse.Namespace, ports_of: PortsOf) -> int:
    """Print the recorded plan. Blockers that were overridden then have passed, whatever this call overrides."""
    found = ports_of(arguments).upgrades.plan(arguments.group)
    if found is None:
        raise InvalidInputError(
            f"upgrade plan --recorded: found no upgrade of {arguments.group}, expected one that has begun"
        )
    made, overridden = Plan.from_json(found["plan"]), frozenset(Code(one) for one in found["overridden"])
    emit(made.to_json(), arguments.output, lambda: recorded_table(made, overridden, found["execution"], found["at"]))
    return int(bool(blocking(made.findings, overridden)))
