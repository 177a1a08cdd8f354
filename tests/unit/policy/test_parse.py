from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.errors import InvalidPolicyError
from leeward.policy.document import (
    NO_DISRUPTION,
    Budget,
    Canary,
    ClusterPolicies,
    ClusterSettings,
    DesiredNode,
    DesiredTaint,
    DisruptionPolicy,
    GroupSelector,
    NodePolicy,
    NodeRequirement,
    OnAlarm,
    Rebalance,
    Webhook,
    Window,
)
from leeward.policy.repair import NO_REPAIR, RepairAction, RepairCondition, RepairPolicy
from leeward.policy.write import canonical, to_json
from tests.unit.policy.documents import API, a_policy, parse, parse_one, some_settings
from tests.unit.policy.strategies import node_policies


def problems(*documents, cluster="prod"):
    with pytest.raises(InvalidPolicyError) as refused:
        parse(*documents, cluster=cluster)
    return str(refused.value).splitlines()


def problem(**spec):
    lines = problems(a_policy(**spec))
    assert len(lines) == 1, lines
    assert lines[0].startswith("p.yaml#1: spec.")
    return lines[0].removeprefix("p.yaml#1: spec.")


def test_a_policy_that_says_nothing_has_every_default_and_disrupts_and_repairs_nothing():
    plain = NodePolicy(
        name="web", selector=GroupSelector(groups=("web-*",)), disruption=NO_DISRUPTION, repair=NO_REPAIR
    )
    assert parse(a_policy()).policies == (plain,)
    rules = plain.disruption
    assert (rules.present, rules.consolidation_policy, rules.drift, rules.expire_after) == (False, "Never", False, None)
    assert not plain.repair.enabled


def test_an_empty_section_switches_its_defaults_on():
    policy = parse_one(disruption={}, repair={})
    assert (policy.disruption, policy.repair) == (DisruptionPolicy(), RepairPolicy())


def test_repair_is_switched_off_by_leaving_the_section_out():
    assert problem(repair={"enabled": False}).startswith("repair.enabled: ")


def test_conditions_of_a_policy_replace_the_default_ones():
    conditions = [
        {"type": "AcceleratedHardwareReady", "reason": "NvidiaXID64Error", "after": "5m"},
        {"type": "AcceleratedHardwareReady", "action": "none"},
    ]
    assert parse_one(repair={"conditions": conditions}).repair.conditions == (
        RepairCondition(type="AcceleratedHardwareReady", reason="NvidiaXID64Error", after=timedelta(minutes=5)),
        RepairCondition(type="AcceleratedHardwareReady", action=RepairAction.NONE),
    )
    assert parse_one(repair={"conditions": []}).repair.conditions == ()


def test_a_condition_is_named_once():
    twice = {"type": "KernelReady"}, {"type": "KernelReady", "status": "False", "after": "1m"}
    assert problem(repair={"conditions": list(twice)}).startswith("repair.conditions[1].type: ")


def test_null_counts_as_absent():
    assert parse_one(drain=None, update={"maxUnavailable": None}) == parse_one()


def test_no_documents_leave_a_cluster_with_default_settings():
    assert parse(cluster="prod") == ClusterPolicies(settings=ClusterSettings(name="prod"))


def test_every_key_can_be_set():
    policy = parse_one(
        selector={"groups": ["a-*", "b"], "tags": {"team": "web", "k8s.io/x": ""}},
        interruption={
            "enabled": False,
            "rebalanceRecommendation": "cordon",
            "heartbeat": {"interval": "30s", "until": "172800s"},
            "hooks": ["theirs"],
        },
        drain={
            "timeout": "1h",
            "force": True,
            "terminationGracePeriod": "30m",
            "settle": "0s",
            "deregistrationTimeout": "1m",
            "volumeDetachTimeout": "2m",
            "unmanagedPods": "refuse",
            "localData": "refuse",
            "singleReplicas": "surge",
        },
        update={
            "maxUnavailablePercentage": 33,
            "strategy": "INCREMENTAL",
            "maxSurge": "25%",
            "order": "zone",
            "terminate": "first",
            "canary": {"nodes": 1, "bake": "5m"},
            "alarms": ["errors"],
            "onAlarm": "rollback",
            "windows": [{"schedule": "0 22 * * *", "duration": "6h"}],
        },
        requirements=[
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["a", "b"], "minValues": 2}
        ],
        node={
            "labels": {"team": "web"},
            "annotations": {"x/y": "z"},
            "taints": [{"key": "gpu", "effect": "NoSchedule", "value": "yes"}],
            "startupTaints": [{"key": "boot", "effect": "NoExecute"}],
        },
        disruption={
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": "Never",
            "expireAfter": "720h",
            "drift": False,
            "minimumSavings": {"perHour": 0, "percent": 0},
            "cooldown": "1m",
            "alarms": ["latency"],
            "spotToSpot": {"enabled": True, "minimumTypes": 3},
            "architecture": "any",
            "budgets": [{"nodes": 5, "zone": "us-east-1a", "reasons": ["Upgrade", "Empty"]}],
            "doNotDisrupt": True,
        },
        finalizer=True,
        repair={"notReadyAfter": "1m", "impairedAfter": "3m", "maxUnhealthy": 2},
        placement={"cni": {"WARM_IP_TARGET": 5, "ENABLE_POD_ENI": True, "MAX_ENI": "nonsense"}},
        template={"precedence": "eks-api", "ttl": "5m"},
    )
    assert policy.selector.tags == {"team": "web", "k8s.io/x": ""}
    assert policy.interruption.rebalance is Rebalance.CORDON
    assert policy.interruption.heartbeat.interval == timedelta(seconds=30)
    assert policy.interruption.hooks == ("theirs",)
    assert not policy.interruption.enabled
    assert policy.drain.termination_grace_period == timedelta(minutes=30)
    assert (policy.drain.evict_unmanaged, policy.drain.delete_local_data) == (False, False)
    assert (policy.drain.surge_single_replicas, policy.drain.force) == (True, True)
    assert (policy.update.max_unavailable, policy.update.max_unavailable_percentage) == (None, 33)
    assert policy.update.canary == Canary(nodes=1, bake=timedelta(minutes=5))
    assert (policy.update.alarms, policy.update.on_alarm) == (("errors",), OnAlarm.ROLLBACK)
    assert policy.update.windows == (Window(schedule="0 22 * * *", duration=timedelta(hours=6)),)
    assert policy.requirements == (
        NodeRequirement(key="node.kubernetes.io/instance-type", operator="In", values=("a", "b"), min_values=2),
    )
    assert policy.node == DesiredNode(
        labels={"team": "web"},
        annotations={"x/y": "z"},
        taints=(DesiredTaint(key="gpu", effect="NoSchedule", value="yes"),),
        startup_taints=(DesiredTaint(key="boot", effect="NoExecute"),),
    )
    assert (policy.disruption.consolidate_after, policy.disruption.expire_after) == (None, timedelta(hours=720))
    assert (policy.disruption.savings_per_hour, policy.disruption.savings_percent) == (0, 0)
    assert policy.disruption.budgets == (
        Budget(nodes=5, percent=False, zone="us-east-1a", reasons=("Upgrade", "Empty")),
    )
    assert (policy.repair.max_unhealthy, policy.repair.max_unhealthy_percent) == (2, False)
    assert policy.cni == {"WARM_IP_TARGET": "5", "ENABLE_POD_ENI": "true", "MAX_ENI": "nonsense"}
    assert policy.template.ttl == timedelta(minutes=5)


def test_karpenters_older_names_are_whole_seconds():
    disruption = parse_one(disruption={"ttlSecondsAfterEmpty": 30, "ttlSecondsUntilExpired": 2_592_000}).disruption
    assert disruption.consolidate_after == timedelta(seconds=30)
    assert disruption.expire_after == timedelta(days=30)


@pytest.mark.parametrize(
    ("written", "nodes", "percent"), [("10%", 10, True), ("100%", 100, True), ("5", 5, False), (0, 0, False)]
)
def test_a_budgets_nodes_are_a_count_or_a_share(written, nodes, percent):
    (budget,) = parse_one(disruption={"budgets": [{"nodes": written}]}).disruption.budgets
    assert (budget.nodes, budget.percent) == (nodes, percent)


def test_an_empty_list_of_budgets_is_no_limit():
    assert parse_one(disruption={"budgets": []}).disruption.budgets == ()


def test_a_budgets_window_has_a_time_zone():
    written = {"nodes": 0, "schedule": "0 9 * * mon-fri", "duration": "8h", "timeZone": "Europe/Berlin"}
    (budget,) = parse_one(disruption={"budgets": [written]}).disruption.budgets
    assert budget.window == Window(schedule="0 9 * * mon-fri", duration=timedelta(hours=8), time_zone="Europe/Berlin")


def test_a_clusters_settings_are_read_wherever_they_stand():
    written = some_settings(
        drift=False,
        webhook={"url": "https://hooks.example.com/x"},
        freeze=[{"schedule": "@yearly", "duration": "24h"}],
    )
    parsed = parse(a_policy(), written, a_policy("api"))
    assert parsed.settings == ClusterSettings(
        name="prod",
        drift=False,
        webhook=Webhook(url="https://hooks.example.com/x"),
        freeze=(Window(schedule="@yearly", duration=timedelta(hours=24)),),
    )
    assert [policy.name for policy in parsed.policies] == ["web", "api"]


def test_offline_without_a_clusters_name_any_settings_are_taken():
    assert parse(some_settings("blue"), cluster="").settings.name == "blue"


WINDOW = {"schedule": "0 9 * * *", "duration": "8h"}
REFUSALS = [  # spec, path, found, part of what was expected
    ({"foo": 1}, "foo", "an unknown key", "one of selector, interruption, drain"),
    ({"selector": {"group": ["x"]}}, "selector.group", "an unknown key", "one of groups, tags"),
    ({"selector": ["x"]}, "selector", "a list", "a mapping"),
    ({"selector": {"groups": "web-*"}}, "selector.groups", '"web-*"', "a list of texts"),
    ({"selector": {"groups": ["a", 1]}}, "selector.groups[1]", "1", "text"),
    ({"selector": {"groups": ["a", "a"]}}, "selector.groups[1]", '"a" twice', "each once"),
    ({"selector": {"tags": {"k8s.io/x": True}}}, 'selector.tags["k8s.io/x"]', "true", "text"),
    ({"interruption": {"enabled": "yes"}}, "interruption.enabled", '"yes"', "true or false"),
    ({"interruption": {"enabled": 1}}, "interruption.enabled", "1", "true or false"),
    (
        {"interruption": {"rebalanceRecommendation": "drain"}},
        "interruption.rebalanceRecommendation",
        '"drain"',
        "one of ignore, cordon, replace",
    ),
    (
        {"interruption": {"heartbeat": {"interval": "29s"}}},
        "interruption.heartbeat.interval",
        '"29s"',
        "auto or a duration such as 15m or 1h30m, from 30s to 1h",
    ),
    (
        {"interruption": {"heartbeat": {"interval": "3601s"}}},
        "interruption.heartbeat.interval",
        '"3601s"',
        "from 30s to 1h",
    ),
    ({"interruption": {"heartbeat": {"interval": "Never"}}}, "interruption.heartbeat.interval", '"Never"', "auto or"),
    ({"interruption": {"heartbeat": {"until": "59s"}}}, "interruption.heartbeat.until", '"59s"', "from 1m to 48h"),
    (
        {"interruption": {"heartbeat": {"until": "172801s"}}},
        "interruption.heartbeat.until",
        '"172801s"',
        "from 1m to 48h",
    ),
    ({"drain": {"settle": "never"}}, "drain.settle", '"never"', "auto or a duration such as 15m"),
    ({"interruption": {"hooks": [""]}}, "interruption.hooks[0]", '""', "text that is not empty"),
    (
        {"node": {"annotations": {"leeward.dev/empty-since": "now", "leeward.dev/do-not-disrupt": "true"}}},
        "node.annotations",
        "leeward.dev/empty-since",
        "no keys below leeward.dev/ but leeward.dev/do-not-disrupt",
    ),
    ({"drain": {"timeout": 900}}, "drain.timeout", "900", "a duration such as 15m"),
    ({"drain": {"timeout": "15 min"}}, "drain.timeout", '"15 min"', "a duration such as 15m"),
    ({"drain": {"timeout": "-5m"}}, "drain.timeout", '"-5m"', "a duration"),
    ({"drain": {"terminationGracePeriod": "Never"}}, "drain.terminationGracePeriod", '"Never"', "a duration"),
    ({"drain": {"unmanagedPods": "delete"}}, "drain.unmanagedPods", '"delete"', "one of evict, refuse"),
    ({"drain": {"localData": True}}, "drain.localData", "true", "one of delete, refuse"),
    ({"drain": {"singleReplicas": "no"}}, "drain.singleReplicas", '"no"', "one of surge, evict"),
    ({"drain": "fast"}, "drain", '"fast"', "a mapping"),
    ({"update": {"maxUnavailable": 0}}, "update.maxUnavailable", "0", "a whole number from 1 to 100"),
    ({"update": {"maxUnavailable": 101}}, "update.maxUnavailable", "101", "a whole number from 1 to 100"),
    ({"update": {"maxUnavailable": True}}, "update.maxUnavailable", "true", "a whole number from 1 to 100"),
    ({"update": {"maxUnavailable": "10%"}}, "update.maxUnavailable", '"10%"', "a whole number from 1 to 100"),
    ({"update": {"maxUnavailable": 1.0}}, "update.maxUnavailable", "1.0", "a whole number"),
    (
        {"update": {"maxUnavailablePercentage": 0}},
        "update.maxUnavailablePercentage",
        "0",
        "a whole number from 1 to 100",
    ),
    ({"update": {"maxUnavailablePercentage": 101}}, "update.maxUnavailablePercentage", "101", "from 1 to 100"),
    (
        {"update": {"maxUnavailable": 1, "maxUnavailablePercentage": 10}},
        "update.maxUnavailablePercentage",
        "10",
        "only one of maxUnavailable and",
    ),
    ({"update": {"maxSurge": 0}}, "update.maxSurge", "0", "auto, or a number of nodes or a share from 1"),
    ({"update": {"maxSurge": "0%"}}, "update.maxSurge", '"0%"', "a share from 1"),
    ({"update": {"maxSurge": "all"}}, "update.maxSurge", '"all"', "auto, or a number"),
    ({"update": {"maxSurge": 3, "strategy": "MINIMAL"}}, "update.maxSurge", "3", "MINIMAL launches no node ahead"),
    ({"update": {"strategy": "default"}}, "update.strategy", '"default"', "one of DEFAULT, MINIMAL, INCREMENTAL"),
    ({"update": {"order": "name"}}, "update.order", '"name"', "one of waves, random, zone, age"),
    ({"update": {"terminate": "never"}}, "update.terminate", '"never"', "one of last, first"),
    ({"update": {"canary": {"nodes": -1}}}, "update.canary.nodes", "-1", "a whole number of at least 0"),
    ({"update": {"canary": {"node": 1}}}, "update.canary.node", "an unknown key", "one of nodes, bake"),
    (
        {"update": {"windows": [{"schedule": "0 9 * * *"}]}},
        "update.windows[0].duration",
        "nothing",
        "schedule needs a duration",
    ),
    ({"update": {"windows": ["0 9 * * *"]}}, "update.windows[0]", '"0 9 * * *"', "a mapping"),
    (
        {"update": {"windows": [{**WINDOW, "nodes": 1}]}},
        "update.windows[0].nodes",
        "an unknown key",
        "one of schedule, duration, timeZone",
    ),
    ({"requirements": {"key": "x"}}, "requirements", "a mapping", "a list of mappings"),
    ({"requirements": [{"operator": "Exists"}]}, "requirements[0].key", "nothing", "a node label's key"),
    ({"requirements": [{"key": "x"}]}, "requirements[0].operator", "nothing", "one of In, NotIn"),
    ({"requirements": [{"key": "x", "operator": "Has"}]}, "requirements[0].operator", '"Has"', "one of In, NotIn"),
    (
        {"requirements": [{"key": "x", "operator": "In"}]},
        "requirements[0].values",
        "nothing",
        "at least one value with operator In",
    ),
    (
        {"requirements": [{"key": "x", "operator": "Exists", "values": ["a"]}]},
        "requirements[0].values",
        "a list",
        "no values with operator Exists",
    ),
    (
        {"requirements": [{"key": "x", "operator": "Gt", "values": ["a"]}]},
        "requirements[0].values",
        "a list",
        "one whole number in quotes",
    ),
    (
        {"requirements": [{"key": "x", "operator": "In", "values": ["a"], "minValues": 2}]},
        "requirements[0].minValues",
        "2",
        "at most as many as values",
    ),
    ({"node": {"labels": {"a": 1}}}, "node.labels.a", "1", "text"),
    ({"node": {"labels": {1: "a"}}}, "node.labels", "the key 1", "text that is not empty as key"),
    ({"node": {"taints": [{"key": "a"}]}}, "node.taints[0].effect", "nothing", "one of NoSchedule"),
    ({"node": {"taints": [{"effect": "NoSchedule"}]}}, "node.taints[0].key", "nothing", "a taint's key"),
    (
        {"node": {"taints": [{"key": "a", "effect": "NO_SCHEDULE"}]}},
        "node.taints[0].effect",
        '"NO_SCHEDULE"',
        "one of NoSchedule",
    ),
    (
        {"node": {"taints": [{"key": "a", "effect": "NoExecute"}] * 2}},
        "node.taints[1].key",
        '"a"',
        "each pair of key and effect once",
    ),
    (
        {"disruption": {"consolidationPolicy": "WhenUnderutilized"}},
        "disruption.consolidationPolicy",
        '"WhenUnderutilized"',
        "one of WhenEmptyOrUnderutilized, WhenEmpty, Balanced, Never",
    ),
    ({"disruption": {"consolidateAfter": "never"}}, "disruption.consolidateAfter", '"never"', "Never or a duration"),
    (
        {"disruption": {"consolidateAfter": "5m", "ttlSecondsAfterEmpty": 30}},
        "disruption.ttlSecondsAfterEmpty",
        "30",
        "only one of consolidateAfter and ttlSecondsAfterEmpty",
    ),
    (
        {"disruption": {"expireAfter": "1h", "ttlSecondsUntilExpired": 30}},
        "disruption.ttlSecondsUntilExpired",
        "30",
        "only one of expireAfter and",
    ),
    (
        {"disruption": {"consolidationPolicy": "Never", "ttlSecondsAfterEmpty": 30}},
        "disruption.ttlSecondsAfterEmpty",
        "30",
        "nothing, as consolidationPolicy Never",
    ),
    (
        {"disruption": {"ttlSecondsAfterEmpty": "30s"}},
        "disruption.ttlSecondsAfterEmpty",
        '"30s"',
        "a whole number from 0",
    ),
    ({"disruption": {"ttlSecondsAfterEmpty": False}}, "disruption.ttlSecondsAfterEmpty", "false", "a whole number"),
    (
        {"disruption": {"expireAfter": "0s"}},
        "disruption.expireAfter",
        '"0s"',
        "Never or a duration such as 15m or 1h30m, at least 1s",
    ),
    (
        {"disruption": {"expireAfter": "720h±60%"}},
        "disruption.expireAfter",
        '"720h±60%"',
        "with a spread of 1% to 50%: 720h±10%",
    ),
    ({"disruption": {"expireAfter": "720h±0%"}}, "disruption.expireAfter", '"720h±0%"', "with a spread of 1% to"),
    ({"disruption": {"expireAfter": "Never±5%"}}, "disruption.expireAfter", '"Never±5%"', "Never or a duration"),
    ({"disruption": {"consolidateAfter": "5m±10%"}}, "disruption.consolidateAfter", '"5m±10%"', "Never or a duration"),
    (
        {"disruption": {"minimumSavings": {"perHour": -1}}},
        "disruption.minimumSavings.perHour",
        "-1",
        "a number of at least 0",
    ),
    (
        {"disruption": {"minimumSavings": {"perHour": float("nan")}}},
        "disruption.minimumSavings.perHour",
        "NaN",
        "a number of at least 0",
    ),
    (
        {"disruption": {"minimumSavings": {"percent": 101}}},
        "disruption.minimumSavings.percent",
        "101",
        "a number from 0 to 100",
    ),
    ({"disruption": {"minimumSavings": {"percent": True}}}, "disruption.minimumSavings.percent", "true", "a number"),
    ({"disruption": {"spotToSpot": {"minimumTypes": 0}}}, "disruption.spotToSpot.minimumTypes", "0", "at least 1"),
    ({"disruption": {"budgets": {}}}, "disruption.budgets", "a mapping", "a list of mappings"),
    (
        {"disruption": {"budgets": [{}]}},
        "disruption.budgets[0].nodes",
        "nothing",
        "a count such as 5 or a share such as 10%",
    ),
    ({"disruption": {"budgets": [{"nodes": "ten"}]}}, "disruption.budgets[0].nodes", '"ten"', "a count such as 5"),
    ({"disruption": {"budgets": [{"nodes": "101%"}]}}, "disruption.budgets[0].nodes", '"101%"', "at most 100%"),
    ({"disruption": {"budgets": [{"nodes": "-1"}]}}, "disruption.budgets[0].nodes", '"-1"', "a count"),
    ({"disruption": {"budgets": [{"nodes": -1}]}}, "disruption.budgets[0].nodes", "-1", "a count"),
    ({"disruption": {"budgets": [{"nodes": True}]}}, "disruption.budgets[0].nodes", "true", "a count"),
    ({"disruption": {"budgets": [{"nodes": 1.5}]}}, "disruption.budgets[0].nodes", "1.5", "a count"),
    (
        {"disruption": {"budgets": [{"nodes": 1}, {"nodes": 1, "schedule": "0 9 * * *"}]}},
        "disruption.budgets[1].duration",
        "nothing",
        "schedule needs a duration",
    ),
    (
        {"disruption": {"budgets": [{"nodes": 1, "duration": "8h"}]}},
        "disruption.budgets[0].schedule",
        "nothing",
        "duration needs a schedule",
    ),
    (
        {"disruption": {"budgets": [{"nodes": 1, "timeZone": "Europe/Berlin"}]}},
        "disruption.budgets[0].timeZone",
        '"Europe/Berlin"',
        "none without schedule",
    ),
    (
        {"disruption": {"budgets": [{"nodes": 1, **WINDOW, "schedule": "0 25 * * *"}]}},
        "disruption.budgets[0].schedule",
        '"0 25 * * *"',
        "a cron line of five fields",
    ),
    (
        {"disruption": {"budgets": [{"nodes": 1, **WINDOW, "schedule": "0 0 9 * * *"}]}},
        "disruption.budgets[0].schedule",
        '"0 0 9 * * *"',
        "a cron line of five fields",
    ),
    (
        {"disruption": {"budgets": [{"nodes": 1, **WINDOW, "duration": "0s"}]}},
        "disruption.budgets[0].duration",
        '"0s"',
        "a duration",
    ),
    (
        {"disruption": {"budgets": [{"nodes": 1, **WINDOW, "timeZone": "Mars/Olympus"}]}},
        "disruption.budgets[0].timeZone",
        '"Mars/Olympus"',
        "an IANA time zone",
    ),
    (
        {"disruption": {"budgets": [{"nodes": 1, "reasons": ["Empty", "Drift"]}]}},
        "disruption.budgets[0].reasons[1]",
        '"Drift"',
        "one of Empty, Drifted, Underutilized, Expired, Upgrade",
    ),
    (
        {"disruption": {"budgets": [{"nodes": 1, "zone": ""}]}},
        "disruption.budgets[0].zone",
        '""',
        "text that is not empty",
    ),
    ({"finalizer": "true"}, "finalizer", '"true"', "true or false"),
    ({"zones": {"onShift": "evacuate"}}, "zones.onShift", '"evacuate"', "one of hold"),
    ({"repair": {"maxUnhealthy": "20 %"}}, "repair.maxUnhealthy", '"20 %"', "a share such as 10%"),
    ({"repair": {"conditions": [{"status": "False"}]}}, "repair.conditions[0].type", "nothing", "such as KernelReady"),
    ({"repair": {"conditions": [{"type": "Ready"}]}}, "repair.conditions[0].type", '"Ready"', "notReadyAfter"),
    (
        {"repair": {"conditions": [{"type": "KernelReady", "status": False}]}},
        "repair.conditions[0].status",
        "false",
        "one of True, False, Unknown",
    ),
    (
        {"repair": {"conditions": [{"type": "KernelReady", "action": "Replace"}]}},
        "repair.conditions[0].action",
        '"Replace"',
        "one of replace, reboot, none",
    ),
    (
        {"placement": {"cni": {"WARM_ENI_TARGETS": "1"}}},
        "placement.cni.WARM_ENI_TARGETS",
        "an unknown key",
        "one of WARM_ENI_TARGET",
    ),
    ({"placement": {"cni": {"MAX_ENI": 1.5}}}, "placement.cni.MAX_ENI", "1.5", "text, a whole number"),
    ({"template": {"precedence": "tags"}}, "template.precedence", '"tags"', "one of asg-tags, eks-api"),
    ({"template": {"ttl": ["60s"]}}, "template.ttl", "a list", "a duration"),
]


@pytest.mark.parametrize(("spec", "path", "found", "expected"), REFUSALS, ids=[case[1] for case in REFUSALS])
def test_what_is_wrong_is_refused_with_its_path(spec, path, found, expected):
    line = problem(**spec)
    assert line.startswith(f"{path}: found {found}, expected ")
    assert expected in line.split(", expected ", 1)[1]


@pytest.mark.parametrize("selector", [None, {}, {"groups": []}, {"groups": [], "tags": {}}])
def test_an_empty_selector_is_refused(selector):
    document = a_policy()
    document["spec"]["selector"] = selector
    (line,) = problems(document)
    assert line.startswith("p.yaml#1: spec.selector: found an empty selector, expected ")


def test_a_policy_without_a_spec_has_no_selector():
    document = a_policy()
    del document["spec"]
    assert problems(document)[0].startswith("p.yaml#1: spec.selector: found an empty selector")


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ([], "p.yaml#1: document: found a list, expected a mapping"),
        ("x", 'p.yaml#1: document: found "x", expected a mapping'),
        (
            {**a_policy(), "apiVersion": "leeward.dev/v2"},
            f'p.yaml#1: apiVersion: found "leeward.dev/v2", expected {API}',
        ),
        ({**a_policy(), "kind": "Pod"}, 'p.yaml#1: kind: found "Pod", expected one of NodePolicy, ClusterSettings'),
        (
            {**a_policy(), "status": {}},
            "p.yaml#1: status: found an unknown key, expected one of kind, apiVersion, metadata, spec",
        ),
        (
            {**a_policy(), "metadata": {"name": "web", "labels": {}}},
            "p.yaml#1: metadata.labels: found an unknown key, expected one of name",
        ),
    ],
)
def test_a_document_of_another_make_is_refused(document, line):
    assert problems(document) == [line]


@pytest.mark.parametrize("name", [None, "", "Web", "a/b", "-a", 7, "x" * 64])
def test_a_bad_name_is_refused(name):
    document = {**a_policy(), "metadata": {"name": name}}
    (line,) = problems(document)
    assert line.startswith("p.yaml#1: metadata.name: found ")


def test_all_problems_of_all_documents_are_reported_at_once():
    lines = problems(
        a_policy(finalizer=1, drain={"timeout": "x"}),
        {"apiVersion": API, "kind": "Deployment"},
        some_settings(emptiness="no", speed=1, webhook={"url": "ftp://x"}, freeze=[{}]),
    )
    assert [line.split(": found")[0] for line in lines] == [
        "p.yaml#1: spec.drain.timeout",
        "p.yaml#1: spec.finalizer",
        "p.yaml#2: kind",
        "p.yaml#3: spec.emptiness",
        "p.yaml#3: spec.freeze[0].schedule",
        "p.yaml#3: spec.freeze[0].duration",
        "p.yaml#3: spec.webhook.url",
        "p.yaml#3: spec.speed",
    ]


def test_two_policies_of_one_name_are_refused():
    assert problems(a_policy(), a_policy("api"), a_policy()) == [
        'p.yaml#3: metadata.name: found "web", as in p.yaml#1, expected a name that no other policy has'
    ]


def test_two_settings_of_a_cluster_are_refused():
    (line,) = problems(some_settings(), some_settings())
    assert line.startswith('p.yaml#2: metadata.name: found "prod", as in p.yaml#1, expected one document')


def test_settings_of_another_cluster_are_refused_so_that_no_switch_is_lost():
    (line,) = problems(some_settings("prdo"))
    assert line == 'p.yaml#1: metadata.name: found "prdo", expected "prod", the cluster\'s name'


@pytest.mark.parametrize("value", [10**400, 10**5000, "x" * 5000, {"a": {"b": 1}}, b"x", object()], ids=range(6))
def test_a_monstrous_value_is_shown_short(value):
    (line,) = problems(a_policy(finalizer=value))
    assert len(line) < 200


NONSENSE = [None, "", "x", 0, -1, 10**30, 1.5, True, [], {}, [None], [[]], {"a": 1}, {1: 2}, "5m", "10%", float("inf")]


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@given(node_policies(), st.sampled_from(NONSENSE), st.randoms(use_true_random=False))
def test_nonsense_anywhere_is_either_valid_or_refused_with_lines(policy, nonsense, chance):
    document = to_json(policy)
    path = chance.choice(list(places(document))[1:])
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = nonsense
    refusal = refusal_of(document)
    assert all(line.startswith("p.yaml#1: ") and ", expected " in line for line in refusal.splitlines())
    if not refusal:
        parsed = parse(document)
        assert parse(to_json(parsed.policies[0])) == parsed


def refusal_of(document):
    try:
        parse(document)
    except InvalidPolicyError as refused:
        return str(refused)
    return ""


def test_a_message_keeps_letters_and_escapes_what_would_break_its_line():
    (line,) = problems(a_policy(node={"labels": {"größe\u2028\x1b": 1}}))
    assert line.startswith('p.yaml#1: spec.node.labels["größe\\u2028\\u001b"]: found 1')


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"selector": {"groups": ["web-\ud800"]}}, "selector.groups[0]"),
        ({"selector": {"tags": {"team": "\udfff"}}}, "selector.tags.team"),
        ({"node": {"labels": {"\ud800": "x"}}}, "node.labels"),
        ({"node": {"taints": [{"key": "a", "effect": "NoSchedule", "value": "\ud800"}]}}, "node.taints[0].value"),
        ({"disruption": {"budgets": [{"nodes": 1, "zone": "\ud800"}]}}, "disruption.budgets[0].zone"),
        ({"placement": {"cni": {"WARM_IP_TARGET": "\ud800"}}}, "placement.cni.WARM_IP_TARGET"),
    ],
)
def test_half_of_a_surrogate_pair_is_no_text(spec, path):
    """No UTF-8 has it, so that it could not be stored."""
    assert problem(**spec).startswith(f"{path}: found ")


def test_a_long_key_is_cut_in_its_path():
    (line,) = problems(a_policy(**{"x" * 5000: 1}))
    assert line.startswith(f'p.yaml#1: spec["{"x" * 70}')
    assert len(line) < 400


@pytest.mark.parametrize("entered", ["720h±10%", "720h +-10%", "720h ± 10%"])
def test_an_age_has_a_spread_and_is_stored_in_ascii(entered):
    (policy,) = parse(a_policy(disruption={"expireAfter": entered})).policies
    assert (policy.disruption.expire_after, policy.disruption.expire_jitter) == (timedelta(hours=720), 10)
    assert '"expireAfter":"720h+-10%"' in canonical(policy)
