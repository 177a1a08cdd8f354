"""A bench for state machines: scripted functions, a timeline, definitions of a few states."""

from random import Random

from simulation.machine import StateMachine, StepFunctions
from simulation.timeline import START, Timeline

PAUSE = "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken"
CALL = "arn:aws:states:::lambda:invoke"


class Bench:
    """A state machine with scripted answers. `answers` are given one by one, the last one again and again."""

    def __init__(self, states, *answers, seconds=None, pause=""):
        self.timeline, self.calls, self.ended, self.tokens = Timeline(), [], [], []
        self.answers = list(answers)
        self._pause, self._random, self.account = pause, Random(1), StepFunctions(self.call)
        self.called = []
        top = {"StartAt": next(iter(states)), "States": states}
        if seconds:
            top["TimeoutSeconds"] = seconds
        self.machine = self.add("machine", top)

    def add(self, name, definition):
        """One more machine of the same account."""
        return StateMachine(
            definition,
            self.timeline,
            self._random,
            invoke=self.invoke,
            pause=self.pause,
            ended=self.ended.append,
            name=name,
            account=self.account,
        )

    def call(self, action, arguments):
        self.called.append((action, arguments))
        return {"Called": action}

    def invoke(self, function, payload, done):
        self.calls.append((self.timeline.now() - START, function, payload))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            self.timeline.after(0.1, lambda: done(answer), "answer")

    def pause(self, arguments):
        self.tokens.append(arguments["token"])
        return self._pause

    def at(self, seconds, step):
        self.timeline.at(START + seconds, step, "script")

    def run(self, seconds=1000, **data):
        self.machine.start("e", data)
        self.timeline.run_until(START + seconds)
        return self.ended[0] if self.ended else None


def task(**more):
    return {
        "Type": "Task",
        "Resource": CALL,
        "Arguments": {"FunctionName": "f", "Payload": {"n": "{% $states.input.n %}"}},
        "Output": "{% $states.result.Payload %}",
        "Next": "Done",
        **more,
    }


def pause(**more):
    arguments = {"token": "{% $states.context.Task.Token %}"}
    return task(Resource=PAUSE, Arguments=arguments, Output="{% $states.input %}", **more)


DONE = {"Type": "Succeed"}
BROKEN = {"Type": "Fail", "Error": "Broken", "Cause": "{% $states.input.why %}"}


def types(execution):
    """The history's event types."""
    return [event.type for event in execution.history]
