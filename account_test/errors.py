"""Errors of the test, in words for people.

AccountTestError
├── PreflightError     something is missing before anything is made; names the thing and the fix
├── NotServedError     the endpoint does not serve the API that a step needs: the step was not run
└── StepError          a step could not be carried out; those after it are
"""

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from leeward.errors import LeewardError


class AccountTestError(Exception):
    """Root of them all."""


class PreflightError(AccountTestError):
    """A missing requirement: nothing has been made yet."""


class NotServedError(AccountTestError):
    """An API that is not served: reported as `not run`, never as kept."""


class StepError(AccountTestError):
    """A step that could not be carried out: it is reported as broken, with this sentence."""


EXPECTED = (AccountTestError, LeewardError, BotoCoreError, ClientError, WaiterError, OSError, KeyError)  # of any step
