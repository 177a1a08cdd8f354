"""Permissions on the items of Leeward's table, by the kind of their keys."""

from infra.permission import Key, Permission, Scope


def reads_one(*keys: Key) -> Permission:
    """Permission to read an item of the table."""
    return Permission(action="dynamodb:GetItem", on=Scope.TABLE, keys=keys)


def reads_many(*keys: Key) -> Permission:
    """Permission to read items of the table together."""
    return Permission(action="dynamodb:BatchGetItem", on=Scope.TABLE, keys=keys)


def puts(*keys: Key) -> Permission:
    """Permission to write a whole item of the table."""
    return Permission(action="dynamodb:PutItem", on=Scope.TABLE, keys=keys)


def changes(*keys: Key) -> Permission:
    """Permission to change an item of the table."""
    return Permission(action="dynamodb:UpdateItem", on=Scope.TABLE, keys=keys)


LISTS_OPEN = Permission(action="dynamodb:Query", on=Scope.OPEN_INDEX)
"""Permission to list the instances whose termination is open."""

READS_TO_LAUNCH = reads_one(
    Key.TERMINATION,
    Key.RESERVATIONS,
    Key.MAXIMUM,
    Key.UPGRADE,
    Key.DISRUPTION,
    Key.PAUSE,
    Key.POLICIES,
    Key.SHIFTS,
    Key.ZONES,
)
"""Permission to read what a launch depends on: what else is under way in the cluster, and which zones are shifted."""
