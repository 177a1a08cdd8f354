"""First day of a user on the local stack: what docs/getting-started-local.md tells, command by command."""

from dataclasses import dataclass

from local.aws.settings import KUBERNETES_VERSION

IMAGE = f"al2023@{KUBERNETES_VERSION}"  # behind it is an image that the groups do not have
KEEP = r"."


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One line for a shell. `expect`: patterns that its output has in this order. `exact`: the output is the same in
    every run, once ids and times are replaced. `shown`: lines that match stand on the page, the others are left out.
    """

    line: str
    expect: tuple[str, ...] = ()
    exact: bool = False
    shown: str = KEEP
    code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """Section of the page. `before`, `after`: its text. `schedules`: Leeward's schedules have run before it."""

    title: str
    before: str
    commands: tuple[Command, ...]
    after: str = ""
    schedules: bool = False


FOLDER = "build/first-day"
STORY = (
    Chapter(
        title="A cluster to try it on",
        before="""`kubectl` administrates the cluster. The ClusterRoles say what the `leeward` command and Leeward's
functions may do in it. The workloads are three Deployments, each under a PodDisruptionBudget.""",
        commands=(
            Command(
                line="kubectl apply -f manifests/cluster-role.yaml -f local/interactive/workloads.yaml",
                expect=(
                    r"clusterrole.rbac.authorization.k8s.io/leeward-read",
                    r"poddisruptionbudget.policy/web created",
                ),
                shown=r"leeward-read|deployment|poddisruption|daemonset",
                exact=True,
            ),
            Command(
                line="kubectl wait --for=condition=Available deployment --all --timeout=120s",
                expect=("deployment.apps/api condition met", "deployment.apps/web condition met"),
                exact=True,
            ),
            Command(line="kubectl get nodes", expect=(r"NAME +STATUS", r"ip-10-40-0-4\S+ +Ready"), exact=True),
        ),
    ),
    Chapter(
        title="Look at it without deploying anything",
        before="""`leeward snapshot` writes what `kubectl` and `aws` know into a folder. Every question can be asked
about that folder, which needs neither an account nor Leeward in the cluster. A policy says which
groups Leeward looks after.""",
        commands=(
            Command(
                line=f"leeward snapshot --cluster demo --to {FOLDER}",
                expect=(r"nodes.json +9", r"prices.json +[1-9]"),
            ),
            Command(line=f"cp local/interactive/policy.yaml {FOLDER}/policy.yaml"),
            Command(line=f"leeward policy validate {FOLDER}/policy.yaml", expect=("web",), exact=True),
            Command(
                line=f"leeward plan --snapshot {FOLDER} --what-if consolidation",
                expect=(r"9 nodes.*\$", r"after consolidation: \d nodes", "delete|replace", r"\$"),
            ),
            Command(
                line=f"leeward plan --snapshot {FOLDER} --what-if consolidation --until-done",
                expect=(r"9 nodes.*\$", r"\d nodes.*\$"),
            ),
            Command(
                line=f"leeward blockers --snapshot {FOLDER}",
                expect=("nothing blocks any of 9 nodes",),
                exact=True,
            ),
        ),
        after="""Nothing has been changed. The plan says what consolidation would do if the policy switched it on:
its next run, and with `--until-done` every run until nothing is left to do.""",
    ),
    Chapter(
        title="Deploy",
        before="""The settings name the cluster and the roles that the nodes run as. `cdk deploy` creates the functions,
state machines, queues and rules; on an account `make deploy` runs the same with the settings of
`cdk.json`. The policy is applied afterwards, and can be changed without a deployment.""",
        commands=(
            Command(
                line=f"""echo '{{"clusters": [{{"name": "demo"}}], """
                f""""nodeRoles": ["arn:aws:iam::000000000000:role/nodes"]}}' > {FOLDER}/settings.json"""
            ),
            Command(
                line="(cd build && cdk bootstrap aws://000000000000/us-east-1)",  # without an app to synthesize
                shown="✅",
                expect=("✅",),
            ),
            Command(
                line=f'cdk deploy --require-approval never --context leeward="$(cat {FOLDER}/settings.json)"',
                shown=r"✅|^Leeward\.(Dashboard|StateMachine|UpgradeMachine|DisruptionMachine)\w+ =",
                expect=("✅",),
            ),
            Command(
                line=f"leeward policy apply {FOLDER}/policy.yaml --cluster demo --yes",
                shown="^cluster",
                expect=("applied",),
            ),
        ),
    ),
    Chapter(
        title="Check the deployment",
        before="""Five minutes later every schedule has run once, and `leeward doctor` finds each part in order. It
warns of what you may want to decide, here that the alarms notify no topic.""",
        schedules=True,
        commands=(
            Command(
                line="leeward doctor --cluster demo",
                shown=r"^PART|state-machine|access-entry|selection|hook |alarm-actions|^fix|^\d+ ",
                expect=("access-entry", "selects web-on-demand, web-spot", r"(?m)^1 warning, \d+ ok$"),
            ),
        ),
    ),
    Chapter(
        title="A spot warning",
        before="""EC2 warns two minutes before it takes a spot instance. Leeward cordons the node, launches the
replacement first, drains within the budgets, and answers its lifecycle hook. `make spot` sends
the warning and follows the node.""",
        commands=(
            Command(
                line="make spot",
                expect=(
                    "sent: aws.ec2 'EC2 Spot Instance Interruption Warning'",
                    "draining",
                    "the replacement",
                    "done: web-spot",
                ),
            ),
        ),
    ),
    Chapter(
        title="Drain nodes",
        before="""The dry run shows which pods leave in which order, and what would block them. Without `--yes` the
drain asks first. Several nodes, and a label with `-l`, are drained by one command.""",
        commands=(
            Command(line="leeward drain ip-10-40-0-6 --cluster demo --dry-run", expect=("ip-10-40-0-6",)),
            Command(
                line="leeward drain ip-10-40-0-6 ip-10-40-1-4 --cluster demo --yes",
                expect=("draining", r"(?s)gone, \d+ pods? evicted.*gone, \d+ pods? evicted"),
            ),
        ),
    ),
    Chapter(
        title="Call a drain off",
        before="""Here a budget allows no disruption, so a drain waits. `leeward blockers` says what it waits for, and
`--cancel` returns the node to service.""",
        commands=(
            Command(
                line="""kubectl patch pdb web --type merge --patch '{"spec": {"maxUnavailable": 0}}'""",
                expect=("patched",),
                exact=True,
            ),
            Command(line="leeward drain ip-10-40-1-5 --cluster demo --yes --wait=false", expect=("started",)),
            Command(line="leeward blockers --cluster demo", expect=("pdb default/web",)),
            Command(
                line="leeward drain ip-10-40-1-5 --cluster demo --cancel",
                expect=("ip-10-40-1-5", "service"),
            ),
            Command(
                line="""kubectl patch pdb web --type merge --patch '{"spec": {"maxUnavailable": 1}}'""",
                expect=("patched",),
                exact=True,
            ),
        ),
    ),
    Chapter(
        title="Upgrade a group",
        before=f"""The pre-flight names what would stop the upgrade, how long it takes and what it costs. `{IMAGE}` is
AWS's newest image of that version of Kubernetes, which is the control plane's. `--watch` follows
the upgrade: new nodes come first, then the old ones are drained in waves within the budgets. Events
on the bus say that it started and how it ended; a webhook gets them as messages of Slack, Teams or
PagerDuty.""",
        commands=(
            Command(
                line=f"leeward upgrade plan web-on-demand --cluster demo --ami {IMAGE}",
                expect=("upgrade of web-on-demand: 4 nodes to replace", r"Surge costs: +.*\$", "Nothing blocks it"),
            ),
            Command(
                line=f"leeward upgrade start web-on-demand --cluster demo --ami {IMAGE} --yes --watch",
                expect=("web-on-demand: ", "4 new, 0 old, 0 draining, 0 failed"),
            ),
            Command(line="make notifications", shown="Upgrade", expect=("Upgrade Started", "Upgrade Finished")),
        ),
    ),
    Chapter(
        title="Metrics",
        before="""`leeward metrics` prints the state of terminations, upgrades, runs and pauses in Prometheus' text
format, for a textfile collector. CloudWatch has the metrics of the functions.""",
        commands=(Command(line="leeward metrics --cluster demo", shown="^[^#]", expect=("leeward_",)),),
    ),
    Chapter(
        title="Pause and resume",
        before="""A pause stops disruption, repair and upgrades within a minute, without a deployment. Interruptions
are still handled.""",
        commands=(
            Command(
                line='leeward pause --cluster demo --for 2h --why "release of the shop"',
                expect=("release of the shop",),
            ),
            Command(line='leeward resume --cluster demo --why "release is out"', expect=("demo",)),
        ),
    ),
    Chapter(
        title="Report",
        before="""The report draws an execution as one HTML page: a lane for each node, and every span in a table.""",
        commands=(
            Command(
                line=f"leeward report web-on-demand-1 --cluster demo --to {FOLDER}/upgrade.html",
                expect=("upgrade.html",),
            ),
        ),
    ),
    Chapter(
        title="Uninstall",
        before="""The pause keeps Leeward from putting its hook and taints back; `uninstall` takes them off nodes
and groups, and `cdk destroy` removes the rest.""",
        commands=(
            Command(line='leeward pause --cluster demo --all --why "before leeward uninstall"', expect=("demo",)),
            Command(line="leeward uninstall --cluster demo --yes", expect=("lifecycle hook",)),
            Command(
                line=f'cdk destroy --force --context leeward="$(cat {FOLDER}/settings.json)"',
                shown="✅",
                expect=("✅",),
            ),
        ),
        after="Ctrl-C in the first terminal stops the cluster.",
    ),
)
