"""Pictures of the documentation: which scene each shows, and what it says of it."""

from collections.abc import Callable, Mapping, Sequence

from recordings.scenes import Recording, top, watch
from recordings.svg import Picture, svg
from recordings.terminal import Row

SCENES: Mapping[str, Callable[[], Recording]] = {"top": top, "watch": watch}
TITLES: Mapping[str, tuple[str, str, str]] = {
    "top": (
        "leeward top --cluster shop",
        "Two spot instances get an interruption warning: their nodes drain, wait for a PodDisruptionBudget, are "
        "terminated and replaced.",
        "terminating",
    ),
    "watch": (
        "leeward drain --watch, leeward upgrade start --watch",
        "A node is drained and terminated; then the nodes of a group are replaced one by one by nodes of its new "
        "launch template version.",
        "upgrading",
    ),
}  # title, description, and a word of the frame that tells most


def drawn(name: str) -> str:
    """Return the picture as SVG: the scene is played for it."""
    recording = SCENES[name]()
    frames = recording.frames
    title, description, word = TITLES[name]
    still = next((n for n, frame in enumerate(frames) if word in _text(frame.rows)), len(frames) - 1)
    return svg(frames, Picture(columns=recording.columns, title=title, description=description, still=still))


def _text(rows: Sequence[Row]) -> str:
    return "\n".join("".join(run.text for run in row) for row in rows)
