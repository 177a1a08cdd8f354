"""Planted builds: the adapters, the local stack and the command line."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

CLAIMS = "leeward.adapters.aws.claims.DynamoClaims"
GROUPS = "leeward.adapters.aws.groups.AutoScalingGroups"
CHANGES = "leeward.adapters.aws.group_changes.AutoScalingGroupChanges"

CANCEL = ("tests/cli/test_drain_cancel.py",)
OUTLOOK = ("tests/unit/disruption/test_outlook.py",)

CODEC = "leeward.model.codec"
LAYOUT = ("tests/unit/model/test_codec.py",)

OF_ADAPTERS = (
    Planted(
        name="a null of an item is read as a value",
        story="takes only an absent attribute for the default",
        edits=(edit(f"{CODEC}._shape", "if value is not None and name in reads:", "if name in reads:"),),
        tests=LAYOUT,
    ),
    Planted(
        name="an absent attribute of a field without a default fails the parse",
        story="forgets that None is stored as nothing where the field has no default",
        edits=(edit(f"{CODEC}._shape", "found = dict.fromkeys(empty)", "found = dict[str, Any]()"),),
        tests=LAYOUT,
    ),
    Planted(
        name="a malformed item of a record ends the step",
        story="waits only for words that are not known",
        edits=(edit(f"{CODEC}.decode_item", "except MALFORMED as error:", "except ValueError as error:"),),
        tests=LAYOUT,
    ),
    Planted(
        name="a cause of a kind of a newer version is dropped",
        story="leaves out whatever is not known, as for fields",
        edits=(
            edit(
                "leeward.adapters.aws.record_items._record_of",
                "for id, raw in causes if _decides(raw, period)),",
                "for id, raw in causes if _decides(raw, period) and decode(Cause, raw, id=id).kind != 'other'),",
            ),
        ),
        tests=("tests/simulation/test_two_versions.py",),
    ),
    Planted(
        name="one record of a newer version ends the pass of the minute reconciler",
        story="takes what a record says for an error of the table",
        edits=(
            edit(
                "leeward.termination.requests.read_apart",
                "isinstance(together, NewerRecordError | UnexpectedError)",
                "isinstance(together, UnexpectedError)",
            ),
        ),
        tests=("tests/unit/reconcile/test_clusters_apart.py", "tests/simulation/test_two_versions.py"),
    ),
    Planted(
        name="policies are applied over those of the deployment",
        story="does not ask where the policies in force come from",
        edits=(edit("leeward.cli.policy_apply._check_source", "if named and not in_force.applied:", "if False:"),),
        tests=("tests/cli/test_policy_apply.py",),
    ),
    Planted(
        name="applied policies win over those of the deployment",
        story="takes the later of the two for the newer",
        edits=(edit("leeward.adapters.aws.policies.ParameterStorePolicies._read", "if found:", "if False:"),),
        tests=("tests/adapters/test_clusters.py",),
    ),
    Planted(
        name="a cause joins a closed record in DynamoDB",
        story="adds the cause without the condition that the record is open",
        edits=(
            edit(
                f"{CLAIMS}._join",
                "#status = :open AND #period = :period AND",
                "(#status = :open OR attribute_exists(pk)) AND #period = :period AND",
            ),
        ),
        tests=("tests/contract/test_claims.py",),
    ),
    Planted(
        name="a record in DynamoDB is closed over a cause that joined",
        story="closes without the condition on the version",
        edits=(
            edit(
                f"{CLAIMS}.close",
                "#version = :version AND #status",
                "(#version = :version OR attribute_exists(pk)) AND #status",
            ),
        ),
        tests=("tests/contract/test_claims.py",),
    ),
    Planted(
        name="an upgrade's record is written over a newer one",
        story="writes without the condition on the version",
        edits=(
            edit(
                "leeward.adapters.aws.table.DynamoTable.put_version",
                "#version = :version AND #{same}",
                "(#version = :version OR attribute_exists(pk)) AND #{same}",
            ),
        ),
        tests=("tests/contract/test_upgrades.py",),
    ),
    Planted(
        name="a repeated terminate lowers the desired size twice",
        story="terminates with decrement without a look whether the instance is leaving",
        edits=(
            edit(
                f"{GROUPS}.terminate", "if held is None or not may_be_ended(held[1], anyway=anyway)", "if held is None"
            ),
        ),
        tests=("tests/adapters/test_groups.py", "tests/contract/autoscaling/test_terminating.py"),
    ),
    Planted(
        name="a launch that EC2 refuses for capacity is an error",
        story="knows the codes of LaunchInstances only as failures",
        edits=(edit(f"{GROUPS}.launch", "LAUNCH_REFUSED | NO_CAPACITY:", "frozenset():"),),
        tests=("tests/adapters/test_groups.py",),
    ),
    Planted(
        name="a denied permission to launch fails upgrades and disruption runs",
        story="knows refusals of the group, and denials only as failures",
        edits=(edit(f"{GROUPS}.launch", "LAUNCH_REFUSED |", "LAUNCH_REFUSED - {'AccessDenied'} |"),),
        tests=("tests/adapters/test_groups.py",),
    ),
    Planted(
        name="MaxSize is set below the desired size",
        story="puts MaxSize back without a look at the desired size, which Auto Scaling then lowers",
        edits=(edit(f"{CHANGES}.put_back_maximum", 'max(maximum, raw["DesiredCapacity"])', "maximum"),),
        tests=("tests/adapters/test_group_changes.py",),
    ),
    Planted(
        name="raising MaxSize lowers a larger one",
        story="writes the wanted sizes as they are",
        edits=(edit(f"{CHANGES}.raise_to", "size > raw[name]", "size != raw[name]"),),
        tests=("tests/adapters/test_group_changes.py",),
    ),
    Planted(
        name="an eviction names the pod without its uid",
        story="evicts by name, so that a StatefulSet's next pod goes as well",
        edits=(edit("leeward.adapters.kubernetes.bodies.eviction", '{"preconditions": {"uid": pod.uid}}', "{}"),),
        tests=("tests/adapters/test_kubernetes_api.py",),
    ),
    Planted(
        name="only the first page of a list is read",
        story="never met a cluster with more objects than a page",
        edits=(edit("leeward.adapters.kubernetes.client.ClusterClient._pages", "if not rest:", "if True:"),),
        tests=("tests/adapters/test_kubernetes_client.py",),
    ),
    Planted(
        name="a node patch overwrites what others have written since",
        story="patches the list of taints without the version that was read",
        edits=(
            edit(
                "leeward.adapters.kubernetes.bodies.node_patch", '{"resourceVersion": current.resource_version}', "{}"
            ),
        ),
        tests=("tests/adapters/test_kubernetes_api.py",),
    ),
)

OF_THE_LOCAL_STACK = (
    Planted(
        name="the local API server evicts past a PodDisruptionBudget",
        story="deletes the pod and looks at the budget afterwards",
        edits=(edit("local.cluster.eviction._allows", 'status["disruptionsAllowed"] > 0', "True"),),
        tests=("tests/contract/cluster/test_evictions.py",),
    ),
    Planted(
        name="the local API server ignores the uid of a precondition",
        story="deletes whatever has the name",
        edits=(edit("local.cluster.deletion.check_preconditions", 'options.uid != metadata["uid"]', "False"),),
        tests=("tests/contract/cluster/test_evictions.py", "tests/contract/test_kubernetes.py"),
    ),
    Planted(
        name="the local API server evicts a pod under several budgets",
        story="asks the first budget alone",
        edits=(edit("local.cluster.eviction._guard", "if len(matching) > 1:", "if False:"),),
        tests=("tests/contract/cluster/test_evictions.py", "tests/contract/test_kubernetes.py"),
    ),
)

OF_THE_COMMAND_LINE = (
    Planted(
        name="leeward drain exits 0 although pods refuse",
        story="prints what refuses and reports success",
        edits=(edit("leeward.cli.drain.command.run", "return int(blocked)", "return 0"),),
        tests=("tests/cli/test_drain.py",),
    ),
    Planted(
        name="a termination that was requested is called off",
        story="takes causes back whatever has begun",
        edits=(
            edit(
                "leeward.adapters.aws.claims.DynamoClaims.withdraw",
                " AND attribute_not_exists(#times.#terminating)",
                "",
            ),
        ),
        tests=("tests/contract/test_claims.py",),
    ),
    Planted(
        name="a drain that was called off sleeps on",
        story="leaves it to the end of the pause to read the record",
        edits=(edit("leeward.cli.drain.cancel.call_off", "elif record.token:", "elif False:"),),
        tests=CANCEL,
    ),
    Planted(
        name="a spot warning is called off with a drain",
        story="takes every cause back",
        edits=(edit("leeward.cli.drain.cancel._why_not", "if cause.kind is not CauseKind.MANUAL", "if False"),),
        tests=CANCEL,
    ),
    Planted(
        name="a drain is requested as often as it is typed",
        story="claims the instance for every call",
        edits=(edit("leeward.cli.drain.live.start", "record is not None and runs_already(record, request)", "False"),),
        tests=CANCEL,
    ),
    Planted(
        name="a pod that a run has moved is planned on its old node",
        story="removes nodes from the state, and leaves pods as they are",
        edits=(edit("leeward.disruption.outlook._specs", "yield replace(pod, node=moved[pod.key])", "yield pod"),),
        tests=OUTLOOK,
    ),
    Planted(
        name="new nodes are replaced run after run",
        story="compares nodes that do not exist yet with their launch settings",
        edits=(edit("leeward.disruption.outlook._state", "if new:", "if False:"),),
        tests=OUTLOOK,
    ),
)
