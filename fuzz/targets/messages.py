"""Bodies of queue messages, from the text to the decision that `inspect explain-event` prints, in two worlds."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from jsonschema_rs import validator_for

from fuzz import corpus
from fuzz.mutations import ODD_TEXTS, mutated_json, mutated_text
from fuzz.target import Disagreement, Target, shorter_texts
from leeward.adapters.folder.reader import Folder
from leeward.adapters.folder.wiring import folder_ports
from leeward.cli.context import ClusterContext
from leeward.cli.explain_event import document_of, world_of
from leeward.interruption.decide import decide, malformed
from leeward.interruption.decision import Decision
from leeward.interruption.effects import claim_key
from leeward.interruption.fields import MalformedMessageError
from leeward.interruption.parse import parse
from leeward.interruption.world import MessageWorld
from leeward.model.message import InterruptionMessage, Message

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
ORIGINS = frozenset({("", "")})
EVERYTHING = corpus.FOLDER / "folders" / "everything"
SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "explain-event.json"
INSTANCES = ("i-01", "i-02", "i-03", "i-04", "i-05", "i-0abc", "i-0123456789abcdef0")
LONGEST_REASON = 40_000  # characters; a log line of CloudWatch holds 256 KB
LONGEST_KEY = 1024  # bytes of a sort key in DynamoDB
_INSTANCE = re.compile(r"i-[0-9a-f]{1,32}")


class Messages(Target[str]):
    """Bodies as AWS writes them, changed as JSON or as text."""

    name = "messages"
    goal = 1_000_000
    short = 3_000

    def generate(self, chance: Random) -> str:
        """Return a body, a changed body, or one inside an SNS notification."""
        raw = _named(chance, chance.choice(corpus.events()))
        match chance.randrange(10):
            case 0:
                return json.dumps(raw)
            case 1 | 2:
                return mutated_text(chance, json.dumps(raw), ODD_TEXTS)
            case 3:
                return json.dumps(_in_sns(chance, raw))
            case 4:
                return json.dumps(mutated_json(chance, _in_sns(chance, mutated_json(chance, raw))))
        return json.dumps(mutated_json(chance, raw))

    def check(self, value: str) -> None:
        """Parse, decide in both worlds, and hold what is printed against its schema."""
        found = _parse(value)
        for world in (self._empty, self._full(found)):
            self._hold(found, world)

    def smaller(self, value: str) -> Iterator[str]:
        """Yield shorter texts."""
        return shorter_texts(value)

    @cached_property
    def _empty(self) -> MessageWorld:
        return MessageWorld(complete=False, origins=ORIGINS)

    @cached_property
    def _context(self) -> ClusterContext:
        folder = Folder(EVERYTHING, "prod")
        return ClusterContext(ports=folder_ports(folder, NOW, _ignore), cluster="prod", folder=folder)

    @cached_property
    def _schema(self) -> Any:
        return validator_for(json.loads(SCHEMA.read_text(encoding="utf-8")))

    def _full(self, found: InterruptionMessage | MalformedMessageError) -> MessageWorld:
        messages = [found] if isinstance(found, Message) else []
        return world_of(self._context, messages, ORIGINS)

    def _hold(self, found: InterruptionMessage | MalformedMessageError, world: MessageWorld) -> None:
        decision = decide(found, world, now=NOW) if isinstance(found, Message) else malformed(str(found))
        document = document_of(decision, found, NOW)
        printed = json.loads(json.dumps(document, allow_nan=False))
        error = next(self._schema.iter_errors(printed), None)
        if error is not None:
            raise Disagreement(f"schema {list(error.schema_path)}: found {error.message[:200]}")
        _hold_claims(decision)


def _hold_claims(decision: Decision) -> None:
    """Raises Disagreement for a reason without end, a claim of what is no instance, or a key that is too long."""
    if len(decision.reason) > LONGEST_REASON:
        raise Disagreement(f"reason: found {len(decision.reason)} characters, expected {LONGEST_REASON} at most")
    for node in decision.nodes:
        if not _INSTANCE.fullmatch(node.instance):
            raise Disagreement(f"instance: found {node.instance[:100]!r}, expected an instance id")
        if node.cause is not None and len(claim_key(node.cause).encode(errors="surrogatepass")) > LONGEST_KEY:
            raise Disagreement(f"key: found {len(claim_key(node.cause))} characters, expected {LONGEST_KEY} at most")


def _ignore(sentence: str) -> None:
    del sentence


def _parse(body: str) -> InterruptionMessage | MalformedMessageError:
    try:
        return parse(body, received=NOW)
    except MalformedMessageError as error:
        return error


def _named(chance: Random, raw: Any) -> Any:
    """Return the message about one of the instances of the full world, mostly."""
    text = re.sub(r"i-[0-9a-f]{3,17}", lambda _: chance.choice(INSTANCES), json.dumps(raw))
    if chance.random() < 0.5:
        text = re.sub(r'"AutoScalingGroupName": "[^"]*"', '"AutoScalingGroupName": "web"', text)
    return json.loads(text)


def _in_sns(chance: Random, raw: Any) -> dict[str, Any]:
    kind: Any = chance.choice(("Notification", "Notification", "SubscriptionConfirmation", [], None))
    return {"Type": kind, "MessageId": "m", "TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": json.dumps(raw)}
