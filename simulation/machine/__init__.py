"""State machines (Amazon States Language, JSONata) in virtual time, as Step Functions runs them.

`StateMachine` is one definition, `StepFunctions` the account in which machines start one another and tokens are
answered. The caller defines what a task does. Distributed Map and JSONPath are left out."""

from simulation.machine.account import StepFunctions
from simulation.machine.execution import TRANSITION, Execution, HistoryEvent, StatesError
from simulation.machine.machine import StateMachine

__all__ = ["TRANSITION", "Execution", "HistoryEvent", "StateMachine", "StatesError", "StepFunctions"]
