"""Managed node groups of a generated fleet, beside groups that stay self-managed: EKS' hook, and EKS at its answers."""

from random import Random

from leeward.model.group import TERMINATING, HookResult, LifecycleHook
from leeward.upgrade.surge.sizes import parallelism
from simulation.aws.compute import SimGroup
from simulation.aws.managed_groups import ManagedGroups
from simulation.aws.templates import ALIAS, FIRST_IMAGE, SimTemplate
from simulation.scene import api_answers
from simulation.world import World

VERSION = "1.33"
OWN_TEMPLATE = 0.6  # chance that the node group has a launch template of its owner
AS_THE_POLICY = 0.7  # chance that its updateConfig says what our policy does
HOOK = "Terminate-LC-Hook"  # EKS puts it on the groups that it manages, and answers it
HOOK_TIMEOUT = 1800
ANSWERS_AFTER, LOOKS_EVERY = 20.0, 10.0


def manage_some(world: World, random: Random) -> ManagedGroups:
    """Let EKS manage some groups of the first cluster that policies select, never all of several. EKS has
    no warm pools, and copies the launch template.
    """
    managed = ManagedGroups(
        world.cluster_name,
        world.cluster,
        world.fleet,
        world.system.managed_updates,
        world.system.templates,
        world.timeline,
        random,
        lambda: api_answers(world),
    )
    fitting = [group for group in world.scenes[0].fleet.groups.values() if _fits(group)]
    chosen = random.sample(fitting, random.randint(1, max(len(fitting) - 1, 1))) if fitting else []
    for group in chosen:
        name = f"ng-{group.name}"
        own = SimTemplate(id=f"lt-own-{group.name}", name=f"own-{group.name}", images=[FIRST_IMAGE])
        template = own if random.random() < OWN_TEMPLATE else None
        managed.manage(group, name, template, max_unavailable=_at_once(world, group, random), version=VERSION)
        hook = LifecycleHook(name=HOOK, group=group.name, transition=TERMINATING, heartbeat_timeout=HOOK_TIMEOUT)
        group.hooks[HOOK] = (hook, HookResult.CONTINUE)
    world.labels = managed.labels
    world.timeline.every(LOOKS_EVERY, lambda: _answer(world), "EKS answers its hook")
    return managed


def _fits(group: SimGroup) -> bool:
    reuses = getattr(group.plan, "reuses", False)
    return group.plan.selected and not reuses and not group.template.images[0].startswith(ALIAS)


def _at_once(world: World, group: SimGroup, random: Random) -> int:
    policy = world.policies.selecting(group.name, group.tags)
    if policy is None or random.random() >= AS_THE_POLICY:
        return random.choice((1, 2, 5))
    return parallelism(policy.update, max(group.desired, 1))


def _answer(world: World) -> None:
    """Answer the hooks that have waited for as long as EKS' own drain takes."""
    now = world.timeline.now()
    for (group, hook, instance), action in list(world.fleet.waiting.items()):
        if hook == HOOK and now - action.since >= ANSWERS_AFTER:
            world.fleet.answer(group, hook, instance, HookResult.CONTINUE)
