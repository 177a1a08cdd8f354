"""What happened, kept for as long as any reader looks back."""

import pytest

from simulation.journal import Journal


def a_journal(entries, kept=3):
    journal = Journal(kept)
    for entry in entries:
        journal.append(entry)
    return journal


def test_a_short_one_reads_like_a_list():
    journal = a_journal("ab")
    assert (len(journal), list(journal), journal[0], journal[-1], journal[1:]) == (2, ["a", "b"], "a", "b", ["b"])
    assert journal == ["a", "b"]
    assert journal != ["a"]


def test_its_length_and_its_positions_count_what_is_forgotten_too():
    journal = a_journal("abcde")
    assert (len(journal), list(journal), journal[4]) == (5, ["c", "d", "e"], "e")
    assert journal[3:] == ["d", "e"]
    assert journal[5:] == []


def test_a_reader_that_has_not_looked_for_too_long_is_reported():
    journal = a_journal("abcde")
    with pytest.raises(IndexError, match="entry 1: found 2 to 4"):
        journal[1:]
    with pytest.raises(IndexError, match="entry 0"):
        journal[0]


def test_what_is_not_there_yet_is_refused():
    with pytest.raises(IndexError, match="entry 2"):
        a_journal("ab")[2]
