"""Requests to DynamoDB behind each method of the table's adapters (`leeward.adapters.aws`): action, and key or keys.

`tests/local/chain/roles.py` compares roles with the requests that the adapters really made."""

from tests.infra.iam_evaluator import Request

TABLE = "arn:aws:dynamodb:us-east-1:111122223333:table/leeward"
_GET, _MANY, _PUT, _UPDATE = (f"dynamodb:{name}" for name in ("GetItem", "BatchGetItem", "PutItem", "UpdateItem"))
_RECORD = [(_UPDATE, "termination#i-1"), (_GET, "termination#i-1")]  # a lost condition reads the record
METHODS = {
    "claims.read": [(_GET, "termination#i-1")],
    "claims.read_all": [(_MANY, "termination#i-1")],
    "claims.claim": [(_PUT, "termination#i-1"), (_UPDATE, "termination#i-1")],
    "claims.begin_attempt": _RECORD,
    "claims.note": [(_UPDATE, "termination#i-1")],
    "claims.note_attempt": _RECORD,
    "claims.note_reboot": [(_UPDATE, "termination#i-1")],
    "claims.forget_reboot": [(_UPDATE, "termination#i-1")],
    "claims.failed": [(_UPDATE, "termination#i-1")],
    "claims.saw": [(_UPDATE, "termination#i-1")],
    "claims.surge": [(_UPDATE, "termination#i-1")],
    "claims.plan": [(_UPDATE, "termination#i-1")],
    "claims.begin_plan": _RECORD,
    "claims.replaced": _RECORD,
    "claims.carried": [],
    "claims.restored": [],
    "claims.close": _RECORD,
    "claims.withdraw": _RECORD,
    "claims.open_instances": [("dynamodb:Query", "termination")],
    "claims.once": [(_PUT, "once#unhealthy#uid")],
    "claims.count": [(_UPDATE, "count#taken")],
    "upgrades.read": [(_GET, "upgrade#web")],
    "upgrades.read_all": [(_MANY, "upgrade#web")],
    "upgrades.write": [(_PUT, "upgrade#web")],
    "upgrades.keep_plan": [(_PUT, "plan#web")],
    "upgrades.plan": [(_GET, "plan#web")],
    "disruptions.read": [(_GET, "disruption#blue")],
    "disruptions.write": [(_PUT, "disruption#blue")],
    "catalog.read": [(_MANY, "facts#blue#nodes")],
    "catalog.sheet": [(_GET, "facts#blue#capacity-blocks")],
    "catalog.node_repair": [(_GET, "facts#blue#node-repair")],
    "catalog.named_hooks": [(_GET, "facts#blue#named-hooks")],
    "catalog.zonal_shifts": [(_GET, "facts#blue#zonal-shifts"), (_GET, "facts#blue#zone-record")],
    "catalog.keep_zonal_shifts": [(_PUT, "facts#blue#zonal-shifts")],
    "catalog.zone_record": [(_GET, "facts#blue#zone-record")],
    "catalog.write_zone_record": [(_PUT, "facts#blue#zone-record")],
    "catalog.keep": [(_PUT, "facts#blue#nodes")],
    "catalog.reservations": [(_GET, "reservations#blue")],
    "catalog.reserve": [(_GET, "reservations#blue"), (_UPDATE, "reservations#blue")],
    "catalog.mark_unavailable": [(_UPDATE, "reservations#blue")],
    "clusters.policies": [(_GET, "pause#blue"), (_GET, "policies#blue")],
    "policy_store.read": [(_GET, "policies#blue")],
    "policy_store.write": [(_PUT, "policies#blue")],
    "pauses.read": [(_GET, "pause#blue")],
    "pauses.write": [(_PUT, "pause#blue")],
    "maxima.read": [(_GET, "maximum#web")],
    "maxima.read_all": [(_MANY, "maximum#web")],
    "maxima.write": [(_PUT, "maximum#web")],
}
"""Port and method -> requests."""


def table_request(action: str, *keys: str) -> Request:
    """Return the request for items with these keys; one without keys has no leading key at all."""
    resource = f"{TABLE}/index/open" if action == "dynamodb:Query" else TABLE
    return Request(action=action, resource=resource, context={"dynamodb:LeadingKeys": keys} if keys else {})
