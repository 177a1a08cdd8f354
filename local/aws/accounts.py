"""Other accounts and Regions, each a local AWS of its own: roles that are assumed there, and events that go there.

A session of another account's role is known here alone: its calls are passed on to that account's process, by the
Region for which they are signed. So state is apart for each account and Region, as on AWS.

| route | body, or what it gives |
|---|---|
| PUT accounts | accounts: account, region and endpoint of each other local AWS |
| POST forwarded | event, bus, sender: an event that another account's rule sends to a bus of this one |
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import boto3
import urllib3
from ministack.core.responses import request_scope
from ministack.services import eventbridge

from local.aws import bus_policies
from local.aws.control import BadRequest, Control, Request
from local.aws.pins import expect_parameters, replace
from local.aws.settings import Settings
from local.aws.trust import Caller, trusts

logger = logging.getLogger("local.aws.accounts")
Answer = tuple[int, dict[str, str], bytes]
Place = tuple[str, str]  # account, Region
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/")
_SIGNED_URL = re.compile(r"(?:^|&)X-Amz-Credential=([^%&/]+)(?:%2F|/)")
_XML = {"Content-Type": "text/xml"}
_HOUR = timedelta(hours=1)
_DROPPED = {"host", "content-length", "connection", "transfer-encoding"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Session of a role of another account."""

    account: str
    role: str
    name: str

    @property
    def arn(self) -> str:
        """ARN as STS spells it."""
        return f"arn:aws:sts::{self.account}:assumed-role/{self.role}/{self.name}"


class Accounts:
    """The other accounts that this local AWS knows; safe to use from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._endpoints: dict[Place, str] = {}
        self._sessions: dict[str, Session] = {}
        self._http = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=3, read=60))

    def install(self, control: Control) -> None:
        """Register the routes, and send events to the buses of other accounts."""
        expect_parameters(
            "ministack",
            eventbridge._dispatch_to_event_bus,
            *("spec", "event", "rule", "event_path", "target_input_payload"),
        )
        replace(eventbridge, _dispatch_to_event_bus=self._sending(eventbridge._dispatch_to_event_bus))
        bus_policies.install()
        control.add("PUT", "accounts", self._put)
        control.add("POST", "forwarded", self._receive)

    def concern(self, headers: Mapping[str, str], query: str, body: bytes) -> bool:
        """Return whether another account answers the call: it is signed by a session there, or asks for one."""
        if not self._endpoints:
            return False
        return self._session(headers, query) is not None or self._asked_role(body) is not None

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes, function: str | None) -> Answer:
        """Answer such a call. It waits for the other account's process. `target`: path and query."""
        path, _, query = target.partition("?")
        session = self._session(headers, query)
        if session is None or self._asked_role(body) is not None:  # a session may assume a further role there
            return self._assume(body, session.arn if session else self._caller(function))
        form = parse_qs(body.decode("utf-8", "replace") if method == "POST" else query)
        if form.get("Action") == ["GetCallerIdentity"]:
            return _identity(session)
        return self._pass_on(session, method, f"{path}?{query}" if query else path, headers, body)

    def _session(self, headers: Mapping[str, str], query: str) -> Session | None:
        found = _CREDENTIAL.search(headers.get("authorization", "")) or _SIGNED_URL.search(query)
        return self._sessions.get(found[1]) if found else None

    def _asked_role(self, body: bytes) -> str | None:
        """Return the ARN of the role of another account that the call asks for, None for any other call."""
        if b"Action=AssumeRole&" not in body:
            return None
        role = parse_qs(body.decode()).get("RoleArn", [""])[0]
        return role if self._iam_of(role) else None

    def _iam_of(self, role: str) -> str | None:
        account = (role.split(":") + [""] * 5)[4]
        there = (endpoint for (owner, _), endpoint in self._endpoints.items() if owner == account)
        return next(there, None) if account != self._settings.account else None

    def _assume(self, body: bytes, asking: str) -> Answer:
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        role = form["RoleArn"]
        caller = Caller(arn=asking, external_id=form.get("ExternalId"))
        if not trusts(_trust_policy(str(self._iam_of(role)), role.rpartition("/")[2]), caller):
            return _refused(f"User: {caller.arn} is not authorized to perform: sts:AssumeRole on resource: {role}")
        key = f"ASIA{secrets.token_hex(8).upper()}"
        session = Session(account=role.split(":")[4], role=role.rpartition("/")[2], name=form["RoleSessionName"])
        self._sessions[key] = session
        return _credentials(key, session)

    def _caller(self, function: str | None) -> str:
        """Return the ARN of the function's role, which the user agent names; else that of the account."""
        if function is None:
            return f"arn:aws:iam::{self._settings.account}:root"
        client = boto3.client("lambda", region_name=self._settings.region)
        return str(client.get_function_configuration(FunctionName=function)["Role"])

    def _pass_on(self, session: Session, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        signed = _CREDENTIAL.search(headers.get("authorization", ""))
        endpoint = self._endpoints.get((session.account, signed[2] if signed else ""))
        if endpoint is None:
            return _refused(f"{session.arn}: this Region of account {session.account} is not played here")
        kept = {name: value for name, value in headers.items() if name not in _DROPPED}
        answered = self._http.request(method, f"{endpoint}{target}", headers=kept, body=body)
        given = {name: value for name, value in answered.headers.items() if name.lower() not in _DROPPED}
        return answered.status, given, answered.data

    def _sending(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def send(spec: Any, event: Any, rule: Any, event_path: Any, target_input_payload: Any = None) -> Any:
            endpoint = self._endpoints.get((spec.account_id, spec.region))
            if endpoint is None:
                return original(spec, event, rule, event_path, target_input_payload)
            known = {name: value for name, value in event.items() if not name.startswith("_")}
            sent = {"event": known, "bus": spec.resource.partition("/")[2], "sender": self._settings.account}
            answered = self._http.request("POST", f"{endpoint}/_local/forwarded", body=json.dumps(sent, default=str))
            if answered.status != 200:
                logger.warning("event %s was not taken: %s", event.get("EventId"), answered.data.decode())
            return None

        return send

    def _receive(self, request: Request) -> None:
        """Put an event on one of our buses; it keeps the Region in which it came about, and its sender's account."""
        event, bus, sender = dict(request.body["event"]), request.body["bus"], request.body["sender"]
        with request_scope(self._settings.account, self._settings.region):
            if not bus_policies.may_put(bus, sender):
                raise BadRequest(f"account {sender} may not put events on bus {bus}")
            eventbridge._dispatch_event({**event, "EventBusName": bus, "Account": sender})

    def _put(self, request: Request) -> None:
        self._endpoints = {(one["account"], one["region"]): one["endpoint"] for one in request.body["accounts"]}


def _trust_policy(endpoint: str, role: str) -> Mapping[str, Any] | None:
    """Return the trust policy of a role in another account, None for one that does not exist."""
    keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    iam = boto3.client("iam", endpoint_url=endpoint, region_name="us-east-1", **keys)
    try:
        found: Mapping[str, Any] = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    except iam.exceptions.NoSuchEntityException:
        return None
    return found


def _refused(message: str) -> Answer:
    error = f"<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{message}</Message></Error>"
    return 403, _XML, f"<ErrorResponse>{error}</ErrorResponse>".encode()


def _identity(session: Session) -> Answer:
    result = f"<Arn>{session.arn}</Arn><UserId>AROALOCAL:{session.name}</UserId><Account>{session.account}</Account>"
    body = f"<GetCallerIdentityResult>{result}</GetCallerIdentityResult>"
    return 200, _XML, f"<GetCallerIdentityResponse>{body}</GetCallerIdentityResponse>".encode()


def _credentials(key: str, session: Session) -> Answer:
    until = (datetime.now(UTC) + _HOUR).strftime("%Y-%m-%dT%H:%M:%SZ")
    given = (
        f"<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>local</SecretAccessKey>"
        f"<SessionToken>local</SessionToken><Expiration>{until}</Expiration></Credentials>"
    )
    who = f"<AssumedRoleUser><Arn>{session.arn}</Arn><AssumedRoleId>AROALOCAL</AssumedRoleId></AssumedRoleUser>"
    body = f"<AssumeRoleResult>{given}{who}</AssumeRoleResult>"
    return 200, _XML, f"<AssumeRoleResponse>{body}</AssumeRoleResponse>".encode()
