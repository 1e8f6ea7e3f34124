"""Searches whose threads take turns in a drawn order, at each atomic operation."""

from __future__ import annotations

import pytest

from gpumatch.cpu.matching import forests, level_search, lookahead_search, p_dbfs
from tests.cpu.interleaved import interleave
from tests.cpu.matching.cases import FreeRun, check_maximum, check_valid, random
from tests.cpu.matching.runs import PARALLEL, in_a_crowd, scattered


class Watch(FreeRun):
    """Wherever a search returns to Python, the matching has the size that is told."""

    def __init__(self, graph, mates):
        super().__init__()
        self.given = graph, *mates

    def tick(self, matched):
        assert check_valid(*self.given) == matched
        return False


@pytest.mark.parametrize("match", PARALLEL, indirect=True)
@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_turns_gives_a_maximum(match, seed, monkeypatch):
    turns = interleave(monkeypatch, forests, level_search, lookahead_search, p_dbfs, seed=seed)
    in_a_crowd(monkeypatch)
    for module in forests, level_search:
        monkeypatch.setattr(module, "_BLOCK", 2)
    monkeypatch.setattr(forests, "_BATCH", 3)
    graph = random(30, 30, 75, seed)
    mates = scattered(graph, 0.4, seed)
    control = Watch(graph, mates)
    finished, mates = match(graph, mates, control, threads=3)
    assert finished
    check_maximum(graph, *mates)
    assert turns.taken > 20
