"""cfn-lint finds nothing in the template of any kind of deployment, by the exceptions of `.cfnlintrc`.

`make test` reads the template of the default settings and that of the kind which the commit draws."""

import json
import re

import pytest
import yaml

from tests.drawing import drawn
from tests.infra.conftest import ROOT
from tests.infra.variants import DEFAULT, PACKAGE, VARIANTS, packaged, variant

IGNORED = yaml.safe_load((ROOT / ".cfnlintrc").read_text())["ignore_checks"]
FALSE_ALARMS = (
    (r"arn:\$\{Partition\}:", "arn:aws:"),
    (r'(\\"TimeoutSeconds\\": ?)\\"\{%[^%]*%\}\\"', r"\g<1>60"),
)
"""What E3601 does not know in the text of a state machine's definition, and a value in its place that it knows."""
LINTED = (PACKAGE, *(name for name in VARIANTS if not name.startswith(PACKAGE)))


def texts(name):
    """The templates of a deployment, that of `make package` with its parameters and conditions."""
    if name == PACKAGE:
        return {PACKAGE: json.dumps(packaged())}
    return {stack: json.dumps(template.raw) for stack, template in variant(name).templates.items()}


def known(text):
    """The template with values that the rule knows."""
    for unknown, value in FALSE_ALARMS:
        text = re.sub(unknown, value, text)
    return text


def lint(text, name, *mandatory):
    """What cfn-lint finds in the deployment's Region. `mandatory`: rules that are run although they are ignored."""
    from cfnlint import lint as found  # here: every worker collects this file, and one of them runs it

    region = "us-east-1" if name == PACKAGE else variant(name).region
    config = {"regions": [region], "ignore_checks": IGNORED, "mandatory_checks": list(mandatory)}
    return [f"{match.rule.id}: {match.message}" for match in found(text, config=config)]


@pytest.mark.parametrize("name", drawn(LINTED, len(LINTED)))
def test_cfn_lint_finds_nothing(name):
    for stack, text in texts(name).items():
        assert lint(known(text), name, "E3601") == [], stack


def test_the_exceptions_are_all_that_it_finds_in_the_template_as_it_is():
    (text,) = texts(DEFAULT).values()
    assert {finding.split(":")[0] for finding in lint(text, DEFAULT, *IGNORED)} == set(IGNORED)


@pytest.mark.long
def test_a_mistake_in_a_definition_is_found_in_the_copy_all_the_same():
    (text,) = texts(DEFAULT).values()
    wrong = re.sub(r'\\"Next\\":', r'\\"NextState\\":', text)
    assert any(finding.startswith("E3601") for finding in lint(known(wrong), DEFAULT, "E3601"))
