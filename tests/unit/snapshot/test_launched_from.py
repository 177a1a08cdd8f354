"""Launch template versions that the members of groups were launched from."""

from dataclasses import replace

from leeward.model.launch import LaunchSettings, LaunchSource, LaunchTemplateRef
from leeward.node_template.choices import Choices
from leeward.node_template.gathering import Looked
from leeward.snapshot.launches import launched_from
from tests.fakes.builders import GROUP, a_group

NOW, BEFORE = (LaunchTemplateRef(id="lt-0abc", name="web", version=version) for version in ("2", "1"))


class CountedSources:
    def __init__(self):
        self.read = []

    def settings(self, group):
        self.read.append(group.launch.template)
        return LaunchSettings(image=f"ami-{group.launch.template.version}")


def test_a_version_is_read_once_and_not_again_where_its_group_was_looked_up():
    group = a_group(GROUP, "i-0aa", "i-0ab", "i-0ac", "i-0ad")
    versions = (NOW, NOW, BEFORE, BEFORE)
    members = (replace(one, template=of) for one, of in zip(group.instances, versions, strict=True))
    group = replace(group, launch=LaunchSource(template=NOW), instances=tuple(members))
    sources, launch = CountedSources(), LaunchSettings(image="ami-2")
    choices = Choices(types=(), zones=(), capacity=None)
    looked = Looked(group=group, nodegroup=None, launch=launch, choices=choices)
    found = launched_from([group], sources, [looked])
    assert sources.read == [BEFORE]
    assert [found[name].image for name in ("i-0aa", "i-0ab", "i-0ac", "i-0ad")] == ["ami-2", "ami-2", "ami-1", "ami-1"]
    assert launched_from([group], CountedSources()) == found
