"""A run, a recording in which every promise is kept, and what breaks one."""

from dataclasses import replace

from account_test.recording import Pod, Recording, Sample, SeenNode, Sizes, Termination
from account_test.run import Run

OLD, STAYS, NEW = "i-0old", "i-0stays", "i-0new"
BEGAN = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def a_run(**changes):
    given = {"id": "0abc12", "cluster": "blue", "region": "eu-west-1", "account": "111122223333"}
    return Run(**{**given, "subnets": ("subnet-1",), **changes})


def a_sample(after, *members, pods=(), budget=(2, 1), desired=2, tainted=(), cordoned=()):
    nodes = {one: SeenNode(name=f"node-{one}", tainted=one in tainted, cordoned=one in cordoned) for one in members}
    return Sample(
        at=BEGAN + after,
        desired=desired,
        members=dict.fromkeys(members, "InService"),
        nodes=nodes,
        pods={f"pod-{number}": Pod(node=f"node-{one}", ready=True) for number, one in enumerate(pods)},
        budget=budget,
    )


def a_termination(**changes):
    times = {
        "replacement": "2026-01-01T00:00:02Z",
        "draining": "2026-01-01T00:00:03Z",
        "terminated": "2026-01-01T00:00:30Z",
    }
    given = {"instance": OLD, "status": "closed", "causes": ("spot_interruption",), "launched": (NEW,), "times": times}
    return Termination(**{**given, **changes})


def an_end(instance=OLD, second=31):
    return {
        "detail-type": "EC2 Instance State-change Notification",
        "time": f"2026-01-01T00:00:{second:02d}Z",
        "detail": {"instance-id": instance, "state": "shutting-down"},
    }


def kept():
    """One of two nodes is replaced; all is as promised."""
    size = Sizes(minimum=0, desired=2, maximum=3)
    return Recording(
        play="spot interruption",
        began=BEGAN,
        group="g",
        before=size,
        after=size,
        members_before=(OLD, STAYS),
        victims=(OLD,),
        samples=[
            a_sample(0, OLD, STAYS, pods=(OLD, STAYS)),
            a_sample(20, OLD, STAYS, NEW, pods=(STAYS, NEW), desired=3, tainted=(OLD,), cordoned=(OLD,)),
            a_sample(60, STAYS, NEW, pods=(STAYS, NEW)),
        ],
        terminations=[a_termination()],
        executions={f"{OLD}-1": "SUCCEEDED"},
        machine="SUCCEEDED",
        versions=("2", "2"),
        events=[an_end()],
        ended=True,
        seconds=60,
    )


def changed(**changes):
    return replace(kept(), **changes)
