"""The table: claims and other state that neither nodes, groups nor executions can hold. Losing it loses no node."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.names import OPEN_INDEX, Names


def claims_table(scope: Construct, names: Names, key: kms.IKey | None) -> dynamodb.Table:
    """Create the table: one item per termination, by `pk`; the index `open` holds only items that carry the attribute
    `open`.

    It is deleted with the stack: everything in it is rebuilt from the clusters and the groups. `key`: the customer's.
    """
    text = dynamodb.AttributeType.STRING
    table = dynamodb.Table(
        scope,
        "Table",
        table_name=names.table,
        partition_key=dynamodb.Attribute(name="pk", type=text),
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if key else dynamodb.TableEncryption.AWS_MANAGED,
        encryption_key=key,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
        time_to_live_attribute="expires",
        stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,  # fn notifications reads it
        removal_policy=RemovalPolicy.DESTROY,
    )
    table.add_global_secondary_index(
        index_name=OPEN_INDEX,
        partition_key=dynamodb.Attribute(name="open", type=text),
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )
    return table
