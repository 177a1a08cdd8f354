"""Nearest known name for a typing error."""

from collections.abc import Iterable

SHORTEST = 3  # beginning of a name that is taken for it
ALIKE = 0.6  # of difflib's ratio; below it a hint misleads


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """Return `; did you mean NAME?` with the known name most like the text, empty where none is."""
    from difflib import get_close_matches  # late: only a mistake needs it

    names = {name.lower(): name for name in known}
    begun = [name for name in names if len(text) >= SHORTEST and name.startswith(text.lower())]
    near = begun if len(begun) == 1 else get_close_matches(text.lower(), names, n=5, cutoff=ALIKE)
    near.sort(key=lambda name: sorted(name) != sorted(text.lower()))  # swapped letters before others
    return f"; did you mean {names[near[0]]}?" if near else ""
