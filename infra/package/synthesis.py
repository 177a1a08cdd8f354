"""Syntheses that the packaged template is merged from: markers in the place of what parameters say, and one synthesis
for each optional setting.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_cdk import App, CliCredentialsStackSynthesizer

from infra.asset import Asset
from infra.package import parameters as p
from infra.settings import Cluster, Settings, Vpc
from infra.stack import LeewardStack

Synthesize = Callable[[Settings], Mapping[str, Any]]
"""Function that returns the app's template for settings."""

BASE = Settings(
    clusters=tuple(Cluster(name=slot, documents=()) for slot in p.SLOTS),
    node_roles=(p.NODE_ROLES,),
    access_entries=False,
    interruption_concurrency=None,
    drain_concurrency=None,
    log_level=p.LOG_LEVEL,
    runbooks=p.RUNBOOKS_PAGE,
)
VARIANTS: Mapping[str, Settings] = {
    p.WITH_ENTRIES: replace(BASE, access_entries=True),
    p.RESERVES: replace(BASE, interruption_concurrency=10, drain_concurrency=40),
    p.IN_VPC: replace(BASE, vpc=Vpc(subnets=(p.SUBNETS,), security_groups=(p.SECURITY_GROUPS,))),
    p.WITH_TOPIC: replace(BASE, alarm_topic=p.ALARM_TOPIC),
    p.WITH_KEY: replace(BASE, kms_key=p.KMS_KEY),
    p.WITH_ROLES: replace(BASE, sender_roles=(p.SENDER_ROLES,)),
    p.WITH_TOPICS: replace(BASE, sender_topics=(p.SENDER_TOPICS,)),
    p.WITH_IMAGES: replace(BASE, image_parameters=(p.IMAGES,)),
}
"""Condition -> settings where it is true."""


def synthesizer(root: Path, asset: Asset) -> Synthesize:
    """Return a function that synthesizes the tree at `root` with this asset, without a bootstrapped account."""
    context = json.loads((root / "cdk.json").read_text(encoding="utf-8"))["context"]

    def synthesize(settings: Settings) -> Mapping[str, Any]:
        with TemporaryDirectory() as folder:
            bucket = CliCredentialsStackSynthesizer(file_assets_bucket_name="the-template-names-it")
            app = App(context=context, outdir=folder, analytics_reporting=False, default_stack_synthesizer=bucket)
            stack = LeewardStack(app, settings=settings, asset=asset, root=root)
            app.synth()
            found: Mapping[str, Any] = json.loads(Path(folder, f"{stack.stack_name}.template.json").read_text())
            return found

    return synthesize
