"""Names under which a failing function is reported: exception classes, exits, import failures, throttles.

ministack reports every Python exception as ``Runtime.HandlerError``, so no Retry or Catch by class name would match.
Names and messages of a process that died are those of AWS' runtime interface emulator, by how it died.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from local.aws.pins import expect_parameters, expect_source

_REPORTED = '{"status": "error", "error": str(e), "trace": traceback.format_exc()}'
_WITH_CLASS = '{"status": "error", "error": str(e), "error_type": type(e).__name__, "trace": traceback.format_exc()}'
_DIED = ("Worker process died", "Worker process exited immediately")
_INIT = "Worker init failed: "
_last = threading.local()


def install() -> None:
    """Patch the worker script, the reading of its answers and the throttle."""
    script = lambda_runtime._PYTHON_WORKER_SCRIPT
    expect_source("ministack", "lambda_runtime._PYTHON_WORKER_SCRIPT", script, _REPORTED)
    expect_parameters("ministack", lambda_runtime._collect, "proc", "deadline")
    expect_parameters("ministack", lambda_svc._execute_function_warm, "func", "event", "request_id")
    expect_parameters("ministack", lambda_svc._throttle_response, "reason_code", "msg", "retry_after")
    lambda_runtime._PYTHON_WORKER_SCRIPT = script.replace(_REPORTED, _WITH_CLASS)
    lambda_runtime.Worker.invoke = _remembering(lambda_runtime.Worker.invoke)
    lambda_runtime._collect = _reading(lambda_runtime._collect)
    lambda_svc._execute_function_warm = _naming(lambda_svc._execute_function_warm)
    lambda_svc._throttle_response = _throttled(lambda_svc._throttle_response)


def _remembering(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @functools.wraps(original)
    def invoke(worker: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        response = original(worker, *args, **kwargs)
        _last.response = response
        return response

    return invoke


def _reading(original: Callable[..., None]) -> Callable[..., None]:
    """Keep the return code of the process that an invocation leaves behind."""

    @functools.wraps(original)
    def collect(proc: Any, deadline: float) -> None:
        original(proc, deadline)
        _last.code = getattr(proc, "returncode", None)

    return collect


def _naming(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @functools.wraps(original)
    def execute(func: Any, event: Any, request_id: str) -> dict[str, Any]:
        _last.response, _last.code = {}, None
        result = original(func, event, request_id)
        body = result.get("body")
        if result.get("error") and isinstance(body, dict) and "errorMessage" in body:
            result["body"] = _described(body, _last.response, request_id, _last.code)
        return result

    return execute


def death(code: int | None) -> tuple[str, str]:
    """Return name and message for a process that ended during its invocation with this return code. Only the kernel
    kills a function's process, where its memory is used up.
    """
    if code == -signal.SIGKILL:
        return "Runtime.OutOfMemory", "Runtime exited with error: signal: killed"
    if code is not None and code < 0:
        named = (signal.strsignal(-code) or f"signal {-code}").lower()
        return "Runtime.ExitError", f"Runtime exited with error: signal: {named}"
    if not code:
        return "Runtime.ExitError", "Runtime exited without providing a reason"
    return "Runtime.ExitError", f"Runtime exited with error: exit status {code}"


def _described(body: dict[str, Any], response: dict[str, Any], request_id: str, code: int | None) -> dict[str, Any]:
    message = str(body["errorMessage"])
    if body.get("errorType") == "Sandbox.Timedout":
        return {"errorType": "Sandbox.Timedout", "errorMessage": f"RequestId: {request_id} Error: {message}"}
    if message.startswith(_DIED):
        kind, said = death(code)
        return {"errorType": kind, "errorMessage": f"RequestId: {request_id} Error: {said}"}
    if message.startswith(_INIT):
        cause = message.removeprefix(_INIT)
        kind = "Runtime.ImportModuleError" if "No module named" in cause else "Runtime.UserCodeSyntaxError"
        return {"errorType": kind, "errorMessage": cause, "requestId": request_id, "stackTrace": []}
    if response.get("error_type"):
        trace = str(response.get("trace", "")).splitlines()
        return {
            "errorMessage": message,
            "errorType": response["error_type"],
            "requestId": request_id,
            "stackTrace": trace,
        }
    return body


def _throttled(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return a throttle that carries ``errorType``: Step Functions reads it from a function's answer."""

    @functools.wraps(original)
    def throttle(reason_code: str, msg: str, retry_after: int = 1) -> dict[str, Any]:
        result = original(reason_code, msg, retry_after)
        result["body"].update(errorType="Lambda.TooManyRequestsException", errorMessage=msg)
        return result

    return throttle
