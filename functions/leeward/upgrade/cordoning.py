"""The step that cordons all old nodes once the gate has opened, and keeps the cordons in place from then on.

Decides nothing: the old members are known, and `load_balancer_exclusion.py` says whether they leave load balancers
at once."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from leeward.errors import ObjectGoneError
from leeward.model import well_known
from leeward.ports import Ports
from leeward.ports.kubernetes import Clusters
from leeward.upgrade.load_balancer_exclusion import look_for_exclusion
from leeward.upgrade.members import Age
from leeward.upgrade.observation import Scene, look
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import Next, Run
from leeward.upgrade.start import read, written


def cordon(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Cordon the old nodes so that no pod lands on them any more. New nodes that an earlier phase had cordoned serve
    again.
    """
    record = read(run, ports.upgrades)
    scene = look(record, ports)
    new = [one.node for one in scene.preflight.members if one.age is Age.NEW and one.node is not None]
    leave = look_for_exclusion(ports.clusters.kubernetes(record.cluster), {node.name for node in new if node.ready})
    count = set_cordons(record, scene, ports.clusters, exclude=leave.at_once)
    if not record.cordoned:
        written(replace(record, cordoned=True), ports.upgrades)
    done = f"cordoned {count} old nodes" if count else "they are cordoned already"
    return replace(run, next=Next.CORDONED, why=f"{done}; {leave.why}")


def set_cordons(record: UpgradeRecord, scene: Scene, clusters: Clusters, *, exclude: bool = False) -> int:
    """Cordon old members, with `exclude` also out of load balancers; remove Leeward's cordons from new ones. Cordons
    and labels of others stay.
    """
    kubernetes, count = clusters.kubernetes(record.cluster), 0
    for one in scene.preflight.members:
        if one.node is None:
            continue
        with suppress(ObjectGoneError):
            leaves = exclude and well_known.EXCLUDE_LABEL not in one.node.labels
            if one.age is Age.OLD and (leaves or not one.node.unschedulable):
                kubernetes.cordon(one.node, record.group, exclude=exclude)
                count += 1
            elif one.age is Age.NEW and well_known.CORDONED_FOR in one.node.annotations:
                kubernetes.uncordon(one.node)
    return count
