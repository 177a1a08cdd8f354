"""`ports.autoscaling.GroupChanges` on Auto Scaling.

Each change reads the group first and writes only what differs: a repeat writes nothing. Auto Scaling has no conditional
writes, so another writer that changes the same size between the two calls may be overwritten."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call, is_not_found
from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef


class AutoScalingGroupChanges:
    """Changes by UpdateAutoScalingGroup, SuspendProcesses and ResumeProcesses."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def point_at(self, group: Group, template: LaunchTemplateRef) -> None:
        """Set the launch template. A mixed instances policy is written whole, as it was read, because Auto Scaling
        takes the list of overrides as the new one. Raises ObjectGoneError, InvalidInputError (a TerminalError) for a
        launch configuration.
        """
        raw = self._read(group.name)
        mixed = raw.get("MixedInstancesPolicy")
        if mixed is None and not raw.get("LaunchTemplate"):
            raise InvalidInputError(f"group {group.name}: found a launch configuration, expected a launch template")
        now = mixed["LaunchTemplate"]["LaunchTemplateSpecification"] if mixed else raw["LaunchTemplate"]
        if _same(LaunchTemplateRef.from_json(now), template):
            return
        if mixed:
            self._update(group.name, MixedInstancesPolicy=_mixed(mixed, template))
        else:
            self._update(group.name, LaunchTemplate=_specification(template))

    def raise_to(
        self, group: str, *, desired: int | None = None, maximum: int | None = None, only_from: int | None = None
    ) -> bool:
        """Raise both in one call, so that a desired size above the old maximum is accepted. `only_from` is compared
        with the size that is read just before. Raises ObjectGoneError.
        """
        raw = self._read(group)
        if only_from is not None and raw["DesiredCapacity"] != only_from:
            return False
        wanted = {"DesiredCapacity": desired, "MaxSize": maximum}
        higher = {name: size for name, size in wanted.items() if size is not None and size > raw[name]}
        if higher:
            self._update(group, **higher)
        return True

    def put_back_maximum(self, group: str, maximum: int, *, partly: bool = False) -> bool:
        """Restore the maximum. Auto Scaling would lower the desired size along with MaxSize, so it is read first.
        Raises ObjectGoneError.
        """
        raw = self._read(group)
        fits = raw["DesiredCapacity"] <= maximum
        lowest = max(maximum, raw["DesiredCapacity"])
        if (fits or partly) and raw["MaxSize"] > lowest:
            self._update(group, MaxSize=lowest)
        return bool(fits)

    def suspend(self, group: str, process: str) -> None:
        """Suspend the process; the call is idempotent. Raises ObjectGoneError."""
        with aws_call("autoscaling:SuspendProcesses", f"{group}/{process}"), _gone(group):
            self._client.suspend_processes(AutoScalingGroupName=group, ScalingProcesses=[process])

    def resume(self, group: str, process: str) -> None:
        """Resume the process; the call is idempotent. Raises ObjectGoneError."""
        with aws_call("autoscaling:ResumeProcesses", f"{group}/{process}"), _gone(group):
            self._client.resume_processes(AutoScalingGroupName=group, ScalingProcesses=[process])

    @property
    def _client(self) -> Any:
        return self._clients.get("autoscaling")

    def _read(self, group: str) -> Mapping[str, Any]:
        with aws_call("autoscaling:DescribeAutoScalingGroups", group):
            answer = self._client.describe_auto_scaling_groups(AutoScalingGroupNames=[group])
        found: Mapping[str, Any] | None = next(iter(answer.get("AutoScalingGroups", ())), None)
        if found is None:
            raise ObjectGoneError(f"no Auto Scaling group {group}")
        return found

    def _update(self, group: str, **changes: Any) -> None:
        with aws_call("autoscaling:UpdateAutoScalingGroup", f"{group} ({', '.join(sorted(changes))})"), _gone(group):
            self._client.update_auto_scaling_group(AutoScalingGroupName=group, **changes)


@contextmanager
def _gone(group: str) -> Iterator[None]:
    """Turn Auto Scaling's ValidationError for a missing group into ObjectGoneError."""
    try:
        yield
    except ClientError as error:
        if not is_not_found(error):
            raise
        raise ObjectGoneError(f"no Auto Scaling group {group}") from error


def _same(now: LaunchTemplateRef, wanted: LaunchTemplateRef) -> bool:
    """Return whether both are the same version. Ids decide where both have one, as names may be reused."""
    one = now.id == wanted.id if now.id and wanted.id else now.name == wanted.name
    return one and now.version == wanted.version


def _specification(template: LaunchTemplateRef) -> dict[str, str]:
    """Name the template by id or by name: Auto Scaling refuses both."""
    which = {"LaunchTemplateId": template.id} if template.id else {"LaunchTemplateName": template.name}
    return {**which, "Version": template.version}


def _mixed(policy: Mapping[str, Any], template: LaunchTemplateRef) -> dict[str, Any]:
    """Return the policy as it was described, as a request may carry it, with another version of its template."""
    described = policy["LaunchTemplate"]
    launch: dict[str, Any] = {"LaunchTemplateSpecification": _specification(template)}
    if described.get("Overrides"):
        launch["Overrides"] = [_override(one) for one in described["Overrides"]]
    return {**policy, "LaunchTemplate": launch}


def _override(described: Mapping[str, Any]) -> dict[str, Any]:
    own = described.get("LaunchTemplateSpecification")
    if not own:
        return dict(described)
    return {**described, "LaunchTemplateSpecification": _specification(LaunchTemplateRef.from_json(own))}
