"""Settings of the CDK app, and the parameters of the packaged template that mean the same."""

from tests.infra.conftest import NODES, SENDER, TOPIC

ASSET = "leeward-test.zip"
OPERATORS = "arn:aws:sns:us-east-1:111122223333:operators"
KEY = "arn:aws:kms:us-east-1:111122223333:key/0123abcd-4567-89ab-cdef-0123456789ab"
NEEDED = {"Cluster1": "prod", "NodeRoleArns": NODES, "AssetBucket": "assets"}
IMAGES = "arn:aws:ssm:us-east-1:111122223333:parameter/golden/images/*"
SUBNETS, GROUPS = ["subnet-0a1b2c3d", "subnet-0a1b2c3e"], ["sg-0a1b2c3d"]
VPC = {"subnetIds": SUBNETS, "securityGroupIds": GROUPS}


def cluster(name, **more):
    return {"name": name, **more}


SAME = {
    "one cluster and nothing else": (
        {"clusters": [cluster("prod")], "nodeRoles": [NODES]},
        NEEDED,
    ),
    "a private cluster with a key and a topic, beside two others": (
        {
            "clusters": [cluster(name, vpc=VPC) for name in ("prod", "x" * 33, "stage_2")],
            "nodeRoles": [NODES, f"{NODES}-2"],
            "kmsKey": KEY,
            "alarmTopic": OPERATORS,
            "logLevel": "DEBUG",
        },
        NEEDED
        | {"Cluster3": "x" * 33, "Cluster8": "stage_2", "NodeRoleArns": f"{NODES},{NODES}-2"}
        | {"SubnetIds": ",".join(SUBNETS), "SecurityGroupIds": ",".join(GROUPS)}
        | {"KmsKeyArn": KEY, "AlarmTopicArn": OPERATORS, "LogLevel": "DEBUG"},
    ),
    "everything at once": (
        {
            "clusters": [cluster("prod", vpc=VPC)],
            "nodeRoles": [NODES],
            "senders": {"roles": [SENDER, f"{SENDER}-2"], "topics": [TOPIC, f"{TOPIC}-2"]},
            "imageParameters": ["/golden/images/*", "/other"],
            "accessEntries": False,
            "concurrency": {"interruption": 0, "drain": 0},
            "kmsKey": KEY,
            "alarmTopic": OPERATORS,
            "runbooks": "https://wiki.example.com/leeward",
        },
        {**NEEDED, "Cluster1": "", "Cluster2": "prod", "SubnetIds": ",".join(SUBNETS)}
        | {"SecurityGroupIds": ",".join(GROUPS), "KmsKeyArn": KEY, "AlarmTopicArn": OPERATORS}
        | {"SenderRoleArns": f"{SENDER},{SENDER}-2", "SenderTopicArns": f"{TOPIC},{TOPIC}-2"}
        | {"ImageParameterArns": f"{IMAGES},arn:aws:ssm:us-east-1:111122223333:parameter/other"}
        | {"AccessEntries": "false", "ReserveConcurrency": "false"}
        | {"RunbooksUrl": "https://wiki.example.com/leeward"},
    ),
}
