"""Broken builds: launches, sizes, executions and claims."""

from collections import Counter
from dataclasses import replace
from itertools import count

from leeward.model.termination import Status, execution_name
from leeward.termination.situation import read
from simulation.aws.ports import SimGroups
from simulation.aws.table import SimClaims
from simulation.rule import Rule
from tests.simulation.mutations.build import FULL, HARSH, Mutation, Workshop

STEPS = "leeward.termination.steps"
REPLACING = "leeward.termination.replacing"
PLACEMENT = "leeward.placement.replacement"
GROUPS = "simulation.aws.ports.SimGroups"
CLAIMS = "simulation.aws.table.SimClaims"
EXECUTIONS = "simulation.aws.executions.SimExecutions"


def _token_each_time(shop: Workshop) -> None:
    numbers = count(1)

    def launch(record, group, option, ports):
        token = f"leeward-{next(numbers)}-{record.instance}"
        return ports.groups.launch(group=group.name, subnet=option.subnet, token=token)

    shop.replace(f"{REPLACING}._launch_in", launch)


def _launches_in_each_attempt(shop: Workshop) -> None:
    def launch(record, _group, option, ports):
        token = f"leeward-{record.instance}-{record.attempt}"
        return ports.groups.launch(group=record.subject.group, subnet=option.subnet, token=token)

    def ask(original, run, call, ports):
        """The launch is looked for in this attempt's own notes."""
        record = ports.claims.read(run.instance)
        if record.attempt > 1 and record.status is Status.OPEN and record.replacement is not None:
            launch(record, None, record.subject, ports)
        return original(run, call, ports)

    shop.replace(f"{REPLACING}._launch_in", launch)
    shop.wrap(f"{REPLACING}.ask_for_replacement", ask)


def _plans_anew(shop: Workshop) -> None:
    def ask(original, situation, ports):
        return original(replace(situation, record=replace(situation.record, plan=None)), ports)

    def begin_plan(claims, instance, plan, **_):
        claims.plan(instance, plan)
        return claims.read(instance)

    shop.wrap(f"{REPLACING}._ask", ask)
    shop.method("simulation.aws.table.SimClaims.begin_plan", begin_plan)


def _counts_no_address(shop: Workshop) -> None:
    shop.wrap(f"{PLACEMENT}._demand", lambda original, *arguments: replace(original(*arguments), ips=0))


def _always_decrements(shop: Workshop) -> None:
    def terminate(original, record, ports, *, decrement, anyway):
        return original(record, ports, decrement=True, anyway=anyway)

    shop.wrap(f"{STEPS}._terminate", terminate)


def _decrements_again(shop: Workshop) -> None:
    original = SimGroups.terminate

    def terminate(self, *, instance, decrement):
        member = self._fleet.instances.get(instance)
        if not decrement or member is None or member.lifecycle is None or not member.leaving:
            return original(self, instance=instance, decrement=decrement)
        group = self._fleet.groups[member.group]
        self._fleet.resize(group, group.desired - 1)
        self.decrements.append(instance)
        return True

    def step(first, run, call, ports):
        record = read(run.instance, ports.claims)
        if record.replacement is not None and record.replacement.launched:
            ports.groups.terminate(instance=run.instance, decrement=True)
        return first(run, call, ports)

    shop.method(f"{GROUPS}.terminate", terminate)
    shop.wrap(f"{STEPS}.terminate", step)


def _name_each_time(shop: Workshop) -> None:
    begun: Counter = Counter()

    def start(self, instance, attempt):
        begun[instance] += 1
        name = f"{execution_name(instance, attempt)}{begun[instance]:05}"
        return self._machine.start(name, {"instance": instance, "attempt": attempt, "v": 1})

    def running(self, instance, attempt):
        names = (name for name in self._machine.executions if name.startswith(f"{instance}-"))
        return any(names)

    def claim(original, run, call, ports):
        """Every caller is believed to hold the claim."""
        record = ports.claims.read(run.instance)
        name = call.get("execution") if record is None else execution_name(run.instance, record.attempt)
        return original(run, {**call, "execution": name}, ports)

    shop.method(f"{EXECUTIONS}.start", start)
    shop.method(f"{EXECUTIONS}.running", running)
    shop.wrap(f"{STEPS}.claim", claim)


def _join_is_lost(shop: Workshop) -> None:
    original = SimClaims.claim

    def claim(self, subject, cause, now):
        there = self.records.get(subject.instance)
        return there if there is not None and there.status is Status.OPEN else original(self, subject, cause, now)

    shop.method(f"{CLAIMS}.claim", claim)


OF_CAPACITY = (
    Mutation(
        name="each launch has a new token",
        story="makes the client token from a number that grows",
        breaks=_token_each_time,
        rules=frozenset({Rule.LAUNCH}),
        scenario=HARSH,
    ),
    Mutation(
        name="each attempt launches again",
        story="makes the client token from the attempt and looks into no older one",
        breaks=_launches_in_each_attempt,
        rules=frozenset({Rule.LAUNCH}),
    ),
    Mutation(
        name="each attempt plans the placement again",
        story="chooses the zone each time by what is true then, and does not look where it has begun",
        breaks=_plans_anew,
        rules=frozenset({Rule.LAUNCH}),
        scenario=HARSH,
    ),
    Mutation(
        name="no address is counted",
        story="chooses the zone by its cores and leaves it to EC2 to say that the subnet is full",
        breaks=_counts_no_address,
        rules=frozenset({Rule.PLACEMENT}),
        scenario=FULL,
    ),
    Mutation(
        name="the desired size is lowered without a launch",
        story="terminates with decrement, because a replacement is there as a rule",
        breaks=_always_decrements,
        rules=frozenset({Rule.DECREMENT}),
    ),
    Mutation(
        name="the desired size is lowered again",
        story="repeats a call whose answer was lost and does not look whether the instance is leaving",
        breaks=_decrements_again,
        rules=frozenset({Rule.DECREMENT}),
    ),
    Mutation(
        name="each start is a new execution",
        story="puts a number into the execution's name so that it never clashes",
        breaks=_name_each_time,
        rules=frozenset({Rule.EXECUTION}),
    ),
    Mutation(
        name="a cause that joins is lost",
        story="finds the record open and leaves it as it is",
        breaks=_join_is_lost,
        rules=frozenset({Rule.CAUSE}),
    ),
)
