"""Settings that user data gives kubelet, and the resources that kubelet keeps back from its pods.

Sources: awslabs/amazon-eks-ami, nodeadm/internal/kubelet/config.go (AL2023) and files/bootstrap.sh (AL2), which agree;
Bottlerocket's settings reference; https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Self

from leeward.errors import InvalidInputError
from leeward.model.node import Taint
from leeward.model.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, amount
from leeward.model.visible import quoted
from leeward.node_template.provenance import Origins, joined

MIB, GIB = 1024**2, 1024**3
BASE_MEMORY_MIB, POD_MEMORY_MIB = 255, 11
CPU_STEPS = ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, None, 25))  # from, to (m), of 10,000
KEPT_STORAGE = GIB
EVICTION_MEMORY, EVICTION_STORAGE = "memory.available", "nodefs.available"
_PERCENT = re.compile(r"\d{1,3}(\.\d{1,6})?%", re.ASCII)
EVICTION_HARD = {EVICTION_MEMORY: "100Mi", EVICTION_STORAGE: "10%"}


class Family(StrEnum):
    """Bootstrap that a node runs: it decides what is reserved."""

    AMAZON_LINUX = "amazon-linux"
    BOTTLEROCKET = "bottlerocket"
    WINDOWS = "windows"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """Settings of the user data. Texts are Kubernetes quantities (thresholds also percentages)."""

    family: Family | None = None
    max_pods: int | None = None  # None: not set
    pods_per_core: int | None = None  # a second limit; 0: none
    expression: str = ""  # maxPodsExpression of a NodeConfig
    ceiling: int | None = None  # most pods where their number is not known
    counts_interfaces: bool = True  # False: bootstrap.sh with --use-max-pods false
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    kube_reserved: Mapping[str, str] = field(default_factory=dict)
    system_reserved: Mapping[str, str] = field(default_factory=dict)
    eviction_hard: Mapping[str, str] = field(default_factory=dict)
    reserved_cpus: int | None = None  # size of the set of CPUs that takes the place of all reserved CPU
    replaces: frozenset[str] = frozenset()  # settings that came as flags: they replace EKS' own values, not join them
    local_disks: bool = False  # all made into one volume for kubelet
    mirrored: bool = False  # RAID10: half of their size
    recognised: bool = False  # something in it sets up kubelet
    provenance: Origins = field(default_factory=dict)  # absent: the user data does not decide it
    warnings: tuple[str, ...] = ()  # parts that could not be parsed

    def joined(self, later: Self) -> Self:
        """Join both, the later one winning: parts of one user data come one after the other."""
        return replace(
            later,
            family=later.family or self.family,
            max_pods=self.max_pods if later.max_pods is None else later.max_pods,
            pods_per_core=self.pods_per_core if later.pods_per_core is None else later.pods_per_core,
            expression=later.expression or self.expression,
            ceiling=min((most for most in (self.ceiling, later.ceiling) if most is not None), default=None),
            counts_interfaces=self.counts_interfaces and later.counts_interfaces,
            labels={**self.labels, **later.labels},
            taints=later.taints or self.taints,
            kube_reserved={**self.kube_reserved, **later.kube_reserved},
            system_reserved={**self.system_reserved, **later.system_reserved},
            eviction_hard={**self.eviction_hard, **later.eviction_hard},
            reserved_cpus=self.reserved_cpus if later.reserved_cpus is None else later.reserved_cpus,
            replaces=self.replaces | later.replaces,
            local_disks=self.local_disks or later.local_disks,
            mirrored=self.mirrored or later.mirrored,
            recognised=self.recognised or later.recognised,
            provenance=joined(self.provenance, later.provenance),
            warnings=(*self.warnings, *later.warnings),
        )


def kube_reserved(*, vcpus: int, pods: int) -> dict[str, int]:
    """Return what EKS reserves for kubelet and runtime: CPU in thousandths, memory and storage in bytes.

    CPU: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest; memory: 255 MiB and 11 MiB
    for each of `pods`; storage: 1 GiB.
    """
    total, cpu = vcpus * 1000, 0
    for start, end, share in CPU_STEPS:
        cpu += max(0, (total if end is None else min(total, end)) - start) * share // 10000
    return {CPU: cpu, MEMORY: (BASE_MEMORY_MIB + POD_MEMORY_MIB * pods) * MIB, EPHEMERAL_STORAGE: KEPT_STORAGE}


def withheld(
    settings: KubeletSettings, capacity: Mapping[str, int], *, vcpus: int, pods: int
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the part of the capacity that pods cannot have, by resource, with warnings about quantities that cannot be
    read.

    Kube-reserved for `pods`, system-reserved (none unless set; a set of CPUs takes the place of both CPUs) and the
    hard eviction thresholds (100 MiB of memory, a tenth of the storage).
    """
    warnings: list[str] = []
    kept = {} if "kube-reserved" in settings.replaces else kube_reserved(vcpus=vcpus, pods=pods)
    kept |= _amounts(settings.kube_reserved, "kube-reserved", warnings)
    for name, value in _amounts(settings.system_reserved, "system-reserved", warnings).items():
        kept[name] = kept.get(name, 0) + value
    if settings.reserved_cpus is not None:
        kept[CPU] = settings.reserved_cpus * 1000
    hard = settings.eviction_hard
    thresholds = dict(hard) if "eviction-hard" in settings.replaces else {**EVICTION_HARD, **hard}
    for signal, resource in ((EVICTION_MEMORY, MEMORY), (EVICTION_STORAGE, EPHEMERAL_STORAGE)):
        if signal in thresholds:
            evicted = _threshold(signal, thresholds[signal], capacity.get(resource, 0), warnings)
            kept[resource] = kept.get(resource, 0) + evicted
    return kept, tuple(warnings)


def _amounts(texts: Mapping[str, str], what: str, warnings: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, text in texts.items():
        try:
            found[name] = amount(name, text)
        except InvalidInputError as error:
            warnings.append(f"user data: {what}: {error}; it is passed over")
    return found


def _threshold(signal: str, text: str, capacity: int, warnings: list[str]) -> int:
    """Parse a quantity or a percentage of the capacity, rounded up; 100 % switches it off, as in kubelet."""
    try:
        if not text.endswith("%"):
            return amount(signal, text)
        if not _PERCENT.fullmatch(text):
            raise ValueError(text)
        share = min(Fraction(text.removesuffix("%")) / 100, Fraction(1))
        return 0 if share == 1 else -int(-capacity * share // 1)
    except (InvalidInputError, ValueError):
        found = f"user data: eviction-hard {signal}: found {quoted(text)}"
        warnings.append(f"{found}, expected 100Mi or 5%; EKS' own is taken")
        return _threshold(signal, EVICTION_HARD[signal], capacity, warnings)
