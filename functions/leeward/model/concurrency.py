"""Concurrent executions of Lambda in an account, and whether a deployment's reservations fit into them.

Lambda keeps a hundred unreserved and refuses a function that would take of them, which rolls the deployment back."""

from dataclasses import dataclass

KEPT_UNRESERVED = 100  # by Lambda, in every account and Region
STARTER = 10  # quota of a young account
QUOTA = "L-B99A9384"  # Concurrent executions, of the service lambda
RAISE = (
    f"aws service-quotas request-service-quota-increase --service-code lambda --quota-code {QUOTA} "
    "--desired-value 1000, which AWS may take a day to grant; or set concurrency.interruption and concurrency.drain to "
    "0 in the settings, which reserves nothing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """Concurrency of an account. `limit` of the account in the Region; `unreserved`: reserved by no function."""

    limit: int
    unreserved: int


def shortage(account: Concurrency, *, wanted: int, held: int = 0) -> str:
    """Return why a reservation of `wanted` is refused, empty if it fits. `held`: reserved by its functions now."""
    free = account.unreserved + held
    left = free - wanted
    if not wanted or left >= KEPT_UNRESERVED:
        return ""
    return (
        f"the quota 'Concurrent executions' of Lambda ({QUOTA}) is {account.limit}, {free} of them "
        f"free; a deployment reserves {wanted} and Lambda keeps {KEPT_UNRESERVED} unreserved: "
        f"{wanted + KEPT_UNRESERVED} are needed, {KEPT_UNRESERVED - left} are missing"
    )
