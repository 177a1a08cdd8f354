"""Writing a cluster down as raw tool output, for the commands that work offline."""
