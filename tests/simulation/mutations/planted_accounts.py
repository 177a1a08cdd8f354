"""Planted builds: clusters of several accounts in one deployment (docs/designs/accounts.md)."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

HANDLED = ("tests/handlers/interruption/test_accounts.py",)
PLACES = ("tests/unit/accounts/test_places.py",)
MEMBER = ("tests/adapters/test_member.py",)
STACKS = ("tests/infra/test_accounts.py",)

OF_ACCOUNTS = (
    Planted(
        name="a message of any account is handled in the first one",
        story="looks where a Region agrees, for instance ids are unique",
        edits=(edit("leeward.ports.Ports.at", "place.account == account and region in", "region in"),),
        tests=HANDLED,
    ),
    Planted(
        name="an account that does not answer holds the batch of the others",
        story="handles the messages of one account after those of another",
        edits=(
            edit(
                "leeward.interruption.origins.process_by_origin",
                "each(process, tuple(places), CLUSTERS)",
                "[process(origin) for origin in places]",
            ),
        ),
        tests=HANDLED,
    ),
    Planted(
        name="an execution acts where its input says",
        story="takes the cluster of the input, which a step has written",
        edits=(
            edit(
                "leeward.termination.steps.claim",
                "run.naming(record.subject), ports.of_cluster(record.subject.cluster)",
                "run.naming(record.subject), ports",
            ),
        ),
        tests=PLACES,
    ),
    Planted(
        name="a group's record is that of its namesake in another account",
        story="names records after groups, whose names are distinct in one account",
        edits=(
            edit(
                "leeward.adapters.places.Accounts.places",
                'f"{account}/{region}/" if served[0].member_role else ""',
                '""',
            ),
        ),
        tests=MEMBER,
    ),
    Planted(
        name="each call into an account whose role is refused waits for STS",
        story="asks again, it may have been mended",
        edits=(
            edit(
                "leeward.adapters.aws.member.MemberRole._assume",
                "if failed is not None and self._clock.now() < failed[0] + FAILURE_KEPT:",
                "if False:",
            ),
        ),
        tests=MEMBER,
    ),
    Planted(
        name="the hub's functions are trusted without the external id",
        story="names the role of the function, which is enough",
        edits=(
            edit(
                "infra.member.MemberStack._trust", '"StringEquals": {"sts:ExternalId": self._member.external_id},', ""
            ),
        ),
        tests=STACKS,
    ),
    Planted(
        name="any account may send to the deployment's bus",
        story="forwards from each account that has a rule for it",
        edits=(edit("infra.members_bus.put_by", 'f"arn:{Aws.PARTITION}:iam::{account}:root"', '"*"'),),
        tests=STACKS,
    ),
)
