"""Examples that stand below the help of each command; a test parses every one."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "blockers": ("blockers --cluster prod", "blockers ip-10-0-0-1 --cluster prod", "blockers --snapshot prod-state"),
    "inspect budget": ("inspect budget --cluster prod",),
    "completion": (
        "completion bash > /etc/bash_completion.d/leeward",
        "completion zsh > ~/.zsh/completions/_leeward",
        "completion fish > ~/.config/fish/completions/leeward.fish",
    ),
    "doctor": ("doctor", "doctor --cluster prod -o json"),
    "drain": (
        "drain ip-10-0-0-1 --cluster prod --dry-run",
        "drain i-0123456789abcdef0 --cluster prod --watch",
        "drain --group web --cluster prod --yes --wait=false",
        "drain ip-10-0-0-1 ip-10-0-0-2 --cluster prod --keep",
        "drain -l team=web --cluster prod --dry-run",
        "drain ip-10-0-0-1 --cluster prod --cancel",
    ),
    "drift": ("drift --cluster prod", "drift --snapshot prod-state -o json"),
    "inspect explain-event": (
        "inspect explain-event message.json",
        "inspect explain-event - --cluster prod < message.json",
    ),
    "inspect": ("inspect zones --cluster prod", "inspect template web --cluster prod"),
    "options": ("options",),
    "help": ("help drain", "help upgrade start", "help inspect zones"),
    "init": ("init --cluster prod", "init --snapshot prod-state --to first.yaml"),
    "inspect ips": (
        "inspect ips --instance-type m5.large --pods 20",
        "inspect ips --instance-type m5.large --pods 20 --warm-ip-target 5",
    ),
    "metrics": (
        "metrics --cluster prod",
        "metrics --cluster prod --to /var/lib/node_exporter/textfile_collector/leeward.prom",
    ),
    "pause": (
        'pause --cluster prod --for 2h --why "release of the shop"',
        'pause --cluster prod --group web --why "node image under test"',
        'pause --cluster prod --all --why "before leeward uninstall"',
    ),
    "inspect place": ("inspect place web --count 3 --pods 10 --cluster prod",),
    "plan": (
        "plan --cluster prod",
        "plan --snapshot prod-state --method consolidation",
        "plan --cluster prod --what-if consolidation --until-done",
        "plan --cluster prod --validate plan.json",
        "plan --cluster prod --apply --watch",
    ),
    "policy": (
        "policy validate policies/*.yaml",
        "policy diff policies/prod.yaml --cluster prod",
        "policy apply policies/*.yaml --cluster prod",
    ),
    "report": (
        "report i-0123456789abcdef0 --cluster prod --to report.html",
        "report record.json --to report.html",
    ),
    "resume": ('resume --cluster prod --why "release is out"',),
    "snapshot": ("snapshot --cluster prod --to prod-state",),
    "inspect template": (
        "inspect template web --cluster prod",
        "inspect template web --zone us-east-1a --snapshot prod-state",
    ),
    "top": ("top --cluster prod", "top --cluster prod --group web --sort-by cpu", "top --snapshot prod-state -o json"),
    "uninstall": ("uninstall --cluster prod --dry-run", "uninstall --cluster prod --yes"),
    "zone": ("zone evacuate us-east-1a --cluster prod --dry-run", "zone status --cluster prod"),
    "zone evacuate": (
        "zone evacuate us-east-1a --cluster prod --dry-run",
        'zone evacuate us-east-1a --cluster prod --why "packet loss" --watch',
        "zone evacuate us-east-1a --group web --cluster prod --yes",
        "zone evacuate us-east-1a --snapshot prod-state",
    ),
    "zone return": ("zone return us-east-1a --cluster prod",),
    "zone status": ("zone status --cluster prod", "zone status --cluster prod -o json"),
    "upgrade": ("upgrade plan web --cluster prod", "upgrade start web --cluster prod --watch"),
    "upgrade plan": (
        "upgrade plan web --cluster prod",
        "upgrade plan web --ami al2023@1.33 --snapshot prod-state",
        "upgrade plan web --cluster prod --recorded",
    ),
    "upgrade status": ("upgrade status web --cluster prod", "upgrade status web --cluster prod --watch"),
    "upgrade start": (
        "upgrade start web --cluster prod",
        "upgrade start web batch --cluster prod --kubernetes-version 1.31 --watch",
        "upgrade start web --cluster prod --yes --override PdbAllowsNoneNow",
    ),
    "upgrade pause": ("upgrade pause web --cluster prod",),
    "upgrade resume": ("upgrade resume web --cluster prod",),
    "upgrade abort": ("upgrade abort web --cluster prod",),
    "upgrade rollback": ("upgrade rollback web --cluster prod",),
    "version": ("version",),
    "inspect zones": (
        "inspect zones --cluster prod",
        "inspect zones --instance-type m5.large --pods 20 --snapshot prod-state",
    ),
}


def epilog_of(command: str) -> str | None:
    """Return the examples as they stand below the help of a command, such as `upgrade start`; None without any."""
    examples = EXAMPLES.get(command)
    return None if examples is None else "\n".join(["examples:", *(f"  leeward {example}" for example in examples)])
