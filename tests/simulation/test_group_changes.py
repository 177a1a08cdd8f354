"""Changes to a group of the model: versions, sizes and their activities, suspended processes; bad versions."""

from datetime import UTC, datetime

import pytest

from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.model.launch import LaunchTemplateRef
from simulation.aws.changes import SimGroupChanges
from simulation.aws.compute import subnet_of
from simulation.aws.network import SimLaunchSources
from simulation.aws.templates import FIRST_IMAGE, SimTemplates
from tests.simulation.fleet_stand_in import ZONES
from tests.simulation.test_aws import FIRST, Account

EVER = datetime(1970, 1, 1, tzinfo=UTC)
OWN = LaunchTemplateRef(id="lt-g", name="g", version="1")


class Upgraded(Account):
    """With the ports that change a group."""

    def __init__(self, **more):
        super().__init__(**more)
        self.changes = SimGroupChanges(self.fleet)
        self.templates = SimTemplates([group.template for group in self.fleet.groups.values()], self.injector)

    def new_version(self, image="ami-new"):
        made = self.templates.version_for(OWN, image, token=image)
        self.changes.point_at(self.group(), made)
        return made

    def versions(self):
        return [member.template.version for member in self.group().instances]

    def causes(self):
        return [activity.cause for activity in self.groups.activities("g", EVER)]


def test_what_is_launched_after_the_change_comes_from_the_new_version():
    account = Upgraded()
    assert account.group().launch.template == OWN
    new = account.new_version()
    assert account.group().launch.template == new == LaunchTemplateRef(id="lt-g", name="g", version="2")
    account.groups.launch(group="g", subnet=subnet_of(ZONES[0]), token="t")
    account.groups.terminate(instance=FIRST, decrement=False)
    account.pass_time(300)
    assert account.versions() == ["1", "1", "2", "2"]


def test_what_a_version_says_is_reported_by_group_and_by_version():
    account = Upgraded()
    sources, before = SimLaunchSources(account.fleet), account.group()
    account.new_version()
    assert (sources.settings(before).version, sources.settings(before).image) == (1, FIRST_IMAGE)
    assert (sources.settings(account.group()).version, sources.settings(account.group()).image) == (2, "ami-new")


def test_instances_of_a_bad_version_never_join():
    account = Upgraded(rates={"bad_image": 1})
    account.new_version()
    new = account.groups.launch(group="g", subnet=subnet_of(ZONES[0]), token="t").launched[0]
    account.pass_time(600)
    assert account.lifecycle(new) == "InService"
    assert new not in account.joined
    assert account.injector.counts == {"bad image": 1}


def test_a_raised_size_is_reported_as_auto_scaling_words_it_and_launched():
    account = Upgraded()
    account.changes.raise_to("g", desired=5, maximum=12)
    account.pass_time(300)
    assert (account.group().desired, account.group().maximum, len(account.versions())) == (5, 12, 5)
    reported = (
        "a user request update of AutoScalingGroup constraints to min: 0, max: 12, desired: 5 changing the desired"
    )
    assert [f"{reported} capacity from 3 to 5." in cause for cause in account.causes()] == [True, True]
    assert "increasing the capacity from 4 to 5." in account.causes()[0]
    assert account.fleet.groups["g"].book.least == 2


def test_no_size_is_lowered():
    account = Upgraded()
    account.changes.raise_to("g", desired=2, maximum=2)
    assert (account.group().desired, account.group().maximum) == (3, 10)
    assert not account.changes.put_back_maximum("g", 2)
    assert account.group().maximum == 10
    assert not account.changes.put_back_maximum("g", 2, partly=True)
    assert account.changes.put_back_maximum("g", 3)
    assert account.group().maximum == 3
    assert account.groups.launch(group="g", subnet=subnet_of(ZONES[0]), token="t").launched == ()
    with pytest.raises(InvalidInputError, match="Desired capacity:4"):
        account.changes.raise_to("g", desired=4)


def test_a_refill_later_does_not_repeat_who_once_asked_for_more():
    account = Upgraded()
    account.changes.raise_to("g", desired=4)
    account.pass_time(300)
    account.groups.terminate(instance=FIRST, decrement=False)
    account.pass_time(300)
    assert sum("changing the desired capacity" in cause for cause in account.causes()) == 1


def test_nothing_is_launched_while_launch_is_suspended():
    account = Upgraded()
    account.changes.suspend("g", "Launch")
    assert account.group().suspended == ("Launch",)
    account.groups.terminate(instance=FIRST, decrement=False)
    assert "suspended" in account.groups.launch(group="g", subnet=subnet_of(ZONES[0]), token="t").reason
    account.pass_time(300)
    assert len(account.versions()) == 2
    account.changes.resume("g", "Launch")
    account.pass_time(300)
    assert len(account.versions()) == 3


def test_an_unhealthy_member_stays_until_terminate_is_resumed():
    account = Upgraded()
    account.changes.suspend("g", "Terminate")
    account.fleet.unhealthy(account.fleet.instances[FIRST])
    account.fleet.resize(account.fleet.groups["g"], 2)
    account.pass_time(300)
    assert len(account.versions()) == 3
    account.changes.resume("g", "Terminate")
    account.pass_time(300)
    assert len(account.versions()) == 2
    assert account.lifecycle(FIRST) is None


@pytest.mark.parametrize("process", ["AZRebalance", "Launch", "Terminate"])
def test_zones_stay_uneven_while_one_of_the_processes_is_suspended(process):
    account = Upgraded(size=6)
    for member in [m for m in account.group().instances if m.zone == ZONES[0]]:
        account.groups.terminate(instance=member.id, decrement=True)
    account.pass_time(300)
    account.changes.suspend("g", process)
    account.fleet.scaling.balance_zones()
    account.pass_time(300)
    assert {member.zone for member in account.group().instances} == {ZONES[1], ZONES[2]}
    account.changes.resume("g", process)
    account.fleet.scaling.balance_zones()
    account.pass_time(300)
    assert {member.zone for member in account.group().instances} == set(ZONES)


def test_what_is_not_there_is_gone():
    account = Upgraded()
    with pytest.raises(ObjectGoneError):
        account.changes.suspend("other", "Launch")
    with pytest.raises(ObjectGoneError):
        account.changes.point_at(account.group(), LaunchTemplateRef(id="lt-g", version="9"))
