"""What a person types is checked before anything is made, and a mistake is one sentence."""

import pytest

from account_test import __main__ as command
from account_test import options
from account_test.errors import PreflightError

ACCOUNT, REGION = "111122223333", "eu-west-1"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/12345678-1234-1234-1234-123456789012"
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:webhook-AbCdEf"


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda: options.listed("--subnets", "subnet-0abcdef12 subnet-2"), "--subnets: found 'subnet-0abcdef12 subnet"),
        (lambda: options.listed("--security-groups", "default"), "--security-groups: found 'default', expected ids"),
        (lambda: options.kms_key("alias/mine", REGION), "--kms-key: found 'alias/mine', expected the ARN.*no alias"),
        (lambda: options.kms_key(KEY, "us-east-1"), "one in eu-west-1, expected one in us-east-1"),
        (lambda: options.webhook_secret("hunter2", REGION), "--webhook-secret: .*create-secret"),
        (lambda: options.webhook_secret(SECRET, "us-east-1"), "one in eu-west-1, expected one in us-east-1"),
        (lambda: options.member("222233334444", ACCOUNT, "aws"), "expected ACCOUNT/ROLE"),
        (lambda: options.member(f"{ACCOUNT}/admin", ACCOUNT, "aws"), "the run's own account"),
        (lambda: options.run_id("../../etc/passwd"), "--remove: found '../../etc/passwd', expected the id of a run"),
        (lambda: options.words("scalein", ["scale-in", "IAM"]), "named like 'scalein'. The steps: scale-in, IAM"),
    ],
)
def test_nonsense_is_named_with_what_was_expected(read, words):
    with pytest.raises(PreflightError, match=words):
        read()


def test_what_is_right_is_taken_and_what_is_missing_is_empty():
    assert options.listed("--subnets", " subnet-0abcdef12 ,,subnet-0abcdef12") == ("subnet-0abcdef12",)
    assert options.kms_key(KEY, REGION) == KEY
    assert options.webhook_secret(SECRET, REGION) == SECRET
    assert options.member("222233334444/path/admin", ACCOUNT, "aws") == "arn:aws:iam::222233334444:role/path/admin"
    assert options.words("scale-in, IAM", ["scale-in", "IAM"]) == ["scale-in", "IAM"]
    assert options.kms_key("", REGION) == options.webhook_secret("", REGION) == options.member("", ACCOUNT, "aws") == ""


def test_a_run_that_cannot_be_named_is_refused_by_the_command(capsys):
    assert command.main(["--remove", "../x"]) == 2
    assert "--remove: found '../x'" in capsys.readouterr().err
