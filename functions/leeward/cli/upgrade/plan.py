"""`leeward upgrade plan`: of the cluster as it is, or as pre-flight found it before the latest upgrade.

Decides where the plan comes from, how it is printed and the exit code; `leeward.upgrade` makes it."""

import argparse
from dataclasses import replace

from leeward.cli.cluster_state import UNKNOWN_WITHOUT_IT, check_prices
from leeward.cli.context import ClusterContext, context_of
from leeward.cli.output import emit
from leeward.cli.pause.shown import pause_lines
from leeward.cli.upgrade.tables import plan_report, recorded_report
from leeward.errors import InvalidInputError, LeewardError, NotDeployedError
from leeward.model.group import Group
from leeward.termination.situation import UNSELECTED
from leeward.upgrade.observation import fresh_record
from leeward.upgrade.preflight.findings import Code, blocking
from leeward.upgrade.preflight.gather import gather_preflight
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.preflight.plan import UpgradePlan, plan_upgrade
from leeward.upgrade.start import parse_request

_ASKED = ("ami", "launch_template_version", "kubernetes_version")


def plan(arguments: argparse.Namespace) -> int:
    """Print the plan; return 1 when a blocker is found that is not overridden."""
    context = context_of(arguments, "upgrade plan")
    if arguments.recorded:
        return _recorded(arguments, context)
    preflight = preflight_of(arguments, context)
    made = plan_upgrade(preflight, seed=arguments.seed)
    overridden = frozenset(arguments.override)
    emit(
        made.to_json(),
        arguments.view,
        lambda: [*pause_lines(context, arguments.now, made.group), *plan_report(made, preflight, overridden)],
    )
    return int(bool(blocking(made.findings, overridden)))


def preflight_of(arguments: argparse.Namespace, context: ClusterContext) -> Preflight:
    """Gather the inputs from which a start with these arguments would be judged now. Raises InvalidInputError for more
    than one target, and for a group, a version or an SSM parameter that does not exist.
    """
    check_targets(arguments)
    check_prices(context)
    ports, group = context.ports, context.group(arguments.group)
    request = parse_request(
        {
            "ami": arguments.ami,
            "launchTemplateVersion": arguments.launch_template_version,
            "kubernetesVersion": arguments.kubernetes_version,
            "force": arguments.force,
        }
    )
    _check_version(context, group, request.template_version)
    policy = ports.clusters.policies(context.cluster).policy_of(group) or UNSELECTED
    preflight = gather_preflight(fresh_record(group, context.cluster, policy, request, ports.clock), ports)
    return replace(preflight, inputs=replace(preflight.inputs, no_policies=_no_policies(context, group.name)))


def _no_policies(context: ClusterContext, group: str) -> str:
    """Return the reason why no policy can select a group: a folder without policy.yaml, or no deployment of Leeward.
    Empty where there may be one.
    """
    if not context.has_policies:
        return "there is no policy.yaml"
    if context.folder is None:
        try:
            context.ports.upgrades.read(group)
        except NotDeployedError as error:
            return f"{error}; {UNKNOWN_WITHOUT_IT}"
        except LeewardError:
            pass  # a finding of its own
    return ""


def check_targets(arguments: argparse.Namespace) -> None:
    """Check that one target is named at most. Raises InvalidInputError."""
    given = [f"--{name.replace('_', '-')}" for name in _ASKED if getattr(arguments, name) is not None]
    if len(given) > 1:
        raise InvalidInputError(f"upgrade: found {' and '.join(given)}, expected one of them at most")


def _check_version(context: ClusterContext, group: Group, version: str) -> None:
    """Check that the group's launch template has the version. EKS launches a managed group from a copy of its own."""
    template = group.launch.template
    if not version or group.nodegroup is not None:
        return
    if template is None:
        raise InvalidInputError(
            f"upgrade: found --launch-template-version {version}, expected a group with a launch template: "
            f"{group.name} has none"
        )
    asked = replace(group, launch=replace(group.launch, template=replace(template, version=version)))
    if context.knows_versions and context.ports.launches.settings(asked) is None:
        raise context.unknown_version(template, version)


def _recorded(arguments: argparse.Namespace, context: ClusterContext) -> int:
    """Print the recorded plan. Blockers that were overridden then have passed, whatever this call overrides."""
    if context.folder is not None:
        raise InvalidInputError("upgrade plan --recorded: found --snapshot, expected --cluster NAME: it is live alone")
    found = context.ports.upgrades.plan(arguments.group)
    if found is None:
        raise InvalidInputError(
            f"upgrade plan --recorded: found no upgrade of {arguments.group}, expected one that has begun"
        )
    made, overridden = UpgradePlan.from_json(found["plan"]), frozenset(Code(one) for one in found["overridden"])
    emit(made.to_json(), arguments.view, lambda: recorded_report(made, overridden, found["execution"], found["at"]))
    return int(bool(blocking(made.findings, overridden)))
