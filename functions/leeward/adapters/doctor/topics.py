"""Part of `ports.doctor.Deployment` that reads SNS topics and the KMS keys that encrypt them."""

import json
from collections.abc import Sequence

from leeward.adapters.aws.clients import AwsClients, pages
from leeward.adapters.aws.errors import aws_call
from leeward.doctor.facts import TopicKey
from leeward.errors import ObjectGoneError

KEY_POLICY = "default"  # the only one that a KMS key has


class Topics:
    """Topics of any Region, each read there."""

    _clients: AwsClients

    def topic_key(self, topic: str) -> TopicKey | None:
        """Call GetTopicAttributes, and of a key of the customer's GetKeyPolicy. None: the topic does not exist."""
        region = topic.split(":")[3]
        try:
            with aws_call("sns:GetTopicAttributes", topic):
                found = self._clients.get("sns", region=region).get_topic_attributes(TopicArn=topic)["Attributes"]
        except ObjectGoneError:
            return None
        key = found.get("KmsMasterKeyId") or ""
        if not key:
            return TopicKey()
        kms = self._clients.get("kms", region=region)
        with aws_call("kms:DescribeKey", key):
            described = kms.describe_key(KeyId=key)["KeyMetadata"]
        if described.get("KeyManager") == "AWS":
            return TopicKey(id=key, aws_managed=True)
        with aws_call("kms:GetKeyPolicy", key):
            policy = kms.get_key_policy(KeyId=described["Arn"], PolicyName=KEY_POLICY)["Policy"]
        return TopicKey(id=key, policy=json.loads(policy))

    def raw_subscriptions(self, topic: str, queue: str) -> Sequence[str]:
        """Call ListSubscriptionsByTopic, and GetSubscriptionAttributes for those of the queue."""
        client = self._clients.get("sns", region=topic.split(":")[3])
        with aws_call("sns:ListSubscriptionsByTopic", topic):
            listed = [
                raw["SubscriptionArn"]
                for page in pages(client, "list_subscriptions_by_topic", TopicArn=topic)
                for raw in page.get("Subscriptions", ())
                if raw.get("Endpoint") == queue and raw.get("SubscriptionArn", "").startswith("arn:")
            ]
        found = []
        for arn in listed:
            with aws_call("sns:GetSubscriptionAttributes", arn):
                attributes = client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
            if attributes.get("RawMessageDelivery") == "true":
                found.append(arn)
        return found
