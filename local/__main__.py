"""`python -m local` (make local): run both local parts until Ctrl-C, and print how to point kubectl, AWS CLI and CDK at
them.
"""

import argparse
import signal
import sys
import tempfile
import threading
from pathlib import Path

from local.fleet import GroupPlan, build_group, build_network
from local.stack import LocalStack, LocalStackError

HOW_TO = """
The local AWS listens on {endpoint}, the cluster {cluster!r} on {api}. In another shell:

  export AWS_ENDPOINT_URL={endpoint} AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local AWS_REGION={region}
  export KUBECONFIG={kubeconfig}
  kubectl get nodes
  make deploy                                     # Leeward itself, with the settings in cdk.json
  kubectl apply -f manifests/

Instances tagged kubernetes.io/cluster/{cluster} join the cluster. Ctrl-C stops everything.
"""


def main() -> int:
    """Start, print the settings, wait, stop."""
    parser = argparse.ArgumentParser(prog="python -m local", description="The local AWS and Kubernetes of Leeward.")
    parser.add_argument("--empty", action="store_true", help="without the network and the two node groups")
    parser.add_argument("--dir", type=Path, default=None, help="folder for certificates, kubeconfig and logs")
    options = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    directory = options.dir or Path(tempfile.mkdtemp(prefix="leeward-local-"))
    try:
        with LocalStack(directory=directory) as stack:
            if not options.empty:
                network = build_network(stack)
                build_group(stack, network, GroupPlan(name="web-spot", size=5, spot=True))
                build_group(stack, network, GroupPlan(name="web-on-demand", size=4))
            print(
                HOW_TO.format(
                    endpoint=stack.endpoint,
                    api=stack.api,
                    cluster=stack.cluster,
                    region=stack.region,
                    kubeconfig=stack.kubeconfig,
                ),
                flush=True,
            )
            stop.wait()
    except LocalStackError as error:
        print(error, file=sys.stderr)
        return 1
    print("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
