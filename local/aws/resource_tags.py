"""Tags of Auto Scaling groups and launch templates, as moto keeps them."""

from __future__ import annotations

from moto.autoscaling.models import autoscaling_backends
from moto.ec2.models import ec2_backends

from local.aws.requested import TagsOf


def tags_in(account: str, region: str) -> TagsOf:
    """Return the look-up of tags: of a group by its name or one of its instances, of a template by its id or name."""

    def tags_of(kind: str, named: str) -> dict[str, str]:
        return _of_template(named) if kind == "template" else _of_group(named)

    def _of_group(named: str) -> dict[str, str]:
        groups = autoscaling_backends[account][region].autoscaling_groups
        for group in [groups[named]] if named in groups else list(groups.values()):
            if group.name == named or any(state.instance.id == named for state in group.instance_states):
                return {tag["Key"]: tag["Value"] for tag in group.tags}
        return {}

    def _of_template(named: str) -> dict[str, str]:
        backend = ec2_backends[account][region]
        template = backend.launch_templates.get(backend.launch_template_name_to_ids.get(named, named))
        return {} if template is None else {tag["key"]: tag["value"] for tag in template.get_tags()}

    return tags_of
