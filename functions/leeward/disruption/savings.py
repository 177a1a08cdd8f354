"""Savings of removing nodes, and whether they are worth the disruption (docs/policy.md: minimumSavings, Balanced)."""

from collections.abc import Sequence

from leeward.disruption.balanced import LEAST_SCORE, Score, score
from leeward.disruption.candidates import Candidate

CENT_PARTS = 6  # decimals: prices have up to four, sums of them must not show the noise of binary fractions


def price_of_all(candidates: Sequence[Candidate]) -> float | None:
    """Return the dollars an hour of the nodes together, None where one price is not known."""
    prices = [candidate.price for candidate in candidates]
    return None if any(price is None for price in prices) else sum(price or 0.0 for price in prices)


def saved(candidates: Sequence[Candidate], new_price: float) -> float | None:
    """Return the dollars an hour saved when the nodes are removed and others for `new_price` are launched; None where a
    price is not known.
    """
    now = price_of_all(candidates)
    return None if now is None else round(now - new_price, CENT_PARTS)


def threshold(candidates: Sequence[Candidate]) -> float:
    """Return the least required savings, in dollars an hour: of several policies the strictest counts."""
    now = price_of_all(candidates) or 0.0
    rules = [candidate.policy.disruption for candidate in candidates]
    per_hour = max((rule.savings_per_hour for rule in rules), default=0.0)
    percent = max((rule.savings_percent for rule in rules), default=0.0)
    return round(max(per_hour, now * percent / 100), CENT_PARTS)


def reason_not_worth(candidates: Sequence[Candidate], new_price: float) -> str:
    """Return why a consolidation is not worth it, empty when it is. Where a price is not known a plain deletion is
    still accepted, because it always saves something.
    """
    savings, least = saved(candidates, new_price), threshold(candidates)
    balanced = any(candidate.share is not None for candidate in candidates)
    if savings is None:
        return "" if new_price == 0 and not balanced else "the price of the node is not known"
    if savings <= 0 < new_price:
        return "can't replace with a cheaper node"
    if savings < least:
        return f"it would save {dollars(savings)} an hour, minimumSavings asks for {dollars(least)}"
    found = score_of(candidates, new_price)
    if found is None or found.enough:
        return ""
    return f"consolidationPolicy Balanced asks for a score of {LEAST_SCORE:.2f} ({found.sentence})"


def score_of(candidates: Sequence[Candidate], new_price: float) -> Score | None:
    """Return the score of removing the nodes and launching others for `new_price`; None where no policy of the nodes is
    Balanced, or a price is not known.
    """
    shares = [candidate.share for candidate in candidates if candidate.share is not None]
    return score(shares, price_of_all(candidates), saved(candidates, new_price))


def dollars(amount: float) -> str:
    """Format an amount as `$0.096`: at least two decimals, no noise."""
    text = f"{amount:.{CENT_PARTS}f}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"${whole}.{part.ljust(2, '0')}"
