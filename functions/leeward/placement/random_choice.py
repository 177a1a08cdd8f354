"""Random choice seeded by a text: the same text gives the same choices, so that a repeated decision is the same."""

from hashlib import sha256


class Lots:
    """Implementation of `scene.Chance` whose seed is a text, such as the id of the instance that is replaced."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._drawn = 0

    def randrange(self, stop: int, /) -> int:
        """Return a whole number from 0 to stop - 1, as even as 256 bits make it."""
        self._drawn += 1
        return int.from_bytes(sha256(f"{self._seed}/{self._drawn}".encode()).digest()) % stop
