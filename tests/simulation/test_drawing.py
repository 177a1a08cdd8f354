"""`make test` plays a part of many like worlds: the same for a commit, others with the next, all in the long form."""

from tests.drawing import BROKEN_BUILD, chosen, drawn


def left_out(parameters):
    return [one.values for one in parameters if one.marks]


def test_a_commit_draws_the_same_again_and_some_commits_draw_everything():
    assert chosen(range(10), 3, "a") == chosen(range(10), 3, "a")
    assert {len(chosen(range(10), 3, str(commit))) for commit in range(20)} == {4}
    assert {value for commit in range(20) for value in chosen(range(10), 3, str(commit))} == {*range(10)}


def test_what_is_not_drawn_is_left_to_the_long_form_and_a_broken_build_meets_everything(monkeypatch):
    monkeypatch.delenv(BROKEN_BUILD, raising=False)
    pairs = [(1, "a"), (2, "a"), (1, "b")]
    assert [one.values for one in drawn(pairs)] == pairs
    assert len(left_out(drawn(pairs))) == 2
    monkeypatch.setenv(BROKEN_BUILD, "any")
    assert left_out(drawn(pairs)) == []
