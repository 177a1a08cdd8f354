"""Counts as sentences have them."""


def count_of(number: int, noun: str, many: str = "") -> str:
    """Return `1 node`, `2 nodes`. `many`: the plural where it is not the noun with an s."""
    return f"{number} {noun if number == 1 else many or f'{noun}s'}"
