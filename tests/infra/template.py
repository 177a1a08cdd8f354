"""The synthesized template as something to ask: resources by type and name, intrinsic functions filled in.

`substituted_definition` is also for other suites: the state machine's definition as AWS would get it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ACCOUNT = "111122223333"
REGION = "us-east-1"

_PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
}
_NAMES = {  # the property that names a resource, and its ARN
    "AWS::Lambda::Function": ("FunctionName", "lambda:{r}:{a}:function:{n}"),
    "AWS::SQS::Queue": ("QueueName", "sqs:{r}:{a}:{n}"),
    "AWS::DynamoDB::Table": ("TableName", "dynamodb:{r}:{a}:table/{n}"),
    "AWS::StepFunctions::StateMachine": ("StateMachineName", "states:{r}:{a}:stateMachine:{n}"),
    "AWS::Events::EventBus": ("Name", "events:{r}:{a}:event-bus/{n}"),
    "AWS::Events::Rule": ("Name", "events:{r}:{a}:rule/{n}"),
    "AWS::Logs::LogGroup": ("LogGroupName", "logs:{r}:{a}:log-group:{n}:*"),
    "AWS::CloudWatch::Alarm": ("AlarmName", "cloudwatch:{r}:{a}:alarm:{n}"),
    "AWS::IAM::Role": ("RoleName", "iam::{a}:role/{n}"),
    "AWS::Events::ApiDestination": ("Name", "events:{r}:{a}:api-destination/{n}"),
    "AWS::Events::Connection": ("Name", "events:{r}:{a}:connection/{n}"),
}


@dataclass(frozen=True)
class Statement:
    """One IAM statement of one role, its lists as tuples."""

    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Any]


@dataclass(frozen=True)
class Template:
    raw: Mapping[str, Any]
    assembly: Path

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Logical id -> properties, intrinsics filled in."""
        return {
            name: self.filled(resource.get("Properties", {}))
            for name, resource in self.raw["Resources"].items()
            if resource["Type"] == kind
        }

    def named(self, kind: str) -> dict[str, dict[str, Any]]:
        """Physical name -> properties."""
        return {properties[_NAMES[kind][0]]: properties for properties in self.resources(kind).values()}

    def one(self, kind: str) -> dict[str, Any]:
        (found,) = self.resources(kind).values()
        return found

    def filled(self, value: Any) -> Any:
        """`value` with every reference and join carried out."""
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        known = self._intrinsic(value) if len(value) == 1 else None
        return {key: self.filled(item) for key, item in value.items()} if known is None else known

    def _intrinsic(self, value: Mapping[str, Any]) -> str | None:
        match value:
            case {"Ref": name}:
                return self._reference(name)
            case {"Fn::GetAtt": [name, attribute]}:
                return self.arn(name) if attribute == "Arn" else f"{name}.{attribute}"
            case {"Fn::Join": [separator, parts]}:
                return separator.join(self.filled(part) for part in parts)
        return None

    def statements(self, role: str) -> list[Statement]:
        """Of the role with this ARN, those of managed policies included."""
        name = role.rsplit("/", 1)[-1]
        (statements,) = [statements for id_, statements in self.roles().items() if self._name(id_) == name]
        return statements

    def roles(self) -> dict[str, list[Statement]]:
        """Logical id -> statements, those of managed policies included."""
        return {
            name: [statement for document in documents for statement in statements_of(document)]
            for name, documents in self.policies().items()
        }

    def policies(self) -> dict[str, list[Mapping[str, Any]]]:
        """Logical id of a role -> its policy documents: the inline one first, then those of managed policies."""
        managed = self.resources("AWS::IAM::ManagedPolicy")
        return {
            name: [
                *(policy["PolicyDocument"] for policy in properties.get("Policies", ())),
                *(document_of(managed[policy]) for policy in properties.get("ManagedPolicyArns", ())),
            ]
            for name, properties in self.resources("AWS::IAM::Role").items()
        }

    def named_roles(self, prefix: str) -> dict[str, dict[str, Any]]:
        """Rest of a role's name after the prefix -> properties."""
        roles = self.resources("AWS::IAM::Role").values()
        named = {role["RoleName"]: role for role in roles if "RoleName" in role}
        return {name.removeprefix(prefix): role for name, role in named.items() if name.startswith(prefix)}

    def _name(self, logical: str) -> str:
        resource = self.raw["Resources"][logical]
        given = resource.get("Properties", {}).get(_NAMES.get(resource["Type"], ("",))[0])
        return self.filled(given) if given else logical

    def _reference(self, name: str) -> str:
        if name in _PSEUDO:
            return _PSEUDO[name]
        if name not in self.raw["Resources"]:
            return f"<{name}>"
        match self.raw["Resources"][name]["Type"]:
            case "AWS::SQS::Queue":
                return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{self._name(name)}"
            case "AWS::StepFunctions::StateMachine":
                return self.arn(name)
        return self._name(name)

    def arn(self, name: str) -> str:
        shape = _NAMES[self.raw["Resources"][name]["Type"]][1]
        bus = self.filled(self.raw["Resources"][name]["Properties"].get("EventBusName", ""))  # of a rule
        own = f"{bus}/{self._name(name)}" if bus else self._name(name)
        return "arn:aws:" + shape.format(r=REGION, a=ACCOUNT, n=own)


def document_of(policy: Mapping[str, Any]) -> Mapping[str, Any]:
    """The policy document of a managed policy, which the packaged template has as a text."""
    document = policy["PolicyDocument"]
    found: Mapping[str, Any] = json.loads(document) if isinstance(document, str) else document
    return found


def statements_of(document: Mapping[str, Any]) -> Iterator[Statement]:
    for raw in document["Statement"]:
        yield Statement(
            effect=raw["Effect"],
            actions=_many(raw["Action"]),
            resources=_many(raw["Resource"]),
            conditions=raw.get("Condition", {}),
        )


def _many(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def substituted_definition(template: Template, machine_name: str = "leeward-node-termination") -> dict[str, Any]:
    """A state machine with its DefinitionSubstitutions filled in."""
    machine = template.named("AWS::StepFunctions::StateMachine")[machine_name]
    given = machine["DefinitionSubstitutions"]
    return json.loads(re.sub(r"\$\{(\w+)\}", lambda found: given[found[1]], machine["DefinitionString"]))
