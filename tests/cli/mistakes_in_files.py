"""Mistakes in what the command line reads: snapshot folders, policies, and live clusters.

`FOLDERS` are the small snapshot with something wrong; in the arguments `{name}` is its folder. `LIVE` is about
clusters that answer, or do not."""

from tests.cli.command import SMALL
from tests.fakes.builders import GROUP

WEB = "apiVersion: leeward.dev/v1\nkind: NodePolicy\nmetadata: {name: web}\nspec: "
NODE = {"kind": "Node", "metadata": {"name": "n1"}, "spec": {}}
SELECTOR = "selector: {groups: [web-1]}"
FOLDERS = {
    "no_pods": {"pods": None},
    "no_pdbs": {"pdbs": None},
    "no_groups": {"auto_scaling_groups": None},
    "as_yaml": {"nodes": "items:\n- kind: Node\n"},
    "as_text": {"nodes": "NAME     STATUS\nnode-a   Ready\n"},
    "cut_off": {"pods": '{"items": [{"kind": "Pod", "metadata"'},
    "nothing_in_it": {"pods": ""},
    "another_command": {"nodes": {"AutoScalingGroups": []}},
    "quantity": {"nodes": {"items": [{**NODE, "status": {"capacity": {"cpu": "four"}}}]}},
    "price": {"prices": {"on-demand": {"m5.large": "cheap"}}},
    "key": {"policy": f"{WEB}{{{SELECTOR}, drian: {{}}}}\n"},
    "duration": {"policy": f"{WEB}{{{SELECTOR}, drain: {{timeout: 15 minutes}}}}\n"},
    "cron": {
        "policy": f"{WEB}{{{SELECTOR}, disruption: {{budgets: [{{nodes: 1, schedule: at nine, duration: 8h}}]}}}}\n"
    },
    "half_a_window": {"policy": f"{WEB}{{{SELECTOR}, disruption: {{budgets: [{{nodes: 1, duration: 8h}}]}}}}\n"},
    "selects_nothing": {"policy": f"{WEB}{{selector: {{}}}}\n"},
    "no_document": {"policy": "# nothing yet\n---\n"},
    "tab": {"policy": "apiVersion: leeward.dev/v1\n\tkind: NodePolicy\n"},
    "kind": {"policy": "apiVersion: leeward.dev/v1\nkind: NodePool\nmetadata: {name: web}\nspec: {}\n"},
}
EMPTY = "empty"
MISSING = "expected the file, an empty list at least"

IN_FILES: tuple[tuple[str, int, str], ...] = (
    # a file or a folder that lacks what decides: never an answer about an empty cluster
    (f"plan --snapshot {{{EMPTY}}}", 2, "plan: found no nodes.json (kubectl get nodes -o json), pods.json"),
    (f"blockers --snapshot {{{EMPTY}}}", 2, MISSING),
    (f"drift --snapshot {{{EMPTY}}}", 2, MISSING),
    (f"inspect zones --snapshot {{{EMPTY}}}", 2, MISSING),
    (f"top --snapshot {{{EMPTY}}}", 2, MISSING),
    ("plan --snapshot {no_pods}", 2, f"found no pods.json (kubectl get pods -A -o json), {MISSING}"),
    ("plan --snapshot {no_pdbs}", 2, f"found no pdbs.json (kubectl get pdb -A -o json), {MISSING}"),
    ("drain node-a --snapshot {no_pods}", 2, "drain: found no pods.json (kubectl get pods -A -o json)"),
    ("drain node-a --snapshot {no_pdbs}", 2, "drain: found no pdbs.json (kubectl get pdb -A -o json)"),
    ("blockers --snapshot {no_pdbs}", 2, "blockers: found no pdbs.json (kubectl get pdb -A -o json)"),
    ("upgrade plan web-1 --snapshot {no_pdbs}", 2, "upgrade plan: found no pdbs.json (kubectl get pdb -A -o json)"),
    (
        "inspect template web-1 --snapshot {no_groups}",
        2,
        "found no auto-scaling-groups.json (aws autoscaling describe-auto-",
    ),
    (
        f"inspect zones --snapshot {SMALL}",
        2,
        "subnets.json: Subnets: found no such file, expected the output of: aws ec2",
    ),
    # the output of something else
    ("plan --snapshot {as_yaml}", 2, 'nodes.json: line 1 column 1: found "items:\\n- kind: Node\\n" (Expecting value)'),
    ("plan --snapshot {as_text}", 2, "expected JSON, the output of: kubectl get nodes -o json"),
    ("plan --snapshot {cut_off}", 2, 'pods.json: line 1 column 38: found ""'),
    ("plan --snapshot {nothing_in_it}", 2, "pods.json: document: found an empty file, expected JSON, the output of"),
    ("plan --snapshot {another_command}", 2, "nodes.json: document: found a mapping, expected a mapping with items"),
    ("plan --snapshot {quantity}", 2, 'capacity.cpu: found "four", expected a quantity such as 500m, 2 or 1.5Gi'),
    ("plan --snapshot {price}", 2, 'on-demand["m5.large"]: found "cheap", expected a number, 0 or more'),
    # policies
    (
        "plan --snapshot {key}",
        2,
        "policy.yaml: spec.drian: found an unknown key, expected one of selector, interruption",
    ),
    ("policy validate {key}/policy.yaml", 2, "spec.drian: found an unknown key, expected one of selector"),
    ("policy validate {duration}/policy.yaml", 2, 'found "15 minutes", expected a duration such as 15m or 1h30m'),
    ("policy validate {cron}/policy.yaml", 2, 'schedule: found "at nine", expected a cron line of five fields'),
    ("policy validate {half_a_window}/policy.yaml", 2, "disruption.budgets[0]"),
    ("policy validate {selects_nothing}/policy.yaml", 2, "found an empty selector, expected groups or tags"),
    ("policy validate {no_document}/policy.yaml", 2, "document: found none in the file, expected at least one policy"),
    (f"policy validate {SMALL}/policy.yaml {{no_document}}/policy.yaml", 2, "document: found none in the file"),
    ("policy apply {no_document}/policy.yaml --cluster blue", 2, "document: found none in the file"),
    ("policy validate {tab}/policy.yaml", 2, "line 2 column 1: found no YAML"),
    ("policy validate {kind}/policy.yaml", 2, 'kind: found "NodePool", expected'),
    ("policy validate nowhere.yaml", 2, "nowhere.yaml: found no such file, expected the policies of a cluster"),
    ("policy validate", 2, "policy: found nothing, expected FILE"),
    ("policy check x.yaml", 2, "found 'check', expected one of validate, diff, apply"),
    (f"policy diff {SMALL}/policy.yaml", 2, "policy diff: found neither --cluster nor --snapshot"),
    (f"policy apply {SMALL}/policy.yaml", 2, "found no --cluster, expected --cluster NAME: policies are applied live"),
    # files that are read or written
    (
        f"plan --validate {SMALL}/policy.yaml --snapshot {SMALL}",
        2,
        "expected JSON, the output of: leeward plan -o json",
    ),
    (f"inspect explain-event {SMALL}", 2, "found no readable file (Is a directory), expected an SQS message body"),
    ("report nowhere.json --to x.html", 2, "nowhere.json: found no readable file (No such file or directory)"),
    ("report --to x.html", 2, "report: found nothing, expected EXECUTION|RECORD"),
    (f"init --snapshot {SMALL} --to /nowhere/policy.yaml", 2, "--to: /nowhere/policy.yaml: cannot be written: No such"),
    ("snapshot --to /etc --cluster blue --region us-east-1", 2, "--to: found '/etc' with "),
    # names that the group does not have
    (
        f"inspect template web-1 --zone us-east-1z --snapshot {SMALL}",
        2,
        "found zone 'us-east-1z', expected one of the group's: ",
    ),
    (
        f"inspect template web-1 --instance-type m9.large --snapshot {SMALL}",
        2,
        "found instance type 'm9.large', expected one of",
    ),
)

LIVE: tuple[tuple[str, str, int, str], ...] = (
    # the cluster, by its function in test_mistakes.py
    (
        "no_cluster",
        "drain i-0abc --dry-run",
        2,
        "--cluster: found no cluster 'blue' in account 111122223333, Region eu-west-1",
    ),
    (
        "no_cluster",
        "blockers i-0abc --region eu-west-1",
        2,
        "aws eks list-clusters --region eu-west-1 shows them; --region, --profile or AWS_PROFILE name another place",
    ),
    ("denied", "drain i-0abc --dry-run", 1, "list nodes: forbidden (account 111122223333, Region eu-west-1)"),
    (
        "no_region",
        "top --region us-esat-1",
        1,
        "--region: found 'us-esat-1', expected an AWS Region; did you mean us-east-1?",
    ),
    (
        "usual",
        "drain i-0abd --dry-run",
        2,
        "found no node 'i-0abd', expected one of its nodes: node-i-0abc; did you mean",
    ),
    ("usual", "drain --group web-b --dry-run", 2, "expected one of the cluster's groups: web-a; did you mean web-a?"),
    ("usual", f"upgrade pause {GROUP}", 2, "pause"),
    ("usual", f"upgrade start {GROUP} {GROUP} --yes", 2, GROUP),
    ("usual", "plan --apply --yes --sort-by size", 2, "--sort-by: found 'size', expected one of"),
    ("usual", f"policy apply --yes {SMALL}/policy.yaml", 2, 'metadata.name: found "prod", expected "blue"'),
    ("not_deployed", "plan --apply --yes", 1, "leeward doctor checks the deployment"),
)
