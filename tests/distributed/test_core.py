"""The sparse core of divided rows, and what comes after it, in one process."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gpumatch.distributed import core as rank_core
from gpumatch.distributed.core import Core, Feasible, Whole
from gpumatch.running.control import Control


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


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("on_device", [True, False])
@pytest.mark.parametrize("has_memory", [True, False])
def test_the_first_rank_tells_whether_its_device_has_room_for_all_twice(
    monkeypatch, rank, on_device, has_memory
):
    asked = []

    def require(nbytes, what):
        asked.append(nbytes)
        if not has_memory:
            raise MemoryError

    def total(number, how="sum"):
        return {"sum": number + 100, "min": number}[how]

    monkeypatch.setattr(rank_core, "require_device_memory", require)
    whole = object.__new__(Whole)
    whole.costs = SimpleNamespace(nbytes=20, on_device=on_device)
    whole.world = SimpleNamespace(rank=rank, total=total)
    is_asked = rank == 0 and on_device
    assert whole._has_room() is (has_memory or not is_asked)
    assert asked == [240] * is_asked


def test_what_the_first_rank_does_alone_is_told_as_all_else():
    control, told = Control(), []
    wants = iter([False, True])
    world = SimpleNamespace(
        control=control, wants_to_stop=lambda matched: told.append(matched) or next(wants)
    )
    errand = rank_core._Errand(world)
    assert not errand.stopped
    assert [(errand.tick(matched), errand.stopped) for matched in (3, 5)] == [
        (False, False),
        (True, True),
    ]
    assert told == [3, 5]
    errand.phase(found=2, matched=5, levels=4, updates=1)
    errand.phase(found=1, matched=6)
    assert control.trace == [
        {"levels": 4, "found": 2, "matched": 5, "updates": 1},
        {"levels": 0, "found": 1, "matched": 6},
    ]
    with errand.part("search"):
        pass
    assert errand.seconds is control.seconds
    assert "search" in control.seconds


class Forests:
    """Of two rows and three columns, on the only rank: column 1 is all that the rows may have."""

    rows, cols = SimpleNamespace(total=2), SimpleNamespace(total=3)
    world = SimpleNamespace(step=lambda name: Control().part(name), allgather=lambda own: [own])

    def __init__(self, ends, matched):
        self.ends, self.matched, self.has_started = ends, matched, False

    def start(self):
        self.has_started = True

    def search(self):
        assert self.has_started
        return self.ends

    def cover(self):
        return np.array([False, False]), np.array([False, True, False])

    def mates(self):
        return np.array([-1, 1]), np.array([-1, 1, -1])


@pytest.mark.parametrize("ends", [True, False])
def test_no_search_follows_a_matching_that_is_stopped_or_too_small(ends):
    feasible = Feasible(Forests(ends, matched=1), lambda: pytest.fail("searched"), True)
    assert feasible.solve() is ends
    assert feasible.solved_by == "maximum matching"
    assert [side.tolist() for side in feasible.violator()] == [[0, 1], [1]]
    solution = feasible.solution()
    assert [side.tolist() for side in solution.mates] == [[-1, 1], [-1, 1, -1]]
    assert (solution.row_dual.size, solution.col_dual.size) == (2, 3)
    assert solution.row_dual.dtype == np.int64


@pytest.mark.parametrize("ends", [True, False])
def test_a_search_follows_a_matching_of_all_rows(ends):
    search = SimpleNamespace(
        solve=lambda: ends, solved_by="one rank", violator=lambda: "few", solution=lambda: "all"
    )
    feasible = Feasible(Forests(True, matched=2), lambda: search, False)
    assert feasible.solve() is ends
    told = feasible.solved_by, feasible.violator(), feasible.solution()
    assert told == ("one rank", "few", "all")
