"""Validation of ValidateStateMachineDefinition by AWS's published validator (npm `asl-validator`): ministack accepts
anything.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ministack.core.responses import error_response_json, json_response
from ministack.services import stepfunctions as machine

import infra  # noqa: F401 - names the Node.js that was installed as a Python package
from local.aws.pins import expect, expect_parameters

VALIDATOR = Path(__file__).resolve().parents[3] / "node_modules" / "asl-validator" / "dist" / "bin" / "asl-validator.js"
SECONDS = 60
CALL = "ValidateStateMachineDefinition"


def install() -> None:
    """Patch the one function, and run it outside the event loop: it waits for a process."""
    expect_parameters("ministack", machine._validate_state_machine_definition, "data")
    expect("ministack", "TestState" in machine._OFF_LOOP_ACTIONS, "stepfunctions has no _OFF_LOOP_ACTIONS")
    machine._validate_state_machine_definition = validate
    machine._OFF_LOOP_ACTIONS.add(CALL)


def validate(data: Mapping[str, Any]) -> Any:
    """Return `{"result": OK | FAIL, "diagnostics"}`, as the API answers; one diagnostic has the validator's whole
    output.
    """
    definition = data.get("definition")
    if not definition:
        return error_response_json("ValidationException", "definition is required", 400)
    if not VALIDATOR.exists():
        return error_response_json("UnsupportedOperation", f"{CALL} needs {VALIDATOR}: make setup", 501)
    said = _said(str(definition))
    diagnostics = [{"severity": "ERROR", "code": "SCHEMA_VALIDATION_FAILED", "message": said}] if said else []
    return json_response({"result": "FAIL" if said else "OK", "diagnostics": diagnostics, "truncated": False})


def _said(definition: str) -> str:
    """Return the validator's error output, empty for none."""
    try:
        json.loads(definition)
    except ValueError as error:
        return f"not JSON: {error}"
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.write(definition)
        file.flush()
        done = subprocess.run(
            [os.environ.get("JSII_NODE", "node"), str(VALIDATOR), "--json-path", file.name],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    return (done.stdout + done.stderr).strip() or "refused" if done.returncode else ""
