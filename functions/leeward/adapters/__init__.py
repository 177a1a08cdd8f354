"""Implementations of the ports: the only package that imports botocore or urllib3, reads the environment and the clock.

It makes calls and turns their errors into Leeward's tree. It decides nothing about nodes."""
