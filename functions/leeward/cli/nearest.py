"""Nearest known name for a typing error."""

from collections.abc import Iterable

SHORTEST = 3  # beginning of a name that is taken for it
ALIKE = 0.6  # of difflib's ratio; below it a hint misleads


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """Return `; did you mean NAME?` with the known name most like the text. Empty where none is, and where the text
    begins several that have no more in common: each of them is as likely. The dashes of options do not count.
    """
    from difflib import get_close_matches  # late: only a mistake needs it

    names = {name.lower().lstrip("-"): name for name in known}
    word = text.lower().lstrip("-")
    begun = [name for name in names if len(word) >= SHORTEST and name.startswith(word)]
    shortest = min(begun, key=len, default="")
    if not all(name.startswith(shortest) for name in begun):
        return ""
    near = [shortest] if begun else get_close_matches(word, names, n=5, cutoff=ALIKE)
    near.sort(key=lambda name: sorted(name) != sorted(word))  # swapped letters before others
    return f"; did you mean {names[near[0]]}?" if near else ""
