"""Files that a snapshot folder must have for a command: without them its answer would be wrong, not incomplete.

An empty list is an answer, a missing file is not."""

from collections.abc import Mapping

from leeward.adapters.folder.files import FILES
from leeward.adapters.folder.reader import Folder
from leeward.errors import InvalidInputError

ALWAYS = ("nodes", "pods", "auto-scaling-groups")
WITH_BUDGETS = (*ALWAYS, "pdbs", "daemonsets")
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "blockers": WITH_BUDGETS,
    "drain": WITH_BUDGETS,
    "plan": WITH_BUDGETS,
    "upgrade plan": WITH_BUDGETS,
    "inspect template": ("auto-scaling-groups",),
    "inspect explain-event": (),
    "inspect ips": (),
    "uninstall": ("nodes", "auto-scaling-groups"),
}  # of any other command: ALWAYS


def check_files(folder: Folder, verb: str) -> None:
    """Check that the folder has what the command needs. Raises InvalidInputError naming each missing file and the
    command that makes it.
    """
    missing = [name for name in REQUIRED.get(verb, ALWAYS) if not folder.path(name).exists()]
    if missing:
        made = ", ".join(f"{name}.json ({FILES[name].command})" for name in missing)
        raise InvalidInputError(
            f"{folder.directory}: {verb}: found no {made}, expected the file, an empty list at least"
        )
