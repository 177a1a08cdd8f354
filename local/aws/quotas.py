"""Service quotas of EC2, as set through the control API.

`PUT quotas` takes `{CODE: VALUE}`, such as `{"L-1216C47A": 64}`: vCPUs of running standard on-demand instances. A quota
that was not set goes to the emulators, which do not have the service.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from local.aws.calls import Call
from local.aws.control import Control, Request

Answer = tuple[int, dict[str, str], bytes]


class Quotas:
    """Quotas by code; replaced as a whole, so that they are safe to use from any thread."""

    def __init__(self) -> None:
        self._values: Mapping[str, float] = {}

    def install(self, control: Control) -> None:
        """Add the route `PUT quotas`."""
        control.add("PUT", "quotas", self._put)

    def _put(self, request: Request) -> None:
        self._values = {str(code): float(value) for code, value in request.body.items()}

    def answer(self, call: Call, _path: str, body: bytes) -> Answer | None:
        """Answer GetServiceQuota for a quota that was set; return None for any other call."""
        if call.name != "servicequotas:GetServiceQuota":
            return None
        asked = json.loads(body)
        value = self._values.get(asked["QuotaCode"])
        if value is None:
            return None
        quota = {"ServiceCode": asked["ServiceCode"], "QuotaCode": asked["QuotaCode"], "Value": value}
        return 200, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps({"Quota": quota}).encode()
