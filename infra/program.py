"""Construction of an app that can be synthesized from the settings, with cdk-nag's rules applied."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import Annotations, App

from infra.asset import build_asset
from infra.bytecode import RUNTIME
from infra.member import MemberStack
from infra.settings import read_settings
from infra.stack import LeewardStack

NOT_COMPILED = (
    f"no python{RUNTIME} was found on the PATH: the functions' code is not compiled, and a cold start takes half "
    "as long again"
)


def build_app(
    root: Path, environment: Mapping[str, str], *, context: Mapping[str, Any] | None = None, outdir: str | None = None
) -> App:
    """Return the app of the tree at `root`. The CDK command line passes context and outdir by the environment, tests as
    arguments. Raises InvalidInputError.
    """
    app = App(context=dict(context) if context is not None else None, outdir=outdir, analytics_reporting=False)
    settings = read_settings(app.node.try_get_context, root, environment)
    asset = build_asset(root)
    stack = LeewardStack(app, settings=settings, asset=asset, root=root)
    for member in settings.members:
        MemberStack(app, settings=settings, member=member, shapes=[function.shape for function in stack.functions])
    if not asset.compiled:
        Annotations.of(stack).add_info(NOT_COMPILED)
    return app
