"""Size of the functions' environment, which Lambda limits: counted at synth, before a deployment fails half-way.

Clusters and topics of the settings are in it; their names may have any length."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Stack

from infra.function import LeewardFunction
from infra.settings import Settings
from leeward.errors import InvalidInputError

LARGEST = 4096  # bytes of all variables as compact JSON, as Lambda measures them
_PSEUDO = {"AWS::AccountId": 12, "AWS::Region": 16, "AWS::Partition": 10, "AWS::URLSuffix": 16}  # their longest values
_LONGEST_NAME = 128  # of what CloudFormation fills in for another resource: the ARN or the URL of a queue


def check_environments(stack: Stack, functions: Sequence[LeewardFunction], settings: Settings) -> None:
    """Raise InvalidInputError for an environment that Lambda may refuse."""
    for function in functions:
        size = bytes_of(stack.resolve(function.variables))
        if size > LARGEST:
            topics = len(settings.sender_topics)
            key, count = ("senders.topics", topics) if topics else ("clusters", len(settings.clusters))
            raise InvalidInputError(
                f"settings: leeward.{key}: found {count} in an environment of {size:,} bytes for "
                f"{function.shape.name}, expected at most {LARGEST:,} bytes, which Lambda takes: fewer of them, or "
                "shorter names"
            )


def bytes_of(variables: Mapping[str, Any]) -> int:
    """Return the most bytes that the variables can have once CloudFormation has filled in what is open."""
    filled = {name: _longest(value) for name, value in variables.items()}
    return len(json.dumps(filled, separators=(",", ":"), ensure_ascii=False).encode())


def _longest(value: Any) -> str:
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return "x" * _PSEUDO.get(name, _LONGEST_NAME)
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(_longest(part) for part in parts)
    return "x" * _LONGEST_NAME
