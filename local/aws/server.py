"""Server that assembles the local AWS and runs until a signal comes.

Importing this module imports ministack and moto, which read the environment: ``settings.prepare_environment`` first.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app as ministack_app
from ministack.core import hypercorn_compat

from local.aws import (
    balancing,
    conditions,
    ec2,
    launch_templates,
    moto_answers,
    moto_backend,
    move_tasks,
    parameters,
    provisioning,
    webhooks,
)
from local.aws.accounts import Accounts
from local.aws.app import Gateway
from local.aws.autoscaling import patches as autoscaling_patches
from local.aws.autoscaling.engine import Engine
from local.aws.capacity_blocks import CapacityBlocks
from local.aws.control import Control
from local.aws.controls import Parts, add_routes
from local.aws.eks.clusters import Clusters
from local.aws.faults import Faults
from local.aws.journal import Journal
from local.aws.lambdas import code, queues, workers
from local.aws.lambdas import errors as lambda_errors
from local.aws.lambdas.kills import Kills
from local.aws.outbox import Outbox
from local.aws.pins import check_versions
from local.aws.prices import Prices
from local.aws.quotas import Quotas
from local.aws.reboots import install as install_reboots
from local.aws.recording import Recording
from local.aws.requested import Home
from local.aws.resource_tags import tags_in
from local.aws.settings import HOST, Settings, clear_environment
from local.aws.status_checks import StatusChecks
from local.aws.stepfunctions import branches, sdk, timing, validation
from local.aws.stepfunctions.clock import ScaledClock
from local.aws.stepfunctions.executions import Executions
from local.aws.stepfunctions.tokens import Tokens
from local.aws.subnets import Tenants
from local.aws.timeline import Timeline
from local.aws.zonal_shifts import ZonalShifts


def build(settings: Settings) -> Gateway:
    """Check the pins, install every patch and return the application."""
    check_versions()
    clear_environment()
    outbox, journal, pace = Outbox(), Journal(), ec2.Pace()
    timeline = Timeline(moto_backend.model_lock)
    control, recording, faults = Control(), Recording(), Faults()
    moto_backend.install()
    moto_answers.install()
    ec2.install(outbox, timeline, journal, pace)
    prices, quotas, blocks = Prices(), Quotas(), CapacityBlocks(outbox, timeline, settings)
    for part in (Tenants(), StatusChecks(), blocks, prices, quotas):
        part.install(control)
    install_reboots()
    launch_templates.install()
    balancing.install()
    engine, health = Engine(outbox, timeline, journal, pace), autoscaling_patches.HealthSwitch()
    autoscaling_patches.install(engine, health)
    clusters = Clusters(settings, engine)
    zonal_shifts = ZonalShifts(outbox, settings, clusters.nodes)
    clusters.install(control)
    zonal_shifts.install(control)
    clock = ScaledClock()
    kills = _patch_ministack(outbox, timeline, clock)
    accounts = Accounts(settings)
    accounts.install(control)
    parts = Parts(
        settings=settings,
        outbox=outbox,
        engine=engine,
        health=health,
        faults=faults,
        recording=recording,
        clock=clock,
        kills=kills,
    )
    add_routes(control, parts)
    outbox.start()
    timeline.start()
    home = Home(account=settings.account, region=settings.region, tags_of=tags_in(settings.account, settings.region))
    stand_ins = (prices, quotas, zonal_shifts)
    return Gateway(ministack_app.app, control, recording, faults, stand_ins, home, accounts)


def _patch_ministack(outbox: Outbox, timeline: Timeline, clock: ScaledClock) -> Kills:
    """Install the patches of Step Functions, Lambda, SQS and the rest; return what kills functions."""
    Tokens(clock).install()
    timing.install(clock, random.Random())
    branches.install()
    sdk.install()
    validation.install()
    Executions(outbox, clock).install(timeline)
    kills = Kills()
    kills.install()
    lambda_errors.install()
    code.install()
    workers.install()
    queues.install()
    move_tasks.install()
    parameters.install()
    provisioning.install()
    conditions.install()
    webhooks.install()
    return kills


async def run(settings: Settings) -> None:
    """Serve on 127.0.0.1 until SIGTERM or SIGINT. It then returns at once: the end of the process closes the port.

    Calls in progress are not awaited, since a Lambda invocation may last minutes.
    """
    hypercorn_compat.install()
    gateway = build(settings)
    config = Config()
    config.bind = [f"{HOST}:{settings.port}"]
    config.keep_alive_timeout = 75
    config.backlog = 1024
    config.loglevel = "WARNING"
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    never = asyncio.Event()
    serving = asyncio.create_task(serve(gateway, config, shutdown_trigger=never.wait))  # type: ignore[arg-type]
    await _announce(settings, serving)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()


async def _announce(settings: Settings, serving: asyncio.Task[Any]) -> None:
    while not serving.done():
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(HOST, settings.port)
            writer.close()
            break
        await asyncio.sleep(0.02)
    else:
        await serving
        return
    settings.directory.mkdir(parents=True, exist_ok=True)
    written = {"endpoint": settings.endpoint, "region": settings.region, "account": settings.account}
    target = settings.directory / "aws.json"
    draft = target.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(written) + "\n")
    draft.replace(target)
    print(f"local AWS ready on {settings.endpoint} ({settings.account}, {settings.region})", flush=True)
