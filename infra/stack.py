"""The whole of Leeward in one stack: its parts and the references between them. Each part is built in its own file."""

from pathlib import Path

from aws_cdk import App, CfnOutput, Environment, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_

from infra.access import ClusterAccess
from infra.alarms import Alarms
from infra.asset import Asset
from infra.customer_key import imported_key
from infra.dashboard import operators_dashboard
from infra.disruption import Disruption
from infra.environment import check_environments
from infra.findings import accept
from infra.function import FunctionDefaults, LeewardFunction, function_environment
from infra.interruption import TIMEOUT, Interruption
from infra.notifications import Notifications
from infra.policies import policy_parameters
from infra.queue import InterruptionQueue
from infra.scopes import Scopes
from infra.settings import Settings
from infra.state_machine import Machine
from infra.sync import Sync
from infra.table import claims_table
from infra.termination import Termination
from infra.upgrade import Upgrade
from leeward import __version__


class LeewardStack(Stack):
    """Stack of one deployment: one account, one region, any number of clusters in it."""

    def __init__(self, app: App, *, settings: Settings, asset: Asset, root: Path) -> None:
        super().__init__(
            app,
            settings.names.stack,
            env=Environment(account=settings.account, region=settings.region),
            description="Leeward: event-driven, serverless node-lifecycle manager for Amazon EKS",
        )
        scopes = Scopes(self, settings)
        key = imported_key(self, settings.kms_key)
        table = claims_table(self, settings.names, key)
        queue = InterruptionQueue(self, TIMEOUT, settings.names, key)
        alarms = Alarms(self, settings.alarm_topic, settings.names, settings.runbooks)
        surroundings = self._surroundings(settings, asset, scopes, table, queue)
        self.interruption = Interruption(self, queue=queue, surroundings=surroundings, alarms=alarms)
        self.termination = Termination(self, root=root, table=table, surroundings=surroundings, alarms=alarms)
        self.upgrade = Upgrade(self, root=root, surroundings=surroundings, alarms=alarms)
        self.disruption = Disruption(self, root=root, surroundings=surroundings, alarms=alarms)
        self.sync = Sync(self, surroundings=surroundings, alarms=alarms)
        self.notifications = Notifications(self, table=table, surroundings=surroundings, alarms=alarms)
        self.functions = self._functions()
        check_environments(self, self.functions, settings)
        self.access = ClusterAccess(self, settings=settings, functions=self.functions)
        policy_parameters(self, settings)
        operators_dashboard(
            self,
            queue=queue,
            termination=self.termination,
            upgrade=self.upgrade,
            disruption=self.disruption,
            functions=self.functions,
            alarms=alarms,
        )
        self._outputs(queue, settings.names.dashboard(self.region))
        accept(
            app,
            scopes,
            functions=self.functions,
            state_machines=self._machines(),
            dead_letters=[self.notifications.undelivered],
        )

    def _functions(self) -> tuple[LeewardFunction, ...]:
        return (
            self.interruption.function,
            self.termination.terminate,
            self.termination.drain,
            self.termination.reconcile,
            self.upgrade.function,
            self.disruption.decide,
            self.disruption.disrupt,
            self.sync.function,
            self.notifications.function,
        )

    def _machines(self) -> tuple[Machine, ...]:
        return (
            self.termination.machine,
            self.upgrade.machine,
            self.upgrade.managed_machine,
            self.disruption.machine,
        )

    def _surroundings(
        self, settings: Settings, asset: Asset, scopes: Scopes, table: dynamodb.Table, queue: InterruptionQueue
    ) -> FunctionDefaults:
        environment = function_environment(
            self,
            scopes,
            table=table.table_name,
            queue=queue.queue.queue_arn,
            dead_letters=queue.dead_letters.queue_url,
        )
        code = lambda_.Code.from_asset(str(asset.folder), asset_hash=asset.digest)
        return FunctionDefaults(settings=settings, scopes=scopes, code=code, environment=environment)

    def _outputs(self, queue: InterruptionQueue, dashboard: str) -> None:
        """Add the outputs that a person or a script needs first."""
        for name, value, description in (
            ("Version", __version__, "Of Leeward, as `leeward version` prints it"),
            ("QueueArn", queue.queue.queue_arn, "NotificationTargetARN for lifecycle hooks that notify us directly"),
            ("QueueUrl", queue.queue.queue_url, "The interruption queue"),
            ("DeadLetterQueueUrl", queue.dead_letters.queue_url, "What could not be read or handled"),
            ("StateMachineArn", self.termination.machine.arn, 'Start manually: {"instance": "i-…"}'),
            ("UpgradeMachineArn", self.upgrade.machine.arn, 'Start manually: {"group": "NAME"}'),
            ("ManagedUpgradeMachineArn", self.upgrade.managed_machine.arn, 'Start manually: {"group": "NAME"}'),
            ("DisruptionMachineArn", self.disruption.machine.arn, 'Start manually: {"cluster": "NAME"}'),
            ("DashboardName", dashboard, "In CloudWatch"),
        ):
            CfnOutput(self, name, value=value, description=description)
