"""Metrics of a disruption run that has ended: the nodes that are gone, and the dollars an hour that it saves."""

from dataclasses import replace

from leeward.disruption import telemetry
from leeward.disruption.command import Command, CommandDecision
from leeward.disruption.completion import ends_of
from leeward.disruption.record import GONE, STAYED
from leeward.disruption.run import DisruptionNext, DisruptionRun, Ends
from tests.emitted import points, series_of, value_of
from tests.fakes.disruptions import a_disruption

DISRUPTION = {"service": "disruption"}
GROUPS = {"n1": "web", "n2": "web", "n3": "batch"}


def delete(*nodes, savings):
    return Command(decision=CommandDecision.DELETE, nodes=nodes, reason="empty", savings=savings)


def ended(*commands, stayed=()):
    """A run of these commands whose nodes are gone, but for those that stayed."""
    nodes = [name for command in commands for name in command.nodes]
    return replace(
        a_disruption(),
        commands=commands,
        nodes={name: f"i-{name}" for name in nodes},
        members={name: GROUPS[name] for name in nodes},
        dropped={},
        ends={f"i-{name}": STAYED if name in stayed else GONE for name in nodes},
    )


def a_run(result, ends=Ends()):  # noqa: B008 - frozen
    return DisruptionRun(cluster="blue", number=7, next=result, ends=ends)


def test_a_run_saves_what_its_commands_save():
    ends = ends_of(ended(delete("n1", "n2", savings=0.2), delete("n3", savings=0.1)))
    assert ends == Ends(nodes={"web": 2, "batch": 1}, savings=0.3, saved={"web": 0.2, "batch": 0.1})


def test_a_command_of_which_a_node_stayed_saves_nothing():
    ends = ends_of(ended(delete("n1", "n2", savings=0.2), stayed=("n2",)))
    assert ends == Ends(nodes={"web": 1})


def test_a_command_whose_price_is_not_known_saves_nothing():
    assert ends_of(ended(delete("n1", savings=None))).savings == 0


def test_a_command_over_several_groups_saves_for_the_cluster_alone():
    ends = ends_of(ended(delete("n1", "n3", savings=0.3)))
    assert (ends.savings, ends.saved) == (0.3, {})


def test_a_dropped_command_saves_nothing():
    record = replace(ended(delete("n1", savings=0.2)), dropped={"0": "a pod needs the node"})
    assert ends_of(record) == Ends()


def test_nodes_and_savings_are_counted_for_the_cluster_and_its_groups(capsys):
    ends = Ends(nodes={"web": 2, "batch": 1}, savings=0.3, saved={"web": 0.3})
    telemetry.stepped("end", a_run(DisruptionNext.DONE, ends))
    out = capsys.readouterr().out
    cluster = DISRUPTION | {"cluster": "blue"}
    assert series_of(out, "DisruptionsDone") == [DISRUPTION, cluster]
    groups = [cluster | {"group": "batch"}, cluster | {"group": "web"}]
    assert series_of(out, "NodesDisrupted") == [DISRUPTION, cluster, *groups]
    assert series_of(out, "DollarsSavedPerHour") == [DISRUPTION, cluster, groups[1]]
    assert value_of(out, "NodesDisrupted", **cluster) == 3
    assert value_of(out, "DollarsSavedPerHour", **groups[1]) == 0.3


def test_a_run_that_was_given_up_counts_no_node(capsys):
    telemetry.stepped("give-up", a_run(DisruptionNext.GIVEN_UP))
    assert {name for name, _, _ in points(capsys.readouterr().out)} == {"DisruptionsGivenUp"}


def test_the_output_of_an_execution_says_what_the_run_saves():
    assert a_run(DisruptionNext.DONE, Ends(savings=0.3)).to_json()["savedPerHour"] == 0.3
