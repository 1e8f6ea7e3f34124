"""Searches whose threads take turns in a drawn order, at each atomic operation."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu.matching import forests, level_search, lookahead_search, p_dbfs
from gpumatch.cpu.matching.sides import smaller_side
from gpumatch.cpu.numba_tools.workers import Workers
from tests.cpu.interleaved import interleave
from tests.cpu.matching.cases import FreeRun, chain, check_maximum, check_valid, random
from tests.cpu.matching.runs import PARALLEL, in_a_crowd, scattered, shifted

MODULES = forests, level_search, lookahead_search, p_dbfs
parallel = pytest.mark.parametrize("match", PARALLEL, indirect=True)


class Watch(FreeRun):
    """Wherever a search returns to Python, the matching has the size that is told."""

    def __init__(self, graph, mates):
        super().__init__()
        self.given = graph, *mates

    def tick(self, matched):
        assert check_valid(*self.given) == matched
        return False


@parallel
def test_any_order_of_turns_gives_a_maximum(match, monkeypatch):
    in_a_crowd(monkeypatch)
    for module in forests, level_search:
        monkeypatch.setattr(module, "_BLOCK", 2)
    monkeypatch.setattr(forests, "_BATCH", 3)
    for seed in range(30):
        turns = interleave(monkeypatch, *MODULES, seed=seed)
        graph = random(30, 30, 75, seed)
        mates = scattered(graph, 0.4, seed)
        finished, mates = match(graph, mates, Watch(graph, mates), threads=3)
        assert finished
        check_maximum(graph, *mates)
        assert turns.taken > 20


@parallel
def test_who_is_never_first_takes_nothing(match, monkeypatch):
    """All that a thread wants to claim, another has claimed just before."""
    interleave(monkeypatch, *MODULES)
    for module in MODULES:
        monkeypatch.setattr(module, "cas", lambda *_: False)
    graph = random(30, 30, 75, 1)
    before = scattered(graph, 0.4, 1)
    _, after = match(graph, tuple(side.copy() for side in before))
    for mates_before, mates_after in zip(before, after):
        assert np.array_equal(mates_before, mates_after)


def test_a_vertex_that_another_thread_reaches_first_joins_nothing(monkeypatch):
    """No tree, and no level below the root's; else the path through all would be found."""
    interleave(monkeypatch, *MODULES)
    for module in MODULES:
        monkeypatch.setattr(module, "cas", lambda *_: False)
    graph, control = chain(5), FreeRun()
    mates = shifted(graph)
    with Workers(1, graph.nnz) as crew:
        pair = forests.Forests(graph, *mates, crew, grafting=1)
        sides = pair._rows.label, pair._cols.label, pair._marks[:, forests._TAIL]
        before = [side.copy() for side in sides]
        assert pair.grow(control, 4)
        for one, other in zip(before, sides):
            assert np.array_equal(one, other)
        search = level_search.LevelSearch(smaller_side(graph, *mates), crew)
        assert search.phase(control, 4) == 0
        assert search.levels == 1
