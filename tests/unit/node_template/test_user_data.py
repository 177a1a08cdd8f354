"""What user data says to kubelet: NodeConfig (AL2023), bootstrap.sh (AL2), Bottlerocket's TOML, and nonsense."""

import base64
import gzip
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as some

from leeward.model.quantity import CPU, EPHEMERAL_STORAGE, MEMORY
from leeward.node_template.kubelet import Family, KubeletSettings, withheld
from leeward.node_template.provenance import unknown
from leeward.node_template.user_data import LARGEST, kubelet_settings

MIB, GIB = 1024**2, 1024**3
NODE_CONFIG = """\
---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: blue
    apiServerEndpoint: https://example.com
    certificateAuthority: Y2VydGlmaWNhdGVBdXRob3JpdHk=
    cidr: 10.100.0.0/16
  kubelet:
    config:
      maxPods: 42          # as computed
      kubeReserved: {cpu: 150m, memory: "1Gi"}
      evictionHard:
        memory.available: 5%
      registerWithTaints:
      - key: dedicated
        value: gpu
        effect: NoSchedule
    flags:
      - --node-labels=team=web,eks.amazonaws.com/capacityType=SPOT
"""
MIME = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo "nothing for kubelet"

--//
Content-Type: application/node.eks.aws

{first}
--//
Content-Type: application/node.eks.aws

{second}
--//--
"""
BOOTSTRAP = """\
#!/bin/bash
set -ex
# --max-pods=7 in a comment counts for nothing
/etc/eks/bootstrap.sh blue \\
  --use-max-pods false \\
  --kubelet-extra-args '--node-labels=team=web,a=b --register-with-taints=x=y:NoExecute,z:NoSchedule --max-pods=58' \\
  --b64-cluster-ca $CA --apiserver-endpoint https://example.com --dns-cluster-ip 10.100.0.10
"""
TOML = """\
[settings.kubernetes]
cluster-name = "blue"
max-pods = 33

[settings.kubernetes.node-labels]
team = "web"

[settings.kubernetes.node-taints]
dedicated = ["gpu:NoExecute", "gpu:NoSchedule"]
other = ":PreferNoSchedule"

[settings.kubernetes.kube-reserved]
memory = "500Mi"

[settings.kubernetes.eviction-hard]
"memory.available" = "15%"
"""


def read(text):
    return kubelet_settings(base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode())


def taints(settings):
    return [f"{taint.key}={taint.value}:{taint.effect}" for taint in settings.taints]


class TestNodeConfig:
    def test_every_part_of_it(self):
        found = read(NODE_CONFIG)
        assert (found.family, found.max_pods, found.warnings) == (Family.AMAZON_LINUX, 42, ())
        assert found.labels == {"team": "web", "eks.amazonaws.com/capacityType": "SPOT"}
        assert taints(found) == ["dedicated=gpu:NoSchedule"]
        assert found.kube_reserved == {"cpu": "150m", "memory": "1Gi"}
        assert found.eviction_hard == {"memory.available": "5%"}

    def test_of_several_mime_parts_the_later_one_wins(self):
        second = (
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 17\n"
        )
        found = read(MIME.format(first=NODE_CONFIG, second=second))
        assert (found.max_pods, found.labels["team"]) == (17, "web")

    def test_mime_with_windows_line_ends_and_packed(self):
        text = MIME.format(first=NODE_CONFIG, second=NODE_CONFIG).replace("\n", "\r\n")
        assert read(gzip.compress(text.encode())).max_pods == 42

    def test_a_base64_encoded_part(self):
        body = base64.b64encode(NODE_CONFIG.encode()).decode()
        head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n'
        head += "Content-Type: application/node.eks.aws\n"
        assert read(f"{head}Content-Transfer-Encoding: base64\n\n{body}\n--b--\n").max_pods == 42

    def test_json_is_yaml_too(self):
        assert (
            read('{"apiVersion": "node.eks.aws/v1alpha1", "spec": {"kubelet": {"config": {"maxPods": 9}}}}').max_pods
            == 9
        )

    def test_a_number_of_thousands_of_digits_is_a_remark(self):
        found = read(
            '{"apiVersion": "node.eks.aws/v1alpha1", "spec": {"kubelet": {"config": {"maxPods": %s}}}}' % ("9" * 5000)
        )
        assert found.max_pods is None
        assert found.warnings == (
            "user data: NodeConfig: found JSON out of all proportion, expected kubelet's settings; "
            "EKS' defaults are taken",
        )

    def test_a_flag_wins_over_the_config(self):
        assert read(NODE_CONFIG + "      - --max-pods=55\n").max_pods == 55

    def test_yaml_that_is_not_understood_is_said_and_says_nothing(self):
        found = read("apiVersion: node.eks.aws/v1alpha1\nspec: &anchor\n  kubelet: {}\n")
        assert found == KubeletSettings(warnings=found.warnings, recognised=True, provenance=unknown(), ceiling=110)
        assert "NodeConfig: line 2: found an anchor or an alias" in found.warnings[0]

    def test_a_key_that_occurs_twice_is_refused_as_nodeadm_does(self):
        found = read(NODE_CONFIG.replace("      maxPods: 42", "      maxPods: 17\n      maxPods: 42"))
        assert found.max_pods is None
        assert 'found duplicate key "maxPods"' in found.warnings[0]

    def test_bytes_that_are_no_utf_8_cost_only_their_characters(self):
        found = read(NODE_CONFIG.encode().replace(b"name: blue", b"name: bl\xff\xfe\xe9"))
        assert (found.max_pods, found.warnings) == (42, ())


class TestScripts:
    def test_a_call_of_bootstrap(self):
        found = read(BOOTSTRAP)
        assert (found.family, found.max_pods, found.counts_interfaces) == (Family.AMAZON_LINUX, 58, False)
        assert found.labels == {"team": "web", "a": "b"}
        assert taints(found) == ["x=y:NoExecute", "z=:NoSchedule"]

    @pytest.mark.parametrize(
        "line",
        [
            "/etc/eks/bootstrap.sh blue --kubelet-extra-args --max-pods=20",
            '/etc/eks/bootstrap.sh blue --kubelet-extra-args "--max-pods 20"',
            'export KUBELET_EXTRA_ARGS="--max-pods=20"',
            "/etc/eks/bootstrap.sh --max-pods=7 --max-pods=20",
        ],
    )
    def test_the_spellings_of_a_flag(self, line):
        assert read(f"#!/bin/bash\n{line}\n").max_pods == 20

    def test_a_value_that_only_the_script_knows_is_said_and_passed_over(self):
        found = read(
            "#!/bin/bash\n/etc/eks/bootstrap.sh blue --kubelet-extra-args '--max-pods=$MAX --node-labels=a=b'\n"
        )
        assert (found.max_pods, found.labels) == (None, {"a": "b"})
        assert "--max-pods: found '$MAX'" in found.warnings[0]

    @pytest.mark.parametrize("line", ["export USE_MAX_PODS=false", 'echo "USE_MAX_PODS=false" >> /etc/profile.d/b.sh'])
    def test_the_switch_of_bootstrap_in_the_environment(self, line):
        assert not read(f"#!/bin/bash\n{line}\n").counts_interfaces

    def test_a_script_about_something_else_says_nothing(self):
        assert read("#!/bin/bash\nyum install -y --quiet htop\n") == KubeletSettings()


class TestBottlerocket:
    def test_every_part_of_it(self):
        found = read(TOML)
        assert (found.family, found.max_pods, found.labels) == (Family.BOTTLEROCKET, 33, {"team": "web"})
        assert taints(found) == ["dedicated=gpu:NoExecute", "dedicated=gpu:NoSchedule", "other=:PreferNoSchedule"]
        assert found.kube_reserved == {"memory": "500Mi"}
        assert found.eviction_hard == {"memory.available": "15%"}

    def test_broken_toml_is_said(self):
        assert "Bottlerocket settings" in read("[settings.kubernetes]\nmax-pods =\n").warnings[0]


class TestNonsense:
    def test_none_at_all(self):
        assert kubelet_settings("") == KubeletSettings()

    @pytest.mark.parametrize("encoded", ["%%%", "A", "é"])
    def test_what_is_no_base64_is_said(self, encoded):
        assert "expected base64" in kubelet_settings(encoded).warnings[0]

    def test_more_than_ec2_takes_is_not_read(self):
        assert "expected at most" in kubelet_settings("A" * (2 * LARGEST + 1)).warnings[0]

    def test_packed_data_is_unpacked_no_further_than_that(self):
        bomb = gzip.compress(b" " * 300 * LARGEST)
        tracemalloc.start()
        try:
            assert "expected at most" in read(bomb).warnings[0]
            assert tracemalloc.get_traced_memory()[1] < 10 * LARGEST
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize(
        "text",
        [
            "apiVersion: node.eks.aws/\na: " + "[" * 16000,
            "apiVersion: node.eks.aws/\na: " + "[" * 60000,
            '{"apiVersion": "node.eks.aws/", "a": ' + "[" * 16000,
            "[settings]\na = " + "[" * 20000,
            MIME.format(first="[" * 8000, second="[" * 8000),
            MIME.format(first=NODE_CONFIG, second="&" * 16000),
            gzip.compress(b"apiVersion: node.eks.aws/\na: " + b"[" * 1_000_000),
            b"apiVersion: node.eks.aws/\na: " + b"\xff\xfe" * 8000,
            " " * 64000 + "#",
            ";" * 64000,
            "test " * 12800,
            "if\n" * 20000 + "fi\n" * 1000,
            "--kubelet-extra-args '" + " ".join(f"$V{number}" for number in range(9000)) + "'",
            '--kubelet-extra-args "x ' * 2600,
            "<powershell>" + "{" * 30000 + "}" * 30000,
            "\n---" * 16000 + "node.eks.aws/",
        ],
        ids=[
            *("brackets", "more", "JSON", "TOML", "MIME", "MIME in all", "a packed megabyte", "no UTF-8"),
            *("blanks", "ends", "tests", "branches", "variables", "quotes", "blocks", "documents"),
        ],
    )
    def test_a_hostile_text_is_answered_within_a_second(self, text):
        began = time.process_time()
        found = read(text)
        assert time.process_time() - began < 1
        assert (found.max_pods, found.labels) == (None, {})
        assert all(len(warning) < 400 and "\n" not in warning for warning in found.warnings)

    @given(some.binary(max_size=400))
    def test_any_bytes_give_an_answer(self, raw):
        assert isinstance(read(raw), KubeletSettings)

    @given(some.sampled_from([NODE_CONFIG, MIME, BOOTSTRAP, TOML]), some.integers(0, 900), some.text(max_size=6))
    def test_any_damage_gives_an_answer(self, text, at, junk):
        assert isinstance(read(text[:at] + junk + text[at + 1 :]), KubeletSettings)

    @pytest.mark.parametrize("number", ["-1", "many", "1.5", "999999", "true", "[]"])
    def test_a_number_of_pods_that_is_none_says_nothing(self, number):
        assert read(NODE_CONFIG.replace("maxPods: 42", f"maxPods: {number}")).max_pods is None


class TestWithheld:
    """Flags replace EKS' own values whole, kubelet's config joins them key by key."""

    CAPACITY = {CPU: 2000, MEMORY: 7577 * MIB, EPHEMERAL_STORAGE: 20 * GIB}  # noqa: RUF012 — it is never changed

    def of(self, text):
        return withheld(read(text), self.CAPACITY, vcpus=2, pods=29)

    def test_the_config_joins_eks_own_values(self):
        kept, warnings = self.of(NODE_CONFIG)
        assert kept == {CPU: 150, MEMORY: 1024 * MIB + -(-7577 * MIB // 20), EPHEMERAL_STORAGE: 3 * GIB}
        assert warnings == ()

    def test_a_flag_replaces_them(self):
        kept, _ = self.of("#!/bin/bash\nkubelet --kube-reserved=cpu=200m --eviction-hard='nodefs.available<5%'\n")
        assert kept == {CPU: 200, EPHEMERAL_STORAGE: GIB}

    def test_system_reserved_is_kept_beside(self):
        kept, _ = self.of("#!/bin/bash\nkubelet --system-reserved=memory=100Mi,cpu=30m\n")
        assert kept == {CPU: 100, MEMORY: (574 + 100 + 100) * MIB, EPHEMERAL_STORAGE: 3 * GIB}

    def test_a_threshold_of_100_percent_is_none(self):
        assert self.of("#!/bin/bash\nkubelet --eviction-hard=memory.available<100%\n")[0][MEMORY] == 574 * MIB

    @pytest.mark.parametrize("threshold", ["lots", "-5%", "1e999999999%", "%", "1e99999999999999999999"])
    def test_a_threshold_that_cannot_be_read_is_said_and_eks_own_counts(self, threshold):
        kept, warnings = self.of(f"#!/bin/bash\nkubelet --eviction-hard=memory.available<{threshold}\n")
        assert kept[MEMORY] == (574 + 100) * MIB
        assert "eviction-hard memory.available" in warnings[0]

    def test_a_quantity_that_cannot_be_read_is_said(self):
        kept, warnings = self.of(NODE_CONFIG.replace("150m", "some"))
        assert kept[CPU] == 70
        assert "kube-reserved: cpu: found 'some'" in warnings[0]
