"""Planted builds: deadlines, heartbeats and periods of termination records."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

CLAIMS = "leeward.adapters.aws.claims.DynamoClaims"
DEADLINES = "leeward.termination.deadlines"

OF_PERIODS = (
    Planted(
        name="maintenance that AWS takes back still ends the node",
        story="asks EC2's list for what is to be claimed alone",
        edits=(
            edit(
                "leeward.reconcile.scheduled_events.claim_scheduled_events",
                "drop_withdrawn_maintenance(scheduled, state, ports, result)",
                "None",
            ),
        ),
        tests=("tests/unit/reconcile/test_scheduled_events.py",),
    ),
    Planted(
        name="a list that lacks an event once takes it back",
        story="believes one answer of EC2",
        edits=(
            edit(
                "leeward.reconcile.scheduled_events._drop",
                'if seen_before(f"withdrawn#{cause.id}", ports.clock, ports.claims)',
                "if True",
            ),
        ),
        tests=("tests/unit/reconcile/test_scheduled_events.py",),
    ),
    Planted(
        name="a drain under way goes on without a cause",
        story="asks for causes when a drain begins alone",
        edits=(edit("leeward.termination.drain._kept", "if decisions.is_cancelled(record):", "if False:"),),
        tests=("tests/state_machines/test_withdrawn_maintenance.py",),
    ),
    Planted(
        name="a step that outlives its execution sets the clocks of the next attempt",
        story="writes the progress of a drain whatever attempt the record is in",
        edits=(edit(f"{CLAIMS}._write", "if attempt is not None:", "if False:"),),
        tests=("tests/contract/test_claims.py",),
    ),
    Planted(
        name="an instance that returns to its warm pool twice is adopted once",
        story="names the cause of a hook without a holder by the hook and the instance alone",
        edits=(edit("leeward.reconcile.hooks._cause", "#{member.id}#{attempt}", "#{member.id}"),),
        tests=("tests/unit/reconcile/test_reconciler.py",),
    ),
    Planted(
        name="a late stop message drains an instance in service",
        story="believes every state change",
        edits=(edit("leeward.interruption.cross_check._runs", "place.instance.state not in ALIVE", "True"),),
        tests=("tests/handlers/interruption/test_cross_check.py",),
    ),
    Planted(
        name="a late hook message drains an instance in service",
        story="believes every lifecycle action",
        edits=(
            edit(
                "leeward.interruption.cross_check._not_held",
                "role_of(place.lifecycle) in ENDING | IN_WORK",
                "True or IN_WORK",
            ),
        ),
        tests=("tests/handlers/interruption/test_cross_check.py",),
    ),
    Planted(
        name="a message that overtakes EC2's answers is thrown away",
        story="takes what EC2 answers in the first second for its last word",
        edits=(
            edit(
                "leeward.interruption.cross_check.Contradiction.outcome_after", "or waited >= AGREES_WITHIN", "or True"
            ),
        ),
        tests=("tests/handlers/interruption/test_cross_check.py",),
    ),
    Planted(
        name="the end of an instance that was last seen stopped is believed unasked",
        story="asks EC2 nothing about an instance whose termination has come to its end",
        edits=(
            edit(
                "leeward.interruption.recorded._is_known", "return seen is not None", "return _is_over(record) or seen"
            ),
        ),
        tests=("tests/handlers/interruption/test_recorded_facts.py",),
    ),
    Planted(
        name="a step that hangs outlasts a short hook",
        story="heartbeats at half of the time-out, however long the step or the minute until the next look may last",
        edits=(
            edit(
                "leeward.termination.heartbeats.heartbeats_due",
                "or _ends(hook, record, now) <= now + unattended",
                "",
            ),
        ),
        tests=("tests/state_machines/test_two_hooks.py", "tests/unit/reconcile/test_reconciler.py"),
    ),
    Planted(
        name="a detached instance is drained to its deadline",
        story="learns that the instance has left its group only when it is to be terminated",
        edits=(
            edit(
                "leeward.termination.decisions.left_its_group",
                "return is_detached(situation, now) and",
                "return False and",
            ),
        ),
        tests=("tests/state_machines/test_detached.py",),
    ),
    Planted(
        name="the policy deletes pods of a detached instance",
        story="force and terminationGracePeriod count in a drain that a person asked for, although nothing ends there",
        edits=(
            edit("leeward.termination.decisions.without_deletions", "return replace(", "return policy or replace("),
        ),
        tests=("tests/state_machines/test_detached.py",),
    ),
    Planted(
        name="a conflict removes the taint of a drain that has begun meanwhile",
        story="thinks a patch over on a fresh copy without asking what has happened since the node was read",
        edits=(edit("leeward.model.node.returned_to_service", "return current if began_since else ", "return "),),
        tests=("tests/contract/test_kubernetes.py",),
    ),
    Planted(
        name="a Node that joins late is not looked for",
        story="takes an instance without a Node for drained, as long as another team's hook holds it",
        edits=(
            edit(
                "leeward.termination.decisions.may_join_late",
                '"drained" not in record.times and state in ALIVE',
                "False",
            ),
        ),
        tests=("tests/state_machines/test_late_nodes.py",),
    ),
    Planted(
        name="the time-out of a hook of ours is a detach deadline",
        story="takes the earliest deadline of all causes for the moment when EC2 takes the instance",
        edits=(edit("leeward.model.termination.taken_at", "if cause.kind in TAKEN", "if True"),),
        tests=("tests/state_machines/test_detach_deadlines.py",),
    ),
    Planted(
        name="an instance that EC2 takes is released too late",
        story="adds the margin where it has to be subtracted",
        edits=(edit(f"{DEADLINES}.release_at", "taken - DEADLINE_MARGIN", "taken + DEADLINE_MARGIN"),),
        tests=("tests/unit/termination/test_deadlines.py", "tests/state_machines/test_detach_deadlines.py"),
    ),
    Planted(
        name="heartbeats count from the oldest cause",
        story="starts the clock of heartbeat.until with the first cause of the record",
        edits=(
            edit(
                "leeward.termination.heartbeats._next_heartbeat",
                "since = held_since(record, hook)",
                "since = min(cause.at for cause in record.all_causes)",
            ),
        ),
        tests=("tests/state_machines/test_periods.py", "tests/state_machines/test_detach_deadlines.py"),
    ),
    Planted(
        name="flags of an earlier period decide a later termination",
        story="asks every cause that the record has ever had",
        edits=(
            edit(
                "leeward.model.termination.TerminationRecord.options",
                "for cause in self.causes if cause.options",
                "for cause in self.all_causes if cause.options",
            ),
        ),
        tests=("tests/state_machines/test_periods.py",),
    ),
    Planted(
        name="force of an earlier period decides a later termination",
        story="asks every cause that the record has ever had",
        edits=(edit("leeward.model.termination.TerminationRecord.forced", "self.causes", "self.all_causes"),),
        tests=("tests/state_machines/test_periods.py",),
    ),
    Planted(
        name="a launch of an earlier period stands for the next replacement",
        story="looks whether a replacement was ever asked for",
        edits=(
            edit(
                f"{CLAIMS}._open_again",
                "keeps_launch = not record.surge_settled",
                "keeps_launch = True",
            ),
        ),
        tests=("tests/contract/test_claims.py",),
    ),
    Planted(
        name="terminationGracePeriod ends with drain.timeout",
        story="gives up a drain at its time-out, whatever deadline its owner has set",
        edits=(
            edit(
                f"{DEADLINES}.drain_end",
                "(started + policy.timeout, *_chosen(record, policy, started))",
                "(started + policy.timeout,)",
            ),
        ),
        tests=("tests/state_machines/test_detach_deadlines.py", "tests/state_machines/test_periods.py"),
    ),
    Planted(
        name="maintenance that was moved ends with its first date",
        story="takes the earliest date of a Health event",
        edits=(edit("leeward.model.termination.maintenance", "cause.at > announced or", "cause.at < announced or"),),
        tests=("tests/state_machines/test_detach_deadlines.py", "tests/state_machines/test_periods.py"),
    ),
    Planted(
        name="maintenance that has passed hurries every later drain",
        story="takes each date that was ever announced",
        edits=(edit("leeward.model.termination.maintenance", "if date > now", "if date"),),
        tests=("tests/state_machines/test_detach_deadlines.py", "tests/state_machines/test_periods.py"),
    ),
    Planted(
        name="the time-out of another team's hook deletes pods while ours holds the instance",
        story="counts every hook's time-out, whatever its default result",
        edits=(
            edit(f"{DEADLINES}._foreign_hooks", "if not ours or cause.hook_default is HookResult.ABANDON", "if True"),
        ),
        tests=("tests/state_machines/test_detach_deadlines.py",),
    ),
    Planted(
        name="hooks of sync end before heartbeat.until",
        story="gives each hook 300 s, of which Auto Scaling allows a hundred",
        edits=(
            edit(
                "leeward.policy.document.Heartbeat.timeout",
                "max(SHORTEST_TIMEOUT, ceil(self.until.total_seconds() / MOST_TIMEOUTS))",
                "SHORTEST_TIMEOUT",
            ),
        ),
        tests=("tests/unit/sync/test_hooks.py",),
    ),
)

OF_STEPS = (
    Planted(
        name="the answer of a slow webhook keeps the other pods of a node waiting",
        story="takes an eviction for a call that ends before the next one begins",
        edits=(
            edit(
                "leeward.termination.eviction._Step._ask",
                "QUICK_SECONDS if removal.slow else PROMPT_SECONDS",
                "31.0",
            ),
        ),
        tests=("tests/state_machines/test_slow_webhooks.py",),
    ),
    Planted(
        name="one failing eviction starves the other pods of a node",
        story="lets the error of one pod end the turn of all",
        edits=(
            edit(
                "leeward.termination.eviction._Step._await",
                "except (ClusterUnreachableError, ThrottledError) as error:",
                "except ArithmeticError as error:",
            ),
        ),
        tests=("tests/state_machines/test_partial_failure.py",),
    ),
    Planted(
        name="the heartbeat is sent to the group's first hook",
        story="knows groups with one hook",
        edits=(
            edit(
                "leeward.termination.heartbeats.keep_waiting",
                "group=hook.group, hook=hook.name, instance=record.instance",
                "group=hook.group, hook=ports.groups.hooks(hook.group)[0].name, instance=record.instance",
            ),
        ),
        tests=("tests/state_machines/test_two_hooks.py",),
    ),
    Planted(
        name="a step that is retried heartbeats nothing",
        story="leaves hooks to the minute reconciler while a step is retried",
        edits=(
            edit(
                "leeward.termination.heartbeats.heartbeats_kept", "except RetryableError:", "except ZeroDivisionError:"
            ),
        ),
        tests=("tests/state_machines/test_hooks_during_retries.py",),
    ),
    Planted(
        name="the Node is removed before a hook that joined is answered",
        story="answers hooks before the Node is removed, never again while it is",
        edits=(edit("leeward.termination.node_removal.remove_node", "if situation.ours_hold and", "if False and"),),
        tests=("tests/state_machines/test_hooks_during_retries.py",),
    ),
    Planted(
        name="the Node of an ended instance stays until another team's hook ends",
        story="takes the hold of any hook for one of ours that is not answered yet",
        edits=(
            edit(
                "leeward.termination.node_removal.remove_node",
                ' and "answered" not in record.times',
                " and record.times",
            ),
        ),
        tests=("tests/state_machines/test_hooks_during_retries.py",),
    ),
    Planted(
        name="a launch hook is heartbeaten for ever",
        story="waits until the node joins, which it never does",
        edits=(
            edit(
                "leeward.reconcile.hooks._may_boot",
                "now + waits < boots_by + LOST_PASSES",
                "True",
            ),
        ),
        tests=("tests/unit/reconcile", "tests/state_machines/test_two_hooks.py"),
    ),
    Planted(
        name="a launch hook ends before fifteen minutes where two passes fail",
        story="heartbeats no further than the time that a boot may take",
        edits=(edit("leeward.reconcile.hooks._may_boot", "boots_by + LOST_PASSES", "boots_by"),),
        tests=("tests/unit/reconcile/test_reconciler.py",),
    ),
    Planted(
        name="a cause that joins a drain asks for no replacement",
        story="decides about the replacement once, when the record is opened",
        edits=(
            edit(
                "leeward.termination.decisions.back_to_replacement",
                "if record.replacement is None:",
                "return None\n    if record.replacement is None:",
            ),
        ),
        tests=("tests/state_machines/test_joining_causes.py",),
    ),
    Planted(
        name="a cause that joins wakes nothing",
        story="leaves it to the next look, which may be ten minutes away",
        edits=(edit("leeward.termination.requests.start", "if record.token and len(record.causes) > 1:", "if False:"),),
        tests=("tests/handlers/interruption/test_messages.py",),
    ),
    Planted(
        name="warnings of capacity reservations are ignored",
        story="leaves reservations to their owners",
        edits=(
            edit(
                "leeward.interruption.parse._capacity_reservation",
                "return CapacityReservationInterruption(",
                'return event.noop("a capacity reservation", *common["instances"]) or CapacityReservationInterruption(',
            ),
        ),
        tests=("tests/handlers/interruption",),
    ),
    Planted(
        name="force deletes pods before the drain's time is over",
        story="takes force for the way in which pods leave, and not for the last one",
        edits=(
            edit(
                "leeward.termination.eviction._Step._forces",
                "return policy.force and deadlines.out_of_time(record, policy, self._started, now) is not None",
                "return policy.force",
            ),
        ),
        tests=("tests/state_machines", "tests/unit/termination"),
    ),
    Planted(
        name="a record is closed over a cause that joined",
        story="reads the version that it closes at the moment of closing",
        edits=(
            edit("leeward.termination.steps.finish", "if record.version != run.version:", "if False:"),
            edit("leeward.termination.steps.finish", "version=run.version,", "version=record.version,"),
        ),
        tests=("tests/state_machines",),
    ),
    Planted(
        name="a node that is claimed while it returns to service stays without its taint",
        story="has read the record, and does not look again after the write",
        edits=(
            edit(
                "leeward.termination.requests.untaint_unclaimed",
                "kubernetes.untaint(node, taint)\n    if is_open(node.instance_id, ports.claims):",
                "kubernetes.untaint(node, taint)\n    if False:",
            ),
        ),
        tests=("tests/unit/termination/test_unclaimed_nodes.py",),
    ),
    Planted(
        name="stale taints are removed at first sight",
        story="takes a node without a record for one that nothing terminates",
        edits=(
            edit(
                "leeward.reconcile.leftovers.remove_stale_taints",
                'if ports.claims.once(f"stale-taint#{node.uid}", SECOND_OBSERVATION, ports.clock.now()):',
                "if False:",
            ),
        ),
        tests=("tests/unit/reconcile/test_reconciler.py", "tests/unit/reconcile/test_two_deployments.py"),
    ),
)
