"""Broken builds: managed node groups, which EKS rolls and whose template and sizes are its own."""

from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.mutations.build import Mutation, with_features
from tests.simulation.mutations.editing import edit, edited

UPGRADE = "leeward.upgrade"
ROLLED = with_features(Feature.MANAGED, hours=1, per_hour=10, upgrades=12)
AT_THE_LIMIT = with_features(Feature.MANAGED, Feature.MAX_SIZE)
DISRUPTIONS_AT_THE_LIMIT = with_features(
    Feature.MANAGED, Feature.MAX_SIZE, Feature.MIN_SIZE, hours=1, per_hour=10, disruption=True
)

OF_MANAGED_GROUPS = (
    Mutation(
        name="MaxSize of a managed node group is raised for a replacement",
        story="raises MaxSize of every group that is full, and knows no group that belongs to EKS",
        breaks=edited(edit("leeward.termination.maximum_size.launch", "if group.nodegroup:", "if False:")),
        rules=frozenset({Rule.MANAGED}),
        scenario=AT_THE_LIMIT,
    ),
    Mutation(
        name="MaxSize of a managed node group is raised for a disruption run",
        story="raises MaxSize for the replacement, and knows no group that belongs to EKS",
        breaks=edited(
            edit("leeward.disruption.steps._prepare_groups", " if groups[n].nodegroup is None", ""),
            edit("leeward.disruption.targets._reason_unusable", "group.nodegroup and launchable.left == 0", "False"),
        ),
        rules=frozenset({Rule.MANAGED}),
        scenario=DISRUPTIONS_AT_THE_LIMIT,
    ),
    Mutation(
        name="EKS is asked by force from the start",
        story="saves the second update, for pods that stay with the first",
        breaks=edited(edit(f"{UPGRADE}.managed.steps._begin", "force=request.force,", "force=True,")),
        rules=frozenset({Rule.MANAGED_ASKED}),
        scenario=ROLLED,
    ),
    Mutation(
        name="EKS is asked for the version that the node group has",
        story="repeats the launch template as EKS describes it",
        breaks=edited(
            edit(
                f"{UPGRADE}.managed.steps._begin",
                "target.source[1] if target.source is not None else None",
                "nodegroup.template[1] if target.source is not None and nodegroup.template else None",
            )
        ),
        rules=frozenset({Rule.MANAGED_ASKED}),
        scenario=ROLLED,
    ),
    Mutation(
        name="an upgrade is done once EKS has taken it",
        story="takes the answer of UpdateNodegroupVersion for its end",
        breaks=edited(
            edit(f"{UPGRADE}.managed.steps.watch", "case ManagedState.IN_PROGRESS:", "case ManagedState.CANCELLED:"),
            edit(
                f"{UPGRADE}.managed.steps.watch",
                "case ManagedState.SUCCESSFUL:",
                "case ManagedState.SUCCESSFUL | ManagedState.IN_PROGRESS:",
            ),
            edit(
                f"{UPGRADE}.managed.steps.watch",
                "case ManagedState.FAILED | ManagedState.CANCELLED:",
                "case ManagedState.FAILED:",
            ),
        ),
        rules=frozenset({Rule.MANAGED_DONE}),
        scenario=ROLLED,
    ),
    Mutation(
        name="an update that EKS has failed counts as done",
        story="looks whether the update has ended, and not how",
        breaks=edited(
            edit(
                f"{UPGRADE}.managed.steps.watch",
                "return _failed(run, record, update, observation, ports.upgrades, ports.clock)",
                "return _succeeded(run, record, ports.upgrades)",
            )
        ),
        rules=frozenset({Rule.MANAGED_DONE}),
        scenario=ROLLED,
    ),
)
