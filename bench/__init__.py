"""Benchmarks: each prints ratios taken in one run, beside a calibration loop, so that machines can be compared."""
