"""Authentication by bearer token: the admin, a fixed token, or an IAM principal by an EKS token.

An EKS token is a presigned STS GetCallerIdentity URL (rules: aws-iam-authenticator `pkg/token`). Only STS knows its
principal, so the URL is called; the access entries give the principal's groups. Any other token gets 401.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from local.cluster.errors import unauthorized
from local.cluster.users import ANONYMOUS, AUTHENTICATED, MASTERS, User

# (presigned URL, cluster name) → ARN of the caller, None when STS does not vouch for it
Identify = Callable[[str, str], str | None]

EKS_PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
_MAX_TOKEN = 4096  # bytes, maxTokenLenBytes
_MAX_AGE = 15 * 60.0  # seconds from X-Amz-Date; X-Amz-Expires does not shorten it
_SKEW = 5 * 60.0
_REMEMBERED = 60.0  # seconds for which an answer of STS is cached
_ASSUMED = re.compile(r"^arn:(?P<partition>[\w-]+):sts::(?P<account>\d*):assumed-role/(?P<role>[^/]+)/(?P<session>.+)$")
_ROLE = re.compile(r"^arn:(?P<partition>[\w-]+):iam::(?P<account>\d*):role/(?P<path>.*/)?(?P<role>[^/]+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEntry:
    """EKS access entry: the role or user, and its identity inside the cluster (username empty: EKS's own form)."""

    principal_arn: str
    groups: tuple[str, ...] = ()
    username: str = ""

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> AccessEntry:
        """Read an entry as `aws eks describe-access-entry` spells it. Raises KeyError without principalArn."""
        return cls(
            principal_arn=str(entry["principalArn"]),
            groups=tuple(entry.get("kubernetesGroups") or ()),
            username=str(entry.get("username") or ""),
        )


class TokenRefused(Exception):
    """Rejection of an EKS token with its reason: for logs and tests; the client only ever sees 401."""


@dataclass(slots=True, kw_only=True)
class Authenticator:
    """Authenticator of requests. `clock` in seconds since 1970. Without `identify` no EKS token is accepted."""

    admin_token: str
    cluster_name: str
    clock: Callable[[], float]
    identify: Identify | None = None
    entries: Sequence[AccessEntry] = ()
    tokens: dict[str, User] = field(default_factory=dict)
    last_refusal: str = ""
    _known: dict[str, tuple[float, str]] = field(default_factory=dict)

    def user(self, authorization: str) -> User:
        """Return the user behind an Authorization header; anonymous without one. Raises 401. May call STS: blocking."""
        if not authorization:
            return ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise unauthorized()
        if hmac.compare_digest(token.encode(), self.admin_token.encode()):
            return User(name="kubernetes-admin", groups=(MASTERS, AUTHENTICATED))
        if token in self.tokens:
            return self.tokens[token]
        try:
            return self._iam_user(token)
        except TokenRefused as refusal:
            self.last_refusal = str(refusal)
            raise unauthorized() from refusal

    def _iam_user(self, token: str) -> User:
        if not token.startswith(EKS_PREFIX):
            raise TokenRefused("not a token that was issued here, nor an EKS token")
        if self.identify is None:
            raise TokenRefused("this cluster was started without an STS endpoint")
        url = presigned_url(token, now=self.clock())
        arn = self._caller(token, url)
        for entry in self.entries:
            if same_principal(entry.principal_arn, arn):
                name = _expanded(entry.username, arn) or arn
                return User(name=name, groups=(*entry.groups, AUTHENTICATED))
        raise TokenRefused(f"no access entry for {arn}")

    def _caller(self, token: str, url: str) -> str:
        now = self.clock()
        known = self._known.get(token)
        if known is not None and now - known[0] < _REMEMBERED:
            return known[1]
        arn = self.identify(url, self.cluster_name) if self.identify else None
        if not arn:
            raise TokenRefused("STS does not know the caller")
        if len(self._known) > 1000:
            self._known.clear()
        self._known[token] = (now, arn)
        return arn


def presigned_url(token: str, *, now: float) -> str:
    """Return the URL inside an EKS token. Raises TokenRefused unless it is a young GetCallerIdentity signed for a
    cluster.
    """
    if len(token) > _MAX_TOKEN:
        raise TokenRefused("token is too large")
    payload = token.removeprefix(EKS_PREFIX)
    try:
        url = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError) as failure:
        raise TokenRefused(f"token does not decode: {failure}") from failure
    query = {key: values[-1] for key, values in parse_qs(urlsplit(url).query).items()}
    if query.get("Action") != "GetCallerIdentity":
        raise TokenRefused("token is not a presigned GetCallerIdentity")
    if CLUSTER_HEADER not in query.get("X-Amz-SignedHeaders", "").split(";"):
        raise TokenRefused(f"{CLUSTER_HEADER} is not among the signed headers")
    if not query.get("X-Amz-Signature"):
        raise TokenRefused("token is not signed")
    _check_age(query.get("X-Amz-Date", ""), now)
    return url


def _check_age(signed: str, now: float) -> None:
    found = re.fullmatch(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", signed)
    if found is None:
        raise TokenRefused(f"X-Amz-Date does not parse: {signed!r}")
    year, month, day, hour, minute, second = (int(part) for part in found.groups())
    age = now - _utc(year, month, day, hour, minute, second)
    if age > _MAX_AGE or age < -_SKEW:
        raise TokenRefused(f"token was signed {age:.0f} s ago")


def _utc(*parts: int) -> float:
    return float(calendar.timegm((*parts, 0, 0, 0)))


def same_principal(entry: str, caller: str) -> bool:
    """Return whether the ARN of an access entry is the caller's: a role covers its sessions, and its path is
    ignored.
    """
    if entry == caller:
        return True
    role, session = _ROLE.match(entry), _ASSUMED.match(caller)
    if role is None or session is None:
        return False
    return all(role[part] == session[part] for part in ("partition", "account", "role"))


def _expanded(username: str, arn: str) -> str:
    """Expand EKS's placeholders in user names; `{{SessionNameRaw}}` keeps the characters that `{{SessionName}}`
    rewrites.
    """
    session = _ASSUMED.match(arn)
    raw = session["session"] if session else ""
    account = session["account"] if session else ""
    replaced = username.replace("{{SessionNameRaw}}", raw).replace("{{SessionName}}", raw.replace("@", "-"))
    return replaced.replace("{{AccountID}}", account)
