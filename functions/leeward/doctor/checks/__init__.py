"""Checks, one file for each part of a deployment: from its facts to its findings. Pure."""
