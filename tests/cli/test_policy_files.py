import json
import time

import pytest

from leeward.adapters.folder.policy_files import canonical_parameters, load_policies, read_documents
from leeward.errors import InvalidPolicyError
from tests.cli.command import a_snapshot

POLICY = """apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {{name: {name}}}
spec:
  selector: {{groups: ["{name}-*"]}}
"""
SETTINGS = "apiVersion: leeward.dev/v1\nkind: ClusterSettings\nmetadata: {name: prod}\nspec: {drift: false}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "20-web.yaml").write_text(f"---\n{POLICY.format(name='web')}---\n---\n{SETTINGS}")
    (tmp_path / "policies" / "10-api.yaml").write_text(POLICY.format(name="api"))
    (tmp_path / "policies" / "readme.txt").write_text("not a policy")
    return tmp_path


def test_a_globs_files_come_in_alphabetical_order_and_each_once(folder):
    loaded = load_policies(["policies/*.yaml", "policies/20-web.yaml"], "prod", root=folder)
    assert [policy.name for policy in loaded.policies] == ["api", "web"]
    assert not loaded.settings.drift


def test_paths_keep_the_order_in_which_they_are_named(folder):
    loaded = load_policies([folder / "policies/20-web.yaml", folder / "policies/10-api.yaml"], "prod")
    assert [policy.name for policy in loaded.policies] == ["web", "api"]


def test_a_folder_with_a_bracket_in_its_name_is_no_pattern(tmp_path):
    folder = tmp_path / "team[1]"
    folder.mkdir()
    (folder / "a[b].yaml").write_text(POLICY.format(name="web"))
    for pattern in ("*.yaml", "a[b].yaml", folder / "a[b].yaml"):
        assert [policy.name for policy in load_policies([pattern], "prod", root=folder).policies] == ["web"]


def test_synth_gets_a_numbered_parameter_for_each_document(folder):
    stored = canonical_parameters(["policies/*.yaml"], "prod", root=folder)
    assert [name for name, _ in stored] == ["00-prod", "01-api", "02-web"]
    assert json.loads(stored[2][1])["spec"] == {"selector": {"groups": ["web-*"]}}


BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (BOMB, "line 1 column 5", "found the anchor &a0, expected plain YAML"),
        ("a: 1\n<<: {b: 1}\n", "line 2 column 1", "found the merge key <<, expected plain YAML"),
        ("a: *x", "line 1 column 4", "found the alias *x, expected plain YAML"),
        ("a: !!timestamp x", "line 1 column 4", "found the tag tag:yaml.org,2002:timestamp, expected plain YAML"),
        ('a: !!int ""', "line 1 column 4", "found the tag tag:yaml.org,2002:int, expected plain YAML"),
        ("a: !!bool maybe", "line 1 column 4", "found the tag tag:yaml.org,2002:bool, expected plain YAML"),
        (
            "a: !!python/object:os.system x",
            "line 1 column 4",
            "found the tag tag:yaml.org,2002:python/object:os.system",
        ),
        ('a: "web-\\ud800"', "line 1 column 4", "found half a surrogate pair, expected plain YAML"),
        ("[" * 2000, "line 1 column 33", "found nesting, expected at most 32 levels"),
        ("{a: " * 2000, "line 1 column 129", "found nesting, expected at most 32 levels"),
        ("- 1\n" * 30_000, "line 20000 column 3", "found values, expected at most 20,000 in a file"),
        ("#" * 2_000_000, "document", "found more than 1,048,576 bytes, expected a YAML file of policies"),
    ],
)
def test_what_grows_or_acts_when_it_is_read_is_refused_at_its_place_and_soon(tmp_path, text, place, said):
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    began = time.process_time()
    with pytest.raises(InvalidPolicyError) as raised:
        read_documents(file)
    assert str(raised.value).startswith(f"{file}: {place}: {said}")
    assert time.process_time() - began < 2


def test_words_that_look_like_merge_keys_and_aliases_are_text_in_quotes(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text("a: '<<'\nb: \"*x\"\nc: '&y'\n")
    assert read_documents(file) == [(str(file), {"a": "<<", "b": "*x", "c": "&y"})]


def test_a_source_names_the_file_and_where_there_are_several_the_document(folder):
    assert [source for source, _ in read_documents(folder / "policies/10-api.yaml")] == [
        f"{folder}/policies/10-api.yaml"
    ]
    numbered = [source.rsplit("/", 1)[1] for source, _ in read_documents(folder / "policies/20-web.yaml")]
    assert numbered == ["20-web.yaml#1", "20-web.yaml#3"]


@pytest.mark.parametrize("pattern", ["missing.yaml", "policies/*.yml", "policies"])
def test_a_path_or_glob_that_names_no_file_is_refused(folder, pattern):
    with pytest.raises(InvalidPolicyError) as refused:
        load_policies([pattern], "prod", root=folder)
    assert str(refused.value) == f"{folder}/{pattern}: found no such file, expected the policies of a cluster"


BROKEN = [
    ("spec:\n  a: 1\n  a: 2\n", "line 3 column 3: found the key a twice, expected each key once"),
    ("\u202eta: 1\n\u202eta: 2\n", "line 2 column 1: found the key \\u202eta twice, expected each key once"),
    (f"{'k' * 900}: 1\n{'k' * 900}: 2\n", f"line 2 column 1: found the key {'k' * 77}... twice, expected each"),
    (
        "spec: {drain: {force: true, force: true}}",
        "line 1 column 29: found the key force twice, expected each key once",
    ),
    ("a: [1", "line 1 column 6: found no YAML (expected ',' or ']', but got '<stream end>'), expected YAML"),
    ("a: b: c", "line 1 column 5: found no YAML (mapping values are not allowed here), expected YAML"),
    ("{[a]: b}", "line 1 column 2: found no YAML (found unhashable key), expected YAML"),
    ("a: \x01", "document: found unacceptable character"),
    ("- a", "document: found a list, expected a mapping"),
    ("just text", 'document: found "just text", expected a mapping'),
    ("a: " + "9" * 5000, "document: found "),
    ("a: &a [*a]", "line 1 column 4: found the anchor &a, expected plain YAML"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=[case[1][:40] for case in BROKEN])
def test_broken_yaml_is_refused_with_its_place(leeward, tmp_path, text, message):
    folder = a_snapshot(tmp_path, policy=text)
    reported = leeward.refuses("drain", "node-a", "--snapshot", folder)
    assert reported.startswith(f"{folder}/policy.yaml: {message}")


def test_a_refusal_of_yaml_is_one_printable_line(tmp_path):
    (tmp_path / "p.yaml").write_text("\u202eta: 1\n\u202eta: 2\n")
    with pytest.raises(InvalidPolicyError, match=r"found the key \\u202eta twice") as refused:
        read_documents(tmp_path / "p.yaml")
    assert str(refused.value).isprintable()


def test_dates_stay_text(tmp_path):
    (tmp_path / "p.yaml").write_text("built: 2024-05-01\n")
    assert read_documents(tmp_path / "p.yaml")[0][1] == {"built": "2024-05-01"}


def test_every_problem_of_a_folders_policies_is_a_line(leeward, tmp_path):
    bad = POLICY.format(name="web") + "  drain: {timeout: 15}\n  finalizer: maybe\n"
    folder = a_snapshot(tmp_path, policy=f"{bad}---\n{SETTINGS}")
    reported = leeward.refuses("drain", "node-a", "--snapshot", folder)
    assert reported.splitlines() == [
        f"{folder}/policy.yaml#1: spec.drain.timeout: found 15, expected a duration such as 15m or 1h30m",
        f'{folder}/policy.yaml#1: spec.finalizer: found "maybe", expected true or false',
    ]
