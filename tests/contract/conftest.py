"""Which worlds the scenarios run in: always model and emulator, an account only where the environment names one."""

import os
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from leeward.adapters.aws.clients import AwsClients
from tests.contract.worlds.groups import GroupWorld
from tests.contract.worlds.live_groups import AccountGroups, LocalGroups, Mailbox
from tests.contract.worlds.simulated_groups import SimulatedGroups

MODEL, EMULATOR, ACCOUNT = "the model", "the emulator", "the account"
ALWAYS = [MODEL, pytest.param(EMULATOR, marks=pytest.mark.local)]
GROUP = os.environ.get("LEEWARD_CONTRACT_GROUP", "")
ON_ACCOUNT = [ACCOUNT] if os.environ.get("LEEWARD_CONTRACT_AWS") == "1" and GROUP else []


@pytest.fixture(scope="session")
def emulator_clients(local_aws: Any) -> AwsClients:
    """The product's clients of the local AWS. botocore reads the environment when a client is made."""
    clients = AwsClients(local_aws.region)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", local_aws.endpoint)
        environment.setenv("AWS_ACCESS_KEY_ID", "local")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "local")
        for service in ("autoscaling", "cloudwatch", "ec2", "eks", "sqs", "ssm", "stepfunctions"):
            clients.get(service)
        clients.get("autoscaling", retries=False)
    return clients


@pytest.fixture(scope="session")
def emulator_mailbox(local_aws: Any) -> Iterator[Mailbox]:
    """Before anything happens, so that it hears everything."""
    mailbox = Mailbox(local_aws.client)
    yield mailbox
    mailbox.close()


@pytest.fixture(scope="session")
def account_mailbox() -> Iterator[Mailbox]:
    """In the account and Region of the environment."""
    mailbox = Mailbox(boto3.client)
    yield mailbox
    mailbox.close()


@pytest.fixture
def emulated_groups(local_aws: Any, emulator_clients: AwsClients, emulator_mailbox: Mailbox) -> Iterator[LocalGroups]:
    """Groups on the local AWS; they go when the test is over."""
    local_aws.control("PUT", "pace", {"boot": 0.05, "shutdown": 0.1})
    world = LocalGroups(local_aws, emulator_clients, emulator_mailbox)
    yield world
    world.close()
    local_aws.control("PUT", "pace", {"boot": 0.2, "shutdown": 1.0})


@pytest.fixture
def account_groups(account_mailbox: Mailbox) -> Iterator[AccountGroups]:
    """The group of the account; it is empty afterwards."""
    world = AccountGroups(GROUP, boto3.client, AwsClients(), account_mailbox)
    yield world
    world.close()


@pytest.fixture(params=[*ALWAYS, *ON_ACCOUNT])
def world(request: pytest.FixtureRequest) -> GroupWorld:
    """The same scenario in each of them."""
    if request.param == MODEL:
        return SimulatedGroups()
    found: GroupWorld = request.getfixturevalue("emulated_groups" if request.param == EMULATOR else "account_groups")
    return found


@pytest.fixture(params=ALWAYS)
def predictable_world(request: pytest.FixtureRequest) -> GroupWorld:
    """Where EC2 can be made to do what it does by chance."""
    if request.param == MODEL:
        return SimulatedGroups()
    found: GroupWorld = request.getfixturevalue("emulated_groups")
    return found
