"""Lambda as functions see it: real error names, a cap on processes, shared code, an identity, a switch to kill one."""
