"""Broken builds: several clusters under one deployment, and threads of one function."""

from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.mutations.build import Mutation, with_features
from tests.simulation.mutations.editing import edit, edited

BATCH = "leeward.interruption.batch"
RECONCILER = "leeward.reconcile.reconciler"
FIRST = "ports.clusters.names()[0]"
THREADS = with_features(Feature.WORKERS)
TWO = with_features(Feature.TWO_CLUSTERS)
TWO_HANGING = with_features(Feature.TWO_CLUSTERS, Feature.ONLY_KUBERNETES_FAILS, Feature.HANGING_API)

OF_CLUSTERS = (
    Mutation(
        name="a hanging cluster holds the batch of the other",
        story="handles one cluster of a batch after the other",
        breaks=edited(
            edit(
                f"{BATCH}.process_batch",
                "each(lambda part: attempt(lambda: batch.handle(part)), parts, CLUSTERS)",
                "[attempt(partial(batch.handle, part)) for part in parts]",
            )
        ),
        rules=frozenset({Rule.TAINT}),
        scenario=TWO_HANGING,
    ),
    Mutation(
        name="a hanging cluster holds the minute reconciler",
        story="reconciles one cluster after the other",
        breaks=edited(
            edit(
                f"{RECONCILER}.reconcile_once",
                "each(lambda reconciler: reconciler.run(each), reconcilers, CLUSTERS)",
                "[reconciler.run(each) for reconciler in reconcilers]",
            )
        ),
        rules=frozenset({Rule.MINUTE}),
        scenario=TWO_HANGING,
    ),
    Mutation(
        name="messages about every cluster are judged by the first one's policies",
        story="reads the policies of a deployment, not of a cluster",
        breaks=edited(
            edit(
                "leeward.interruption.lookup._policies",
                "_ask(clusters, ports.clusters.policies, each)",
                f"_ask(clusters, lambda _: ports.clusters.policies({FIRST}), each)",
            )
        ),
        rules=frozenset({Rule.SELECTED}),
        scenario=TWO,
    ),
    Mutation(
        name="a policy of one cluster is applied to the other's groups",
        story="puts hooks on every group whose name a policy selects",
        breaks=edited(
            edit(
                "leeward.sync.controller._sync_cluster",
                "ports.groups.of_clusters([cluster])",
                "ports.groups.of_clusters(ports.clusters.names())",
            )
        ),
        rules=frozenset({Rule.SELECTED}),
        scenario=TWO,
    ),
    Mutation(
        name="every node is tainted through the first cluster's API",
        story="builds one client and keeps it",
        breaks=edited(
            edit("leeward.interruption.effects._taint", "(node_taint.cluster)", "(clusters.names()[0])"),
        ),
        rules=frozenset({Rule.ELSEWHERE}),
        scenario=TWO,
    ),
    Mutation(
        name="the clusters of a batch share what they have looked up",
        story="fills one lookup for the whole batch",
        breaks=edited(
            edit(
                "leeward.interruption.lookup.look_up_clusters",
                "Lookup(world=batch.world, errors=dict(batch.errors), recorded=batch.recorded)",
                "batch",
            )
        ),
        rules=frozenset({Rule.CAUSE}),
        scenario=TWO,
    ),
    Mutation(
        name="threads of a batch share what they claim",
        story="reads the record first, and keeps what it is about to claim in a variable of the module",
        breaks=edited(
            edit(
                "leeward.interruption.effects._claim",
                "record = ports.claims.claim(",
                "_claim.work = subject, cause\n        ports.claims.read(subject.instance)\n"
                "        subject, cause = _claim.work\n        record = ports.claims.claim(",
            )
        ),
        rules=frozenset({Rule.CAUSE}),
        scenario=THREADS,
    ),
)
