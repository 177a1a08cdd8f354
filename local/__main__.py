"""`python -m local` (make local): the local AWS and Kubernetes with Leeward and workloads on them, until Ctrl-C."""

import argparse
import shutil
import signal
import sys
import threading
from pathlib import Path

from local.foreign import consent
from local.interactive import playground, state, usage
from local.stack import LocalStack, LocalStackError
from local.stage import say, wait_until

SETTLE_SECONDS = 300


class StoppedError(Exception):
    """Signal to stop, received before everything was ready."""


def main() -> int:
    """Start, print the settings, wait, stop."""
    parser = argparse.ArgumentParser(prog="python -m local", description="The local AWS and Kubernetes of Leeward.")
    parser.add_argument("--stack-only", action="store_true", help="two node groups, without Leeward and workloads")
    parser.add_argument("--empty", action="store_true", help="without node groups as well")
    parser.add_argument(
        "--dir", type=Path, default=state.DIRECTORY, help="folder for kubeconfig, logs and the record of this process"
    )
    consent.add_options(parser)
    options = parser.parse_args()
    directory = options.dir.resolve()
    ended = Signals()
    try:
        foreign = consent.confirmed(options)
        with state.held(directory):
            shutil.rmtree(directory / state.STACK, ignore_errors=True)
            with LocalStack(directory=directory / state.STACK, foreign=foreign) as stack:
                deployed = not options.stack_only and not options.empty
                prepare(stack, deployed=deployed, empty=options.empty)
                usage.write_environment(stack, directory)
                state.record(directory, stack)
                print(f"\n{usage.text(stack, directory, deployed=deployed)}", flush=True)
                ended.wait()
    except (LocalStackError, state.AlreadyRunningError, consent.NotConfirmedError) as error:
        print(error, file=sys.stderr)
        return 1
    except StoppedError:
        pass
    print("stopped", flush=True)
    return 0


def prepare(stack: LocalStack, *, deployed: bool, empty: bool) -> None:
    """Build the groups, and with `deployed` install Leeward and the workloads; say what is done."""
    say(f"local AWS on {stack.endpoint}, Kubernetes API on {stack.api}")
    if not empty:
        playground.build_groups(stack)
        say("groups web-spot (5 nodes) and web-on-demand (4 nodes) in three zones")
    playground.let_in(stack)
    if not deployed:
        wait_until(lambda: empty or playground.joined(stack), SETTLE_SECONDS, "nodes Ready")
        return
    say("cdk bootstrap and cdk deploy, about 40 s …")
    say(f"deployed in {playground.install(stack):.0f} s; waiting for nodes and pods …")
    wait_until(lambda: playground.settled(stack), SETTLE_SECONDS, "nodes Ready and pods running")
    stack.client("lambda").invoke(FunctionName="leeward-sync")  # its terminate hook, else only minutes later


class Signals:
    """Signals that end the process: SIGINT, also where a shell has it ignored for its background jobs, SIGTERM, and
    SIGHUP unless `nohup` ignores it.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._ready = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._end)

    def wait(self) -> None:
        """Return after the first signal."""
        self._ready = True
        self._stop.wait()

    def _end(self, *_: object) -> None:
        first, waited = not self._stop.is_set(), self._ready
        self._stop.set()
        if first and not waited:
            raise StoppedError  # a deployment under way is not waited for


if __name__ == "__main__":
    sys.exit(main())
