"""EventBridge's matching, as far as our patterns use it: lists of exact values, nested by key, and absent keys."""

ABSENT = [{"exists": False}]


def matches(pattern, event):
    """Whether every key of the pattern is in the event with one of its values (an array matches by any element)."""
    for key, wanted in pattern.items():
        if wanted == ABSENT:
            if key in event:
                return False
            continue
        if key not in event:
            return False
        found = event[key]
        if isinstance(wanted, dict):
            if not isinstance(found, dict) or not matches(wanted, found):
                return False
        else:
            assert all(isinstance(value, str) for value in wanted), "a pattern this matcher does not know"
            if not set(wanted) & set(found if isinstance(found, list) else [found]):
                return False
    return True
