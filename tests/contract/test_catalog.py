"""What every `ports.records.Catalog` does: the table's adapter on a local DynamoDB, and what simulation and fakes stand
on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.aws.catalog import DynamoCatalog
from leeward.model.facts import ClusterFacts, FactKind, Sheet, subnets_content, types_content
from leeward.model.instance_type import Accelerator, InstanceType
from leeward.model.subnet import IpReservation, Pool, Reservations, Subnet
from leeward.model.zonal_shift import NOT_SHIFTED, Evacuation, GroupSizes, ZoneRecord
from simulation.aws.catalog import SimCatalog
from tests.contract.tables import TABLES, a_table
from tests.fakes.builders import shifted

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


@pytest.fixture(params=[*TABLES, "the model"])
def catalog(request, monkeypatch):
    if request.param == "the model":
        yield SimCatalog()
        return
    with a_table(monkeypatch, request.param) as table:
        yield DynamoCatalog(table)


def a_sheet(word="first", at=NOW):
    return Sheet(synced=at, content={"word": word})


def test_what_was_never_kept_is_absent(catalog):
    assert catalog.read("blue") == {}


def test_each_kind_comes_back_with_its_own_age(catalog):
    catalog.keep("blue", FactKind.SUBNETS, a_sheet())
    catalog.keep("blue", FactKind.PRICES, a_sheet("expensive", NOW - timedelta(minutes=50)))
    assert catalog.read("blue") == {
        FactKind.SUBNETS: a_sheet(),
        FactKind.PRICES: a_sheet("expensive", NOW - timedelta(minutes=50)),
    }


def test_zonal_shifts_come_back_alone_and_with_the_other_facts_and_a_late_answer_changes_nothing(catalog):
    assert catalog.zonal_shifts("blue") == NOT_SHIFTED
    shifts = replace(shifted("us-east-1a"), read=NOW)
    catalog.keep_zonal_shifts("blue", Sheet(synced=NOW, content=shifts.to_json()))
    catalog.keep_zonal_shifts("blue", Sheet(synced=NOW - timedelta(seconds=5), content=NOT_SHIFTED.to_json()))
    assert catalog.zonal_shifts("blue") == ClusterFacts.from_sheets(catalog.read("blue")).shifts == shifts
    assert catalog.zonal_shifts("blue-2") == NOT_SHIFTED


def test_clusters_are_kept_apart(catalog):
    catalog.keep("blue", FactKind.SUBNETS, a_sheet())
    catalog.keep("blue-2", FactKind.SUBNETS, a_sheet("second"))
    assert catalog.read("blue")[FactKind.SUBNETS].content == {"word": "first"}


def test_a_later_look_replaces_an_earlier_one_and_never_the_other_way_round(catalog):
    catalog.keep("blue", FactKind.CNI, a_sheet("later", NOW + timedelta(minutes=5)))
    catalog.keep("blue", FactKind.CNI, a_sheet("earlier"))
    assert catalog.read("blue")[FactKind.CNI].content == {"word": "later"}
    catalog.keep("blue", FactKind.CNI, a_sheet("latest", NOW + timedelta(minutes=10)))
    assert catalog.read("blue")[FactKind.CNI].content == {"word": "latest"}


def test_subnets_and_types_come_back_as_they_were(catalog):
    subnet = Subnet(id="subnet-a", zone="us-east-1a", cidr="10.0.0.0/24", free_ips=7, vpc="vpc-a", tags={"k": "v"})
    gpus = (Accelerator(maker="NVIDIA", name="T4", count=1),)
    kind = InstanceType(name="g4dn.xlarge", vcpus=4, memory_mib=16384, max_enis=3, ips_per_eni=10, gpus=gpus)
    catalog.keep("blue", FactKind.SUBNETS, Sheet(synced=NOW, content=subnets_content([subnet])))
    catalog.keep("blue", FactKind.INSTANCE_TYPES, Sheet(synced=NOW, content=types_content([kind])))
    facts = ClusterFacts.from_sheets(catalog.read("blue"))
    assert facts.subnets == (subnet,)
    assert facts.types == {"g4dn.xlarge": kind}


def a_promise(at=NOW, **more):
    how = {"left": "us-east-1a", "millicores": 2000, "zone": "us-east-1b", "subnet": "subnet-b"}
    how |= {"ips": 20, "taken": 4000}
    return IpReservation(at=at, **{**how, **more})


def test_without_promises_there_are_none(catalog):
    assert catalog.reservations("blue") == Reservations()


def test_a_promise_is_written_only_at_the_version_that_was_read(catalog):
    assert catalog.reserve("blue", "i-a", a_promise(), after=0)
    assert not catalog.reserve("blue", "i-b", a_promise(), after=0)
    assert catalog.reservations("blue") == Reservations(version=1, by_instance={"i-a": a_promise()})
    assert catalog.reserve("blue", "i-b", a_promise(ips=30), after=1)
    assert catalog.reservations("blue").by_instance == {"i-a": a_promise(), "i-b": a_promise(ips=30)}


def test_a_promise_of_the_same_instance_is_written_over_and_old_ones_are_dropped(catalog):
    catalog.reserve("blue", "i-a", a_promise(), after=0)
    catalog.reserve("blue", "i-b", a_promise(), after=1)
    later = NOW + timedelta(minutes=3)
    catalog.reserve("blue", "i-b", a_promise(later, launched="i-c"), after=2)
    assert catalog.reservations("blue").by_instance == {"i-b": a_promise(later, launched="i-c")}


def test_promises_of_clusters_are_kept_apart(catalog):
    catalog.reserve("blue", "i-a", a_promise(), after=0)
    assert catalog.reservations("green") == Reservations()


POOL = Pool(instance_type="m5.large", zone="us-east-1a")
OTHER = Pool(instance_type="m5.large", zone="us-east-1b")


def test_spot_capacity_is_short_until_its_time_is_over_and_beside_the_promises(catalog):
    assert catalog.reserve("blue", "i-a", a_promise(), after=0)
    catalog.mark_unavailable("blue", POOL, NOW + timedelta(minutes=10))
    catalog.mark_unavailable("blue", OTHER, NOW + timedelta(minutes=5))
    found = catalog.reservations("blue")
    assert found.by_instance == {"i-a": a_promise()}
    assert found.short_at(NOW) == {POOL, OTHER}
    assert found.short_at(NOW + timedelta(minutes=5)) == {POOL}
    assert found.short_at(NOW + timedelta(minutes=10)) == frozenset()


def test_a_promise_after_a_shortage_finds_its_version_and_keeps_the_shortage(catalog):
    catalog.mark_unavailable("blue", POOL, NOW + timedelta(minutes=10))
    assert catalog.reserve("blue", "i-a", a_promise(), after=catalog.reservations("blue").version)
    assert catalog.reservations("blue").short_at(NOW) == {POOL}
    assert catalog.reservations("green").short == {}


def test_another_warning_makes_a_shortage_last_longer(catalog):
    catalog.mark_unavailable("blue", POOL, NOW + timedelta(minutes=10))
    catalog.mark_unavailable("blue", POOL, NOW + timedelta(minutes=12))
    assert catalog.reservations("blue").short == {POOL: NOW + timedelta(minutes=12)}


EVACUATION = Evacuation(
    zone="us-east-1a",
    by="arn:aws:iam::111122223333:user/ana",
    since=NOW,
    why="game day",
    groups=("web-a",),
    sizes={"web-a": GroupSizes(minimum=1, desired=3, maximum=9)},
    suspended=("web-a",),
)


def test_the_record_of_the_zones_is_written_only_at_the_version_that_was_read(catalog):
    empty = catalog.zone_record("blue")
    assert empty == ZoneRecord(cluster="blue")
    first = catalog.write_zone_record(empty.with_evacuation(EVACUATION), NOW)
    assert catalog.write_zone_record(empty, NOW) is None
    assert catalog.zone_record("blue") == first
    assert (first.version, first.evacuations) == (1, (EVACUATION,))
    second = catalog.write_zone_record(first.without_evacuation("us-east-1a"), NOW)
    assert catalog.zone_record("blue") == second == ZoneRecord(cluster="blue", version=2)
    assert catalog.zone_record("green").version == 0


def test_an_evacuated_zone_is_closed_for_every_reader_like_a_shifted_one_until_it_is_opened(catalog):
    catalog.keep_zonal_shifts("blue", Sheet(synced=NOW, content=shifted("us-east-1b").to_json()))
    record = catalog.write_zone_record(ZoneRecord(cluster="blue").with_evacuation(EVACUATION), NOW)
    known = (catalog.zonal_shifts("blue"), ClusterFacts.from_sheets(catalog.read("blue")).shifts)
    assert [one.zones for one in known] == [{"us-east-1a", "us-east-1b"}] * 2
    catalog.write_zone_record(record.with_evacuation(replace(EVACUATION, returned=NOW)), NOW)
    assert catalog.zonal_shifts("blue").zones == {"us-east-1b"}
