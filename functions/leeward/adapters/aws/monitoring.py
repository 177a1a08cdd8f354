"""`ports.monitoring` on Auto Scaling, EKS, EC2, Service Quotas and CloudWatch: service limits and alarms.

Sources: EC2's service quotas (`Running On-Demand Standard instances`, `All Standard Spot Instance Requests`, both in
vCPUs), CloudWatch's usage metrics (namespace AWS/Usage), EC2 Auto Scaling's states of an instance refresh."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call
from leeward.model.alarm import Alarm
from leeward.model.image import Image

QUOTAS = {False: ("L-1216C47A", "Standard/OnDemand"), True: ("L-34B43A08", "Standard/Spot")}  # by spot
STANDARD = frozenset("acdhimrtz")  # families that share these quotas; f, g, inf, p, trn, vt, x ... have their own
OTHERS = ("dl", "hpc", "inf", "mac", "trn")  # that begin with such a letter
REFRESHING = frozenset({"Pending", "InProgress", "Cancelling", "RollbackInProgress", "Baking"})
MEASURED = timedelta(minutes=15)  # CloudWatch reports the use of vCPUs every five
PERIOD = 300
NAMES_PER_CALL = 100  # DescribeAlarms takes at most 100 names
KINDS = ["MetricAlarm", "CompositeAlarm"]  # without them it returns metric alarms only


class AwsServiceLimits:
    """Service limits, one call each, two for a quota. `region`: the cluster's, the home Region when None."""

    def __init__(self, clients: AwsClients, region: str | None = None) -> None:
        self._clients = clients
        self._region = region

    def refreshes(self, group: str) -> tuple[str, ...]:
        """Return the running instance refreshes, newest first."""
        with aws_call("autoscaling:DescribeInstanceRefreshes", group):
            answer = self._clients.get("autoscaling", region=self._region).describe_instance_refreshes(
                AutoScalingGroupName=group
            )
        running = (one for one in answer.get("InstanceRefreshes", ()) if one.get("Status") in REFRESHING)
        return tuple(one["InstanceRefreshId"] for one in running)

    def scheduled(self, group: str) -> tuple[str, ...]:
        """Return the scheduled actions; Auto Scaling deletes those whose time has passed."""
        client = self._clients.get("autoscaling", region=self._region)
        with aws_call("autoscaling:DescribeScheduledActions", group):
            found = pages(client, "describe_scheduled_actions", AutoScalingGroupName=group)
            return tuple(one["ScheduledActionName"] for page in found for one in page["ScheduledUpdateGroupActions"])

    def control_plane(self, cluster: str) -> str:
        """Return the control plane's version. Raises ObjectGoneError."""
        with aws_call("eks:DescribeCluster", cluster):
            answer = self._clients.get("eks", region=self._region).describe_cluster(name=cluster)
        return str(answer["cluster"].get("version") or "")

    def images(self, ids: Iterable[str]) -> Mapping[str, Image]:
        """Return the images, read by filter, so that an unknown one is no error. Deprecated ones too: groups launch
        them, and EC2 leaves those of other owners out unless it is asked for them.
        """
        wanted = sorted(set(ids))
        if not wanted:
            return {}
        with aws_call("ec2:DescribeImages", ", ".join(wanted)):
            answer = self._clients.get("ec2", region=self._region).describe_images(
                Filters=[{"Name": "image-id", "Values": wanted}], IncludeDeprecated=True
            )
        images = (Image.from_json(raw) for raw in answer.get("Images", ()))
        return {image.id: image for image in images}

    def vcpus_left(self, types: Iterable[str], now: datetime, *, spot: bool) -> int | None:
        """Return the quota less the highest use within the last quarter of an hour."""
        named = tuple(types)
        if not named or not all(is_standard(one) for one in named):
            return None
        code, kind = QUOTAS[spot]
        with aws_call("servicequotas:GetServiceQuota", code):
            quotas = self._clients.get("service-quotas", region=self._region)
            quota = quotas.get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"]
        with aws_call("cloudwatch:GetMetricStatistics", f"AWS/Usage {kind}"):
            answer = self._clients.get("cloudwatch", region=self._region).get_metric_statistics(
                Namespace="AWS/Usage",
                MetricName="ResourceCount",
                Dimensions=[
                    {"Name": name, "Value": value}
                    for name, value in (("Service", "EC2"), ("Resource", "vCPU"), ("Type", "Resource"), ("Class", kind))
                ],
                StartTime=now - MEASURED,
                EndTime=now,
                Period=PERIOD,
                Statistics=["Maximum"],
            )
        used = max((point["Maximum"] for point in answer.get("Datapoints", ())), default=None)
        return None if used is None else max(int(quota - used), 0)


def is_standard(instance_type: str) -> bool:
    """Return whether the type counts against the quota of standard instances."""
    family = instance_type.partition(".")[0]
    return family[:1] in STANDARD and not family.startswith(OTHERS)


class CloudWatchAlarms:
    """Alarms that DescribeAlarms returns by name."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def describe(self, names: Iterable[str]) -> Mapping[str, Alarm]:
        """Return the alarms by name, one call for a hundred."""
        found: dict[str, Alarm] = {}
        for chunk in chunks(dict.fromkeys(names), NAMES_PER_CALL):
            with aws_call("cloudwatch:DescribeAlarms", ", ".join(chunk)):
                for page in pages(
                    self._clients.get("cloudwatch"), "describe_alarms", AlarmNames=chunk, AlarmTypes=KINDS
                ):
                    raw = [*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())]
                    found |= {one["AlarmName"]: _alarm(one) for one in raw}
        return found


def _alarm(raw: Mapping[str, Any]) -> Alarm:
    """Return the alarm. StateTransitionedTimestamp is the change of the state, StateUpdatedTimestamp that of its reason
    too.
    """
    since = raw.get("StateTransitionedTimestamp") or raw.get("StateUpdatedTimestamp")
    return Alarm(name=raw["AlarmName"], ringing=raw["StateValue"] == "ALARM", since=since)
