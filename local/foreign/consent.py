"""Options by which a person names a cluster of their own and confirms that the run may use it."""

from __future__ import annotations

import argparse
from pathlib import Path

from local.foreign.kubeconfig import KubeconfigError, read


class NotConfirmedError(Exception):
    """Error: the kubeconfig's context was not confirmed; the message says how to."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --cluster-kubeconfig and --confirm. The environment's KUBECONFIG is never read."""
    parser.add_argument(
        "--cluster-kubeconfig", type=Path, metavar="FILE", help="an empty cluster to use in place of the emulated one"
    )
    parser.add_argument("--confirm", default="", metavar="CONTEXT", help="the current context of that file")


def confirmed(options: argparse.Namespace) -> Path | None:
    """Return the kubeconfig, None without one. Raises NotConfirmedError unless its context was confirmed, and where
    the file cannot be used.
    """
    if options.cluster_kubeconfig is None:
        return None
    path: Path = options.cluster_kubeconfig.resolve()
    try:
        access = read(path)
    except KubeconfigError as error:
        raise NotConfirmedError(str(error)) from error
    if options.confirm != access.context:
        given = f" (given: {options.confirm})" if options.confirm else ""
        raise NotConfirmedError(
            f"{path} points at {access.url} with context {access.context}{given}. Nodes, workloads and Leeward's roles "
            f"will be created there and deleted at the end. If that is meant, add CONFIRM={access.context}"
        )
    return path
