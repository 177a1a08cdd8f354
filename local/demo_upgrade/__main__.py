"""`make demo-upgrade`: pre-flight, the upgrade watched live, the promises. Exit code 0 only if all were kept."""

import argparse
import sys
from datetime import UTC, datetime, timedelta

from local import fleet
from local.command import leeward
from local.demo import view
from local.demo_upgrade import command, drawing, judge, scene, watch
from local.stack import LocalStack
from local.stage import console, perform, say, wait_until

SETTLE_SECONDS = 300


def main() -> int:
    """Prepare, plan, upgrade, judge."""
    parser = argparse.ArgumentParser(prog="python -m local.demo_upgrade", description=__doc__)
    parser.add_argument(
        "--kill-at", type=int, metavar="SEED", help="stop the execution at a moment of this seed's, and start it again"
    )
    parser.add_argument("--small", action="store_true", help="three nodes, and no budget in the way")
    options = parser.parse_args()
    return perform(lambda stack: run(stack, scene.SMALL if options.small else scene.WHOLE, options.kill_at))


def run(stack: LocalStack, cast: scene.Cast, seed: int | None = None) -> bool:
    """Run the whole demo on a started stack; return whether every promise was kept."""
    stage(stack, cast)
    before, began = scene.before(stack), datetime.now(UTC)
    at_first, fixed = preflight(stack, before.image) if cast.in_the_way else ([], [])
    answer = command.start(stack, "--ami", before.image).document
    say(f"leeward upgrade start {scene.GROUP} --ami {before.image}: {answer['said']} ({answer['execution']})")
    seen = watch.watch(stack, console, answer["execution"], cast=cast, seed=seed)
    say(
        f"{seen.ended.value if seen.ended else 'running'} after {seen.seconds:.0f} s; first estimate: {_estimate(seen)}"
    )
    say(f"the state machine: {'; '.join(scene.upgrades(stack))}")
    story = judge.Story(cast=cast, before=before, seen=seen, at_first=at_first, fixed=fixed)
    wait_until(lambda: scene.running(stack) == 0, SETTLE_SECONDS, "the end of every execution")
    findings = judge.judge(stack, story)
    view.show([view.findings_table(findings)])
    reported = [(began, f"fixed: pdb {scene.IMPOSSIBLE}, which allowed no eviction")] if cast.in_the_way else []
    seen.actions[:0] = [*reported, (seen.began, f"leeward upgrade start: {answer['execution']}")]
    say(f"drawn: {drawing.write_report(stack, began, seen)}")
    return all(finding.good for finding in findings)


def stage(stack: LocalStack, cast: scene.Cast) -> None:
    """Prepare the deployed stack, the nodes, workloads, and the facts that fn sync writes."""
    say(f"local AWS on {stack.endpoint}, Kubernetes API on {stack.api}")
    scene.build_fleet(stack, cast)
    say(f"three zones, group {scene.GROUP} ({cast.size}, which is its MaxSize too)")
    say(f"cdk bootstrap and cdk deploy took {stack.deploy(scene.settings(stack)):.0f} s")
    fleet.apply(stack, cast.workloads)
    fleet.let_in(stack)
    wait_until(lambda: scene.settled(stack, cast), SETTLE_SECONDS, "nodes Ready and pods running")
    stack.client("lambda").invoke(FunctionName="leeward-sync")
    say(f"{cast.size} nodes Ready, workloads running, leeward-sync has put its terminate hook on the group")


def preflight(stack: LocalStack, image: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the blockers at first, and those that are left after their fix is applied."""
    at_first = plan(stack, image, shown=True)
    say(f"fixed as the finding says: maxUnavailable 1 on pdb {scene.IMPOSSIBLE}; pre-flight once more")
    scene.fix(stack)
    wait_until(lambda: not plan(stack, image), SETTLE_SECONDS, "a budget that can be satisfied")
    fixed = plan(stack, image)
    say(f"{len(fixed)} blockers are left")
    return at_first, fixed


def plan(stack: LocalStack, image: str, *, shown: bool = False) -> list[tuple[str, str]]:
    """Run `leeward upgrade plan` on a snapshot of the present: return its blockers, each with its object."""
    folder = command.snapshot(stack, stack.directory / "snapshot")
    asked = ("upgrade", "plan", scene.GROUP, "--ami", image, "--snapshot", str(folder))
    if shown:
        say(f"leeward snapshot --to {folder.name} --cluster {stack.cluster}")
        say(f"leeward upgrade plan {scene.GROUP} --ami {image} --snapshot {folder.name}")
        console.print(leeward(stack, *asked).text, markup=False, highlight=False, soft_wrap=True)
    found = leeward(stack, *asked, "-o", "json").document["findings"]
    return [(one["code"], one["object"]) for one in found if one["severity"] == "blocker"]


def _estimate(seen: watch.Watched) -> str:
    if not seen.estimates:
        return "none"
    at, left = seen.estimates[0]
    return f"{left} s left at {timedelta(seconds=round(at))}"


if __name__ == "__main__":
    sys.exit(main())
