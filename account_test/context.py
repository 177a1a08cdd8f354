"""Objects that every step of a run works with."""

from collections.abc import Callable
from dataclasses import dataclass, field

from account_test.aws import Aws
from account_test.journal import Journal
from account_test.kubernetes import Kube
from account_test.run import Extra, Run


@dataclass(kw_only=True)
class Context:
    """Context of a run. `say` prints a line of progress. `base`: ids of the foundation's resources (node role, security
    group, image). `extras`: those with which the deployment of the plays is made.
    """

    run: Run
    aws: Aws
    kube: Kube
    journal: Journal
    say: Callable[[str], None] = print
    base: dict[str, str] = field(default_factory=dict)
    extras: frozenset[Extra] = frozenset()
