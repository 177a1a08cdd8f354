"""Settings of one launcher process, and the environment that ministack and moto read at import."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
KUBERNETES_VERSION = "1.36"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Address, account and region of this local AWS."""

    port: int
    region: str
    account: str
    directory: Path

    @property
    def endpoint(self) -> str:
        """URL that clients put into ``AWS_ENDPOINT_URL``."""
        return f"http://{HOST}:{self.port}"


def prepare_environment(settings: Settings) -> None:
    """Set what ministack and moto read at import time; call it before importing any other module of this package.

    The credentials are dummies: Lambda workers inherit them, and nothing here ever leaves the machine. Temporary files
    (the unpacked functions) go below the launcher's directory, so that a killed launcher leaves nothing elsewhere.
    """
    temporary = settings.directory / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = None
    os.environ.update(
        {
            "TMPDIR": str(temporary),
            "GATEWAY_PORT": str(settings.port),
            "MINISTACK_ACCOUNT_ID": settings.account,
            "MINISTACK_REGION": settings.region,
            "MINISTACK_HOST": HOST,
            "MOTO_ACCOUNT_ID": settings.account,
            "MOTO_ALLOW_NONEXISTENT_REGION": "true",
            "AWS_DEFAULT_REGION": settings.region,
            "AWS_REGION": settings.region,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_ENDPOINT_URL": settings.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "PERSIST_STATE": "0",
            "S3_PERSIST": "0",
            "LAMBDA_EXECUTOR": "local",
            "LOG_LEVEL": os.environ.get("LOG_LEVEL", "WARNING"),
        }
    )
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "PYTHONPATH", "AWS_SDK_UA_APP_ID"):
        os.environ.pop(name, None)


def clear_environment() -> None:
    """Remove variables that Lambda workers would inherit and use as their own; call it when ministack has been
    imported.
    """
    os.environ.pop("LOG_LEVEL", None)
