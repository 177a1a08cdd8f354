"""Evacuation of a zone: which nodes leave it, which pods cannot, and how the zone is closed and opened."""
