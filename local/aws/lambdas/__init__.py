"""Lambda as functions see it: real error names, a cap on processes, an identity, and a switch to kill one."""
