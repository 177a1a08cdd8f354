"""Diagnosis of a deployment: the state of every part, what was found, and the fix.

Changes nothing. `gather` reads each part independently of the others; the checks decide from the facts."""
