"""The first stage: deployed, judged, deleted and looked at, and what stops it."""

from types import SimpleNamespace

import pytest

from account_test import deployment, first_stage, leftovers, session
from account_test.context import Context
from account_test.deployed import DELIVERS
from account_test.errors import StepError
from account_test.journal import Journal
from account_test.judge import Finding, unproven
from account_test.leftovers import Leftovers
from account_test.results import Outcome, Result
from account_test.run import Extra
from account_test.step import Step, carried_out
from account_test.steps import DEPLOYMENT, steps
from tests.unit.account.builders import a_run
from tests.unit.account.stacks import Stacks, began, event, refusal

GIVEN = {
    "kms_key": "arn:aws:kms:eu-west-1:111122223333:key/k",
    "webhook_secret": "arn:aws:secretsmanager:eu-west-1:111122223333:secret:s",
    "member": "arn:aws:iam::222233334444:role/deployer",
    "security_groups": ("sg-1",),
}
GOOD = Finding(promise="p", kept=True, found="x")


@pytest.fixture
def context(tmp_path, monkeypatch):
    monkeypatch.setattr("account_test.run.FOLDER", tmp_path)
    monkeypatch.setattr(deployment, "ROOT", tmp_path)
    run = a_run(look=0)
    made = Context(run=run, aws=None, kube=None, journal=Journal(run, run.journal), say=lambda _: None)
    made.base |= {"laid": "true", "nodeRole": "arn:aws:iam::111122223333:role/node", "senderRole": ""}
    return made


@pytest.fixture
def played(monkeypatch):
    """What happened in a step, and what its deployment, its judgement and its deletion answer."""
    world = SimpleNamespace(done=[], deploys=None, deletes=None, left=Leftovers())

    def deploy(context, _sender, extras):
        world.done.append(("deploy", *extras))
        context.journal.making("stack", context.run.names.stack)
        if world.deploys:
            raise world.deploys

    def remove(_self, made):
        world.done.append(("delete", made.name))
        if world.deletes:
            raise world.deletes

    monkeypatch.setattr(first_stage, "deploy", deploy)
    monkeypatch.setattr(first_stage, "findings_of", lambda _context, _extras: ([GOOD], []))
    monkeypatch.setattr("account_test.removal.Remover.remove", remove)
    monkeypatch.setattr(leftovers, "after_removal", lambda *_, **__: world.left)
    return world


def plain(context):
    return carried_out(first_stage.stage(context.run)[0], context, [])


def test_there_is_a_step_for_each_setting_that_the_options_allow():
    assert [step.name for step in first_stage.stage(a_run())] == ["deploy and delete"]
    names = [step.name for step in first_stage.stage(a_run(**GIVEN))]
    assert names[0] == "deploy and delete"
    assert names[-1] == "deploy with vpc"  # its interfaces may take most of an hour to go
    assert len(names) == 1 + len(Extra)


def test_only_deploy_takes_the_stage_and_the_deployment_after_it_alone():
    names = [step.name for step in steps(a_run(), ["deploy"])]
    assert names == ["deploy and delete", DEPLOYMENT]
    assert [step.name for step in steps(a_run(), ["scale-in"])] == [DEPLOYMENT, "scale-in"]


def test_every_step_says_how_long_it_takes_and_what_it_costs():
    assert [step.name for step in steps(a_run(**GIVEN)) if "," not in step.takes] == []


def test_a_deployment_is_made_judged_deleted_and_looked_at(context, played):
    result = plain(context)
    assert played.done == [("deploy",), ("delete", "test-0abc12-Leeward")]
    assert [one.promise for one in result.findings] == ["p", leftovers.STAYS_NOTHING]
    assert result.outcome is Outcome.KEPT
    assert context.journal.left == []


def test_what_stays_after_the_deletion_is_named(context, played):
    played.left = Leftovers(there=("log group /aws/lambda/test-0abc12-leeward-drain",))
    assert "still there: log group /aws/lambda/test-0abc12-leeward-drain" in plain(context).sentence


def test_lists_that_could_not_be_read_prove_nothing(context, played):
    played.left = Leftovers(unread=("role (AccessDenied)",))
    result = plain(context)
    assert result.outcome is Outcome.UNPROVEN
    assert "not looked at: role (AccessDenied)" in result.sentence


def test_a_deployment_that_fails_is_deleted_and_its_sentence_is_the_row(context, played):
    played.deploys = StepError("stack s: AWS::SQS::Queue Queue is CREATE_FAILED: no. Fix: yes")
    result = plain(context)
    assert (result.outcome, result.why) == (Outcome.BROKEN, str(played.deploys))
    assert context.journal.left == []


def test_where_the_deletion_fails_too_both_reasons_are_named_and_the_journal_keeps_the_stack(context, played):
    played.deploys, played.deletes = StepError("no queue"), StepError("the interface is in use")
    assert plain(context).why == (
        "no queue; its deletion failed too, the rest is removed at the end: the interface is in use"
    )
    assert [made.kind for made in context.journal.left] == ["stack"]


def test_extras_that_were_broken_are_left_out_of_the_plays_but_a_vpc_that_the_cluster_needs():
    run = a_run(**GIVEN)
    broken = [Result(name=name, proves="x", broken=True) for name in ("deploy with vpc", "deploy with kmsKey")]
    assert first_stage.carried(run, []) == {Extra.VPC, Extra.KMS_KEY}
    assert first_stage.carried(run, broken) == set()
    assert first_stage.carried(a_run(**GIVEN, behind=True), broken) == {Extra.VPC}
    assert first_stage.carried(a_run(), []) == set()


def test_delivery_into_an_encrypted_queue_is_kept_once_a_spot_warning_went_through_one():
    row = Result(name="deploy with kmsKey", proves="x", findings=[GOOD, unproven(DELIVERS, "no event")])
    spot = Result(name="spot interruption", proves="x", findings=[GOOD])
    assert first_stage.settled([row], {Extra.KMS_KEY})[0].outcome is Outcome.UNPROVEN
    assert first_stage.settled([row, spot], set())[0].outcome is Outcome.UNPROVEN
    assert first_stage.settled([row, spot], {Extra.KMS_KEY})[0].outcome is Outcome.KEPT


def test_after_a_gate_that_is_broken_no_step_is_taken(context, monkeypatch):
    taken = []

    def step(name, *, gate, broken):
        def run(_context, _recordings):
            taken.append(name)
            return Result(name=name, proves="x", findings=[GOOD], broken=broken)

        return Step(name=name, proves="x", run=run, gate=gate)

    monkeypatch.setattr(session, "publish", lambda *_: None)
    results = []
    wanted = [
        step("variant", gate=False, broken=True),
        step("plain", gate=True, broken=True),
        step("later", gate=False, broken=False),
    ]
    session.take(context, results, wanted)
    assert taken == ["variant", "plain"]
    assert [one.outcome for one in results] == [Outcome.BROKEN, Outcome.BROKEN]


def test_the_settings_carry_each_extra(context):
    context.run = a_run(**GIVEN)
    plain_settings = deployment.settings(context, None)
    assert not {"kmsKey", "accessEntries"} & set(plain_settings)
    assert deployment.settings(context, None, [Extra.KMS_KEY])["kmsKey"] == GIVEN["kms_key"]
    (cluster,) = deployment.settings(context, None, [Extra.VPC])["clusters"]
    assert cluster["vpc"] == {"subnetIds": ["subnet-1"], "securityGroupIds": ["sg-1"]}
    deployment.settings(context, None, [Extra.WEBHOOK])
    assert GIVEN["webhook_secret"] in (context.run.folder / "policy.yaml").read_text()
    with_member = deployment.settings(context, None, [Extra.MEMBER])
    assert with_member["accessEntries"] is False
    assert with_member["clusters"][1]["roleArn"] == "arn:aws:iam::222233334444:role/test-0abc12-member"


class Cdk:
    """The CDK, which answers one output after the other; None: it succeeds."""

    def __init__(self, monkeypatch, *answers):
        self.answers, self.slept = list(answers), []
        monkeypatch.setattr(deployment, "_cdk", lambda *_: self.answers.pop(0))
        monkeypatch.setattr(deployment.time, "sleep", self.slept.append)


class FailingAws:
    """An account whose stack has these events."""

    def __init__(self, *events):
        self.events, self.credentials = events, {}

    def __call__(self, _service):
        return Stacks(["ROLLBACK_COMPLETE"], self.events)


def test_a_name_that_sqs_still_holds_is_waited_for_and_the_deployment_is_repeated_once(context, monkeypatch):
    recent = event("CREATE_FAILED", reason="You must wait 60 seconds after deleting a queue")
    context.aws = FailingAws(recent, began())
    cdk = Cdk(monkeypatch, "no", None)
    deployment.deploy(context, None)
    assert [round(seconds) for seconds in cdk.slept] == [65]
    Cdk(monkeypatch, "no", "no")
    with pytest.raises(StepError, match=r"AWS::SQS::Queue Queue is CREATE_FAILED.*for 60 s"):
        deployment.deploy(context, None)


def test_a_cause_that_stays_is_not_tried_again(context, monkeypatch):
    denied = event("CREATE_FAILED", kind="AWS::IAM::Role", reason="not authorized to perform: iam:CreateRole")
    context.aws = FailingAws(denied, began())
    Cdk(monkeypatch, "no")
    with pytest.raises(StepError, match=r"AWS::IAM::Role.*iam:CreateRole.*service control policy"):
        deployment.deploy(context, None)


def test_without_a_failed_resource_the_last_words_of_the_cdk_are_the_reason(context, monkeypatch):
    context.aws = FailingAws()
    Cdk(monkeypatch, "Subprocess exited with error 1")
    with pytest.raises(StepError, match="Subprocess exited with error 1"):
        deployment.deploy(context, None)


def test_after_a_deletion_the_names_of_queues_are_waited_for_on_aws_alone(context, monkeypatch):
    context.base["deleted"] = str(deployment.time.monotonic())
    context.aws = FailingAws()
    cdk = Cdk(monkeypatch, None, None)
    deployment.deploy(context, None)
    assert [round(seconds) for seconds in cdk.slept] == [65]
    context.run = a_run(endpoint="http://127.0.0.1:1")
    deployment.deploy(context, None)
    assert len(cdk.slept) == 1


class Listed:
    """Clients whose lists hold these names; `refused`: calls that are denied."""

    def __init__(self, refused=(), **names):
        self.refused, self.names = refused, names

    def __call__(self, _service):
        return self

    def can_paginate(self, call):
        return call != "list_event_buses"

    def get_paginator(self, call):
        return SimpleNamespace(paginate=lambda **_: [self._page(call)])

    def list_event_buses(self, NextToken=""):
        page = self._page("list_event_buses")
        return page if NextToken else {**page, "NextToken": "more"}

    def _page(self, call):
        if call in self.refused:
            raise refusal("AccessDenied")
        listing = next((one for one in leftovers.LISTINGS if one.call == call), None)
        if listing is None:
            return {"NetworkInterfaces": self.names.get(call, [])}
        found = self.names.get(call, [])
        return {listing.at: [{listing.name: name} for name in found] if listing.name else found}


def test_what_is_left_is_found_by_its_name_in_paths_and_urls_too():
    listed = Listed(
        list_functions=["test-0abc12-leeward-drain", "leeward-drain", "my-test-0abc12-leeward"],
        describe_log_groups=["/aws/lambda/test-0abc12-leeward-drain", "/aws/lambda/leeward-drain"],
        list_queues=["https://sqs/111122223333/test-0abc12-leeward-interruption", "https://sqs/1/other"],
        describe_parameters=["/test-0abc12-leeward/blue/policies/00-a", "/leeward/blue/policies/00-a"],
        list_event_buses=["test-0abc12-leeward-members"],
        list_policies=["test-0abc12-Leeward-Drain-1"],
    )
    found = leftovers.of(listed, ("test-0abc12-leeward", "test-0abc12-Leeward"))
    assert found.there == (
        "function test-0abc12-leeward-drain",
        "log group /aws/lambda/test-0abc12-leeward-drain",
        "policy test-0abc12-Leeward-Drain-1",
        "queue https://sqs/111122223333/test-0abc12-leeward-interruption",
        "event bus test-0abc12-leeward-members",
        "event bus test-0abc12-leeward-members",  # of its second page
        "parameter /test-0abc12-leeward/blue/policies/00-a",
    )
    assert found.finding().broken


def test_a_list_that_is_denied_is_named_and_the_rest_is_read():
    found = leftovers.of(Listed(refused=("list_roles",), list_tables=["test-0abc12-leeward"]), ("test-0abc12-leeward",))
    assert found == Leftovers(there=("table test-0abc12-leeward",), unread=("role (AccessDenied)",))


def test_interfaces_of_functions_in_the_given_subnets_are_left():
    listed = Listed(describe_network_interfaces=[{"NetworkInterfaceId": "eni-1", "Status": "in-use"}])
    found = leftovers.of(listed, ("test-0abc12-leeward-",), subnets=("subnet-1",))
    assert found.there == ("network interface eni-1 (in-use)",)


def test_what_aws_lists_for_a_while_after_its_deletion_is_looked_at_again(monkeypatch):
    looks = [Leftovers(there=("table t",)), Leftovers()]
    monkeypatch.setattr(leftovers, "of", lambda *_, **__: looks.pop(0))
    assert leftovers.after_removal(None, a_run(look=0), whole=True) == Leftovers()
