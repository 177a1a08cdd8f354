"""Step Functions of one account: its machines by ARN, and the task tokens that any caller may answer."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from simulation.aws.events import ACCOUNT, REGION
from simulation.machine.attempt import Attempt
from simulation.machine.execution import StatesError

if TYPE_CHECKING:
    from simulation.machine.machine import StateMachine

Call = Callable[[str, Mapping[str, Any]], Any]  # `dynamodb:updateItem` and its arguments; raises StatesError


def _no_call(action: str, _arguments: Mapping[str, Any]) -> Any:
    raise NotImplementedError(f"SDK task {action}")


class StepFunctions:
    """Machines and tokens of one account. `machines` by ARN; a token is known as long as its task waits; `call` makes
    SDK calls that wait for nothing.
    """

    def __init__(self, call: Call = _no_call) -> None:
        self.call = call
        self.machines: dict[str, StateMachine] = {}
        self._waiting: WeakValueDictionary[str, Attempt] = WeakValueDictionary()
        self._tokens = self._names = 0

    def add(self, name: str, machine: "StateMachine") -> str:
        """Register the machine and return its ARN. Raises ValueError when the name is taken."""
        arn = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{name}"
        if arn in self.machines:
            raise ValueError(f"there is a state machine {name} already")
        self.machines[arn] = machine
        return arn

    def token(self, execution: str) -> str:
        """Return a fresh token."""
        self._tokens += 1
        return f"{execution}/{self._tokens}"

    def fresh_name(self) -> str:
        """Return a name for an execution that was started without one."""
        self._names += 1
        return f"unnamed-{self._names:06}"

    def wait_for(self, attempt: Attempt) -> None:
        """Accept answers to the attempt's token from now on."""
        self._waiting[attempt.token] = attempt

    def succeed(self, token: str, output: Any = None) -> bool:
        """Run SendTaskSuccess, with an empty object by default; False when no task waits for the token."""
        attempt = self._waiting.pop(token, None)
        return attempt is not None and attempt.answer({} if output is None else output, None)

    def fail(self, token: str, error: str = "", cause: str = "") -> bool:
        """Run SendTaskFailure; False when no task waits for the token."""
        attempt = self._waiting.pop(token, None)
        return attempt is not None and attempt.answer(None, StatesError(error, cause))

    def heartbeat(self, token: str) -> bool:
        """Run SendTaskHeartbeat; False when no task waits for the token."""
        attempt = self._waiting.get(token)
        return attempt is not None and attempt.beat()
