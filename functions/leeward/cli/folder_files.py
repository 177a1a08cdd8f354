"""Files of a snapshot folder that a command needs, and those that make its answer better.

Without a required file the answer would be wrong, so the command refuses; an empty list is an answer, a missing file is
not. A missing optional file is named in a warning with its effect on the answer and the command that makes it, where
the folder has something that the file would describe."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from leeward.adapters.folder.files import FILES, POLICY_FILE
from leeward.adapters.folder.reader import Folder
from leeward.errors import InvalidInputError
from leeward.model.launch import USER_DATA_LEFT_OUT
from leeward.model.well_known import NODEGROUP_TAG

POLICY, PRICES = "policy", "prices"
GROUPS = "auto-scaling-groups"
# keys of pods; in annotations, whose quotes are escaped, they match nothing
_CLAIM = re.compile(rb'"(?:persistentVolumeClaim|ephemeral)"\s*:\s*\{')
_NAMESPACES = re.compile(rb'"namespaceSelector"\s*:\s*\{')


def _always(_: Folder) -> bool:
    return True


def _of_groups(*keys: str) -> Callable[[Folder], bool]:
    """Return whether a group of the folder has one of the keys."""
    return lambda folder: any(group.get(key) for group in folder.elements(GROUPS) for key in keys)


def _is_managed(folder: Folder) -> bool:
    tags = (tag for group in folder.elements(GROUPS) for tag in group.get("Tags") or ())
    return any(tag.get("Key") == NODEGROUP_TAG for tag in tags)


def _of_pods(pattern: re.Pattern[bytes]) -> Callable[[Folder], bool]:
    return lambda folder: folder.mentions("pods", pattern)


class Weaker(NamedTuple):
    """Effect of a missing file. `of`: whether the folder has anything that the file would describe."""

    effect: str
    of: Callable[[Folder], bool] = _always


_DRIFTS_NOT = "are not known: no node drifts from them, and new nodes have no type"
MISSING: Mapping[str, Weaker] = {
    "instances": Weaker("types, prices, images and launch times of the instances are not known"),
    PRICES: Weaker("no price is known: no cost is shown, and nothing is consolidated for money"),
    "launch-template-versions": Weaker(
        f"launch templates {_DRIFTS_NOT}", _of_groups("LaunchTemplate", "MixedInstancesPolicy")
    ),
    "launch-configurations": Weaker(f"launch configurations {_DRIFTS_NOT}", _of_groups("LaunchConfigurationName")),
    "instance-types": Weaker("memory and architecture of instance types are not known"),
    "subnets": Weaker("zones and free addresses of the groups' subnets are not known"),
    "nodegroups": Weaker("labels, taints and update settings of managed node groups are not known", _is_managed),
    "instance-status": Weaker("status checks of EC2 are taken as passed: only NotReady nodes are unhealthy"),
    "lifecycle-hooks": Weaker("lifecycle hooks of the groups are not known: none is taken as present"),
    "volumeattachments": Weaker("no volume is taken as attached: no drain waits for one", _of_pods(_CLAIM)),
    "pvs": Weaker("the zones of persistent volumes are not known: their pods may go anywhere", _of_pods(_CLAIM)),
    "pvcs": Weaker("which volume belongs to a claim is known from pvs.json alone", _of_pods(_CLAIM)),
    "storageclasses": Weaker("the zones of volumes that are not bound yet are not known", _of_pods(_CLAIM)),
    "csinodes": Weaker("how many volumes a node can attach is not known: no limit is taken", _of_pods(_CLAIM)),
    "namespaces": Weaker("labels of namespaces are not known: no namespaceSelector matches one", _of_pods(_NAMESPACES)),
    "images": Weaker(  # without the cluster no image can be judged, and pre-flight says so
        "owners of the new nodes' images are not checked", lambda folder: folder.has("cluster")
    ),
    GROUPS: Weaker("tags of the groups are not known: a policy that asks for tags selects none"),
    "daemonsets": Weaker("the settings of the VPC CNI are not known: its defaults are taken"),
}

ALWAYS = ("nodes", "pods", GROUPS)
WITH_BUDGETS = (*ALWAYS, "pdbs", "daemonsets")
WITH_USER_DATA = ("launch-template-versions", "launch-configurations")
LAUNCHED = (*WITH_USER_DATA, "instance-types", "nodegroups")
PLANNED = ("instances", PRICES, *LAUNCHED, "subnets", "pvs", "pvcs", "storageclasses", "csinodes", "namespaces")
DRAINED = ("lifecycle-hooks", "volumeattachments")
SIZED = (*WITH_USER_DATA, "nodegroups")


class Files(NamedTuple):
    """Files of one command."""

    optional: tuple[str, ...] = ()
    required: tuple[str, ...] = ALWAYS


COMMANDS: Mapping[str, Files] = {
    "plan": Files((POLICY, *PLANNED), WITH_BUDGETS),
    "plan --method unhealthy": Files((POLICY, *PLANNED, "instance-status"), WITH_BUDGETS),
    "inspect budget": Files((POLICY,)),
    "drift": Files((POLICY, "instances", *LAUNCHED)),
    "top": Files(("instances", PRICES)),
    "drain": Files((POLICY, "instances", *DRAINED), WITH_BUDGETS),
    "blockers": Files((POLICY, *DRAINED), WITH_BUDGETS),
    "upgrade plan": Files((*PLANNED, *DRAINED, "images"), WITH_BUDGETS),
    "upgrade": Files(("launch-template-versions",)),
    "inspect template": Files(LAUNCHED, (GROUPS,)),
    "inspect zones": Files((*SIZED, "daemonsets", "pvs")),
    "inspect place": Files((*SIZED, "daemonsets")),
    "zone evacuate": Files((POLICY, "subnets", "pvs")),
    "zone status": Files((POLICY, "subnets", "pvs")),
    "inspect ips": Files(("daemonsets",), ()),
    "uninstall": Files(("lifecycle-hooks",), ("nodes", GROUPS)),
    "inspect explain-event": Files((POLICY, GROUPS, "lifecycle-hooks"), ()),
}
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


def check_files(folder: Folder, verb: str) -> None:
    """Check that the folder has what the command needs. Raises InvalidInputError naming each missing file and the
    command that makes it.
    """
    missing = [name for name in COMMANDS.get(verb, Files()).required if not folder.path(name).exists()]
    if missing:
        made = ", ".join(f"{name}.json ({FILES[name].command})" for name in missing)
        raise InvalidInputError(
            f"{folder.directory}: {verb}: found no {made}, expected the file, an empty list at least"
        )


def missing_files(folder: Folder, verb: str, arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return a sentence for each optional file of the command that the folder lacks, or has in part. Raises
    InvalidInputError where a file that tells whether it is needed is broken.
    """
    if getattr(arguments, "method", None) == "unhealthy":
        verb = f"{verb} --method unhealthy"
    used = COMMANDS.get(verb, Files()).optional
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
