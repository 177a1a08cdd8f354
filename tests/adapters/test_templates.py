"""Launch template versions, images and parameters: the requests, and what a repeat does."""

import pytest

from leeward.adapters.aws.launch_templates import Ec2Templates
from leeward.errors import InvalidInputError, ObjectGoneError, ThrottledError
from leeward.model.launch import LaunchTemplateRef

SEVEN = LaunchTemplateRef(id="lt-1", version="7")
EIGHT = LaunchTemplateRef(id="lt-1", name="web", version="8")


@pytest.fixture
def templates(aws):
    return Ec2Templates(aws.clients)


def a_version(number, image="ami-old", description=""):
    return {
        "LaunchTemplateId": "lt-1",
        "LaunchTemplateName": "web",
        "VersionNumber": number,
        "VersionDescription": description,
        "LaunchTemplateData": {"ImageId": image},
    }


def described(aws, version, raw):
    asked = {"LaunchTemplateId": "lt-1", "Versions": [version]}
    aws.expect("ec2", "describe_launch_template_versions", asked, {"LaunchTemplateVersions": [raw]})


def test_a_new_version_is_made_from_the_old_one_with_a_token(aws, templates):
    described(aws, "7", a_version(7))
    described(aws, "$Latest", a_version(7))
    asked = {
        "LaunchTemplateId": "lt-1",
        "SourceVersion": "7",
        "VersionDescription": "leeward t",
        "LaunchTemplateData": {"ImageId": "ami-new"},
        "ClientToken": "t",
    }
    aws.expect("ec2", "create_launch_template_version", asked, {"LaunchTemplateVersion": a_version(8, "ami-new")})
    assert templates.version_for(SEVEN, "ami-new", token="t") == EIGHT


def test_the_version_that_the_same_token_made_is_found_again(aws, templates):
    described(aws, "7", a_version(7))
    described(aws, "$Latest", a_version(8, "ami-new", "leeward t"))
    assert templates.version_for(SEVEN, "ami-new", token="t") == EIGHT


def test_a_version_with_that_image_is_as_good(aws, templates):
    described(aws, "7", a_version(7, "ami-new"))
    described(aws, "$Latest", a_version(9))
    assert templates.version_for(SEVEN, "ami-new", token="t").version == "7"


def test_what_latest_and_default_mean_is_a_number(aws, templates):
    asked = {"LaunchTemplateName": "web", "Versions": ["$Latest"]}
    aws.expect("ec2", "describe_launch_template_versions", asked, {"LaunchTemplateVersions": [a_version(8)]})
    assert templates.numbered(LaunchTemplateRef(name="web", version="$Latest")) == EIGHT


@pytest.mark.parametrize("code", ["InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.VersionNotFound"])
def test_a_template_that_is_not_there_is_gone(aws, templates, code):
    aws.refuse("ec2", "describe_launch_template_versions", code, "none")
    with pytest.raises(ObjectGoneError, match=f"lt-1 version 7: {code}"):
        templates.numbered(SEVEN)


def test_an_answer_without_versions_is_gone_too(aws, templates):
    aws.expect("ec2", "describe_launch_template_versions", {"LaunchTemplateId": "lt-1", "Versions": ["7"]})
    with pytest.raises(ObjectGoneError, match="there is no such version"):
        templates.numbered(SEVEN)


@pytest.mark.parametrize("value", ["ami-1", ' {"image_id": "ami-1", "release_version": "1.33.0"}'])
def test_a_parameter_holds_an_id_or_eks_own_object(aws, templates, value):
    aws.expect("ssm", "get_parameter", {"Name": "/eks/ami"}, {"Parameter": {"Name": "/eks/ami", "Value": value}})
    assert templates.image_behind("/eks/ami") == "ami-1"


@pytest.mark.parametrize("value", ["1.33", "{broken", "{}"])
def test_a_parameter_without_an_image_is_reported(aws, templates, value):
    aws.expect("ssm", "get_parameter", {"Name": "/eks/ami"}, {"Parameter": {"Name": "/eks/ami", "Value": value}})
    with pytest.raises(InvalidInputError, match=r"/eks/ami: found .* expected an AMI id"):
        templates.image_behind("/eks/ami")


def test_a_parameter_that_is_not_there_is_gone(aws, templates):
    aws.refuse("ssm", "get_parameter", "ParameterNotFound")
    with pytest.raises(ObjectGoneError, match="ssm:GetParameter on /eks/ami"):
        templates.image_behind("/eks/ami")


@pytest.mark.parametrize(("state", "there"), [("available", True), ("pending", False), ("failed", False)])
def test_an_image_has_to_be_available(aws, templates, state, there):
    aws.expect("ec2", "describe_images", {"ImageIds": ["ami-1"]}, {"Images": [{"ImageId": "ami-1", "State": state}]})
    assert templates.image_exists("ami-1") is there


@pytest.mark.parametrize("code", ["InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable"])
def test_an_image_that_ec2_does_not_know_does_not_exist(aws, templates, code):
    aws.refuse("ec2", "describe_images", code)
    assert not templates.image_exists("ami-1")


def test_other_errors_are_no_answer(aws, templates):
    aws.refuse("ec2", "describe_images", "RequestLimitExceeded")
    with pytest.raises(ThrottledError):
        templates.image_exists("ami-1")
