"""One file for each part of a deployment: from what was read to what is said of it. Pure."""
