"""``python -m local.aws --port N --dir DIR``: start the local AWS and keep it until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path

from local.aws.settings import HOST, Settings, prepare_environment


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, serve until a signal, and exit without waiting for threads that are in a call."""
    settings = _parse(arguments)
    prepare_environment(settings)

    from local.aws.server import run
    from local.aws.shutdown import end_workers

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(run(settings))
    finally:
        end_workers()
        (settings.directory / "aws.json").unlink(missing_ok=True)
    os._exit(0)  # not a clean end of the loop: that would wait for every invocation and execution that still runs


def _parse(arguments: Sequence[str] | None) -> Settings:
    parser = argparse.ArgumentParser(prog="python -m local.aws", description="The local AWS of Leeward.")
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument("--region", default="us-east-1", help="AWS region to play (default %(default)s)")
    parser.add_argument("--account", default="000000000000", help="AWS account to play (default %(default)s)")
    parser.add_argument("--dir", type=Path, required=True, help="folder for aws.json and working files")
    found = parser.parse_args(arguments)
    if not re.fullmatch(r"\d{12}", found.account):
        parser.error(f"--account must be 12 digits, found {found.account!r}")
    if not re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d", found.region):
        parser.error(f"--region must be a region name such as eu-west-1, found {found.region!r}")
    with socket.socket() as probe:
        if probe.connect_ex((HOST, found.port)) == 0:
            parser.error(f"port {found.port} on {HOST} is already in use")
    return Settings(port=found.port, region=found.region, account=found.account, directory=found.dir.resolve())


if __name__ == "__main__":
    main()
