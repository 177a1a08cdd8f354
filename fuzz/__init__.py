"""Fuzzing of everything that Leeward reads from outside: each input follows from a target, a seed and a number.

`python -m fuzz` runs targets; CONTRIBUTING.md says how, `fuzz/targets` what each target holds its inputs against."""
