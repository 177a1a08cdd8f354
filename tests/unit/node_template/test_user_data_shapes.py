"""User data in the shapes that occur, each with the template that it gives: what is shown is right or unknown."""

import base64
import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from leeward.node_template.provenance import Attribute, Provenance
from tests.unit.node_template.builders import TYPES, a_group, a_launch, a_nodegroup, an_expected_node

FOLDER = Path("fuzz/corpus/user-data")
ROW = "{labels} | {taints} | {pods} pods | {os} | unknown: {unknown}"
OWN = ("kubernetes.io/", "k8s.io/", "amazonaws.com/", "ebs.csi.aws.com/")  # labels that every node has

SHAPES = {
    "al2-adjacent-quotes.sh": "team=red | - | 29 pods | linux | unknown: labels taints maxPods capacity",
    "al2-array.sh": "team=red | - | 20 pods | linux | unknown: -",
    "al2-branch-about-else.sh": "team=red | - | 20 pods | linux | unknown: -",
    "al2-branch-case.sh": "- | dedicated=red:NoSchedule | 29 pods | linux | unknown: labels",
    "al2-branch-if.sh": "- | spot=yes:NoSchedule | 20 pods | linux | unknown: labels taints maxPods",
    "al2-branch-short.sh": "team=red | batch=yes:NoSchedule | 29 pods | linux | unknown: taints",
    "al2-continued-lines.sh": "team=red | - | 17 pods | linux | unknown: -",
    "al2-drop-in.sh": "- | dedicated=red:NoSchedule | 29 pods | linux | unknown: labels taints maxPods capacity",
    "al2-dynamic-label.sh": "team=red tier=web | - | 29 pods | linux | unknown: labels",
    "al2-dynamic-pods.sh": "- | - | 29 pods | linux | unknown: maxPods",
    "al2-dynamic-taint.sh": "- | dedicated=:NoSchedule | 29 pods | linux | unknown: taints",
    "al2-exported-variables.sh": "team=red | - | 58 pods | linux | unknown: -",
    "al2-flags-by-blanks.sh": "team=red | dedicated=red:NoSchedule | 17 pods | linux | unknown: -",
    "al2-heredoc-with-apostrophe.sh": "team=red | - | 29 pods | linux | unknown: -",
    "al2-huge-pages.sh": "team=red | - | 29 pods | linux | unknown: capacity",
    "al2-jq-edit.sh": "- | - | 20 pods | linux | unknown: taints maxPods capacity",
    "al2-jq-of-other-settings.sh": "- | - | 20 pods | linux | unknown: taints capacity",
    "al2-labels-and-taints.sh": "team=red tier=web | dedicated=red:NoSchedule | 29 pods | linux | unknown: -",
    "al2-no-labels.sh": "team=red | dedicated=red:NoSchedule | 29 pods | linux | unknown: labels taints",
    "al2-opaque-arguments.sh": "- | - | 29 pods | linux | unknown: labels taints maxPods capacity",
    "al2-plain.sh": "- | - | 29 pods | linux | unknown: -",
    "al2-quotes-in-values.sh": "team=red tier=web | - | 29 pods | linux | unknown: -",
    "al2-raid0-setup.sh": "- | - | 29 pods | linux | unknown: -",
    "al2-raid10.sh": "- | - | 29 pods | linux | unknown: -",
    "al2-repeated-flags.sh": "disk=fast team=red | - | 29 pods | linux | unknown: -",
    "al2-same-call-twice.sh": "- | - | 20 pods | linux | unknown: -",
    "al2-sed-into-bootstrap.sh": "team=red | - | 20 pods | linux | unknown: -",
    "al2-terraform.txt": "team=red | - | 29 pods | linux | unknown: -",
    "al2-two-calls.sh": "- | - | 20 pods | linux | unknown: labels maxPods",
    "al2-use-max-pods-number.sh": "- | - | 110 pods | linux | unknown: -",
    "al2-until.sh": "- | - | 20 pods | linux | unknown: -",
    "al2.sh": "team=web | a=b:NoExecute | 35 pods | linux | unknown: labels",
    "al2023-and-al2-script.txt": "- | - | 29 pods | linux | unknown: -",
    "al2023-and-drop-in.txt": "- | "
    "dedicated=red:NoSchedule | 12 pods | linux | unknown: labels taints maxPods capacity",
    "al2023-config.yaml": "team=red | dedicated=red:NoSchedule | 42 pods | linux | unknown: -",
    "al2023-end-of-document.yaml": "- | - | 20 pods | linux | unknown: -",
    "al2023-expression-and-value.yaml": "- | - | 20 pods | linux | unknown: -",
    "al2023-expression-limit.yaml": "- | - | 20 pods | linux | unknown: -",
    "al2023-expression-other.yaml": "- | - | 29 pods | linux | unknown: maxPods",
    "al2023-expression.yaml": "- | - | 20 pods | linux | unknown: -",
    "al2023-flag-in-two-entries.yaml": "team=red | - | 17 pods | linux | unknown: -",
    "al2023-flag-of-an-earlier-part.txt": "- | dedicated=red:NoSchedule | 20 pods | linux | unknown: -",
    "al2023-multipart.txt": "gen=5 team=web | spot=true:PreferNoSchedule | 58 pods | linux | unknown: -",
    "al2023-nodeadm-by-script.sh": "- | - | 12 pods | linux | unknown: labels taints maxPods capacity",
    "al2023-other-boundary.txt": "- | - | 29 pods | linux | unknown: labels taints maxPods",
    "al2023-part-in-base64.txt": "- | - | 20 pods | linux | unknown: -",
    "al2023-parts.txt": "disk=fast team=red | - | 20 pods | linux | unknown: -",
    "al2023-plain.yaml": "- | - | 29 pods | linux | unknown: -",
    "al2023-raid10.yaml": "- | - | 29 pods | linux | unknown: -",
    "al2023-repeated-flags.yaml": "disk=fast team=red | - | 29 pods | linux | unknown: -",
    "al2023-taint-without-effect.yaml": "- | - | 29 pods | linux | unknown: taints",
    "al2023-two-documents.yaml": "- | - | 29 pods | linux | unknown: labels taints maxPods capacity",
    "al2023-two-flags-in-an-entry.yaml": "team=red | dedicated=red:NoSchedule | 17 pods | linux | unknown: -",
    "al2023-unrendered.yaml": "tier=web | - | 29 pods | linux | unknown: labels",
    "al2023.json": "- | - | 20 pods | linux | unknown: -",
    "bottlerocket-bad-taint.toml": "- | - | 29 pods | linux | unknown: taints",
    "bottlerocket-broken.toml": "- | - | 29 pods | linux | unknown: labels taints maxPods capacity",
    "bottlerocket-dotted-quotes.toml": "team=red | dedicated=red:NoSchedule | 20 pods | linux | unknown: -",
    "bottlerocket-dotted.toml": "team=red | - | 20 pods | linux | unknown: -",
    "bottlerocket-host.toml": "- | - | 29 pods | linux | unknown: -",
    "bottlerocket-pods-as-table.toml": "- | - | 29 pods | linux | unknown: maxPods",
    "bottlerocket-tables.toml": "team=red | "
    "dedicated=red:NoSchedule dedicated=red:NoExecute | 20 pods | linux | unknown: -",
    "bottlerocket.toml": "gen=5 team=web | "
    "dedicated=web:NoSchedule dedicated=x:PreferNoSchedule spot=true:NoExecute | 40 pods | linux | unknown: -",
    "cloud-config-broken.yaml": "- | - | 29 pods | linux | unknown: labels taints maxPods capacity",
    "cloud-config-runcmd.yaml": "team=red | - | 20 pods | linux | unknown: -",
    "cloud-config.txt": "- | - | 17 pods | linux | unknown: -",
    "eksctl-al2.yaml": "alpha.eksctl.io/nodegroup-name=red team=red | "
    "dedicated=red:NoSchedule | 20 pods | linux | unknown: -",
    "eksctl-and-kubelet-file.yaml": "team=red | - | 29 pods | linux | unknown: taints maxPods capacity",
    "eksctl-extra-config.yaml": "team=red | dedicated=red:NoSchedule | 18 pods | linux | unknown: -",
    "eksctl-ubuntu.yaml": "team=red | - | 29 pods | linux | unknown: -",
    "other-include.txt": "- | - | 29 pods | linux | unknown: labels taints maxPods",
    "other-script.sh": "- | - | 29 pods | linux | unknown: labels taints maxPods",
    "windows-branch.ps1": "team=red | spot=yes:NoSchedule | 110 pods | windows | unknown: taints",
    "windows-flags.ps1": "team=red | os=windows:NoSchedule | 40 pods | windows | unknown: -",
    "windows-opaque.ps1": "- | - | 110 pods | windows | unknown: labels taints maxPods capacity",
    "windows-other.ps1": "- | - | 110 pods | windows | unknown: labels taints maxPods",
    "windows-plain.ps1": "- | - | 110 pods | windows | unknown: -",
}


def row_of(node):
    """A template as one line: what the user data decides of it, and the attributes that are unknown."""
    labels = {key: value for key, value in node.labels.items() if not any(part in key for part in OWN)}
    taints = [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
    unknown = [attribute.value for attribute, origin in node.provenance.items() if origin is Provenance.UNKNOWN]
    return ROW.format(
        labels=" ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "-",
        taints=" ".join(taints) or "-",
        pods=node.allocatable["pods"],
        os=node.labels["kubernetes.io/os"],
        unknown=" ".join(unknown) or "-",
    )


def template(name, **more):
    return an_expected_node(launch=a_launch(user_data=(FOLDER / name).read_text()), **more)


def test_every_shape_gives_the_right_template_or_says_unknown():
    found = {path.name: row_of(template(path.name)) for path in sorted(FOLDER.iterdir())}
    assert {name: row for name, row in found.items() if SHAPES.get(name) != row} == {}
    assert found.keys() == SHAPES.keys()


def test_what_is_unknown_is_said_in_a_warning():
    silent = [name for name, row in SHAPES.items() if not row.endswith(": -") and not template(name).warnings]
    assert silent == []


@pytest.mark.parametrize(
    "packed",
    [
        lambda raw: gzip.compress(raw, mtime=0),
        base64.b64encode,
        lambda raw: base64.encodebytes(gzip.compress(raw, mtime=0)),
        lambda raw: raw.replace(b"\n", b"\r\n"),
    ],
    ids=["gzip", "base64 twice", "base64 of gzip", "line ends of Windows"],
)
def test_no_packing_changes_a_template(packed):
    def row(name):
        encoded = base64.b64encode(packed((FOLDER / name).read_bytes())).decode()
        return row_of(an_expected_node(launch=replace(a_launch(), user_data=encoded)))

    assert {name: row(name) for name in SHAPES if row(name) != SHAPES[name]} == {}


class TestManagedGroups:
    """EKS writes the user data that boots the node, and adds the template's to it."""

    def test_nodeadm_reads_no_variables_of_a_script(self):
        node = template("al2-exported-variables.sh", nodegroup=a_nodegroup())
        assert ("team" in node.labels, node.allocatable["pods"]) == (False, 29)
        assert "--node-labels: set by a script, which nodeadm does not read" in node.warnings[0]

    def test_the_bootstrap_of_al2_does(self):
        node = template("al2-exported-variables.sh", nodegroup=a_nodegroup(amiType="AL2_x86_64"))
        assert (node.labels["team"], node.allocatable["pods"]) == ("red", 58)

    def test_a_script_about_something_else_leaves_the_node_group_declared(self):
        node = template("other-script.sh", nodegroup=a_nodegroup())
        assert (node.warnings, node.provenance[Attribute.LABELS]) == ((), Provenance.DECLARED)

    def test_an_image_of_its_own_makes_it_unknown(self):
        node = template("other-script.sh", nodegroup=a_nodegroup(amiType="CUSTOM"))
        assert "nothing in it was recognised" in node.warnings[0]

    def test_an_expression_counts_only_where_it_gives_fewer_pods(self):
        assert template("al2023-expression-limit.yaml", nodegroup=a_nodegroup()).allocatable["pods"] == 20
        assert template("al2023-expression.yaml", nodegroup=a_nodegroup()).allocatable["pods"] == 20


class TestProvenance:
    def test_of_a_node_config_that_says_everything(self):
        node = template("al2023-config.yaml")
        assert set(node.provenance.values()) == {Provenance.DECLARED}

    def test_a_script_is_an_estimate(self):
        origins = template("al2-labels-and-taints.sh").provenance
        assert (origins[Attribute.LABELS], origins[Attribute.TAINTS]) == (Provenance.ESTIMATED, Provenance.ESTIMATED)

    def test_without_an_answer_of_eks_the_tags_are_estimates(self):
        node = an_expected_node(group=a_group(managed=True))
        assert node.provenance[Attribute.LABELS] is Provenance.ESTIMATED

    def test_without_user_data_the_image_decides(self):
        node = an_expected_node()
        assert (node.provenance[Attribute.TAINTS], node.warnings) == (Provenance.UNKNOWN, ())

    def test_a_type_that_is_not_known_has_no_capacity(self):
        node = an_expected_node(types={})
        assert node.provenance[Attribute.CAPACITY] is Provenance.UNKNOWN


def test_raid10_keeps_half_of_the_disks():
    disk = TYPES["m5.large"]
    local = {"m5.large": replace(disk, local_storage_gb=1000)}
    sizes = {
        name: template(name, types=local).capacity["ephemeral-storage"]
        for name in ("al2-raid10.sh", "al2-raid0-setup.sh", "al2023-raid10.yaml")
    }
    assert sizes == {
        "al2-raid10.sh": 500 * 10**9,
        "al2-raid0-setup.sh": 1000 * 10**9,
        "al2023-raid10.yaml": 500 * 10**9,
    }


def test_reservations_of_repeated_flags_add_up():
    node = template("al2-repeated-flags.sh")
    assert node.capacity["cpu"] - node.allocatable["cpu"] == 100
    assert node.capacity["memory"] - node.allocatable["memory"] == (700 + 100) * 1024**2
