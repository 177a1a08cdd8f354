"""Recordings of the command line as animated SVG: its own rendering, on the cluster of a simulated world."""
