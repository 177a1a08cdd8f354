"""Scripts of user data, run by bash: what is read for certain is what a stand-in of bootstrap.sh gets in each run."""

import base64
import subprocess
from random import Random

import pytest

from leeward.node_template.provenance import Attribute, Provenance
from leeward.node_template.user_data import kubelet_settings

FLAGS = ("--node-labels=life=a", "--node-labels=life=b", "--node-labels=team=x", "--max-pods=7", "--max-pods=9")
BOOTSTRAP = """#!/bin/bash
found="${KUBELET_EXTRA_ARGS:-}"
[ "$2" = --kubelet-extra-args ] && found="$3"
echo "$found" >> "$OUT"
"""
MAYBE = "#!/bin/bash\nexit $(( (SEED >> $1) & 1 ))\n"
SIMPLE = (
    "A='{f}'", "A='{f}'", "A+=' {f}'", 'A="$A {f}"', "export KUBELET_EXTRA_ARGS='{f}'", "KUBELET_EXTRA_ARGS='{f}'",
    "B='{f}'", 'A="$B {f}"', "A=$(maybe {n} && echo {f})", "unset A", "printf -v A %s '{f}'", "eval \"A='{f}'\"",
    "echo '{f}'", ": ${{A:={f}}}", "A='{f}' true", "exit 0", "bash -c \"A='{f}'\"", "set -e", "A= ",
)  # fmt: skip
BLOCKS = (
    "if maybe {n}; then\n{b}\nelse\n{c}\nfi", "maybe {n} && {{\n{b}\n}}", "maybe {n} || {{\n{b}\n}}", "(\n{b}\n)",
    "for i in 1 2; do\n{b}\ndone", "case $(maybe {n}; echo $?) in\n0)\n{b}\n;;\n*)\n{c}\n;;\nesac", "{{\n{b}\n}} | cat",
    "f{n}() {{\n{b}\n}}\nf{n}", "f{n}() {{\n{b}\n}}\nmaybe {n} && f{n}", "f{n}() {{\n{b}\n}}", "true && {{\n{b}\n}}",
    "cat > $DIR/s{n} <<'E{n}'\n{b}\nE{n}\n. $DIR/s{n}", "cat > $DIR/s{n} <<'E{n}'\n{b}\nE{n}\nbash $DIR/s{n}",
    "cat > $DIR/s{n} <<'E{n}'\n{b}\nE{n}\n", "echo x | while read -r line; do\n{b}\ndone", "{{\n{b}\n}} &\nwait",
)  # fmt: skip
CALLS = ('"$BOOT/bootstrap.sh" c --kubelet-extra-args "$A"', '"$BOOT/bootstrap.sh" c --kubelet-extra-args "$A {f}"')


class Writer:
    """Writes scripts of nested blocks."""

    def __init__(self, chance, directory):
        self.chance, self.directory, self.number = chance, directory, 0

    def block(self, depth):
        """Return one or two statements."""
        return "\n".join(self.statement(depth) for _ in range(self.chance.randrange(1, 3)))

    def statement(self, depth):
        """Return a command, or a block of them."""
        self.number += 1
        flags, nested = (
            " ".join(self.chance.sample(FLAGS, self.chance.choice((1, 1, 2)))),
            depth and self.chance.random(),
        )
        shape = self.chance.choice(BLOCKS if nested > 0.5 else (*SIMPLE, '"$BOOT/bootstrap.sh" c'))
        number = self.number % 40
        return shape.format(
            f=flags, n=number, b=self.block(depth - 1) if depth else ":", c=self.block(0) if depth else ":"
        )

    def script(self):
        """Return a script that calls bootstrap.sh in the end."""
        call = self.chance.choice(CALLS).format(f=self.chance.choice(FLAGS))
        text = "\n".join(["#!/bin/bash", *(self.statement(2) for _ in range(self.chance.randrange(1, 5))), call, ""])
        return text.replace("$BOOT", f"{self.directory}/eks").replace("$DIR", str(self.directory))


def runs(script, directory, seeds):
    """Labels and max pods of each run in which the node boots, from its last call of bootstrap.sh."""
    found = []
    for seed in seeds:
        out = directory / "out"
        out.unlink(missing_ok=True)
        environment = {"PATH": f"{directory}/bin:/usr/bin:/bin", "OUT": str(out), "SEED": str(seed)}
        subprocess.run(["bash", "-c", script], env=environment, capture_output=True, check=False, timeout=20)
        for words in [line.split() for line in out.read_text().splitlines()[-1:]] if out.exists() else ():
            pairs = [word.split("=", 2) for word in words]
            labels = {pair[1]: pair[2] for pair in pairs if pair[0] == "--node-labels"}
            found.append((labels, next((int(pair[1]) for pair in pairs[::-1] if pair[0] == "--max-pods"), None)))
    return found


def disagreement(script, directory, chance):
    """Say which value the reader is sure of, and a run does not have."""
    settings = kubelet_settings.__wrapped__(base64.b64encode(script.encode()).decode())
    origins = [settings.provenance.get(name) for name in (Attribute.LABELS, Attribute.MAX_PODS)]
    if origins == [Provenance.UNKNOWN, Provenance.UNKNOWN]:
        return ""
    for labels, pods in runs(script, directory, [0, 2**41 - 1, chance.getrandbits(41)]):
        if origins[0] is not Provenance.UNKNOWN and labels != settings.labels:
            return f"{script}\nread {settings.labels}, ran {labels}"
        if origins[1] is not Provenance.UNKNOWN and pods != settings.max_pods:
            return f"{script}\nread {settings.max_pods} pods, ran {pods}"
    return ""


def compared(directory, seeds):
    for name, text in {"eks/bootstrap.sh": BOOTSTRAP, "bin/maybe": MAYBE}.items():
        (directory / name).parent.mkdir()
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    chances = [Random(seed) for seed in seeds]
    return [
        found for chance in chances if (found := disagreement(Writer(chance, directory).script(), directory, chance))
    ]


def test_a_value_that_is_sure_is_that_of_each_run(tmp_path):
    assert compared(tmp_path, range(100)) == []


@pytest.mark.long
def test_a_value_that_is_sure_is_that_of_each_run_of_thousands(tmp_path):
    assert compared(tmp_path, range(100, 5000)) == []
