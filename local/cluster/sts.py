"""Identification of the signer of a presigned GetCallerIdentity URL, by calling it on STS, as EKS does."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit, urlunsplit

import urllib3

from local.cluster.authn import CLUSTER_HEADER, Identify

_ARN = re.compile(r"<Arn>([^<]+)</Arn>")
_TIMEOUT = urllib3.Timeout(connect=3, read=10)


def sts_identify(endpoint: str) -> Identify:
    """Return an `identify` that sends every URL to `endpoint` (scheme, host, port), whatever host the token names.

    It calls no other host: a token that names a host of its choice must not make the server call it.
    """
    pool = urllib3.PoolManager(retries=False, timeout=_TIMEOUT)
    base = urlsplit(endpoint)

    def identify(url: str, cluster_name: str) -> str | None:
        asked = urlsplit(url)
        there = urlunsplit((base.scheme, base.netloc, asked.path or "/", asked.query, ""))
        headers = {"host": asked.netloc, CLUSTER_HEADER: cluster_name, "accept": "application/json"}
        try:
            answer = pool.request("GET", there, headers=headers)
        except urllib3.exceptions.HTTPError:
            return None
        return arn_in(answer.data.decode(errors="replace")) if answer.status == 200 else None

    return identify


def arn_in(body: str) -> str | None:
    """Return the Arn of a GetCallerIdentity answer, XML or JSON; None when there is none."""
    found = _ARN.search(body)
    if found is not None:
        return found[1].strip()
    try:
        answer = json.loads(body)
        return str(answer["GetCallerIdentityResponse"]["GetCallerIdentityResult"]["Arn"])
    except (ValueError, KeyError, TypeError):
        return None
