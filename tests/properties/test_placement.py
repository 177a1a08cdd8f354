"""Placement over random subnets, settings and pods; the CNI's own loop, written apart, judges the accounting."""

import os
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.model.instance_type import InstanceType
from leeward.model.subnet import Subnet
from leeward.placement.accounting import Accounting, Demand
from leeward.placement.cni import CniSettings, node_ips
from leeward.placement.restrictions import only_subnets, only_zones
from leeward.placement.scene import PlacementScene
from leeward.placement.zones import judge_zones, place
from tests.unit.placement.ipamd import Ipamd

EXAMPLES = int(os.environ.get("EXAMPLES", "150"))  # make test-long asks for more
ZONES = ["z1", "z2", "z3", "z4"]

kinds = st.builds(
    InstanceType,
    name=st.just("any"),
    vcpus=st.just(2),
    memory_mib=st.just(1),
    max_enis=st.integers(1, 5),
    ips_per_eni=st.integers(2, 10),
)
targets = st.builds(
    CniSettings,
    warm_enis=st.integers(0, 3),
    warm_ips=st.integers(0, 7),
    minimum_ips=st.sampled_from([0, 0, 1, 4, 13, 60]),
    max_enis=st.sampled_from([0, 0, 1, 2, 9]),
)
# below 0: so many pods leave; above 0: so many arrive; then that many passes of the loop
histories = st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 9)), max_size=25)

scenes = st.builds(
    PlacementScene,
    subnets=st.lists(
        st.builds(
            Subnet,
            id=st.sampled_from([f"subnet-{number}" for number in range(9)]),
            zone=st.sampled_from(ZONES),
            free_ips=st.integers(0, 40),
        ),
        max_size=8,
        unique_by=lambda subnet: subnet.id,
    ).map(tuple),
    demand=st.builds(
        Demand,
        accounting=st.builds(Accounting, on=st.booleans(), why=st.just("so it is")),
        ips=st.integers(1, 15),
        pods=st.integers(0, 10),
        millicores=st.sampled_from([0, 2000, 4000]),
    ),
    cores=st.dictionaries(st.sampled_from(ZONES), st.sampled_from([0, 1000, 2000, 4000])),
    promised=st.dictionaries(st.sampled_from([f"subnet-{number}" for number in range(9)]), st.integers(0, 20)),
    restrictions=st.lists(
        st.one_of(
            st.sets(st.sampled_from(ZONES), min_size=1).map(lambda zones: only_zones("a volume", zones)),
            st.sets(st.sampled_from([f"subnet-{n}" for n in range(9)])).map(lambda ids: only_subnets("a pod", ids)),
        ),
        max_size=2,
    ).map(tuple),
)


def ipamd(chosen, kind, seed):
    return Ipamd(
        interfaces=kind.max_enis,
        addresses=kind.ips_per_eni,
        warm_eni=chosen.warm_enis,
        warm_ip=chosen.warm_ips,
        minimum=chosen.minimum_ips,
        max_eni=chosen.max_enis,
        chance=random.Random(seed),
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(targets, kinds, histories, st.integers(0, 2**32))
def test_the_cni_never_takes_more_than_is_counted_for_the_most_pods_there_were(chosen, kind, history, seed):
    daemon, most_pods, most_ips = ipamd(chosen, kind, seed), 0, 0
    for change, passes in [(0, 20), *history]:
        for _ in range(abs(change)):
            daemon.arrive() if change > 0 else daemon.leave()
        most_pods = max(most_pods, daemon.pods)
        for _ in range(passes):
            daemon.look()
            most_ips = max(most_ips, daemon.subnet_ips)
    counted = node_ips(chosen, kind, most_pods)
    assert most_ips <= counted.subnet_ips


@settings(max_examples=EXAMPLES, deadline=None)
@given(targets, kinds, st.integers(0, 60), st.booleans(), st.integers(0, 2**32))
def test_a_node_that_only_filled_up_holds_exactly_what_is_counted(chosen, kind, pods, at_once, seed):
    daemon = ipamd(chosen, kind, seed)
    for _ in range(pods):
        daemon.arrive()
        daemon.run(0 if at_once else 3)
    daemon.run(200)
    counted, seen = node_ips(chosen, kind, pods), set()
    for _ in range(
        4
    ):  # with WARM_ENI_TARGET 0 and no address free, an interface comes and goes: the fuller state counts
        daemon.look()
        seen.add(tuple(one.total for one in daemon.attached))
    assert max(seen, key=sum) == counted.ips_per_eni
    assert len(seen) == 1 or (chosen.warm_enis == 0 and pods % (kind.ips_per_eni - 1) == 0 and not chosen.by_address)
    assert counted.subnet_ips == max(len(state) + sum(state) for state in seen)
    assert max(daemon.waiting, pods - counted.max_pods) == counted.unservable
    assert counted.unused_ips == counted.secondary_ips - daemon.assigned


@settings(max_examples=EXAMPLES, deadline=None)
@given(scenes, st.integers(1, 12), st.integers(0, 2**32))
def test_no_chosen_subnet_lacks_the_addresses_it_was_chosen_for(scene, count, seed):
    found = place(scene, count, random.Random(seed))
    nodes = Counter(choice.subnet for choice in found.choices)
    known = {subnet.id: subnet for subnet in scene.subnets}
    for name, number in nodes.items():
        taken = scene.promised.get(name, 0) + number * scene.demand.ips
        assert taken <= known[name].free_ips
        assert all(restriction.allows(known[name]) for restriction in scene.restrictions)


@settings(max_examples=EXAMPLES, deadline=None)
@given(scenes, st.integers(1, 12), st.integers(0, 2**32))
def test_a_node_is_only_refused_when_no_allowed_subnet_can_hold_it(scene, count, seed):
    found = place(scene, count, random.Random(seed))
    nodes = Counter(choice.subnet for choice in found.choices)
    left = {
        subnet.id: subnet.free_ips - scene.promised.get(subnet.id, 0) - nodes[subnet.id] * scene.demand.ips
        for subnet in scene.subnets
        if all(restriction.allows(subnet) for restriction in scene.restrictions)
    }
    assert found.complete or all(free < scene.demand.ips for free in left.values())
    assert found.complete == (len(found.choices) == count)


@settings(max_examples=EXAMPLES, deadline=None)
@given(scenes, st.integers(1, 12), st.integers(0, 2**32), st.randoms())
def test_the_choice_does_not_depend_on_the_order_of_what_it_is_given(scene, count, seed, shuffler):
    subnets, cores, promised = list(scene.subnets), list(scene.cores.items()), list(scene.promised.items())
    for one in (subnets, cores, promised):
        shuffler.shuffle(one)
    shuffled = PlacementScene(
        subnets=tuple(subnets),
        demand=scene.demand,
        cores=dict(cores),
        promised=dict(promised),
        restrictions=scene.restrictions,
    )
    assert place(shuffled, count, random.Random(seed)) == place(scene, count, random.Random(seed))


@settings(max_examples=EXAMPLES, deadline=None)
@given(scenes, st.integers(0, 2**32))
def test_no_usable_zone_stands_before_one_with_fewer_cores(scene, seed):
    found = judge_zones(scene, random.Random(seed))
    amounts = [verdict.millicores for verdict in found]
    assert amounts == sorted(amounts)
    chosen = place(scene, 1, random.Random(seed)).choices
    assert [choice.zone for choice in chosen] == [verdict.zone for verdict in found if verdict.usable][:1]
