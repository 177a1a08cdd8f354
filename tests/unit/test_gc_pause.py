"""Pause of the garbage collector: what it leaves behind."""

import gc

import pytest

from leeward.gc_pause import collector_paused


@pytest.fixture(params=[True, False])
def was_on(request):
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_it_is_off_inside_and_as_before_afterwards(was_on):
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled() == was_on


def test_an_error_brings_it_back(was_on):
    with pytest.raises(ValueError, match="wrong"), collector_paused():
        raise ValueError("wrong")
    assert gc.isenabled() == was_on
