"""Cold starts as Lambda sees them: INIT of each function from the asset that ships, against `import boto3`.

Each INIT is a new process of the runtime's Python (this one where none is installed) that sees only the asset and a
copy of the SDK, in folders that it does not write to. The SDK is compiled, which is checked: without bytecode
`import boto3` takes three times as long, and all ratios look good. The interpreter's own start is subtracted. CPU time
is measured, and boto3 is imported again on both sides: a busy machine changes its speed within seconds.

Figures: the import of the handler's module without Lambda's environment, and INIT in all with clients and ports, both
with boto3, which no function imports; the milliseconds of CPU and the peak memory of INIT by itself; and what the first
call adds until AWS refuses its first request.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from infra.asset import MODELS, Asset, build_asset
from infra.bytecode import runtime_python
from leeward.adapters.initialization import NEEDS

IMPORT, INIT, FIRST_CALL = 1.5, 2.4, 0.2  # targets, in units of `import boto3`
MEGABYTES = 72  # target for the peak in INIT
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
call = time.process_time() - began
"""
AT_THE_END = """
import os, resource, sys
usage = resource.getrusage(resource.RUSAGE_SELF)
try:  # elsewhere than on Linux the peak may be that of the process that started this one
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
except OSError:
    peak = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
files = (getattr(module, "__cached__", None) for module in list(sys.modules.values()))
slow = [file for file in files if file and not os.path.exists(file)]
print(usage.ru_utime + usage.ru_stime, globals().get("call", 0), peak // 1024, len(slow), *slow[:1])
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


def run(handlers: Collection[str] = (*NEEDS, NOTIFICATIONS), runs: int = RUNS) -> bool:
    """Print the table; return whether every function meets the targets."""
    python = runtime_python() or sys.executable
    asset = build_asset(ROOT)
    print(f"  {_version(python)}, the asset {'compiled' if asset.compiled else 'not compiled: no Python 3.13 found'}")
    with tempfile.TemporaryDirectory() as folder:
        world = _World(python, Path(folder), asset)
        unit = statistics.median(world.measured("import boto3").seconds - world.measured("pass").seconds for _ in "123")
        print(f"  import boto3: {unit * 1000:.0f} ms of CPU")
        met = [_row(handler, world, runs) for handler in handlers]
    return all(met)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """CPU seconds of a process, the interpreter's start included, those of the handler's call, and the peak memory."""

    seconds: float
    call: float
    megabytes: int


class _World:
    """Environment of a process as Lambda starts it: the SDK compiled, the asset as it ships."""

    def __init__(self, python: str, folder: Path, asset: Asset) -> None:
        for package in SDK:
            _copy(package, folder)
        subprocess.run([python, "-m", "compileall", "-q", str(folder)], check=True, capture_output=True)
        self._python = python
        self._compiled = (str(folder), str(asset.folder)) if asset.compiled else (str(folder),)
        self._environment = {
            **ENVIRONMENT,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{asset.folder}:{folder}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "AWS_DATA_PATH": str(asset.folder / MODELS),
        }

    def measured(self, statement: str, **more: str) -> Measured:
        """Run the statement in a process. Raises AssertionError where a module that has to be compiled is not."""
        done = subprocess.run(
            [self._python, "-S", "-c", statement + AT_THE_END],
            env={**self._environment, **more},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        seconds, call, peak, *slow = done.stdout.splitlines()[-1].split()
        if slow[1:] and slow[1].startswith(self._compiled):
            raise AssertionError(f"{slow[0]} modules are compiled at each start, such as {slow[1]}")
        return Measured(seconds=float(seconds), call=float(call), megabytes=int(peak))


def _copy(package: str, folder: Path) -> None:
    """Copy the modules, because compileall does not descend into links; models of APIs are linked."""
    spec = find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    if not spec.submodule_search_locations:
        shutil.copy(spec.origin, folder)
        return
    source = Path(spec.submodule_search_locations[0])
    shutil.copytree(source, folder / package, ignore=shutil.ignore_patterns("__pycache__", "data"))
    if (source / "data").exists():
        (folder / package / "data").symlink_to(source / "data")


def _row(handler: str, world: _World, runs: int) -> bool:
    module, _, name = handler.rpartition(".")
    call = CALL.format(module=module, name=name, event=json.dumps(EVENTS.get(handler, {})))
    rows, peaks = [], []
    for _ in range(runs):
        bare, before = world.measured("pass").seconds, world.measured("import boto3").seconds
        plain = world.measured(f"import boto3, {module}").seconds
        init = world.measured(f"import boto3, {module}", _HANDLER=handler).seconds
        alone = world.measured(f"import {module}", _HANDLER=handler)
        first = world.measured(f"import boto3, {module}\n{call}", _HANDLER=handler).call
        unit = (before + world.measured("import boto3").seconds) / 2 - bare
        rows.append(((plain - bare) / unit, (init - bare) / unit, first / unit, alone.seconds - bare))
        peaks.append(alone.megabytes)
    *ratios, seconds = (statistics.median(column) for column in zip(*rows, strict=True))
    texts = (f"import {ratios[0]:.2f} x", f"INIT in all {ratios[1]:.2f} x", f"first call adds {ratios[2]:.2f} x")
    print(f"  {handler}: {', '.join(texts)} (targets {IMPORT}, {INIT}, {FIRST_CALL});", end=" ")
    print(f"INIT without boto3 {seconds * 1000:.0f} ms of CPU, peak {max(peaks)} MB (target {MEGABYTES})", flush=True)
    within = all(ratio <= most for ratio, most in zip(ratios, (IMPORT, INIT, FIRST_CALL), strict=True))
    return within and max(peaks) <= MEGABYTES


def _version(python: str) -> str:
    return subprocess.run([python, "--version"], check=True, capture_output=True, text=True).stdout.strip()
