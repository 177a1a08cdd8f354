"""The packaged template of this tree, composed once for all tests."""

from typing import Any

import pytest

import infra  # noqa: F401 - names the Node.js that the CDK runs on, before anything of the CDK is imported


@pytest.fixture(scope="session")
def packaged() -> dict[str, Any]:
    """The template, with an asset of this name."""
    from tests.infra import variants

    return variants.packaged()
