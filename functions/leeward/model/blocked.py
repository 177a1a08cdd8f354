"""Line about one obstacle of a drain, as steps write it into records and into their answers."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from leeward.model.times import parse_instant

_OF_A_POD = re.compile(r"([^\s/]+/[^\s/:]+): (.*)", re.DOTALL)  # namespace/name: why
_UNTIL = re.compile(r", until (\d{4}-\d\d-\d\dT[\d:.]+Z)$")
_OBSTACLE = re.compile(r"(webhook \S+|policy \S+|eviction|deletion) (fails|denies it|refused): (.*)", re.DOTALL)
_SAID_CHARACTERS = 300  # a record keeps one line a pod


class Stage(StrEnum):
    """Stages at which the API server stopped a request to evict a pod."""

    WEBHOOK = "webhook"  # an admission webhook
    POLICY = "policy"  # a ValidatingAdmissionPolicy
    SERVER = "server"  # the API server itself


class BlockedCause(StrEnum):
    """Causes for which a pod does not leave, as metrics name them: few, whatever the cluster contains."""

    BUDGET = "budget"  # a PodDisruptionBudget
    WEBHOOK = "webhook"
    ADMISSION_POLICY = "admission-policy"
    EVICTION_FAILS = "eviction-fails"  # in the API server itself
    SECOND_REPLICA = "second-replica"  # `singleReplicas: surge` waits for one
    DRAIN_POLICY = "drain-policy"  # `localData` or `unmanagedPods` protects it, or it is a pod of a DaemonSet


_OF_STAGE = {
    Stage.WEBHOOK: BlockedCause.WEBHOOK,
    Stage.POLICY: BlockedCause.ADMISSION_POLICY,
    Stage.SERVER: BlockedCause.EVICTION_FAILS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Reason for which the request for one pod failed, although no PodDisruptionBudget forbids it.

    `name`: of the webhook or the policy; for the server `eviction` or `deletion`. `denies`: it refused the request,
    else it fails. `said`: the server's message.
    """

    stage: Stage
    name: str
    denies: bool
    said: str

    @property
    def sentence(self) -> str:
        """Sentence as records keep it; `read` parses it."""
        said = self.said[:_SAID_CHARACTERS]
        if self.stage is Stage.SERVER:
            return f"{self.name} {'refused' if self.denies else 'fails'}: {said}"
        return f"{self.stage.value} {self.name} {'denies it' if self.denies else 'fails'}: {said}"

    @classmethod
    def read(cls, why: str) -> Self | None:
        """Parse the part of a pod's line after its name; None if the line is about something else."""
        match = _OBSTACLE.fullmatch(why)
        if match is None:
            return None
        stage, _, name = match[1].partition(" ")
        of_server = not name
        return cls(
            stage=Stage.SERVER if of_server else Stage(stage),
            name=stage if of_server else name,
            denies=match[2] != "fails",
            said=match[3],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedLine:
    """Parsed line. `pod`: the pod that does not leave, None if it is about no pod; `until`: as the line itself says."""

    pod: str | None
    why: str
    until: datetime | None = None

    @property
    def obstacle(self) -> Obstacle | None:
        """Failing or refusing part of the API server, if the line names one."""
        return Obstacle.read(self.why)

    @property
    def cause(self) -> BlockedCause | None:
        """Cause for metrics; None if the line is about no pod: load balancers and volumes end their waits by
        themselves.
        """
        if self.pod is None:
            return None
        obstacle = self.obstacle
        if obstacle is not None:
            return _OF_STAGE[obstacle.stage]
        if self.why.startswith("pdb "):
            return BlockedCause.BUDGET
        surging = self.why.startswith("waits for a second replica")
        return BlockedCause.SECOND_REPLICA if surging else BlockedCause.DRAIN_POLICY

    @classmethod
    def read(cls, line: str) -> Self:
        """Parse a line. A pod's line is `namespace/name: why`; any other is all `why`."""
        of_a_pod, said = _OF_A_POD.match(line), _UNTIL.search(line)
        return cls(
            pod=of_a_pod[1] if of_a_pod else None,
            why=of_a_pod[2] if of_a_pod else line,
            until=parse_instant(said[1]) if said else None,
        )


def unanswered(seconds: float, hint: str = "") -> str:
    """Return the sentence about a request without an answer; `hint`: its likely cause."""
    return f"the API server did not answer within {seconds:.0f} s{f': {hint}' if hint else ''}"
