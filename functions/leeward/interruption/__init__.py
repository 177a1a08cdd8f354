"""The interruption room: what a queue message says, what follows from it, and doing it for a batch."""
