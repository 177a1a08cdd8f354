"""Validating admission: policies and webhooks that may refuse a request before it has any effect."""
