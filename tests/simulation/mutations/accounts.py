"""Broken builds: clusters of several accounts under one deployment."""

from simulation.fault_rates import Faults
from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.mutations.build import Mutation, with_features
from tests.simulation.mutations.editing import edit, edited

APART = with_features(Feature.ACCOUNTS)
APART_CALM = with_features(Feature.ACCOUNTS, Feature.NO_FAULTS, faults=Faults.none())

OF_ACCOUNTS = (
    Mutation(
        name="acts in another account's cluster",
        story="goes by the cluster that the record names, in whichever account the message was written",
        breaks=edited(
            edit(
                "leeward.ports.Ports._act_in", "clusters=self._clusters_named(place.clusters)", "clusters=self.clusters"
            )
        ),
        rules=frozenset({Rule.SENDER}),
        scenario=APART,
    ),
    Mutation(
        name="acts with the session of the first account",
        story="keeps the session that it has made first",
        breaks=edited(
            edit(
                "leeward.ports.Ports._act_in",
                "place.aws.by_name()",
                "self.places[0].aws.by_name()",
            )
        ),
        rules=frozenset({Rule.ACCOUNT}),
        scenario=APART,
    ),
    Mutation(
        name="looks for a message's instance wherever it is",
        story="handles a message in the account that has the instance, for instance ids are unique",
        breaks=edited(
            edit(
                "leeward.interruption.origins.process_by_origin",
                "there = ports.at(*origin) if origin else ports",
                "there = next((place for place in ports.everywhere() if any(place.instances.describe(m.instances) "
                "for n in places[origin] if (m := parse(records[n].body, received=records[n].received)))), ports)",
            )
        ),
        rules=frozenset({Rule.ACCOUNT, Rule.SENDER}),
        scenario=APART_CALM,
    ),
    Mutation(
        name="a refused account holds the minute reconciler",
        story="reads the groups of every cluster before it begins with one",
        breaks=edited(
            edit(
                "leeward.reconcile.reconciler.reconcile_once",
                "reconcilers = tuple(",
                "[ports.of_cluster(name).groups.of_clusters([name]) for name in clusters]\n    reconcilers = tuple(",
            )
        ),
        rules=frozenset({Rule.MINUTE}),
        scenario=APART_CALM,
    ),
)
