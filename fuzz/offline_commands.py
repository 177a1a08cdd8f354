"""Commands of the command line that read a snapshot folder, with arguments that fit the folders of the corpus."""

from collections.abc import Sequence
from pathlib import Path

NOW = "2024-05-01T12:00:00Z"
NODE, GROUP = "node-1", "web"
EVENTS = Path("tests/events")

COMMANDS: Sequence[tuple[str, ...]] = (
    ("blockers",),
    ("blockers", NODE),
    (
        "inspect",
        "budget",
    ),
    ("drain", NODE, "--dry-run"),
    ("drain", "--group", GROUP, "--dry-run", "--force"),
    ("drift",),
    ("inspect", "explain-event", "tests/events/asg_terminate.json"),
    ("inspect", "explain-event", "tests/events/spot_interruption.json"),
    ("inspect", "ips", "--instance-type", "m5.large", "--pods", "10"),
    ("inspect", "place", GROUP, "--count", "3", "--pods", "5"),
    ("inspect", "place", "mixed", "--count", "1", "--pods", "40", "--zones", "us-east-1a"),
    ("plan",),
    ("plan", "--method", "drift"),
    ("plan", "--method", "consolidation"),
    ("plan", "--method", "emptiness"),
    ("plan", "--method", "unhealthy"),
    ("inspect", "template", GROUP),
    ("inspect", "template", "mixed"),
    ("inspect", "template", "old"),
    ("inspect", "template", "eks-managed"),
    ("upgrade", "plan", GROUP),
    ("upgrade", "plan", "eks-managed"),
    ("upgrade", "plan", "mixed"),
    ("upgrade", "status", GROUP),
    ("upgrade", "status", "eks-managed"),
    (
        "inspect",
        "zones",
    ),
)
VALIDATED = ("plan", "--validate")  # an earlier plan, whose path follows


def offline(command: Sequence[str], folder: Path, output: str = "json") -> list[str]:
    """Return the arguments of the command line for the command on this folder."""
    return [*command, "--snapshot", str(folder), "--now", NOW, "-o", output]
