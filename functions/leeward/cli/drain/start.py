"""Start of real terminations: claim the instance for the operator, start its state machine, wake it if it sleeps.

Decides which nodes may be terminated; the state machine decides how."""

from dataclasses import dataclass
from datetime import datetime

from leeward.cli.drain.scenes import Scene
from leeward.errors import TerminalError
from leeward.model.drain_options import DrainOptions
from leeward.model.termination import Cause, CauseKind, Status, execution_name
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.termination import execution
from leeward.termination.subject import subject_of


class RefusedError(TerminalError):
    """Refusal of a command; nothing was changed."""


def why_not(scene: Scene) -> str | None:
    """Return the reason why Leeward may not terminate this node, or None when it may."""
    if scene.instance is None:
        return f"{scene.node.name}: EC2 knows no instance {scene.node.instance_id!r} behind it"
    if scene.selected is None:
        return f"{scene.node.name}: no policy selects its group {scene.group!r}, so Leeward leaves it alone"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Parameters of one call. `options` None: none of kubectl's flags was given, so the policy decides."""

    cluster: str
    deadline: datetime | None
    options: DrainOptions | None
    now: datetime


def node_of(scene: Scene) -> tuple[str, str]:
    """Return (node, instance) of a started scene."""
    return scene.node.name, scene.node.instance_id


def start(scene: Scene, ports: Ports, order: Order) -> str:
    """Claim the instance, start its execution and return the execution's name.

    Idempotent: a second cause joins the first one's termination, and there is one execution. Raises RefusedError for a
    node that Leeward may not terminate.
    """
    reason = why_not(scene)
    if reason or scene.instance is None:
        raise RefusedError(f"refused: {reason}")
    cause = Cause(
        id=f"manual#{format_instant(order.now)}",
        kind=CauseKind.MANUAL,
        at=order.now,
        deadline=order.deadline,
        reason="leeward drain",
        options=order.options,
    )
    record = ports.claims.claim(subject_of(scene.instance, order.cluster, node=scene.node.name), cause, order.now)
    record = execution.start(record, ports)
    if record.status is Status.CLOSED:
        raise RefusedError(f"refused: {scene.node.name}: its termination has just ended; look again")
    return execution_name(record.instance, record.attempt)
