"""The commands that write the pause switch."""
