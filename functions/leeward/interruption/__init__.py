"""Interruption package: parses queue messages, decides their actions, and carries them out for a batch."""
