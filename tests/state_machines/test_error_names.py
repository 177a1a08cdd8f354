"""Names under which Lambda fails a call, and whether it is repeated: each that may pass, and none that lasts."""

import botocore.session
import pytest

from simulation.definitions import definitions
from simulation.invocations import Ended
from tests.state_machines.graph import Graph, existing
from tests.state_machines.started import executed
from tests.state_machines.test_causes import given_to

PASSING = {
    "ServiceException",
    "TooManyRequestsException",
    "ResourceNotReadyException",
    "ResourceConflictException",
    "EC2ThrottledException",
    "EC2UnexpectedException",
    "ENINotReadyException",
    "ENILimitReachedException",
    "SubnetIPAddressLimitReachedException",
}  # of Invoke
NEVER_HERE = ("EFS", "S3Files", "SnapStart", "Durable", "CodeArtifact", "Recursive", "ModeNotSupported", "NoPublished")
LASTING = {
    *("EC2AccessDeniedException", "InvalidSecurityGroupIDException", "InvalidSubnetIDException"),
    *("KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException"),
    *("InvalidParameterValueException", "InvalidRequestContentException", "InvalidRuntimeException"),
    *("InvalidZipFileException", "RequestTooLargeException", "SerializedRequestEntityTooLargeException"),
    *("ResourceNotFoundException", "ServiceQuotaExceededException", "UnsupportedMediaTypeException"),
}  # an operator has to change something
OF_CLIENTS = {"Lambda.AWSLambdaException", "Lambda.SdkClientException", "Lambda.ClientExecutionTimeoutException"}
DEATHS = {
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "Sandbox.Failure",
    "Runtime.ExitError",
    "Runtime.InitError",
    "Runtime.InvokeTimeout",
    "Runtime.OutOfMemory",
    "Runtime.Unknown",
    "Extension.Crash",
}  # of the sandbox or of the process in it, as AWS' runtime interface emulator lists them
REPEATED = {*(f"Lambda.{name}" for name in PASSING), *OF_CLIENTS, *DEATHS}
GRAPHS = {name: Graph(name) for name in existing()}


def test_every_error_of_invoke_is_known_as_passing_or_lasting():
    model = botocore.session.get_session().get_service_model("lambda").operation_model("Invoke")
    named = {shape.name for shape in model.error_shapes if not shape.name.startswith(NEVER_HERE)}
    assert named == PASSING | LASTING


@pytest.mark.parametrize("error", sorted(REPEATED))
@pytest.mark.parametrize("machine", GRAPHS)
def test_after_a_call_that_failed_so_the_second_goes_on(machine, error):
    """With every step of the machine: its call fails once, its document is answered then."""
    for state in sorted(set(GRAPHS[machine].tasks) - GRAPHS[machine].pauses):
        calls = []

        def answer(payload, calls=calls):
            calls.append(payload["step"])
            return Ended(error=error, cause="") if len(calls) == 1 else Ended(error="KeyError", cause="the end")

        executed(machine, given_to(machine, state), answer, at=state)
        assert calls[1] == calls[0], state


@pytest.mark.parametrize("machine", GRAPHS)
def test_a_lasting_error_is_not_repeated(machine):
    definition = definitions()[machine]
    names = {f"Lambda.{name}" for name in LASTING}
    for task in definition["States"].values():
        assert not names & {error for retry in task.get("Retry", ()) for error in retry["ErrorEquals"]}
