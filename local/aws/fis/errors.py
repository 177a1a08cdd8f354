"""Errors of AWS FIS, by the codes and statuses of its service model."""

from __future__ import annotations

_STATUS = {"ValidationException": 400, "ResourceNotFoundException": 404, "ConflictException": 409}


class Refused(Exception):
    """Refusal of a request."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.status = code, _STATUS[code]


class ActionFailed(Exception):
    """Failure of an action or of its targets, shown as the state of the experiment. `code`: as FIS has it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def invalid(message: str) -> Refused:
    """Return the refusal of a request that AWS FIS does not accept."""
    return Refused("ValidationException", message)
