"""Function processes: at most a dozen, each with its function's identity and name for the AWS calls it makes."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import lambda_svc, sts

from local.aws.pins import expect_parameters

MAXIMUM_PROCESSES = 12
_APPLICATION_ID = "AWS_SDK_UA_APP_ID"
_APPLICATION_ID_LENGTH = 50  # longer ones are refused by the SDKs
PATIENCE_SECONDS = 10.0  # of a state machine's call for a process: well below the time-outs of its tasks
patience: ContextVar[float | None] = ContextVar("patience", default=None)  # seconds; None: no limit
_slots = threading.BoundedSemaphore(MAXIMUM_PROCESSES)
_closed = threading.Event()


def install() -> None:
    """Patch how workers are acquired, released, given credentials and spawned."""
    expect_parameters(
        "ministack", lambda_runtime.acquire_worker, "func_name", "config", "code_zip", "qualifier", "max_concurrency"
    )
    expect_parameters("ministack", lambda_runtime.execution_credentials, "config")
    expect_parameters("ministack", lambda_runtime.Worker._spawn, "self")
    expect_parameters("ministack", lambda_svc._execute_function_warm, "func", "event", "request_id")
    lambda_svc._execute_function_warm = _capped(lambda_svc._execute_function_warm)
    lambda_svc.acquire_worker = _evicting(lambda_runtime.acquire_worker)
    lambda_runtime.execution_credentials = credentials
    lambda_runtime.Worker._spawn = _named(lambda_runtime.Worker._spawn)


def close() -> None:
    """Stop starting processes: the launcher ends."""
    _closed.set()


def credentials(config: dict[str, Any]) -> dict[str, str]:
    """Return session credentials of the function's role: GetCallerIdentity answers with the assumed role, as on AWS."""
    account, _ = lambda_runtime._account_region_from_function_config(config)
    function, role = str(config.get("FunctionName", "")), str(config.get("Role", "")).rsplit("/", 1)[-1]
    digest = hashlib.sha256(f"{config.get('FunctionArn')}:{role}".encode()).hexdigest().upper()
    key, secret, token = f"ASIA{digest[:16]}", digest[16:56], digest
    session = function[:64]
    sts.register_session(
        key,
        {
            "Arn": f"arn:aws:sts::{account}:assumed-role/{role}/{session}",
            "UserId": f"AROA{digest[:16]}:{session}",
            "SecretAccessKey": secret,
            "SessionToken": token,
        },
    )
    return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token}


def _capped(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Let further invocations wait for a process. A function that invokes another one synchronously holds two.

    A state machine's invocations are throttled instead, after a while: its tasks time out while they wait and call
    again, so a storm would wait for calls whose callers have given up. Lambda itself keeps none waiting.
    """

    @functools.wraps(original)
    def execute(func: Any, event: Any, request_id: str) -> dict[str, Any]:
        if not _slots.acquire(timeout=patience.get()):
            reported = f"Rate Exceeded: all of the {MAXIMUM_PROCESSES} function processes are busy"
            throttled: dict[str, Any] = lambda_svc._throttle_response("ConcurrentInvocationLimitExceeded", reported)
            return throttled
        try:
            return original(func, event, request_id)
        finally:
            _slots.release()

    return execute


def _evicting(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let a new process beyond the cap replace the one that has been idle longest."""

    @functools.wraps(original)
    def acquire(*args: Any, **kwargs: Any) -> Any:
        worker, reason = original(*args, **kwargs)
        if reason == "spawn":
            lambda_runtime.kill_workers(_surplus())
        return worker, reason

    return acquire


def _surplus() -> list[Any]:
    with lambda_runtime._lock:
        everything = [worker for pool in lambda_runtime._workers.values() for worker in pool]
        idle = sorted((worker for worker in everything if not worker.in_use), key=lambda worker: worker.last_used)
        doomed = idle[: max(0, len(everything) - MAXIMUM_PROCESSES)]
        for pool in lambda_runtime._workers.values():
            pool[:] = [worker for worker in pool if worker not in doomed]
    return doomed


def _named(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def spawn(worker: Any) -> None:
        if _closed.is_set():
            raise RuntimeError("the local AWS is stopping")
        variables = dict(worker.config.get("Environment", {}).get("Variables", {}))
        variables.setdefault(_APPLICATION_ID, str(worker.config.get("FunctionName", ""))[:_APPLICATION_ID_LENGTH])
        worker.config = {**worker.config, "Environment": {"Variables": variables}}
        original(worker)

    return spawn
