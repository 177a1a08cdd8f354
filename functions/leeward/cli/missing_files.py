"""Warnings about files that a snapshot folder lacks: which one, what the answer is weaker by, and the command for it.

Decides which optional files a command uses. A file is named only where the folder has something that it would describe;
`required_files` refuses the folders whose answer would be wrong."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from leeward.adapters.folder.files import FILES, POLICY_FILE
from leeward.adapters.folder.reader import Folder
from leeward.model.launch import USER_DATA_LEFT_OUT
from leeward.model.well_known import NODEGROUP_TAG

POLICY, PRICES = "policy", "prices"
GROUPS = "auto-scaling-groups"
# keys of pods; in annotations, whose quotes are escaped, they match nothing
_CLAIM = re.compile(rb'"(?:persistentVolumeClaim|ephemeral)"\s*:\s*\{')
_NAMESPACES = re.compile(rb'"namespaceSelector"\s*:\s*\{')


class Weaker(NamedTuple):
    """Effect of a missing file. `of`: whether the folder has anything that the file would describe."""

    effect: str
    of: Callable[[Folder], bool]


def _always(_: Folder) -> bool:
    return True


def _has_template(folder: Folder) -> bool:
    return any(one.get("LaunchTemplate") or one.get("MixedInstancesPolicy") for one in folder.elements(GROUPS))


def _has_configuration(folder: Folder) -> bool:
    return any(one.get("LaunchConfigurationName") for one in folder.elements(GROUPS))


def _is_managed(folder: Folder) -> bool:
    tags = (tag for one in folder.elements(GROUPS) for tag in one.get("Tags") or ())
    return any(tag.get("Key") == NODEGROUP_TAG for tag in tags)


def _has_claims(folder: Folder) -> bool:
    return folder.mentions("pods", _CLAIM)


def _selects_namespaces(folder: Folder) -> bool:
    return folder.mentions("pods", _NAMESPACES)


def _knows_account(folder: Folder) -> bool:
    return folder.has("cluster")  # without it no image can be judged, and pre-flight says so


MISSING: Mapping[str, Weaker] = {
    "instances": Weaker("types, prices, images and launch times of the instances are not known", _always),
    PRICES: Weaker("no price is known: no cost is shown, and nothing is consolidated for money", _always),
    "launch-template-versions": Weaker(
        "launch templates are not known: no node drifts from them, and new nodes have no type", _has_template
    ),
    "launch-configurations": Weaker(
        "launch configurations are not known: no node drifts from them, and new nodes have no type", _has_configuration
    ),
    "instance-types": Weaker("memory and architecture of instance types are not known", _always),
    "subnets": Weaker("zones and free addresses of the groups' subnets are not known", _always),
    "nodegroups": Weaker("labels, taints and update settings of managed node groups are not known", _is_managed),
    "instance-status": Weaker("status checks of EC2 are taken as passed: only NotReady nodes are unhealthy", _always),
    "lifecycle-hooks": Weaker("lifecycle hooks of the groups are not known: none is taken as present", _always),
    "volumeattachments": Weaker("no volume is taken as attached: no drain waits for one", _has_claims),
    "pvs": Weaker("the zones of persistent volumes are not known: their pods may go anywhere", _has_claims),
    "pvcs": Weaker("which volume belongs to a claim is known from pvs.json alone", _has_claims),
    "storageclasses": Weaker("the zones of volumes that are not bound yet are not known", _has_claims),
    "csinodes": Weaker("how many volumes a node can attach is not known: no limit is taken", _has_claims),
    "namespaces": Weaker("labels of namespaces are not known: no namespaceSelector matches one", _selects_namespaces),
    "images": Weaker("owners of the new nodes' images are not checked", _knows_account),
    GROUPS: Weaker("tags of the groups are not known: a policy that asks for tags selects none", _always),
    "daemonsets": Weaker("the settings of the VPC CNI are not known: its defaults are taken", _always),
}

WITH_USER_DATA = ("launch-template-versions", "launch-configurations")
LAUNCHED = ("launch-template-versions", "launch-configurations", "instance-types", "nodegroups")
VOLUMES = ("pvs", "pvcs", "storageclasses", "csinodes")
PLANNED = ("instances", PRICES, *LAUNCHED, "subnets", *VOLUMES, "namespaces")
DRAINED = ("lifecycle-hooks", "volumeattachments")
SIZED = ("launch-template-versions", "launch-configurations", "nodegroups")
USED: Mapping[str, tuple[str, ...]] = {
    "plan": (POLICY, *PLANNED),
    "plan --method unhealthy": (POLICY, *PLANNED, "instance-status"),
    "inspect budget": (POLICY,),
    "drift": (POLICY, "instances", *LAUNCHED),
    "top": ("instances", PRICES),
    "drain": (POLICY, "instances", *DRAINED),
    "blockers": (POLICY, *DRAINED),
    "upgrade plan": (*PLANNED, *DRAINED, "images"),
    "upgrade": ("launch-template-versions",),
    "inspect template": LAUNCHED,
    "inspect zones": (*SIZED, "daemonsets", "pvs"),
    "inspect place": (*SIZED, "daemonsets"),
    "zone evacuate": (POLICY, "subnets", "pvs"),
    "zone status": (POLICY, "subnets", "pvs"),
    "inspect ips": ("daemonsets",),
    "uninstall": ("lifecycle-hooks",),
    "inspect explain-event": (POLICY, GROUPS, "lifecycle-hooks"),
}  # optional files by command
NOT_SELECTED = "no group is selected, so nothing is a candidate"
DEFAULTS = "the defaults of a policy decide how pods are drained"
EFFECTS: Mapping[tuple[str, str], str] = {
    ("drain", POLICY): DEFAULTS,
    ("blockers", POLICY): DEFAULTS,
    ("inspect explain-event", POLICY): "no group is selected, so nothing follows from a message",
    (
        "inspect explain-event",
        "lifecycle-hooks",
    ): "the time-outs of hooks are not known: no such message has a deadline",
    ("drain", "instances"): "whether an instance has ended is not known: it is taken as running",
    ("top", "instances"): "capacity types and prices of the nodes are not known",
    ("top", PRICES): "no price is known",
    ("upgrade", "launch-template-versions"): "the numbers of $Latest and $Default are not known",
    ("inspect zones", "pvs"): "which pods a volume binds to a zone is not known",
    ("zone evacuate", POLICY): "no group is selected, so every node stays",
    ("zone evacuate", "subnets"): "no other zone is known to be open, so every node stays",
    ("uninstall", "lifecycle-hooks"): "the hook of Leeward on the groups is not seen, and not listed",
}  # by command and file, where it is another than that of MISSING


def missing_files(folder: Folder, verb: str, arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return a sentence for each optional file of the command that the folder lacks, or has in part. Raises
    InvalidInputError where a file that tells whether it is needed is broken.
    """
    if getattr(arguments, "method", None) == "unhealthy":
        verb = f"{verb} --method unhealthy"
    used = USED.get(verb, ())
    missing = (_sentence(folder, name, verb) for name in used if not _has(folder, name))
    reduced = (_without_user_data(folder, name) for name in used if name in WITH_USER_DATA)
    return tuple(filter(None, (*missing, *reduced)))


def _without_user_data(folder: Folder, name: str) -> str:
    """Return the sentence about a file of a snapshot that was taken without user data, empty for any other."""
    templates = name == "launch-template-versions"
    holders = (one.get("LaunchTemplateData") or {} if templates else one for one in folder.elements(name))
    if not any(holder.get("UserData") == USER_DATA_LEFT_OUT for holder in holders):
        return ""
    return (
        f"{name}.json is without user data: what new nodes get from it, and drift in it, is not known "
        "(leeward snapshot without --no-user-data writes it)"
    )


def _has(folder: Folder, name: str) -> bool:
    return folder.has_policies if name == POLICY else folder.path(name).exists()


def _sentence(folder: Folder, name: str, verb: str) -> str:
    """Return the sentence about one file that is missing, empty where it would describe nothing."""
    if name == POLICY:
        effect = EFFECTS.get((verb, name), NOT_SELECTED)
        return f"{POLICY_FILE} is missing: {effect} (a first one: leeward init --snapshot {folder.directory})"
    if not MISSING[name].of(folder):
        return ""
    effect, made = EFFECTS.get((verb, name), MISSING[name].effect), FILES[name].command
    command = f"{made} writes it" if name == PRICES else f"{made} > {folder.path(name)}"
    return f"{name}.json is missing: {effect} ({command})"
