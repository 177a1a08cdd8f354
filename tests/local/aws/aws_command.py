"""`aws SERVICE OPERATION --option VALUE …` by boto3, as far as the runbooks use the AWS CLI: it is no dependency."""

import os
import sys

import boto3
import jmespath
from botocore import xform_name


def main(service, operation, *options):
    """Call it, and print what `--query` selects as `--output text` does."""
    given = dict(zip(options[::2], options[1::2], strict=True))
    query = given.pop("--query", None)
    given.pop("--output", None)
    client = boto3.client(service, endpoint_url=os.environ["LOCAL_ENDPOINT"])
    members = client.meta.service_model.operation_model(_named(client, operation)).input_shape.members
    parameters = {
        name: given.pop(f"--{xform_name(name, '-')}") for name in members if f"--{xform_name(name, '-')}" in given
    }
    assert not given, f"options that the operation does not have: {sorted(given)}"
    answer = getattr(client, operation.replace("-", "_"))(**parameters)
    answer.pop("ResponseMetadata")
    selected = jmespath.search(query, answer) if query else answer
    values = selected if isinstance(selected, list) else [selected]
    sys.stdout.write("\t".join(str(value) for value in values) + "\n")


def _named(client, operation):
    return client.meta.method_to_api_mapping[operation.replace("-", "_")]


if __name__ == "__main__":
    main(*sys.argv[1:])
