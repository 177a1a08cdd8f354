"""Scripts of user data: a flag that only perhaps reaches kubelet is unknown, one that reaches it in any case counts."""

import base64
import time

import pytest

from leeward.node_template.provenance import Provenance
from leeward.node_template.user_data import kubelet_settings

CALL = "/etc/eks/bootstrap.sh blue"
TAKES = f'{CALL} --kubelet-extra-args "$ARGS"'
SPOT = "ARGS='--node-labels=life=spot'"
SURE, UNSURE = "life=spot | -", "- | labels"

SCRIPTS = {
    # conditions
    f"{SPOT}\n{TAKES}": SURE,
    f"[ $X = y ] && {SPOT}\n{TAKES}": UNSURE,
    f"[[ $X == y && $Z ]] && {{\n  {SPOT}\n}}\n{TAKES}": UNSURE,
    f"curl -sf http://169.254.169.254/x && {SPOT}\n{TAKES}": UNSURE,
    f"curl -sf http://169.254.169.254/x && \\\n  {SPOT}\n{TAKES}": UNSURE,
    f"curl -sf http://169.254.169.254/x &&\n  {SPOT}\n{TAKES}": UNSURE,
    f"is_batch || {SPOT}\n{TAKES}": UNSURE,
    f"is_batch || {{ {SPOT}; }}\n{TAKES}": UNSURE,
    f"if ! command -v jq; then {SPOT}; fi; {TAKES}": UNSURE,
    f"if a; then\n  b\nelif c; then\n  {SPOT}\nfi\n{TAKES}": UNSURE,
    f"case $X in\n  m5*) {SPOT} ;;\nesac\n{TAKES}": UNSURE,
    f"while read -r line; do {SPOT}; done < /etc/list\n{TAKES}": UNSURE,
    f"(( CORES > 8 )) && {SPOT}\n{TAKES}": UNSURE,
    f"({SPOT})\n{TAKES}": UNSURE,
    f"export A=1 && {SPOT} && echo set\n{TAKES}": SURE,
    f"a || b; {SPOT}\n{TAKES}": SURE,
    f"if a; then b; fi\n{SPOT}\n{TAKES}": SURE,
    f"case $X in a|b) c;; (d) e;; esac\n{SPOT}\n{TAKES}": SURE,
    # functions and files
    f"spot() {{\n  {SPOT}\n}}\n[ $X ] && spot\n{TAKES}": UNSURE,
    f"spot() {{ {SPOT}; }}\nspot\n{TAKES}": SURE,
    f"function spot {{\n  {SPOT}\n}}\n{TAKES}": UNSURE,
    f'main() {{\n  {SPOT}\n  {TAKES}\n}}\nmain "$@"': SURE,
    f"cat > /root/settings <<'EOF'\n{SPOT}\nEOF\n{TAKES}": UNSURE,
    f"cat > /root/settings <<'EOF'\n{SPOT}\nEOF\n. /root/settings\n{TAKES}": SURE,
    "cat <<-EOF > /etc/profile.d/bootstrap.sh\n\texport KUBELET_EXTRA_ARGS='--node-labels=life=spot'\n\tEOF": SURE,
    "echo 'export KUBELET_EXTRA_ARGS=--node-labels=life=spot' >> /etc/profile.d/bootstrap.sh": SURE,
    "echo 'KUBELET_ARGS=--node-labels=life=spot' | tee /etc/eks/more\n/etc/eks/bootstrap.sh blue": UNSURE,
    f"echo 'run with --node-labels=life=spot'\n{CALL}": "- | -",
    f": <<'DOC'\n{CALL} --kubelet-extra-args --node-labels=life=od\nDOC\n{SPOT}\n{TAKES}": SURE,
    f"bash -c '{CALL} --kubelet-extra-args --node-labels=life=spot'": SURE,
    f"sudo -E bash -x {CALL} --kubelet-extra-args '--node-labels=life=spot --v=2'": SURE,
    f"sudo bash <<'EOF'\n{CALL} --kubelet-extra-args --node-labels=life=spot\nEOF": SURE,
    # variables
    f"{SPOT}\n{CALL}": UNSURE,
    f"ARGS='--node-labels=life=od'\n{SPOT}\n{TAKES}": SURE,
    f"{SPOT}\nif a; then ARGS='--max-pods=8'; fi\n{TAKES}": "- | labels maxPods",
    f"{SPOT}\nif a; then ARGS+=' --max-pods=8'; fi\n{TAKES}": "life=spot | maxPods",
    f'{SPOT}\nARGS="$ARGS --max-pods=8"\n{TAKES}': "life=spot 8 pods | -",
    f"{TAKES}\n{SPOT}": UNSURE,
    f"export KUBELET_EXTRA_ARGS=--node-labels=life=spot\n{CALL} --kubelet-extra-args --max-pods=8": "8 pods | labels",
    f"ARGS=(--max-pods=8\n --node-labels=life=spot)\n{TAKES.replace('ARGS', '{ARGS[*]}')}": "life=spot 8 pods | -",
    f'ARGS="$ARGS --node-labels=life=spot"\n{CALL}': UNSURE,
    f"{SPOT}\nunset ARGS\n{TAKES}": "- | labels taints maxPods capacity",
    f"cat > /root/x <<'EOF'\n{SPOT}\nEOF\nbash /root/x\n{TAKES}": UNSURE,
    f"{SPOT}\n. /etc/site.env\n{TAKES}": UNSURE,
    f"{SPOT}\nsource /etc/os-release\n{TAKES}": SURE,
    f"cat > /root/x <<EOF\nSET='--node-labels=life=spot'\nARGS=$SET\nEOF\n. /root/x\n{TAKES}": UNSURE,
    f"{SPOT} | cat\n{TAKES}": UNSURE,
    f"{{ {SPOT}; }} &\n{TAKES}": UNSURE,
    f"{SPOT}\nARGS= | cat\n{TAKES}": SURE,
    f"echo x | while read -r line; do {SPOT}; done\n{TAKES}": UNSURE,
    f"{SPOT}\neval ARGS=--max-pods=8\n{TAKES}": "8 pods | -",
    f"{SPOT}\nprintf -v ARGS %s --max-pods=8\n{TAKES}": "- | labels taints maxPods capacity",
    f'ARGS="--node-labels=life=spot $MORE"\n{TAKES}': "life=spot | labels taints maxPods capacity",
    f'MORE=\nARGS="--node-labels=life=spot $MORE"\n{TAKES}': SURE,
    f'ARGS="--max-pods=8 $(curl -s x || echo --node-labels=life=od)"\n{TAKES}': (
        "8 pods | labels taints maxPods capacity"
    ),
    f'{SPOT}\n{CALL} --kubelet-extra-args "--node-labels=life=od $ARGS"': UNSURE,
    f"KUBELET_EXTRA_ARGS=--node-labels=life=spot\n{CALL}": UNSURE,
    f"KUBELET_EXTRA_ARGS=--node-labels=life=spot\nexport KUBELET_EXTRA_ARGS\n{CALL}": SURE,
    f"KUBELET_EXTRA_ARGS=--node-labels=life=spot\n{TAKES.replace('ARGS', 'KUBELET_EXTRA_ARGS')}": SURE,
    f"{SPOT}\n{CALL} --kubelet-extra-args --max-pods=8 || {TAKES}": "- | labels maxPods",
    f"BOOT={CALL[:-5]}\n$BOOT blue --kubelet-extra-args --node-labels=life=spot": SURE,
    f"trap '{CALL} --kubelet-extra-args --node-labels=life=od' ERR\n{CALL}": "- | labels",
    f"{CALL} $MORE": "- | labels taints maxPods capacity",
    f'{CALL} --b64-cluster-ca $CA --dns-cluster-ip "$DNS"': "- | -",
    # calls: of a condition that all boots share nothing follows
    f"yum update -y && {CALL} --kubelet-extra-args --node-labels=life=spot": SURE,
    f"{CALL} --kubelet-extra-args --node-labels=life=spot || exit 1": SURE,
    f"for i in 1 2 3; do {CALL} --kubelet-extra-args --node-labels=life=spot && break; done": SURE,
    f"boot() {{ {CALL} --kubelet-extra-args --node-labels=life=spot; }}\nretry 3 boot": SURE,
    f"retry 3 {CALL} --kubelet-extra-args --node-labels=life=spot": SURE,
    f"if ! {CALL} --kubelet-extra-args --node-labels=life=spot; then {CALL}; fi": UNSURE,
    f"if spot; then {CALL} --kubelet-extra-args --node-labels=life=spot; else start_otherwise; fi": UNSURE,
    # ends
    f"[ -f /done ] && exit 0\n{SPOT}\n{TAKES}": SURE,
    f"exit 0\n{SPOT}\n{TAKES}": UNSURE,
    f"die() {{ exit 1; }}\n{SPOT}\n{TAKES} || die": SURE,
    f"{CALL}\n[ -f /done ] && exit 0\nsnap set kubelet-eks node-labels=life=spot": UNSURE,
    # other programs and texts
    f"exec > >(tee /var/log/boot.log|logger -t boot -s 2>/dev/console) 2>&1\n{SPOT}\n{TAKES}": SURE,
    f"othertool --node-labels=life=spot\n{CALL}": UNSURE,
    f"agent --config=/etc/agent.json\n{CALL}": "- | -",
    f"{SPOT}\n{TAKES}\necho it's done": "- | labels taints maxPods capacity",
    # Ubuntu
    f'{CALL}\nsnap set kubelet-eks max-pods=8 node-labels="life=spot"': "life=spot 8 pods | -",
    f"{CALL} --kubelet-extra-args --max-pods=9\nsnap set kubelet-eks max-pods=8": "- | maxPods",
    f"{CALL}\n[ $X ] && snap set kubelet-eks max-pods=8": "- | maxPods",
    'snap set kubelet-eks "${flags[@]}"': "- | labels taints maxPods capacity",
}


def read(text):
    return kubelet_settings(base64.b64encode(text.encode()).decode())


def row_of(text):
    found = read(text)
    unknown = [attribute.value for attribute, origin in found.provenance.items() if origin is Provenance.UNKNOWN]
    assert bool(found.warnings) == bool(unknown), (text, found.warnings)
    shown = [f"{key}={value}" for key, value in found.labels.items()]
    shown += [f"{found.max_pods} pods"] if found.max_pods is not None else []
    return f"{' '.join(shown) or '-'} | {' '.join(unknown) or '-'}"


def test_a_flag_counts_where_it_reaches_kubelet_in_any_case():
    found = {script: row_of(f"#!/bin/bash\n{script}\n") for script in SCRIPTS}
    assert {script: row for script, row in found.items() if SCRIPTS[script] != row} == {}


def test_a_script_of_another_language_may_pass_what_is_not_seen():
    text = f"#!/usr/bin/env python3\nsubprocess.run(['{CALL}', '--kubelet-extra-args', '--node-labels=life=spot'])\n"
    assert row_of(text) == "- | labels taints maxPods capacity"


def test_taints_are_an_estimate_where_a_script_names_labels_alone():
    found = read("#!/bin/bash\nexport KUBELET_EXTRA_ARGS=--node-labels=life=spot\n")
    assert set(found.provenance.values()) == {Provenance.ESTIMATED}


FILE = f"#cloud-config\nwrite_files:\n- path: /root/boot\n  content: |\n    {CALL} --kubelet-extra-args --max-pods=8\n"
CLOUD_CONFIGS = {
    f'#cloud-config\nruncmd:\n- [bash, -c, "test -f /spot && {SPOT}; {TAKES.replace(chr(34), "")}"]\n': UNSURE,
    f"#cloud-config\nruncmd:\n- [{CALL.replace(' ', ', ')}, --kubelet-extra-args, --max-pods=8 --v=2]\n": "8 pods | -",
    f"{FILE}runcmd: [bash /root/boot]\n": "8 pods | -",
    f"{FILE}runcmd: [echo ready]\n": "- | maxPods",
    FILE.replace("/root/", "/var/lib/cloud/scripts/per-instance/"): "8 pods | -",
}


def test_a_file_of_a_cloud_config_counts_where_it_is_run():
    assert {text: row_of(text) for text in CLOUD_CONFIGS} == CLOUD_CONFIGS


@pytest.mark.parametrize(
    "text",
    [
        "sudo " * 13000 + CALL,
        "A=1\n" * 16000,
        "echo a > b\n" * 5800,
        "{ a\n" * 8000 + "}\n" * 8000,
        "f() { f; }\n" * 5800,
        "cat <<A >b\n--max-pods=7\nA\n" * 2600,
        "cat " + "<<A " * 8000 + "\n" + "A\n" * 16000,
        "eval '" * 16000,
        "[ x ] && A=--max-pods=7\n" * 2600 + TAKES,
        "case x in " + "a) b;; " * 8000 + "esac",
        "$(" * 16000 + ")" * 16000,
        " ".join(f"B{number}=--max-pods=7" for number in range(3000)) + f"\n{TAKES}",
        "".join(f"A{number}=$A{number + 1}\n" for number in range(4000)) + TAKES.replace("ARGS", "A1"),
        f"{CALL} --kubelet-extra-args $A\n" * 1100,
        "bash -c '" * 3 + " x" * 20000,
    ],
    ids=range(15),
)
def test_a_hostile_script_is_answered_within_a_second(text):
    began = time.process_time()
    read(f"#!/bin/bash\n{text[:64000]}")
    assert time.process_time() - began < 1


WINDOWS = {
    "<powershell>\n<#\n&{} '--max-pods=7'\n#>\n&{} '--max-pods=8'\n</powershell>": "8 pods | -",
    "<powershell>\nWrite-Host 'with --max-pods=7'\n&{} '--max-pods=8'\n</powershell>": "8 pods | -",
    "<script>\npowershell -File C:\\x\\Start-EKSBootstrap.ps1 -KubeletExtraArgs --max-pods=8\n</script>": "8 pods | -",
    "<script>\nif %X%==y set ARGS=--max-pods=8\npowershell -File Start-EKSBootstrap.ps1\n</script>": "- | maxPods",
    "version: 1.1\ntasks:\n- task: executeScript\n  inputs:\n  - content: |-\n      &{} '--max-pods=8'\n": "8 pods | -",
}


def test_windows_is_told_by_the_tags_and_the_tasks_of_ec2launch():
    texts = {text: text.replace("{}", " $EKSBootstrapScriptFile -KubeletExtraArgs") for text in WINDOWS}
    assert {read(text).family for text in texts.values()} == {"windows"}
    assert {text: row_of(filled) for text, filled in texts.items()} == WINDOWS
    assert read("#!/bin/bash\ncat > index.html <<EOF\n<script>\nEOF\n").family is None
