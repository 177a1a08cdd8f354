"""Templates of the page about AWS FIS, against botocore's model of the service."""

import json
from pathlib import Path

import botocore.session
from botocore.validate import ParamValidator

from documentation.blocks import blocks

CREATE = botocore.session.get_session().get_service_model("fis").operation_model("CreateExperimentTemplate")


def test_the_templates_of_the_how_to_page_are_what_aws_fis_takes():
    texts = [one.text for one in blocks("page", Path("docs/how-to/rehearse.md").read_text()) if one.language == "json"]
    templates = [json.loads(text) for text in texts]
    token = {"clientToken": "drawn by the command line"}
    assert [ParamValidator().validate({**one, **token}, CREATE.input_shape).generate_report() for one in templates] == [
        ""
    ] * 2
    actions = [action["actionId"] for one in templates for action in one["actions"].values()]
    assert actions == ["aws:ec2:send-spot-instance-interruptions", "aws:arc:start-zonal-autoshift"]
