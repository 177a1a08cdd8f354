"""Kubernetes versions and architectures that are incompatible.

Source: Kubernetes' version skew policy: a kubelet is never newer than the API server, and at most three minors older
(two before 1.28)."""

import re
from collections.abc import Iterator

from leeward.upgrade.preflight.findings import Code, Finding, blocker, warning
from leeward.upgrade.preflight.model import Preflight

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:[.+-].*)?")
_NEW_SKEW_SINCE, _OLD_SKEW, _SKEW = (1, 28), 2, 3
_ARCH_LABELS = ("kubernetes.io/arch", "beta.kubernetes.io/arch")


def check(preflight: Preflight) -> Iterator[Finding]:
    """Compare the target's version with the control plane's, and the image's architecture with the instance types'."""
    yield from _skew(preflight)
    yield from _architecture(preflight)


def minor_of(text: str) -> tuple[int, int] | None:
    """Parse `1.31`, `v1.31.4-eks-0a1b` -> (1, 31); None for anything else."""
    found = _VERSION.fullmatch(text.strip())
    return (int(found[1]), int(found[2])) if found else None


def _skew(preflight: Preflight) -> Iterator[Finding]:
    beside, about = preflight.beside, f"group {preflight.group.name}"
    wanted, plane = minor_of(beside.version), minor_of(beside.control_plane)
    if wanted is None:
        return
    newest = max((v for node in preflight.world.nodes if (v := minor_of(node.kubelet))), default=None)
    if plane is None:
        if newest is None or wanted > newest:
            said = f"the control plane's version is not known, and no node runs {told(wanted)} yet"
            fix = "aws eks describe-cluster must show at least that version"
            yield warning(Code.CONTROL_PLANE_UNKNOWN, about, said, fix)
        return
    if wanted > plane:
        said = f"kubelets would be {told(wanted)}, newer than the control plane's {told(plane)}"
        fix = f"aws eks update-cluster-version to {told(wanted)} first, one minor after the other"
        yield blocker(Code.KUBELET_NEWER, about, said, fix)
    elif wanted[0] != plane[0] or plane[1] - wanted[1] > (_SKEW if wanted >= _NEW_SKEW_SINCE else _OLD_SKEW):
        said = f"kubelets would be {told(wanted)}, too far behind the control plane's {told(plane)}"
        yield blocker(Code.KUBELET_TOO_OLD, about, said, f"choose a version near {told(plane)}")


def told(version: tuple[int, int]) -> str:
    """Return the version as `1.31`."""
    return f"{version[0]}.{version[1]}"


def _architecture(preflight: Preflight) -> Iterator[Finding]:
    """Compare architectures: `beside.architecture` where it is known, else types of two architectures under one image
    are enough.
    """
    launchable, about = preflight.launchable, f"group {preflight.group.name}"
    types = preflight.world.types  # from DescribeInstanceTypes: the built-in table knows no architecture
    known = {name: types[name].architectures for name in (launchable.types if launchable else ()) if name in types}
    known = {name: architectures for name, architectures in known.items() if architectures}
    image = preflight.beside.architecture or _of_nodes(preflight)
    wrong = sorted(name for name, architectures in known.items() if image and image not in architectures)
    if wrong:
        said = f"the image is built for {image}, {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} not"
        fix = "give types of another architecture a launch template of their own (override), or leave them out"
        yield blocker(Code.ARCHITECTURE_MISMATCH, about, said, fix)


def _of_nodes(preflight: Preflight) -> str:
    """Return the architecture of the old nodes, where all have the same: a new version of the template keeps it."""
    found = {
        member.node.labels.get(key) for member in preflight.old if member.node is not None for key in _ARCH_LABELS
    } - {None, ""}
    one = found.pop() if len(found) == 1 else None
    overrides = any(override.template is not None for override in preflight.group.launch.overrides)
    return one if one and not overrides else ""
