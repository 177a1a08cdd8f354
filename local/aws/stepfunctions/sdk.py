"""``aws-sdk:*`` tasks for the services that moto answers, typed by botocore's models, and the names of SDK errors.

Step Functions names an error after the Java SDK's exception class: a modelled error with the suffix Exception, anything
else after the service (``Ec2.Ec2Exception``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError, ParamValidationError
from ministack.core.responses import get_region
from ministack.services import stepfunctions as machine

from local.aws.pins import expect, expect_parameters

_PREFIX = {"autoscaling": "AutoScaling", "ec2": "Ec2", "eks": "Eks"}
_MODELS = {"sfn": "stepfunctions", "eventbridge": "events", "cloudwatchlogs": "logs"}
_KEPT_NAMES = {"rds", "s3", "secretsmanager"}


def install() -> None:
    """Patch the dispatch of SDK tasks and the prefixing of their errors."""
    expect_parameters("ministack", machine._invoke_aws_sdk_integration, "resource", "input_data")
    expect_parameters("ministack", machine._prefix_sdk_error, "service_name", "error_code")
    expect_parameters("ministack", machine._invoke_nested_start_execution, "resource", "input_data")
    expect("ministack", "ec2" in machine._AWS_SDK_SERVICE_MAP, "stepfunctions._AWS_SDK_SERVICE_MAP has no 'ec2'")
    machine._invoke_aws_sdk_integration = _dispatching(machine._invoke_aws_sdk_integration)
    machine._prefix_sdk_error = _naming(machine._prefix_sdk_error)
    machine._invoke_nested_start_execution = _nested(machine._invoke_nested_start_execution)


def _dispatching(original: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    @functools.wraps(original)
    def invoke(resource: str, input_data: Any) -> Any:
        parts = resource.split(":")
        service, action = parts[6].lower(), parts[7].partition(".")[0]
        return _call(service, action, input_data or {}) if service in _PREFIX else original(resource, input_data)

    return invoke


def _naming(original: Callable[[str, str], str]) -> Callable[[str, str], str]:
    @functools.wraps(original)
    def prefix(service_name: str, error_code: str) -> str:
        if service_name in _KEPT_NAMES or error_code.startswith("States."):
            return original(service_name, error_code)
        bare = error_code.rsplit("#", 1)[-1].rsplit(".", 1)[-1]
        return original(service_name, exception_name(_MODELS.get(service_name, service_name), bare))

    return prefix


def _nested(original: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return the error name of the optimized startExecution: ``StepFunctions.…Exception``."""

    @functools.wraps(original)
    def start(resource: str, input_data: Any) -> Any:
        try:
            return original(resource, input_data)
        except machine._ExecutionError as failure:
            if failure.error.startswith(("States.", "StepFunctions.")):
                raise
            name = exception_name("stepfunctions", failure.error)
            raise machine._ExecutionError(f"StepFunctions.{name}", failure.cause) from None

    return start


def exception_name(service: str, code: str) -> str:
    """Return the Java SDK's class for an error code of a service, without the service's prefix."""
    if code.endswith("Exception"):
        return code
    if code in _modelled(service):
        return code.removesuffix("Fault").removesuffix("Error") + "Exception"
    return f"{_PREFIX.get(service) or machine._AWS_SDK_ERROR_PREFIX.get(service, service.capitalize())}Exception"


@functools.cache
def _modelled(service: str) -> frozenset[str]:
    try:
        model = botocore.session.get_session().get_service_model(service)
    except botocore.exceptions.UnknownServiceError:
        return frozenset()
    shapes = [model.shape_for(name) for name in model.shape_names]
    return frozenset(
        code
        for shape in shapes
        if shape.metadata.get("exception")
        for code in (shape.name, shape.metadata.get("error", {}).get("code", shape.name))
    )


@functools.cache
def _client(service: str, region: str) -> Any:
    config = Config(retries={"max_attempts": 0}, read_timeout=60, max_pool_connections=50)
    return boto3.client(service, region_name=region, config=config)


def _call(service: str, action: str, parameters: Any) -> Any:
    client = _client(service, get_region())
    operation = client.meta.service_model.operation_model(action[0].upper() + action[1:])
    method = next(name for name, wire in client.meta.method_to_api_mapping.items() if wire == operation.name)
    try:
        result = getattr(client, method)(**_to_api(parameters, operation.input_shape))
    except ClientError as refused:
        raise _failure(service, refused) from None
    except ParamValidationError as invalid:
        raise machine._ExecutionError("States.Runtime", str(invalid)) from None
    result.pop("ResponseMetadata", None)
    return _from_api(result, operation.output_shape) if operation.output_shape else {}


def _failure(service: str, refused: ClientError) -> Exception:
    error, meta = refused.response["Error"], refused.response["ResponseMetadata"]
    name = exception_name(service, str(error["Code"]))
    cause = (
        f"{error['Message']} (Service: {_PREFIX[service]}, Status Code: {meta['HTTPStatusCode']}, "
        f"Request ID: {meta.get('RequestId', '')})"
    )
    failure: Exception = machine._ExecutionError(f"{_PREFIX[service]}.{name}", cause)
    return failure


def _to_api(value: Any, shape: Any) -> Any:
    """Convert Step Functions' spelling of parameters (first letter in capitals) to the API's."""
    if shape.type_name == "structure" and isinstance(value, dict):
        members = {_spelled(name): name for name in shape.members}
        unknown = [name for name in value if _spelled(name) not in members]
        if unknown:
            message = f"The field '{unknown[0]}' is not supported by Step Functions"
            raise machine._ExecutionError("States.Runtime", message)
        named = {members[_spelled(name)]: item for name, item in value.items()}
        return {name: _to_api(item, shape.members[name]) for name, item in named.items()}
    if shape.type_name == "list" and isinstance(value, list):
        return [_to_api(item, shape.member) for item in value]
    if shape.type_name == "map" and isinstance(value, dict):
        return {name: _to_api(item, shape.value) for name, item in value.items()}
    return value


def _from_api(value: Any, shape: Any) -> Any:
    """Return an API result in Step Functions' spelling, with times as strings."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if shape.type_name == "structure" and isinstance(value, dict):
        members = shape.members
        return {_spelled(name): _from_api(item, members[name]) for name, item in value.items() if name in members}
    if shape.type_name == "list" and isinstance(value, list):
        return [_from_api(item, shape.member) for item in value]
    if shape.type_name == "map" and isinstance(value, dict):
        return {name: _from_api(item, shape.value) for name, item in value.items()}
    return value


def _spelled(name: str) -> str:
    return name[:1].upper() + name[1:]
