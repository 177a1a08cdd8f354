"""One line of the table of permissions: an action, and a scope that `scopes.py` turns into ARNs."""

from dataclasses import dataclass
from enum import StrEnum

LIST_ONLY = "the API describes lists and knows no resource to name; it changes nothing"
ONLY_TAGGED_INSTANCES = "instances come and go after the deployment: any instance, held to the clusters by its tag"
ONLY_TAGGED = "groups come and go after the deployment: any group, held to the configured clusters by its tag"


class Key(StrEnum):
    """Keys of the table's items: patterns of the partition key."""

    TERMINATION = "termination#*"  # record of a termination, by instance
    ONCE = "once#*"  # mark that something was seen or done
    COUNT = "count#*"  # number of instances that EC2 takes
    FACTS = "facts#*"  # what fn sync has recorded, by cluster and kind
    BLOCKS = "facts#*#capacity-blocks"  # Capacity Blocks and their ends, by cluster
    NODE_REPAIR = "facts#*#node-repair"  # EKS' node auto repair of managed groups, by cluster
    NAMED_HOOKS = "facts#*#named-hooks"  # hooks that policies name, by cluster
    SHIFTS = "facts#*#zonal-shifts"  # zonal shifts, by cluster
    ZONES = "facts#*#zone-record"  # evacuations, by cluster
    RESERVATIONS = "reservations#*"  # addresses of launches, and unavailable pools, by cluster
    MAXIMUM = "maximum#*"  # raised maximum size, by group
    UPGRADE = "upgrade#*"  # record of an upgrade with its lease and control requests, by group
    PLAN = "plan#*"  # result of its pre-flight checks
    PAUSE = "pause#*"  # switch of `leeward pause`, by cluster
    POLICIES = "policies#*"  # what `leeward policy apply` has written, by cluster
    DISRUPTION = "disruption#*"  # record of a disruption run, by cluster


class Scope(StrEnum):
    """Resources on which an action is allowed."""

    ANYTHING = "anything"  # the action supports no resource, or none that could be named in advance
    OWN_LOGS = "own-logs"  # the streams of the function's own log group
    TABLE = "table"  # only items of the permission's keys
    OPEN_INDEX = "open-index"  # keys of open terminations, and nothing else
    QUEUE = "queue"  # both that fn interruption reads
    DEAD_LETTERS = "dead-letters"
    UNDELIVERED = "undelivered"  # the queue of notifications that could not be delivered
    STREAM = "stream"  # of the table
    BUS = "bus"  # the default event bus and that of the webhooks, with our own source only
    STATE_MACHINE = "state-machine"
    EXECUTIONS = "executions"
    STEP_FUNCTIONS = "step-functions"  # the two Lambda functions that the state machine calls
    UPGRADE_MACHINES = "upgrade-machines"  # node-group-upgrade and managed-node-group-upgrade
    UPGRADE_EXECUTIONS = "upgrade-executions"  # of both
    UPGRADE_FUNCTION = "upgrade-function"  # the one that both call
    DISRUPTION_MACHINE = "disruption-machine"
    DISRUPTION_EXECUTIONS = "disruption-executions"
    DISRUPTION_FUNCTION = "disruption-function"  # the one that disruption calls
    CLUSTER_TEMPLATES = "cluster-templates"  # launch templates tagged for one of the configured clusters
    IMAGES = "images"  # AWS's own parameters that name its recommended images
    CLUSTER_GROUPS = "cluster-groups"  # Auto Scaling groups tagged for one of the configured clusters
    CLUSTER_INSTANCES = "cluster-instances"  # EC2 instances tagged for one of the configured clusters
    POLICIES = "policies"  # SSM parameters of the configured clusters
    CLUSTERS = "clusters"  # the configured EKS clusters
    SHIFTED_CLUSTERS = "shifted-clusters"  # the same as managed resources of ARC, which the condition names
    NODE_GROUPS = "node-groups"  # any managed node group of the configured clusters
    TAINT_ROLES = "taint-roles"  # leeward-REGION-CLUSTER-taint
    ACT_ROLES = "act-roles"  # leeward-REGION-CLUSTER-act
    MEMBER_ROLES = "member-roles"  # the function's own role in each other account and Region
    NODE_ROLES = "node-roles"  # what instances run as, passed to EC2 only
    FLEET_LAUNCHED = "fleet-launched"  # what CreateFleet makes or uses, besides the launch template
    LAUNCHED = "launched"  # instances made from a launch template, or by a service in the caller's name
    NAMED = "named"  # what a launch template names: nothing that the caller puts in its place
    LAUNCHED_WITH = "launched-with"  # what the launch of such an instance makes or uses besides
    LAUNCH_TAGS = "launch-tags"  # anything, but only while it is being launched
    CUSTOMER_KEY = "customer-key"  # the setting kmsKey, only through DynamoDB, Lambda and SQS
    LAMBDA_ITSELF = "lambda-itself"  # anything, but only when Lambda calls to run the function, never its code


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One action on one scope. `reason`: why a wildcard, or who makes the call; `indirect`: not by our own code;
    `keys`: of the table's items, for the table only.
    """

    action: str
    on: Scope
    reason: str = ""
    indirect: bool = False
    keys: tuple[Key, ...] = ()

    @property
    def reads(self) -> bool:
        """Whether the action changes nothing, as its name says."""
        return self.action.partition(":")[2].startswith(("Describe", "Get", "List"))
