"""The packaged template of this tree, composed once for all tests."""

from typing import Any

import pytest

import infra  # noqa: F401 - names the Node.js that the CDK runs on, before anything of the CDK is imported
from tests.infra.conftest import ROOT

ASSET = "leeward-test.zip"


@pytest.fixture(scope="session")
def packaged() -> dict[str, Any]:
    """The template, with an asset of this name."""
    from infra.asset import build_asset
    from infra.package.synthesis import synthesizer
    from infra.package.template import packaged_template

    return packaged_template(synthesizer(ROOT, build_asset(ROOT)), asset=ASSET)
