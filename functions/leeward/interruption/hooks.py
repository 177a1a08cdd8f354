"""Answer to the lifecycle hook of a message: now, after the drain, when the node is Ready, or never by Leeward.

Every branch ends in an answer, in a hook kept for a later answer, or in one that is not ours (docs/features.md, X8)."""

from dataclasses import dataclass

from leeward.interruption.decision import HookAnswer, NodeDecision
from leeward.interruption.world import InstancePlace, MessageWorld
from leeward.model.group import HookResult, LifecycleHook
from leeward.model.lifecycle import is_held
from leeward.model.message import HookAction
from leeward.policy.hooks import is_ours


@dataclass(frozen=True, slots=True, kw_only=True)
class HookVerdict:
    """Verdict on a hook. `answer` None and not `kept`: the hook is left alone. `why` is a sentence."""

    why: str
    answer: HookAnswer | None = None
    kept: bool = False


def hook_verdict(action: HookAction, place: InstancePlace, node: NodeDecision, world: MessageWorld) -> HookVerdict:
    """Return the answer to the action, once the action on the node is decided."""
    if not answers(action, place, world):
        return HookVerdict(why=_reason_not_ours(action, place))
    if action.without_pods:
        return _now(action, HookResult.CONTINUE, "an instance between EC2 and a warm pool runs no pods")
    if action.terminating:
        if node.action.terminates:
            answer = HookAnswer(action=action, result=HookResult.CONTINUE, at_once=False)
            return HookVerdict(why=f"hook {action.hook} is answered when the node is drained", answer=answer)
        return _now(action, HookResult.CONTINUE, "nothing is drained")
    return _launch_verdict(action, place, world)


def answers(action: HookAction, place: InstancePlace, world: MessageWorld) -> bool:
    """Return whether the hook is ours: it arrived directly at our queue, or its listing or the event shows it
    (selection.is_ours). A launch action of an instance that its terminate hooks hold has none: its answer would end the
    instance. A launch hook that a removed policy named is ours: unanswered, it would abandon each new instance, and
    those of a warm pool, which their group does not list, are answered here alone.
    """
    if action.launching and is_held(place.lifecycle):
        return False
    if action.direct or not world.complete:
        return True
    if place.policy is None:
        return action.launching and (action.group, action.hook) in world.named
    return is_ours(listed(action, world), place.policy, world.queue_arns)


def listed(action: HookAction, world: MessageWorld) -> LifecycleHook:
    """Return the hook as the group lists it; a hook that is not listed (any more) as far as the event describes it."""
    hooks = world.hooks.get(action.group, ())
    same = (hook for hook in hooks if hook.name == action.hook)
    unlisted = LifecycleHook(
        name=action.hook, group=action.group, transition=action.transition, metadata=action.metadata or None
    )
    return next(same, unlisted)


def is_listed(action: HookAction, world: MessageWorld) -> bool:
    """Return whether the group's hooks were looked up and this one is among them."""
    return any(hook.name == action.hook for hook in world.hooks.get(action.group, ()))


def _launch_verdict(action: HookAction, place: InstancePlace, world: MessageWorld) -> HookVerdict:
    if world.complete:
        if place.gone:
            return _now(action, HookResult.ABANDON, "the instance is gone")
        if place.policy is None:
            return _now(action, HookResult.CONTINUE, "no policy says to wait for the node")
        if switched_off(place):
            return _now(action, HookResult.CONTINUE, "interruption handling is off")
        if place.node is not None and place.node.ready:
            return _now(action, HookResult.CONTINUE, f"node {place.node.name} is Ready")
    return HookVerdict(why=f"hook {action.hook} is kept until the node is Ready", kept=True)


def switched_off(place: InstancePlace) -> str | None:
    """Return the switch that disables interruption handling for the group, None if none does (docs/features.md,
    K16).
    """
    if place.policies and (paused := place.policies.pauses.everything(place.group_name or "")):
        return paused
    if place.policies and not place.policies.settings.interruption:
        return f"cluster {place.cluster} has interruption handling off"
    if place.policy and not place.policy.interruption.enabled:
        return f"policy {place.policy.name} has interruption handling off"
    return None


def _now(action: HookAction, result: HookResult, why: str) -> HookVerdict:
    answer = HookAnswer(action=action, result=result, at_once=True)
    return HookVerdict(why=f"hook {action.hook} is answered {result.value} at once: {why}", answer=answer)


def _reason_not_ours(action: HookAction, place: InstancePlace) -> str:
    if action.launching and is_held(place.lifecycle):
        return f"hook {action.hook} holds no launch: {action.group} lists the instance as {place.lifecycle}"
    whose = "another team's" if place.policy else "of a group that no policy selects"
    return f"hook {action.hook} is {whose}: it is never answered by us"
