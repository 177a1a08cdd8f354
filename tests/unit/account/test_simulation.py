"""What the simulator is asked in one call, and how its answers are read whatever their shape."""

from types import SimpleNamespace

from account_test.checks.simulation import MOST_RESULTS, Question, simulate

MANY = tuple(f"arn:aws:ssm:eu-west-1:111122223333:parameter/p{number}" for number in range(60))
ACTIONS = tuple(f"ssm:Action{number}" for number in range(9))


def question(actions=ACTIONS, resources=MANY):
    return Question(role="arn:aws:iam::111122223333:role/r", actions=actions, resources=resources)


def asked(simulator, *arguments):
    client = SimpleNamespace(simulate_principal_policy=simulator)
    return simulate(SimpleNamespace(aws=lambda _service: client), question(*arguments))


def result(action, resources):
    of_each = [{"EvalResourceName": one, "EvalResourceDecision": "allowed"} for one in resources]
    return {"EvalActionName": action, "EvalDecision": "allowed", "ResourceSpecificResults": of_each}


def test_batches_cover_every_pair_once_and_none_has_more_results_than_an_answer():
    batches = list(question().batches())
    pairs = [(action, one) for batch in batches for action in batch.actions for one in batch.resources]
    assert len(pairs) == len(set(pairs)) == len(ACTIONS) * len(MANY)
    assert max(len(batch.actions) * len(batch.resources) for batch in batches) <= MOST_RESULTS


def test_an_answer_of_several_pages_is_read_to_its_end():
    def simulator(ActionNames, ResourceArns, Marker="", **_):
        page = {"EvaluationResults": [result(ActionNames[1 if Marker else 0], ResourceArns)]}
        return page if Marker else {**page, "IsTruncated": True, "Marker": "next"}

    assert len(asked(simulator, ACTIONS[:2], MANY[:3])) == 6


def test_an_endpoint_that_sums_up_several_resources_is_asked_for_each():
    calls = []

    def simulator(ActionNames, ResourceArns, **_):
        calls.append(len(ResourceArns))
        decided = "implicitDeny" if MANY[2] in ResourceArns else "allowed"
        return {"EvaluationResults": [{"EvalActionName": one, "EvalDecision": decided} for one in ActionNames]}

    decisions = asked(simulator, ACTIONS[:1], MANY[:3])
    assert [decisions[ACTIONS[0], one] for one in MANY[:3]] == ["allowed", "allowed", "implicitDeny"]
    assert calls == [3, 1, 1, 1]
