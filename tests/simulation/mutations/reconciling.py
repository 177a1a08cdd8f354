"""Broken builds: messages and the reconciler."""

from leeward.termination.drain import taint_node
from leeward.termination.situation import find_node
from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.mutations.build import Mutation, Workshop, with_features
from tests.simulation.mutations.editing import edit, edited

BATCH = "leeward.interruption.batch"
EXECUTIONS = "leeward.reconcile.executions"


def _malformed_is_dropped(shop: Workshop) -> None:
    shop.replace(f"{BATCH}._dead_letter", lambda *_: {})


def _never_adopts(shop: Workshop) -> None:
    shop.replace("leeward.reconcile.hooks._settle_endings", lambda *_: None)


def _never_revives(shop: Workshop) -> None:
    shop.replace(f"{EXECUTIONS}._restart", lambda *_: None)


def _never_untaints(shop: Workshop) -> None:
    shop.method("simulation.kubernetes.SimKubernetes.untaint", lambda _self, node, _taint_key: node)


def _no_budget(shop: Workshop) -> None:
    def budget_left(record, ports, found, now):
        kubernetes = ports.clusters.kubernetes(record.subject.cluster)
        node = find_node(record, kubernetes)
        if node is not None:
            taint_node(node, record, kubernetes, ports)
        return True

    shop.replace(f"{EXECUTIONS}.budget_left", budget_left)


OF_RECONCILER = (
    Mutation(
        name="nodes are rebooted before the drain",
        story="reboots what repair has claimed, and drains what is left",
        breaks=edited(
            edit("leeward.termination.drain.after_drain", "if run.next is not Next.DRAINED:", "if False:"),
            edit("leeward.termination.drain.after_drain", "is not None and not run.pause", "is not None"),
            edit("leeward.termination.reboot._request", "if not plan.drained:", "if False:"),
        ),
        rules=frozenset({Rule.REBOOT_DRAINED}),
        scenario=with_features(Feature.NO_FAULTS, Feature.CONDITIONS, hours=2),
    ),
    Mutation(
        name="nodes are rebooted in a loop",
        story="reboots again what a reboot has not healed, and counts none of them",
        breaks=edited(
            edit(
                "leeward.termination.reboot._await_return",
                'return _give_up(run, record, node, f"{missing} {BACK} min after its reboot", ports)',
                "return _request(run, survey(record, ports, Freshness.WORK), node, ports)",
            ),
            edit(
                "leeward.termination.reboot._reason_not_to_reboot",
                'LIMIT if reboots_of_a_day(record.reboots.values(), now) >= MOST_A_DAY else ""',
                '""',
            ),
        ),
        rules=frozenset({Rule.REBOOTS}),
        scenario=with_features(Feature.NO_FAULTS, Feature.CONDITIONS, hours=3, per_hour=4),
        seed=7,
    ),
    Mutation(
        name="a malformed message fails its batch for ever",
        story="lets the parser's error fly",
        breaks=edited(
            edit(
                f"{BATCH}.process_batch",
                "attempt(partial(parse, record.body, received=record.received))",
                "parse(record.body, received=record.received)",
            )
        ),
        rules=frozenset({Rule.MALFORMED}),
    ),
    Mutation(
        name="a malformed message is dropped",
        story="deletes what it cannot read",
        breaks=_malformed_is_dropped,
        rules=frozenset({Rule.MALFORMED}),
    ),
    Mutation(
        name="a message is acknowledged although its claim failed",
        story="turns every error into a warning in the log",
        breaks=edited(
            edit(
                f"{BATCH}._Batch._run",
                "dict(zip(effects, self.each(attempt, tuple(effects.values()), self.workers), strict=True))",
                "{key: one if isinstance(one, Done) else Done() for key, one in"
                " zip(effects, self.each(attempt, tuple(effects.values()), self.workers))}",
            )
        ),
        rules=frozenset({Rule.CAUSE}),
    ),
    Mutation(
        name="orphan hooks are never adopted",
        story="relies on lifecycle events, which are best effort",
        breaks=_never_adopts,
        rules=frozenset({Rule.ANSWER}),
    ),
    Mutation(
        name="stopped executions are never started again",
        story="relies on the event that announces their end",
        breaks=_never_revives,
        rules=frozenset({Rule.RECORD}),
    ),
    Mutation(
        name="stale taints stay",
        story="believes that a taint goes with its node, so nothing ever takes one off",
        breaks=_never_untaints,
        rules=frozenset({Rule.STALE_TAINT}),
    ),
    Mutation(
        name="maintenance ignores the budgets",
        story="starts everything that is due",
        breaks=_no_budget,
        rules=frozenset({Rule.UNAVAILABLE}),
    ),
)
