"""State machines of the product as in their ASL files, with substitutions made. A file that does not exist
is left out."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import leeward
from infra.asl import read_definition

NODE_TERMINATION, NODE_GROUP_UPGRADE = "node-termination", "node-group-upgrade"
MANAGED_NODE_GROUP_UPGRADE, DISRUPTION_RUN = "managed-node-group-upgrade", "disruption"
UPGRADES = (NODE_GROUP_UPGRADE, MANAGED_NODE_GROUP_UPGRADE)
FILES = {
    NODE_TERMINATION: "termination/state_machine.asl.yaml",
    NODE_GROUP_UPGRADE: "upgrade/state_machine.asl.yaml",
    MANAGED_NODE_GROUP_UPGRADE: "upgrade/managed/state_machine.asl.yaml",
    DISRUPTION_RUN: "disruption/state_machine.asl.yaml",
}
SUBSTITUTIONS = {
    "Partition": "aws",
    "TableName": "leeward",
    "TerminateFunctionArn": "terminate",
    "DrainFunctionArn": "drain",
    "UpgradeFunctionArn": "upgrade",
    "DisruptFunctionArn": "disrupt",
}


@cache
def definitions() -> Mapping[str, Mapping[str, Any]]:
    """Return the definitions by the machine's name, node-termination first."""
    (root,) = leeward.__path__
    files = {name: Path(root) / file for name, file in FILES.items()}
    return {name: _read(file) for name, file in files.items() if file.exists()}


def _read(file: Path) -> Mapping[str, Any]:
    text = json.dumps(read_definition(file))
    for name, value in SUBSTITUTIONS.items():
        text = text.replace("${" + name + "}", value)
    found: dict[str, Any] = json.loads(text)
    return found
