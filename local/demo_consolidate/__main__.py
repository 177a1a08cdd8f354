"""`make demo-consolidate`: the possible savings, the disruption runs watched live, the promises. Exit code 0 only if
all were kept."""

import argparse
import sys

from local import fleet
from local.command import leeward
from local.demo import ledger, view
from local.demo_consolidate import judge, scene, watch
from local.stack import LocalStack
from local.stage import console, perform, say, wait_until

SETTLE_SECONDS = 300


def main() -> int:
    """Prepare, plan, run, judge."""
    argparse.ArgumentParser(prog="python -m local.demo_consolidate", description=__doc__).parse_args()
    return perform(run)


def run(stack: LocalStack) -> bool:
    """Run the whole demo on a started stack; return whether every promise was kept."""
    stage(stack)
    held = scene.node_of(stack, scene.HELD)
    image, cost = scene.publish_image(stack), scene.cost(stack)
    scene.sync(stack)
    say(f"a new image, {image}, is what {scene.WEB} launches from now on; the fleet costs ${cost:.3f} an hour")
    say("leeward plan")
    shown = leeward(stack, "plan", "--cluster", stack.cluster)
    console.print(shown.text, markup=False, highlight=False, soft_wrap=True)
    seen = watch.watch(stack)
    say(f"nothing more to do after {seen.seconds:.0f} s: ${seen.saved:.3f} an hour saved")
    plan = leeward(stack, "plan", "--cluster", stack.cluster, "-o", "json").document
    for method, reason in watch.verdicts(plan, held).items():
        say(f"why {ledger.short(held)} is still here, {method}: {reason}")
    story = judge.Story(held=held, image=image, cost=cost, seen=seen, plan=plan)
    findings = judge.judge(stack, story)
    view.show([view.findings_table(findings)])
    return all(finding.good for finding in findings)


def stage(stack: LocalStack) -> None:
    """Prepare the deployed stack, seven nodes, workloads, and the facts that fn sync writes."""
    say(f"local AWS on {stack.endpoint}, Kubernetes API on {stack.api}")
    scene.build_fleet(stack)
    say(", ".join(f"{plan.name} ({plan.size} x {plan.type})" for plan in scene.GROUPS))
    say(f"cdk bootstrap and cdk deploy took {stack.deploy(scene.settings(stack)):.0f} s")
    fleet.apply(stack, scene.WORKLOADS)
    fleet.let_in(stack)
    wait_until(lambda: scene.settled(stack), SETTLE_SECONDS, "nodes Ready and pods running")
    scene.sync(stack)
    say(f"{scene.NODES} nodes Ready, workloads running, leeward-sync knows groups, types and prices")


if __name__ == "__main__":
    sys.exit(main())
