"""`ports.autoscaling.Groups` on Auto Scaling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import LAUNCH_REFUSED, NO_CAPACITY, aws_call, code_of, is_not_found, message_of
from leeward.adapters.cache import ExpiringCache
from leeward.model import well_known
from leeward.model.group import Group, HookResult, LifecycleHook, ScalingActivity
from leeward.model.instance import cluster_of
from leeward.model.lifecycle import may_be_ended
from leeward.model.termination import Replacement

if TYPE_CHECKING:
    from leeward.ports.clock import Clock

NAMES_PER_CALL = 100  # 50 without MaxRecords, which may be 100
TAG_KEYS_PER_CALL = 50
HOOKS_LAST = timedelta(seconds=60)


class AutoScalingGroups:
    """Groups, their hooks, and the two calls that change how many instances there are."""

    def __init__(self, clients: AwsClients, clock: Clock) -> None:
        self._clients = clients
        self._hooks: ExpiringCache[str, tuple[LifecycleHook, ...]] = ExpiringCache(clock, HOOKS_LAST)

    def describe(self, names: Iterable[str]) -> Mapping[str, Group]:
        """Return existing groups by name. No names, no call: an empty list would mean all groups of the account."""
        found: dict[str, Group] = {}
        for chunk in chunks(names, NAMES_PER_CALL):
            with aws_call("autoscaling:DescribeAutoScalingGroups", ", ".join(chunk)):
                found.update((group.name, group) for group in self._groups(AutoScalingGroupNames=chunk))
        return found

    def of_clusters(self, clusters: Iterable[str]) -> Sequence[Group]:
        """Return every group tagged for one of the clusters; Auto Scaling filters by tag key, this method by value."""
        wanted = tuple(clusters)
        tag_keys = [well_known.CLUSTER_TAG_PREFIX + name for name in wanted] + list(well_known.EKS_CLUSTER_TAGS)
        found: dict[str, Group] = {}
        for chunk in chunks(tag_keys if wanted else (), TAG_KEYS_PER_CALL):
            with aws_call("autoscaling:DescribeAutoScalingGroups", f"clusters {', '.join(wanted)}"):
                for group in self._groups(Filters=[{"Name": "tag-key", "Values": chunk}]):
                    if cluster_of(group.tags, wanted) is not None:
                        found[group.name] = group
        return tuple(found.values())

    def lifecycle_of(self, instance: str) -> tuple[str, str] | None:
        """Return (group, lifecycle state) as the group reports now, or None when no group holds the instance."""
        with aws_call("autoscaling:DescribeAutoScalingInstances", instance):
            answer = self._client.describe_auto_scaling_instances(InstanceIds=[instance])
        for raw in answer.get("AutoScalingInstances", ()):
            return raw["AutoScalingGroupName"], raw["LifecycleState"]
        return None

    def hooks(self, group: str) -> Sequence[LifecycleHook]:
        """Return all hooks of the group, read again after 60 s; an empty tuple for a group that is gone."""
        return self._hooks.get(group, lambda: self._read_hooks(group))

    def put_hook(self, hook: LifecycleHook, *, default_result: HookResult) -> None:
        """Create or overwrite the hook, idempotent by the hook's name."""
        optional = {"NotificationTargetARN": hook.target_arn, "NotificationMetadata": hook.metadata}
        with aws_call("autoscaling:PutLifecycleHook", f"{hook.group}/{hook.name}"):
            self._client.put_lifecycle_hook(
                LifecycleHookName=hook.name,
                AutoScalingGroupName=hook.group,
                LifecycleTransition=hook.transition,
                HeartbeatTimeout=hook.heartbeat_timeout,
                DefaultResult=default_result.value,
                **{name: value for name, value in optional.items() if value},
            )
        self._hooks.forget(hook.group)

    def delete_hook(self, *, group: str, hook: str) -> None:
        """Delete the hook. DeleteLifecycleHook completes outstanding actions first. A repeat finds no hook."""
        with aws_call("autoscaling:DeleteLifecycleHook", f"{group}/{hook}"):
            try:
                self._client.delete_lifecycle_hook(AutoScalingGroupName=group, LifecycleHookName=hook)
            except ClientError as error:
                if not is_not_found(error):
                    raise
        self._hooks.forget(group)

    def complete(self, *, group: str, hook: str, instance: str, result: HookResult) -> bool:
        """Complete the action by instance id; a repeat finds none waiting and returns False."""
        return self._answer("CompleteLifecycleAction", group, hook, instance, {"LifecycleActionResult": result.value})

    def heartbeat(self, *, group: str, hook: str, instance: str) -> bool:
        """Extend a waiting action by the hook's own time-out; False when there is none."""
        return self._answer("RecordLifecycleActionHeartbeat", group, hook, instance, {})

    def launch(self, *, group: str, subnet: str, token: str, count: int = 1) -> Replacement:
        """Launch synchronously, without the group's own retries. Idempotent by the client token.

        A refusal, a denied permission and an SDK or Region without the operation give the same result: `refused`.
        """
        launch_instances = getattr(self._client, "launch_instances", None)
        if launch_instances is None:
            return Replacement(reason="UnknownOperation: this botocore has no LaunchInstances", refused=True)
        with aws_call("autoscaling:LaunchInstances", f"{group} in {subnet}"):
            try:
                answer = launch_instances(
                    AutoScalingGroupName=group,
                    RequestedCapacity=count,
                    ClientToken=token,
                    SubnetIds=[subnet],
                    RetryStrategy="none",
                )
            except ClientError as error:
                if code_of(error) not in LAUNCH_REFUSED | NO_CAPACITY:
                    raise
                reason = f"{code_of(error)}: {message_of(error)}"
                lacking = code_of(error) in NO_CAPACITY
                return Replacement(reason=reason, no_capacity=lacking, refused=not lacking)
        return _replacement(answer, count)

    def terminate(self, *, instance: str, decrement: bool, anyway: bool = False) -> bool:
        """Request the termination once, and only while the group has not begun to end the instance, so that no repeat
        decrements twice. One that has returned to the warm pool, or that the group retains, is ended only `anyway`.

        botocore's own retries are off for this call: after a lost answer the caller retries and the state is read
        first. Raises TerminalError where a decrement would go below MinSize.
        """
        held = self.lifecycle_of(instance)
        if held is None or not may_be_ended(held[1], anyway=anyway):
            return False
        with aws_call("autoscaling:TerminateInstanceInAutoScalingGroup", f"{held[0]}/{instance}"):
            try:
                self._clients.get("autoscaling", retries=False).terminate_instance_in_auto_scaling_group(
                    InstanceId=instance, ShouldDecrementDesiredCapacity=decrement
                )
            except ClientError as error:
                if not is_not_found(error):
                    raise
                return False
        return True

    def activities(self, group: str, since: datetime) -> Sequence[ScalingActivity]:
        """Return the activities, newest first, as the API pages them: no page is read beyond `since`."""
        found: list[ScalingActivity] = []
        with aws_call("autoscaling:DescribeScalingActivities", group):
            try:
                for page in pages(self._client, "describe_scaling_activities", AutoScalingGroupName=group):
                    fresh = [ScalingActivity.from_json(raw) for raw in page.get("Activities", ())]
                    found += [activity for activity in fresh if activity.at >= since]
                    if any(activity.at < since for activity in fresh):
                        break
            except ClientError as error:
                if not is_not_found(error):
                    raise
        return tuple(found)

    @property
    def _client(self) -> Any:
        return self._clients.get("autoscaling")

    def _groups(self, **which: Any) -> Iterator[Group]:
        for page in pages(self._client, "describe_auto_scaling_groups", MaxRecords=NAMES_PER_CALL, **which):
            yield from (Group.from_json(raw) for raw in page.get("AutoScalingGroups", ()))

    def _read_hooks(self, group: str) -> tuple[LifecycleHook, ...]:
        with aws_call("autoscaling:DescribeLifecycleHooks", group):
            try:
                answer = self._client.describe_lifecycle_hooks(AutoScalingGroupName=group)
            except ClientError as error:
                if not is_not_found(error):
                    raise
                return ()
        return tuple(LifecycleHook.from_json(raw) for raw in answer.get("LifecycleHooks", ()))

    def _answer(self, call: str, group: str, hook: str, instance: str, more: Mapping[str, str]) -> bool:
        methods = {
            "CompleteLifecycleAction": self._client.complete_lifecycle_action,
            "RecordLifecycleActionHeartbeat": self._client.record_lifecycle_action_heartbeat,
        }
        with aws_call(f"autoscaling:{call}", f"{group}/{hook}/{instance}"):
            try:
                methods[call](AutoScalingGroupName=group, LifecycleHookName=hook, InstanceId=instance, **more)
            except ClientError as error:
                if not is_not_found(error):
                    raise
                return False
        return True


def _replacement(answer: Mapping[str, Any], count: int) -> Replacement:
    """Read the answer. Errors count where fewer came than requested: a subnet's first instance type may fail."""
    launched = tuple(id for part in answer.get("Instances", ()) for id in part.get("InstanceIds", ()))
    refused = (f"{e.get('ErrorCode', '')}: {e.get('ErrorMessage', '')}" for e in answer.get("Errors", ()))
    reason = "; ".join(dict.fromkeys(refused))
    if not launched and not reason:
        reason = "LaunchInstances named neither an instance nor an error"
    fewer = len(launched) < count
    lacking = fewer and any(error.get("ErrorCode") in NO_CAPACITY for error in answer.get("Errors", ()))
    unserved = not launched and not lacking
    return Replacement(launched=launched, reason=reason if fewer else "", no_capacity=lacking, refused=unserved)
