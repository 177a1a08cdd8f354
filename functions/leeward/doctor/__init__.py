"""Says for every part of a deployment whether it is in order, what was found, and what to do about it.

Nothing here changes anything. `gather` reads, each part apart from the others; the checks decide from what was read."""
