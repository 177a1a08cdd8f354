"""What a function prepares in Lambda's INIT phase: what nearly every event needs, and nothing outside of Lambda."""

import json
import subprocess
import sys
from pathlib import Path

import botocore
import pytest

from infra.permissions import PERMISSIONS
from leeward.adapters.initialization import NEEDS
from tests.infra.conftest import ROOT

FUNCTION = "AWS::Lambda::Function"
PREFIXES = {"elbv2": "elasticloadbalancing", "stepfunctions": "states"}  # where IAM's is not the SDK's name
OF_NOTIFICATIONS = "leeward.notifications.handler.handle"  # a batch of the table's stream: one client, no ports
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
}
SCRIPT = """
import gc, importlib, json, sys
handler, modules = sys.argv[1], json.loads(sys.argv[2])
collections = []

def note(phase, info):
    frame = sys._getframe()
    while phase == "start" and frame:
        if frame.f_code.co_name == "initialize":
            collections.append(info["generation"])
        frame = frame.f_back

gc.callbacks.append(note)
importlib.import_module(handler.rpartition(".")[0])
wiring = sys.modules.get("leeward.adapters.wiring")
made = sorted({key[0] for key in wiring.lambda_clients()._made}) if wiring else []
lacking = [name for name in modules if name not in sys.modules]
collector = {"collections": collections, "on": gc.isenabled(), "frozen": gc.get_freeze_count() > 0}
print(json.dumps([made, lacking, collector]))
"""


def prepared(handler, environment):
    """(services with a client, modules not imported, what the garbage collector did) once the handler's module is
    imported.
    """
    path = f"{ROOT / 'functions'}:{Path(botocore.__file__).parent.parent}"
    command = [sys.executable, "-c", SCRIPT, handler, json.dumps(NEEDS[handler].modules)]
    given = {**CREDENTIALS, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=given, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_function_that_has_ports_is_known(template):
    handlers = {function["Handler"] for function in template.resources(FUNCTION).values()}
    assert set(NEEDS) == handlers - {OF_NOTIFICATIONS}


def test_no_function_prepares_a_service_that_it_may_not_call(template):
    for name, function in template.named(FUNCTION).items():
        need = NEEDS.get(function["Handler"])
        services = {PREFIXES.get(service, service) for service in need.services} if need else set()
        allowed = {permission.action.split(":")[0] for permission in PERMISSIONS[name.removeprefix("leeward-")]}
        assert services <= allowed, name


@pytest.mark.parametrize("handler", NEEDS)
def test_in_lambda_modules_and_clients_are_there_before_the_first_event(template, handler):
    (function,) = [one for one in template.named(FUNCTION).values() if one["Handler"] == handler]
    variables = {**function["Environment"]["Variables"]}
    made, lacking, collector = prepared(handler, {**variables, "_HANDLER": handler})
    assert made == sorted(NEEDS[handler].services)
    assert lacking == []
    assert collector == {"collections": [], "on": True, "frozen": True}


def test_outside_of_lambda_nothing_is_prepared():
    handler = "leeward.termination.drain_handler.drain"
    made, lacking, collector = prepared(handler, {})
    assert made == []
    assert "leeward.adapters.aws.load_balancers" in lacking
    assert collector == {"collections": [], "on": True, "frozen": False}


def test_wrong_settings_are_left_to_the_first_event():
    handler = "leeward.termination.drain_handler.drain"
    made, lacking, collector = prepared(handler, {"_HANDLER": handler})
    assert (made, lacking, collector["on"]) == ([], [], True)
