"""The packaged template, composed: synthesized sections with parameters, conditions and rules of its own."""

from collections.abc import Mapping
from typing import Any

from infra.package.filling import filled, slots_in
from infra.package.parameters import PARAMETERS, WITH_ENTRIES, conditions, has, interface, rules, with_entries
from infra.package.synthesis import BASE, VARIANTS, Synthesize
from infra.package.variants import merge_resources
from leeward import __version__

LARGEST = 1_000_000  # bytes that CloudFormation takes from S3


def packaged_template(synthesize: Synthesize, *, asset: str) -> dict[str, Any]:
    """Return the template. `synthesize`: the app's template for settings; `asset`: file name of the Lambda asset, which
    is no parameter, so that a template never runs with another version's code.
    """
    base = synthesize(BASE)
    variants = [(condition, synthesize(settings)) for condition, settings in VARIANTS.items()]
    resources = merge_resources(base["Resources"], [(name, template["Resources"]) for name, template in variants])
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"{base['Description']}, version {__version__}",
        "Metadata": {
            "AWS::CloudFormation::Interface": interface(),
            "Leeward": {"Version": __version__, "Asset": asset},
        },
        "Parameters": {parameter.name: parameter.definition() for parameter in PARAMETERS},
        "Rules": rules(),
        "Conditions": conditions(),
        "Resources": {name: _resource(name, resource, asset) for name, resource in resources.items()},
        "Outputs": base["Outputs"],
    }


def _resource(name: str, resource: Mapping[str, Any], asset: str) -> dict[str, Any]:
    """Return a resource with parameters, under the condition of its cluster if it has one."""
    (slot,) = slots_in(name) or ("",)
    condition = resource.get("Condition", "")
    made = {key: value for key, value in resource.items() if key != "Condition"}
    made["Properties"] = filled(resource["Properties"], slot)
    if resource["Type"] == "AWS::Lambda::Function":
        key = {"Fn::Join": ["", [{"Ref": "AssetPrefix"}, asset]]}
        made["Properties"]["Code"] = {"S3Bucket": {"Ref": "AssetBucket"}, "S3Key": key}
    if slot:
        condition = with_entries(slot) if condition == WITH_ENTRIES else has(slot)
    return {**made, "Condition": condition} if condition else made
