"""The sparse core of divided rows, and what comes after it, in one process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gpumatch.distributed.core import Core


def core_that(*, is_priced, is_stopped, fallback):
    """One whose own search has just ended so, with two rows matched."""
    core = object.__new__(Core)
    core.core = SimpleNamespace(solve=lambda: is_priced, matched=2)
    core.problem, core.world = SimpleNamespace(matched=0), SimpleNamespace(stopped=is_stopped)
    core.fallback, core.other = fallback, None
    return core


@pytest.mark.parametrize("is_priced", [True, False], ids=["priced", "stopped"])
def test_nothing_comes_after_a_core_that_is_priced_or_stopped(is_priced):
    def fallback():
        raise AssertionError

    core = core_that(is_priced=is_priced, is_stopped=not is_priced, fallback=fallback)
    assert core.solve() == is_priced
    assert core.problem.matched == 2
    assert core.solved_by == "sparse core"


@pytest.mark.parametrize("ends", [True, False])
def test_another_search_comes_after_a_core_that_is_not_enough(ends):
    other = SimpleNamespace(solve=lambda: ends, solved_by="whole")
    core = core_that(is_priced=False, is_stopped=False, fallback=lambda: other)
    assert core.solve() == ends
    assert core.solved_by == "whole"
