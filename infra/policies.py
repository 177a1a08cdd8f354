"""The policy documents as SSM parameters, canonical JSON, which every function reads with a short cache."""

from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra.settings import LARGEST_STANDARD_PARAMETER, Settings


def policy_parameters(scope: Construct, settings: Settings) -> None:
    """Create one parameter per document; the advanced tier (which costs a little) only where the document needs it."""
    parameters = Construct(scope, "Policies")
    for cluster in settings.clusters:
        for document in cluster.documents:
            large = document.size > LARGEST_STANDARD_PARAMETER
            ssm.StringParameter(
                parameters,
                f"{cluster.name}-{document.name}",
                parameter_name=settings.names.parameter(cluster.name, document.name),
                string_value=document.value,
                description=f"Leeward's policy document {document.name} for cluster {cluster.name}",
                tier=ssm.ParameterTier.ADVANCED if large else ssm.ParameterTier.STANDARD,
            )
