"""Keys of `spec.webhook`: the address that EventBridge calls, and the secret by which the receiver knows the caller.

Policies are plain parameters and parts of the deployment's template, so a URL that holds a secret is refused. A URL
that EventBridge does not call is refused here, so that `leeward policy validate` and the deployment agree.
"""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from leeward.policy.document import Webhook, WebhookFormat
from leeward.policy.fields import Section, is_text

_CHARACTERS = r"(?:%[0-9A-Fa-f]{2}|[A-Za-z0-9_.!~*';/?:@&=+$,()-])"  # of an API destination's InvocationEndpoint
_LOCAL = r"http://(?:127\.0\.0\.1|localhost)[:/]"  # only a local EventBridge reaches it
_URL = re.compile(rf"(?=.{{1,2048}}$)(?:https://(?!/){_CHARACTERS}|{_LOCAL}){_CHARACTERS}*")
_URL_EXPECTED = "a URL that EventBridge calls: https://, at most 2,048 of the characters that a URL has unescaped"
_SECRET = re.compile(r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+")
_VERSION = re.compile(r"[A-Za-z0-9-]{32,64}")
_HEADER = re.compile(r"(?!(?i:leeward-event)$)[A-Za-z][A-Za-z0-9-]{0,99}")
_SECRET_NAME = re.compile(r"token|secret|passw|pwd|signature|auth|key|credential|jwt|^(sig|code|sas|hmac|pass)$", re.I)
_RANDOM = re.compile(r"(?=.*\d)[A-Za-z0-9+/=_.~-]{20,}")  # as long and mixed as generated values are
_OWN_PLACE = frozenset({WebhookFormat.TEAMS, WebhookFormat.PAGERDUTY})  # of the secret, which is no header
_FIX = "no secret in a URL: put it into Secrets Manager and name it in secretArn"


def webhook(spec: Section) -> Webhook | None:
    """Read `spec.webhook`; None when there is none."""
    if not spec.has("webhook"):
        return None
    default = Webhook(url="")
    with spec.section("webhook") as section:
        url = section.read("url", "", _url, _URL_EXPECTED)
        if not section.has("url"):
            section.refuse("url", _URL_EXPECTED)
        elif secret := url and _secret_in(url):
            section.refuse("url", _FIX, secret)
        wanted = WebhookFormat(section.word("format", default.format, [one.value for one in WebhookFormat]))
        arn = section.read("secretArn", None, _matched(_SECRET), "the ARN of a secret in Secrets Manager")
        version = section.read("secretVersion", None, _matched(_VERSION), "the id of a version of the secret")
        header = section.read("header", default.header, _matched(_HEADER), "the name of an HTTP header of your own")
        for key in ("secretVersion", "header"):
            if section.has(key) and not section.has("secretArn"):
                section.refuse(key, "secretArn beside it")
        if wanted is WebhookFormat.PAGERDUTY and not section.has("secretArn"):
            section.refuse("secretArn", "the ARN of a secret with the integration key: format pagerduty needs it")
        if wanted in _OWN_PLACE and section.has("header"):
            section.refuse("header", f"none: format {wanted} has its own place for the secret")
        return Webhook(url=url, format=wanted, secret_arn=arn, secret_version=version, header=header)


def _url(value: Any) -> str:
    if not is_text(value) or not _URL.fullmatch(value):
        raise ValueError("no URL")
    urlsplit(value)  # ValueError for a host that is none
    return value


def _secret_in(url: str) -> str | None:
    """Return which part of the URL looks like a secret, without its value."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        return "a user or password before the host"
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if _SECRET_NAME.search(name) or _RANDOM.fullmatch(value):
            return f"a query parameter that looks like a secret ({name})"
    return None


def _matched(pattern: re.Pattern[str]) -> Any:
    def read(value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError("no match")
        return value

    return read
