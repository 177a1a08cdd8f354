"""Record of the running `make local`, by which commands in other terminals find its stack.

A lock on a file is held for as long as the process lives, however it ends, so a record that a killed process left is
recognized.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from local.stack import ROOT, LocalStack, LocalStackError

DIRECTORY = Path(os.environ.get("LEEWARD_LOCAL_DIR", ROOT / ".local"))
TABLE = "leeward"
LOCK, STATE, CLAIMS, STACK, ENVIRONMENT = "lock", "running.json", "claims", "stack", "env"


class NotRunningError(Exception):
    """Error: no local stack is ready here; the message says what to do."""


class AlreadyRunningError(Exception):
    """Error: another `make local` runs in this folder."""


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold the folder's lock until the end of the block; earlier records are removed at its begin and its end.

    Raises AlreadyRunningError while another process holds it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / LOCK).open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AlreadyRunningError(
                f"make local is running already (process {_process(directory)}): use it, or stop it with Ctrl-C in its "
                "terminal"
            ) from None
        _forget(directory)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        try:
            yield
        finally:
            _forget(directory)


def record(directory: Path, stack: LocalStack) -> None:
    """Write the record of a stack that is ready; readers see the whole file or none."""
    document = {
        "process": os.getpid(),
        "port": stack.port,
        "cluster": stack.cluster,
        "region": stack.region,
        "account": stack.account,
    }
    claims = directory / CLAIMS
    claims.mkdir(exist_ok=True)
    for claim in claims.iterdir():
        claim.unlink()
    draft = directory / f"{STATE}.{os.getpid()}"
    draft.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draft.replace(directory / STATE)


def running(directory: Path) -> LocalStack:
    """Return the stack of the running `make local`, to make calls on; its owner stops it. Raises NotRunningError."""
    if not _locked(directory):
        raise NotRunningError(
            "no local stack is running: start `make local` in another terminal, and repeat this when it prints `ready`"
        )
    document = _read(directory)
    if document is None:
        raise NotRunningError(
            f"make local (process {_process(directory)}) is not ready yet: repeat this when it prints `ready`"
        )
    return attached(directory, document)


def check_deployed(stack: LocalStack) -> None:
    """Raise NotRunningError on a stack without Leeward, such as that of `make local STACK_ONLY=1`."""
    try:
        stack.client("dynamodb").describe_table(TableName=TABLE)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        raise NotRunningError(
            "Leeward is not deployed on the local stack, so no event has an effect: deploy it, or stop this one and "
            "start `make local` without STACK_ONLY=1"
        ) from error


def attached(directory: Path, document: Mapping[str, Any]) -> LocalStack:
    """Return a stack object for the recorded processes. Raises NotRunningError where these do not answer."""
    stack = LocalStack(
        directory=directory / STACK,
        cluster=str(document["cluster"]),
        region=str(document["region"]),
        account=str(document["account"]),
    )
    stack.port = int(document["port"])
    try:
        stack.control("GET", "health")
    except (OSError, LocalStackError) as error:
        raise NotRunningError(
            f"the local stack of process {document['process']} does not answer on {stack.endpoint} ({error}): stop it "
            "and start `make local`"
        ) from error
    return stack


def _read(directory: Path) -> Mapping[str, Any] | None:
    try:
        document: Mapping[str, Any] = json.loads((directory / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return document


def _locked(directory: Path) -> bool:
    try:
        with (directory / LOCK).open(encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _process(directory: Path) -> str:
    return (directory / LOCK).read_text(encoding="utf-8").strip() or "unknown"


def _forget(directory: Path) -> None:
    for name in (STATE, ENVIRONMENT):
        (directory / name).unlink(missing_ok=True)
