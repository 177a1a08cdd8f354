"""User data: AL2's and Windows' scripts, AL2023's NodeConfig in YAML, JSON and MIME parts, Bottlerocket's TOML, and
eksctl's cloud-config; also scripts that are put together from flags, branches and calls."""

import base64
import gzip
from collections.abc import Iterator
from dataclasses import fields
from random import Random

from fuzz import corpus
from fuzz.mutations import ODD_TEXTS, mutated_text
from fuzz.target import Disagreement, Target, shorter_texts
from leeward.node_template.flags import is_label
from leeward.node_template.kubelet import Family, KubeletSettings, withheld
from leeward.node_template.provenance import Attribute, Provenance
from leeward.node_template.user_data import kubelet_settings

CAPACITY = {"cpu": 2000, "memory": 8 << 30, "ephemeral-storage": 20 << 30}
EFFECTS = {"NoSchedule", "PreferNoSchedule", "NoExecute"}
LONGEST_WARNING = 1000
FLAGS = (
    "--node-labels=team=red,tier=web",
    "--node-labels team=blue,id=$ID",
    "--register-with-taints=dedicated=red:NoSchedule",
    "--register-with-taints=a=b:Never,c:NoExecute",
    "--max-pods=20",
    "--max-pods=$MAX",
    "--use-max-pods false",
    "--kube-reserved=cpu=100m,memory=1Gi",
    "--eviction-hard=memory.available<5%",
    "--local-disks raid10",
    "--pods-per-core=4",
    "--reserved-cpus=0-1,4",
    "--config=/etc/mine.json",
    "$MORE",
)
CALLS = (
    "/etc/eks/bootstrap.sh blue --kubelet-extra-args '{}'",
    '/etc/eks/bootstrap.sh blue \\\n  --kubelet-extra-args "{}"',
    'MORE="{}"',
    "export KUBELET_EXTRA_ARGS='{}'",
    "if [ -n \"$SPOT\" ]; then\n  bootstrap.sh blue --kubelet-extra-args '{}'\nfi",
    "case $ID in\n  *) MORE='{}' ;;\nesac",
    "[[ $SPOT ]] && MORE='{}'",
    "spot() {{\n  MORE='{}'\n}}\nready && spot",
    "cat > /root/x <<'EOF'\nMORE='{}'\nEOF\n. /root/x",
    "echo x | while read -r line; do MORE='{}'; done",
    "bash -c '{}'",
    "snap set kubelet-eks {}",
    "jq '.maxPods=30' /etc/kubernetes/kubelet/kubelet-config.json # {}",
    '<powershell>\n& $EKSBootstrapScriptFile -KubeletExtraArgs "{}"\n</powershell>',
)


class UserData(Target[str]):
    """Base64 as EC2 keeps it, of texts that are changed before or after they are encoded."""

    name = "user-data"
    goal = 300_000
    short = 1_200

    def generate(self, chance: Random) -> str:
        """Return encoded user data."""
        texts = corpus.texts("user-data/*")
        if chance.randrange(4) == 0:
            return base64.b64encode(script(chance).encode()).decode()
        text = mutated_text(chance, chance.choice(texts), (*texts, *ODD_TEXTS))
        raw = text.encode("utf-8", errors="surrogatepass")
        match chance.randrange(12):
            case 0:
                raw = gzip.compress(raw, mtime=0)
            case 1:
                raw = gzip.compress(raw, mtime=0)[: chance.randrange(200)]
            case 2:
                raw = bytes(byte ^ (chance.random() < 0.01) << chance.randrange(8) for byte in raw)
            case 3:
                return mutated_text(chance, base64.b64encode(raw).decode())
        return base64.b64encode(raw).decode()

    def check(self, value: str) -> None:
        """Read it, and what pods cannot have because of it."""
        settings = kubelet_settings.__wrapped__(value)
        _hold(settings)
        kept, warnings = withheld(settings, CAPACITY, vcpus=2, pods=settings.max_pods or 29)
        if not all(isinstance(amount, int) for amount in kept.values()):
            raise Disagreement(f"withheld: found {kept}, expected whole numbers")
        _hold_warnings((*settings.warnings, *warnings))
        if settings.joined(KubeletSettings()).max_pods != settings.max_pods:
            raise Disagreement(f"joined: found another value than {settings.max_pods}")

    def smaller(self, value: str) -> Iterator[str]:
        """Yield shorter user data, decoded and encoded again where that is possible."""
        try:
            text = base64.b64decode(value, validate=True).decode("utf-8")
        except ValueError:
            yield from shorter_texts(value)
            return
        for shorter in shorter_texts(text):
            yield base64.b64encode(shorter.encode()).decode()


def script(chance: Random) -> str:
    """Return a script of one to four statements, each with up to four flags."""
    statements = [
        chance.choice(CALLS).format(" ".join(chance.choices(FLAGS, k=chance.randrange(5))))
        for _ in range(chance.randrange(1, 5))
    ]
    return "#!/bin/bash\n" + "\n".join(statements) + "\n"


def _hold(settings: KubeletSettings) -> None:
    """Raises Disagreement for a setting that no kubelet has."""
    if settings.max_pods is not None and not 0 <= settings.max_pods < 100_000:
        raise Disagreement(f"max_pods: found {settings.max_pods}, expected 0 to 99,999")
    if settings.family not in (*Family, None):
        raise Disagreement(f"family: found {settings.family}, expected a known one")
    if not all(is_label(key, text) for key, text in settings.labels.items()):
        raise Disagreement(f"labels: found {dict(settings.labels)}, expected labels that Kubernetes accepts")
    if not all(key in Attribute and origin in Provenance for key, origin in settings.provenance.items()):
        raise Disagreement(f"provenance: found {settings.provenance}, expected known words")
    if Provenance.UNKNOWN in settings.provenance.values() and not settings.warnings:
        raise Disagreement(f"warnings: found none, expected one for {settings.provenance}")
    for taint in settings.taints:
        if taint.effect not in EFFECTS or not isinstance(taint.value, str):
            raise Disagreement(f"taint: found {taint}, expected an effect of Kubernetes")
    for name in ("labels", "kube_reserved", "system_reserved", "eviction_hard"):
        pairs = getattr(settings, name).items()
        if not all(isinstance(key, str) and isinstance(text, str) for key, text in pairs):
            raise Disagreement(f"{name}: found {dict(pairs)}, expected texts")
    hash(tuple(str(getattr(settings, one.name)) for one in fields(settings)))


def _hold_warnings(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        if not warning.startswith("user data: ") or len(warning) > LONGEST_WARNING:
            raise Disagreement(
                f"warning: found {len(warning)} characters, {warning[:200]!r}, expected a short sentence"
            )
