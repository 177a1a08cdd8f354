"""Names under which a failing function is reported: exception classes, exits, import failures, throttles.

ministack reports every Python exception as ``Runtime.HandlerError``, so no Retry or Catch by class name would match.
"""

from __future__ import annotations

import functools
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
    expect_parameters("ministack", lambda_svc._execute_function_warm, "func", "event", "request_id")
    expect_parameters("ministack", lambda_svc._throttle_response, "reason_code", "msg", "retry_after")
    lambda_runtime._PYTHON_WORKER_SCRIPT = script.replace(_REPORTED, _WITH_CLASS)
    lambda_runtime.Worker.invoke = _remembering(lambda_runtime.Worker.invoke)
    lambda_svc._execute_function_warm = _naming(lambda_svc._execute_function_warm)
    lambda_svc._throttle_response = _throttled(lambda_svc._throttle_response)


def _remembering(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @functools.wraps(original)
    def invoke(worker: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        response = original(worker, *args, **kwargs)
        _last.response = response
        return response

    return invoke


def _naming(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @functools.wraps(original)
    def execute(func: Any, event: Any, request_id: str) -> dict[str, Any]:
        _last.response = {}
        result = original(func, event, request_id)
        body = result.get("body")
        if result.get("error") and isinstance(body, dict) and "errorMessage" in body:
            result["body"] = _described(body, _last.response, request_id)
        return result

    return execute


def _described(body: dict[str, Any], response: dict[str, Any], request_id: str) -> dict[str, Any]:
    message = str(body["errorMessage"])
    if message.startswith(_DIED):
        text = f"RequestId: {request_id} Error: Runtime exited with error: signal: killed"
        return {"errorType": "Runtime.ExitError", "errorMessage": text}
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
