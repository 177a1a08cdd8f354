"""What can go wrong, in words for people.

AccountTestError
├── PreflightError     something is missing before anything is made; names the thing and the fix
├── NotServedError     the endpoint does not serve the API that a step needs: the step was not run
└── StepError          a step could not be carried out; those after it are
"""


class AccountTestError(Exception):
    """Root of them all."""


class PreflightError(AccountTestError):
    """Nothing has been made yet."""


class NotServedError(AccountTestError):
    """Reported as `not run`, never as kept."""


class StepError(AccountTestError):
    """The step is reported as broken, with this sentence."""
