"""Facts that a disruption run keeps for reports: budgets of its nodes at both validations."""

from simulation import functions
from tests.simulation.disruption_stand_in import Disrupted, a_fleet
from tests.simulation.fleet_stand_in import budget, deployment

ONE_NODE = "default/web"


def test_each_validation_passes_on_the_budgets_of_its_nodes(monkeypatch):
    real, outputs = functions.step, []

    def kept(function, call, ports):
        answer = real(function, call, ports)
        if function == "disrupt":
            outputs.append((call["step"], answer))
        return answer

    monkeypatch.setattr(functions, "step", kept)
    Disrupted(a_fleet(workloads=(deployment("web", 4), budget("web")))).drifting().run()
    sampled = [(step, answer["healthy"]) for step, answer in outputs if "healthy" in answer]
    assert {step for step, _ in sampled} == {"validate", "validate-again"}
    for _, healthy in sampled:
        minimum, expected, samples = healthy[ONE_NODE]
        assert (minimum, expected, len(samples)) == (3, 4, 1)
    assert all("healthy" not in call_output for step, call_output in outputs if step in {"taint", "follow", "end"})
