"""A group at its MaxSize gets one more for the time of each replacement, and its owner's MaxSize back afterwards."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.model import well_known
from leeward.model.capacity import RaisedMaximum
from leeward.model.launch_refusal import RefusalCause
from leeward.model.termination import Cause, CauseKind, Outcome
from leeward.reconcile.reconciler import reconcile_once
from leeward.termination.maximum_size import ABANDONED, owners_maximum, put_back
from leeward.termination.replacing import ask_for_replacement
from leeward.termination.run import Next, Run
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.observation import launched_by_others, measured
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_subject, an_instance
from tests.fakes.clock import START
from tests.fakes.disruptions import a_disruption
from tests.fakes.ledger import by
from tests.fakes.refusals import REFUSALS
from tests.fakes.system import FakeSystem
from tests.state_machines.walker import Walker

ONE, TWO = "i-0abc", "i-0def"


def a_full_group(**changes):
    """Two instances, MaxSize two, and a spot warning for the first."""
    group = replace(a_group(GROUP, ONE, TWO, maximum=2), **changes)
    instances = [an_instance(ONE), an_instance(TWO)]
    system = FakeSystem(instances=instances, groups=[group], nodes=[a_node(ONE), a_node(TWO)])
    system.groups.on_launch = lambda _group, _subnet, instance: system.instances.put(an_instance(instance))
    warn(system, ONE)
    return system


def warn(system, instance):
    deadline = START + timedelta(minutes=2)
    cause = Cause(id=f"event-{instance}", kind=CauseKind.SPOT_INTERRUPTION, at=START, deadline=deadline)
    system.claims.claim(a_subject(instance), cause, START)


def ask(system, instance=ONE):
    return ask_for_replacement(Run(instance=instance, attempt=1, version=1, next=Next.REPLACE), {}, system.ports)


def an_upgrade(**given):
    fields = {"target": UpgradeTarget(), "strategy": Strategy.DEFAULT, "desired": 2, "maximum": 2, **given}
    return UpgradeRecord(group=GROUP, cluster=CLUSTER, began=START, **fields)


def sizes(system):
    group = system.groups.by_name[GROUP]
    return group.desired, group.maximum


def item(system):
    return system.maxima.read(GROUP)


def pay(system, instance):
    """The instance is terminated with decrement, and its record closed."""
    system.groups.terminate(instance=instance, decrement=True)
    system.claims.note(instance, offsets={system.claims.records[instance].surge: by(instance)})
    record = system.claims.records[instance]
    system.claims.close(instance, version=record.version, outcome=Outcome.TERMINATED, now=START)


def test_a_spot_warning_at_max_size_is_replaced_first_and_max_size_is_as_before():
    system = a_full_group()
    most = []
    assert Walker(system, before=lambda *_: most.append(sizes(system))).run(ONE).ended == "Terminated"
    assert max(most) == (3, 3)
    assert system.groups.terminated == [(ONE, True)]
    assert sizes(system) == (2, 2)
    assert not item(system).active


def test_a_group_with_room_is_not_raised_and_not_written_down():
    system = a_full_group(maximum=3)
    Walker(system).run(ONE)
    assert system.group_changes.asked["raise_to"] == 0
    assert item(system) is None


def test_two_replacements_at_once_get_one_more_each():
    system = a_full_group()
    warn(system, TWO)
    ask(system, ONE)
    ask(system, TWO)
    assert sizes(system) == (4, 4)
    assert item(system).before == 2
    pay(system, ONE)
    reconcile_once(system.ports)
    assert (sizes(system), item(system).holders) == ((3, 4), (TWO,))
    pay(system, TWO)
    assert GROUP in reconcile_once(system.ports).restored
    assert (sizes(system), item(system).active) == ((2, 2), False)


@pytest.mark.parametrize("cut", ["write", "raise_to", "launch"])
@pytest.mark.parametrize("after", [False, True])
def test_killed_around_any_of_its_calls_it_launches_once_and_max_size_comes_back(cut, after):
    system = a_full_group()
    port = {"write": system.maxima, "raise_to": system.group_changes, "launch": system.groups}[cut]
    original = getattr(port, cut)

    def killed(*args, **kwargs):
        if after:
            answer = original(*args, **kwargs)
            if cut == "launch" and not answer.launched:
                return answer
        setattr(port, cut, original)
        raise KeyboardInterrupt

    setattr(port, cut, killed)
    with pytest.raises(KeyboardInterrupt):
        ask(system)
    reconcile_once(system.ports)
    assert Walker(system).run(ONE).ended == "Terminated"
    assert len(system.groups.launches) == 1
    assert (sizes(system), item(system).active) == ((2, 2), False)


@pytest.mark.parametrize("cut", ["write", "put_back_maximum"])
def test_killed_while_it_puts_back_the_reconciler_does_it(cut):
    system = a_full_group()
    ask(system)
    pay(system, ONE)
    port = {"write": system.maxima, "put_back_maximum": system.group_changes}[cut]
    original = getattr(port, cut)

    def killed(*args, **kwargs):
        setattr(port, cut, original)
        original(*args, **kwargs)
        raise AwsUnavailableError("answer lost")

    setattr(port, cut, killed)
    reconcile_once(system.ports)
    reconcile_once(system.ports)
    system.clock.advance(seconds=ABANDONED.total_seconds() + 1)
    reconcile_once(system.ports)
    assert (sizes(system), item(system).active) == ((2, 2), False)


def test_nothing_is_launched_while_max_size_is_being_put_back():
    """Auto Scaling shrinks the group to a MaxSize below its size, by an instance of its own choice."""
    system = a_full_group()
    system.maxima.write(RaisedMaximum(group=GROUP, before=2, raised=(3,), restoring=START))
    system.group_changes.raise_to(GROUP, maximum=3)
    assert ask(system).why.endswith("being put back")
    assert system.groups.launches == []


def test_a_max_size_that_the_owner_has_chosen_meanwhile_stays():
    system = a_full_group()
    ask(system)
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], maximum=7)
    pay(system, ONE)
    reconcile_once(system.ports)
    assert (sizes(system), item(system).active) == ((2, 7), False)


def test_a_max_size_that_others_have_used_is_lowered_with_each_scale_in():
    system = a_full_group()
    system.maxima.write(RaisedMaximum(group=GROUP, before=2, raised=(3, 5)))
    for desired, maximum in ((4, 5), (4, 4), (3, 4), (2, 3)):
        system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], desired=desired, maximum=maximum)
        reconcile_once(system.ports)
        assert sizes(system) == (desired, desired)
    assert not item(system).active


def test_max_size_is_not_put_back_below_the_present_size():
    system = a_full_group()
    ask(system)
    pay(system, ONE)
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], desired=3)
    reconcile_once(system.ports)
    assert sizes(system) == (3, 3)
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], desired=2)
    reconcile_once(system.ports)
    assert sizes(system) == (2, 2)


def test_the_max_size_of_a_managed_node_group_is_never_written():
    system = a_full_group()
    tags = {**system.groups.by_name[GROUP].tags, well_known.NODEGROUP_TAG: "web"}
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], tags=tags)
    ask(system)
    assert (sizes(system), system.groups.launches, item(system)) == ((2, 2), [], None)


def test_a_refusal_for_another_reason_raises_once_at_most():
    system = a_full_group()
    system.groups.refuse_launch = "UnsupportedOperation: mixed purchase options"
    Walker(system).run(ONE)
    assert system.groups.asked["launch"] == 2
    assert system.groups.terminated == [(ONE, False)]
    reconcile_once(system.ports)
    assert (sizes(system)[1], item(system).active) == (2, False)


@pytest.mark.parametrize("cause", [RefusalCause.DENIED, RefusalCause.UNKNOWN])
def test_max_size_is_not_raised_for_a_launch_that_is_denied_or_unknown(cause):
    system = a_full_group()
    system.groups.refuse_launch = REFUSALS[cause]
    Walker(system).run(ONE)
    assert (system.groups.asked["launch"], system.group_changes.asked["raise_to"]) == (1, 0)


def test_without_the_permission_to_raise_the_drain_goes_on():
    system = a_full_group()
    system.group_changes.fail("raise_to", AccessDeniedError("autoscaling:UpdateAutoScalingGroup"))
    assert Walker(system).run(ONE).ended == "Terminated"
    assert (system.groups.terminated, item(system).active) == ([(ONE, False)], False)


def test_an_upgrade_that_begins_meanwhile_takes_the_owners_max_size_for_the_one_before():
    system = a_full_group()
    ask(system)
    record = an_upgrade()
    assert measured(record, system.groups.by_name[GROUP], system.ports).maximum == 2
    assert owners_maximum(GROUP, system.ports.groups, system.ports.maxima) == 2


def test_an_upgrade_measures_without_a_launch_whose_record_the_index_does_not_list_yet(monkeypatch):
    """The index of open records is some seconds behind the table: the launch of one claimed just now will be paid for
    by its own termination, and is in no size that the upgrade gives back.
    """
    system = a_full_group()
    ask(system)
    monkeypatch.setattr(system.claims, "open_instances", list)
    group = system.groups.by_name[GROUP]
    assert (group.desired, measured(an_upgrade(), group, system.ports).desired) == (3, 2)
    assert launched_by_others(group, system.ports.claims) == 1


def test_a_replacement_during_an_upgrade_takes_the_max_size_that_the_upgrade_recorded():
    system = a_full_group(maximum=4, desired=4)
    system.upgrades.records[GROUP] = an_upgrade(maximum=2)
    system.maxima.write(RaisedMaximum(group=GROUP, before=2, raised=(4,)))
    ask(system)
    assert (sizes(system), item(system).before) == ((5, 5), 2)


def test_a_replacement_during_a_disruption_run_takes_the_max_size_that_the_run_recorded():
    system = a_full_group(maximum=3, desired=3)
    system.disruptions.records[CLUSTER] = a_disruption(cluster=CLUSTER, groups=(GROUP,))
    system.maxima.write(RaisedMaximum(group=GROUP, before=2, raised=(3,)))
    ask(system)
    assert (sizes(system), item(system).before) == ((4, 4), 2)


def test_an_upgrade_that_runs_keeps_the_room_until_it_has_ended():
    system = a_full_group()
    ask(system)
    pay(system, ONE)
    system.upgrades.records[GROUP] = an_upgrade(maximum=2)
    assert not put_back(item(system), CLUSTER, system.ports)
    assert (sizes(system), item(system).active, item(system).restoring) == ((2, 3), True, None)
    system.upgrades.records[GROUP] = an_upgrade(maximum=2, ended=START)
    assert put_back(item(system), CLUSTER, system.ports)
    assert sizes(system) == (2, 2)
