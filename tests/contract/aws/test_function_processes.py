"""What becomes of calls while all of the local stack's function processes are busy.

A task that gives up waiting calls again: were its first call to wait on, a storm would end up running calls without a
caller. Lambda itself keeps no call waiting, it throttles."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROBE = """
import contextvars, json, sys, threading
from pathlib import Path
from local.aws.settings import Settings, prepare_environment
prepare_environment(Settings(port=1, region="us-east-1", account="000000000000", directory=Path(sys.argv[1])))
from local.aws.lambdas import errors, workers
errors.install()
workers._slots = threading.BoundedSemaphore(1)
run = workers._capped(lambda func, event, request_id: {"body": event})
hurried = contextvars.copy_context()
hurried.run(workers.patience.set, 0.05)
workers._slots.acquire()
reported = [hurried.run(run, {}, "hurried", "1")["body"]["errorType"]]
waiting = threading.Thread(target=lambda: reported.append(run({}, "patient", "2")["body"]))
waiting.start()
waiting.join(0.2)
reported.append(waiting.is_alive())
workers._slots.release()
waiting.join(10)
reported.append(hurried.run(run, {}, "hurried", "3")["body"])
print(json.dumps(reported))
"""


def test_a_state_machines_call_is_throttled_after_a_while_and_any_other_waits_for_its_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout.splitlines()[-1])
    assert reported == ["Lambda.TooManyRequestsException", True, "patient", "hurried"]
