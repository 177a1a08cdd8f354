"""Capture of a cluster as raw tool output, for the commands that work offline."""
