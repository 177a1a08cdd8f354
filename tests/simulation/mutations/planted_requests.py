"""Planted builds: requests to the API server and the time that they may take."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

KUBERNETES = "leeward.adapters.kubernetes"
CLIENT = f"{KUBERNETES}.client.ClusterClient"

OF_REQUESTS = (
    Planted(
        name="a drain belongs to the group that the tag names",
        story="takes EC2's tag for the group, which an attach changes some seconds later",
        edits=(
            edit(
                "leeward.cluster.membership.holdings",
                "listed.get(instance) or next(iter(groups.lifecycle_of(instance) or ()), None)",
                "known.group if known else None",
            ),
        ),
        tests=("tests/cli/test_blockers.py",),
    ),
    Planted(
        name="a spot warning waits until EC2 answers",
        story="claims no instance that EC2 does not describe",
        edits=(edit("leeward.interruption.listed.listed_by_groups", "set(ids) - others", "set()"),),
        tests=("tests/handlers/interruption/test_refused_calls.py",),
    ),
    Planted(
        name="lists name resourceVersion=0",
        story="asks for the watch cache, which ignores the limit and answers everything at once",
        edits=(
            edit(
                f"{CLIENT}._pages",
                '{**request.query, "limit": str(PAGE_SIZE)}',
                '{**request.query, "limit": str(PAGE_SIZE), "resourceVersion": "0"}',
            ),
        ),
        tests=("tests/adapters/test_kubernetes_client.py",),
    ),
    Planted(
        name="conflicts are retried without a pause",
        story="reads and writes again at once, in step with the other writer",
        edits=(
            edit(
                f"{CLIENT}.pause_after_conflict",
                "self._clock.sleep(random.uniform(*CONFLICT_PAUSE_SECONDS))",
                "pass",
            ),
        ),
        tests=("tests/adapters/test_kubernetes_api.py",),
    ),
    Planted(
        name="an Event that is not written fails its caller",
        story="takes an Event for part of the termination",
        edits=(
            edit(
                f"{KUBERNETES}.api.ClusterApi.event",
                "except LeewardError as error:",
                "except ArithmeticError as error:",
            ),
        ),
        tests=("tests/adapters/test_kubernetes_api.py",),
    ),
    Planted(
        name="a 500 of an admission webhook is an unreachable API server",
        story="takes every 5xx of an eviction for the server's own trouble",
        edits=(
            edit(
                f"{KUBERNETES}.answers.refusal",
                "answer.status == 401 or (",
                "answer.status >= 500 or answer.status == 401 or (",
            ),
        ),
        tests=("tests/adapters/test_kubernetes_api.py",),
    ),
    Planted(
        name="a server that sends a byte now and then holds its caller",
        story="takes the read time-out of a socket for the time-out of an answer",
        edits=(edit(f"{KUBERNETES}.client.TotalTimeoutSocket.start_read", "if self._ends is not None:", "if False:"),),
        tests=("tests/adapters/test_kubernetes_hangs.py",),
    ),
    Planted(
        name="a time budget never ends",
        story="hands the budget down and never asks what is left",
        edits=(
            edit("leeward.time_budget.TimeBudget.left", "(self.ends - self.clock.now()).total_seconds()", "3600.0"),
        ),
        tests=("tests/adapters/test_kubernetes_hangs.py", "tests/adapters/test_aws_budget.py"),
    ),
    Planted(
        name="an unexpected error stops the items beside it",
        story="catches the errors that it knows",
        edits=(
            edit("leeward.isolation.isolate_errors", "except Exception as error:", "except ArithmeticError as error:"),
        ),
        tests=("tests/handlers/interruption/test_isolation.py",),
    ),
    Planted(
        name="an unexpected error of one cluster stops the reconciler of the others",
        story="catches the errors that it knows",
        edits=(
            edit("leeward.isolation.isolate_errors", "except Exception as error:", "except ArithmeticError as error:"),
        ),
        tests=("tests/unit/reconcile/test_clusters_apart.py",),
    ),
    Planted(
        name="messages about all clusters wait for the slowest",
        story="looks up and taints the whole batch at once",
        edits=(
            edit(
                "leeward.interruption.batch._parts",
                "frozenset[str]() if isinstance(named, LeewardError) else named",
                "frozenset(lookup.world.clusters)",
            ),
        ),
        tests=("tests/handlers/interruption",),
    ),
    Planted(
        name="nodes are tainted before they are claimed",
        story="keeps new pods off the node first, however long the API server takes",
        edits=(
            edit(
                "leeward.interruption.batch._Batch.handle",
                "outcomes = self._run(actions)",
                "taint_nodes(_to_taint(works, {}), lookup.world, self.ports, self.workers, self.each)\n"
                "    outcomes = self._run(actions)",
            ),
        ),
        tests=("tests/handlers/interruption",),
    ),
    Planted(
        name="a permission that is missing for a second ends the execution",
        story="takes each 403 for a missing role, although an API server that has just started knows none",
        edits=(
            edit(
                "tests.state_machines.walker.Walker._again",
                'error in retry["ErrorEquals"]',
                'error != "AccessDeniedError" and error in retry["ErrorEquals"]',
            ),
        ),
        tests=("tests/state_machines/test_partial_failure.py",),
    ),
    Planted(
        name="pauses of a held drain do not grow",
        story="looks again every 30 seconds for two days, until the execution's history is full",
        edits=(
            edit(
                "leeward.termination.decisions.pause_seconds",
                "max(2 * LONG_PAUSE if known_to_last else LONG_PAUSE, grown_to)",
                "LONG_PAUSE",
            ),
        ),
        tests=("tests/unit/termination", "tests/state_machines"),
    ),
    Planted(
        name="taints of another deployment are removed",
        story="takes every taint with the key for its own",
        edits=(
            edit("leeward.model.node.Node.is_foreign", "self.disrupted_by not in {None, deployment}", "False"),
            edit(
                "leeward.model.node.untainted",
                "any(known.key == taint.key and known.value != taint.value for known in node.taints)",
                "False",
            ),
        ),
        tests=("tests/unit/reconcile/test_two_deployments.py",),
    ),
    Planted(
        name="a size that an owner sets is taken for that of a disruption run",
        story="raises the desired size to what it has recorded, whatever it is by then",
        edits=(edit("leeward.disruption.replacements.raise_sizes", "size - grown if left else None", "None"),),
        tests=("tests/simulation/test_disruption_growth.py",),
    ),
)
