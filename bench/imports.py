"""Cold starts as Lambda sees them: INIT of each function from the asset that ships, against `import boto3`.

Each INIT is a new process of the runtime's Python (this one where none is installed) that sees only the asset and the
SDK, in folders that it does not write to: modules not compiled in the asset are compiled each time. The interpreter's
own start is subtracted. CPU time is measured, and boto3 is imported again on both sides: a busy machine changes its
speed within seconds. Three figures: the import of the handler's module without Lambda's environment, INIT in all with
clients and ports, and what the first call adds until AWS refuses its first request.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from infra.asset import MODELS, build_asset
from infra.bytecode import runtime_python
from leeward.adapters.initialization import NEEDS

IMPORT, INIT, FIRST_CALL = 1.5, 3.0, 0.2  # targets, in units of `import boto3`
RUNS = 5
SDK = ("boto3", "botocore", "s3transfer", "dateutil", "urllib3", "jmespath", "six")
ROOT = Path(__file__).resolve().parent.parent
NOTIFICATIONS = "leeward.notifications.handler.handle"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",  # the discard port: every call is refused at once
    "AWS_MAX_ATTEMPTS": "1",
    "CLUSTERS": json.dumps([{"name": "blue", "actRole": "arn:aws:iam::111122223333:role/act", "taintRole": "arn:x"}]),
    "DEAD_LETTER_QUEUE_URL": "http://127.0.0.1:9/111122223333/dead",
    "DEPLOYMENT_ID": "111122223333-us-east-1",
    "KUBERNETES_ACCESS": "act",
    "POLICY_PREFIX": "/leeward",
    "QUEUE_ARN": "arn:aws:sqs:us-east-1:111122223333:leeward-interruption",
    "STATE_MACHINE_ARN": "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-node-termination",
    "TABLE_NAME": "leeward",
}
CALL = """
import time
began = time.process_time()
try:
    {module}.{name}({event}, None)
except Exception:
    pass
print(time.process_time() - began)
"""


def _step(name: str) -> dict[str, object]:
    return {"step": name, "run": {"instance": "i-0abc", "attempt": 1, "v": 1, "group": "app", "cluster": "blue"}}


EVENTS: Mapping[str, object] = {
    "leeward.interruption.handler.handle": {
        "Records": [{"messageId": "m", "body": "{}", "attributes": {}, "receiptHandle": "r"}]
    },
    "leeward.termination.handler.terminate": _step("claim"),
    "leeward.termination.drain_handler.drain": _step("drain"),
    "leeward.upgrade.handler.upgrade": _step("take-lease"),
    "leeward.disruption.handler.disrupt": _step("take"),
    NOTIFICATIONS: {"Records": []},
}


def run() -> bool:
    """Print the table; return whether every function meets the targets."""
    python = runtime_python() or sys.executable
    asset = build_asset(ROOT)
    print(f"  {_version(python)}, the asset {'compiled' if asset.compiled else 'not compiled: no Python 3.13 found'}")
    with tempfile.TemporaryDirectory() as folder:
        world = _World(python, Path(folder), asset.folder)
        met = [_row(handler, world) for handler in (*NEEDS, NOTIFICATIONS)]
    return all(met)


class _World:
    """Environment of a process as Lambda starts it: the SDK compiled, the asset as it ships."""

    def __init__(self, python: str, folder: Path, asset: Path) -> None:
        for package in SDK:
            _link(package, folder)
        subprocess.run([python, "-m", "compileall", "-q", str(folder)], check=False, capture_output=True)
        self._python = python
        self._environment = {
            **ENVIRONMENT,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{asset}:{folder}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "AWS_DATA_PATH": str(asset / MODELS),
        }

    def seconds(self, statement: str, **more: str) -> float:
        """Return the CPU seconds of a process that runs the statement."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.printed(statement, **more)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def printed(self, statement: str, **more: str) -> str:
        """Return the output of a process that runs the statement."""
        command = [self._python, "-S", "-c", statement]
        return subprocess.run(
            command, env={**self._environment, **more}, check=True, capture_output=True, text=True
        ).stdout


def _link(package: str, folder: Path) -> None:
    spec = find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    if spec.submodule_search_locations:
        (folder / package).symlink_to(spec.submodule_search_locations[0])
    else:
        (folder / Path(spec.origin).name).symlink_to(spec.origin)


def _row(handler: str, world: _World) -> bool:
    module, _, name = handler.rpartition(".")
    call = CALL.format(module=module, name=name, event=json.dumps(EVENTS.get(handler, {})))
    imports, inits, calls = [], [], []
    for _ in range(RUNS):
        bare, before = world.seconds("pass"), world.seconds("import boto3")
        plain = world.seconds(f"import boto3, {module}")
        init = world.seconds(f"import boto3, {module}", _HANDLER=handler)
        first = float(world.printed(f"import boto3, {module}\n{call}", _HANDLER=handler).splitlines()[-1])
        unit = (before + world.seconds("import boto3")) / 2 - bare
        imports.append((plain - bare) / unit)
        inits.append((init - bare) / unit)
        calls.append(first / unit)
    found = [statistics.median(ratios) for ratios in (imports, inits, calls)]
    texts = (f"import {found[0]:.2f} x", f"INIT in all {found[1]:.2f} x", f"first call adds {found[2]:.2f} x")
    print(f"  {handler}: {', '.join(texts)} (targets {IMPORT}, {INIT}, {FIRST_CALL})")
    return all(ratio <= most for ratio, most in zip(found, (IMPORT, INIT, FIRST_CALL), strict=True))


def _version(python: str) -> str:
    return subprocess.run([python, "--version"], check=True, capture_output=True, text=True).stdout.strip()
