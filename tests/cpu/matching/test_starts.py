"""The starts give valid, maximal matchings and extend those given; Karp–Sipser's rule is kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching import cheap, karp_sipser
from gpumatch.cpu.matching.karp_sipser import by_degree
from graphs import make
from tests.cpu.matching.cases import (
    CASES,
    FreeRun,
    StopAt,
    chain,
    check_valid,
    graph,
    random,
    unmatched,
)
from tests.cpu.matching.runs import scattered

STARTS = {"cheap": cheap, "karp-sipser": karp_sipser}


def start(name, graph, mates=None, control=None, seed=0):
    mates = unmatched(graph) if mates is None else mates
    finished = STARTS[name].run(MatchingTask(graph, *mates, control or FreeRun(), seed=seed))
    return finished, mates


def check_maximal(graph, row_to_col, col_to_row):
    size = check_valid(graph, row_to_col, col_to_row)
    edge_rows = np.repeat(np.arange(graph.nrows), np.diff(graph.indptr))
    assert not np.any((row_to_col[edge_rows] == -1) & (col_to_row[graph.indices] == -1))
    return size


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", STARTS)
def test_the_matching_is_valid_and_maximal(name, case):
    finished, mates = start(name, CASES[case][0])
    assert finished is True
    check_maximal(CASES[case][0], *mates)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 40)),
    st.integers(0, 2**32 - 1),
    st.sampled_from(list(STARTS)),
)
def test_random_graphs_are_matched_maximally_from_any_matching(shape, seed, name):
    it = random(*shape, seed)
    given_mates = part_of_a_matching(it, seed)
    _, mates = start(name, it, tuple(side.copy() for side in given_mates), seed=seed)
    check_maximal(it, *mates)
    for before, after in zip(given_mates, mates):
        assert np.array_equal(before[before >= 0], after[before >= 0])


def part_of_a_matching(it, seed):
    """Drop half of a cheap matching."""
    _, (row_to_col, col_to_row) = start("cheap", it)
    for row in np.flatnonzero(np.random.default_rng(seed).random(it.nrows) < 0.5):
        if row_to_col[row] >= 0:
            col_to_row[row_to_col[row]] = -1
            row_to_col[row] = -1
    return row_to_col, col_to_row


@pytest.mark.parametrize("name", STARTS)
def test_a_matched_graph_is_left_alone(name):
    mates = (np.arange(50, dtype=np.int32), np.arange(50, dtype=np.int32))
    start(name, chain(50), mates)
    assert np.array_equal(mates[0], np.arange(50))


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("tick", [1, 2, 3, 5, 9])
def test_a_stopped_start_leaves_a_valid_matching_that_can_be_extended(monkeypatch, name, tick):
    it = random(2000, 2000, 6000, 7)
    with_small_budget(monkeypatch)
    finished, mates = start(name, it, control=StopAt(tick))
    assert finished is False
    check_valid(it, *mates)
    finished, mates = start(name, it, mates)
    assert finished
    check_maximal(it, *mates)


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("share", [0, 0.5])
def test_a_start_stops_at_whichever_tick_it_is_told_to(monkeypatch, name, share):
    """From no pairs and from some: each part of the work looks at the clock."""
    it = random(400, 500, 1500, 7)
    before = scattered(it, share, 3)
    with_small_budget(monkeypatch)
    free = StopAt(1000)
    start(name, it, tuple(side.copy() for side in before), free)
    ticks = 1000 - free.left
    assert ticks > 3
    for tick in range(1, ticks + 1):
        finished, mates = start(name, it, tuple(side.copy() for side in before), StopAt(tick))
        assert finished is False
        check_valid(it, *mates)


@pytest.mark.parametrize("name", STARTS)
def test_ticks_see_valid_matchings_of_the_size_they_are_told(monkeypatch, name):
    class Watch(FreeRun):
        def tick(self, matched):
            sizes.add(matched)
            assert check_valid(it, *mates) == matched
            return False

    sizes = set()
    it = random(2000, 2000, 6000, 7)
    mates = part_of_a_matching(it, 0)
    with_small_budget(monkeypatch)
    start(name, it, mates, Watch())
    assert len(sizes) > 3


@pytest.mark.parametrize("name", STARTS)
def test_the_budget_does_not_change_the_matching(monkeypatch, name):
    it = random(2000, 2000, 6000, 8)
    _, whole = start(name, it)
    with_small_budget(monkeypatch)
    _, in_pieces = start(name, it)
    assert np.array_equal(whole[0], in_pieces[0])


def test_karp_sipser_returns_to_python_when_it_has_read_the_budget(monkeypatch):
    """It reads the edges of all vertices: once to count them, and once as they are matched."""
    dense = graph(60, 60, [(row, col) for row in range(60) for col in range(60)])
    monkeypatch.setattr(karp_sipser, "BUDGET", 300)
    told = StopAt(1000)
    start("karp-sipser", dense, control=told)
    assert 1000 - told.left > 2 * dense.nnz / (300 + 2 * 60)


@pytest.mark.parametrize("share", [0, 0.5])
def test_karp_sipser_looks_at_the_clock_before_it_matches(monkeypatch, share):
    """The degrees of both sides are counted in parts, and so are the pairs' taken out of them."""
    sizes = []

    class Watch(FreeRun):
        def tick(self, matched):
            sizes.append(matched)
            return False

    it = random(400, 500, 1500, 7)
    mates = scattered(it, share, 3)
    before = check_valid(it, *mates)
    with_small_budget(monkeypatch)
    start("karp-sipser", it, mates, Watch())
    passes = 2 if before == 0 else 4
    assert sizes.count(before) >= passes * it.nnz / 300


def with_small_budget(monkeypatch):
    """Let starts return to Python every few hundred edges."""
    monkeypatch.setattr("gpumatch.cpu.matching.sides.BUDGET", 300)
    monkeypatch.setattr("gpumatch.cpu.matching.karp_sipser.BUDGET", 300)


def test_cheap_takes_the_first_free_column():
    _, (row_to_col, _) = start("cheap", graph(3, 3, [(0, 1), (0, 2), (1, 1), (2, 1), (2, 2)]))
    assert row_to_col.tolist() == [1, -1, 2]


@pytest.mark.parametrize("seed", range(5))
def test_karp_sipser_is_optimal_on_forests(seed):
    rng = np.random.default_rng(seed)
    n = 500
    tree = [(rng.integers(v), v) for v in range(1, n)]
    depth = np.zeros(n, int)
    for above, v in tree:
        depth[v] = depth[above] + 1
    forest = graph(n, n, [(v, above) if depth[v] % 2 else (above, v) for above, v in tree])
    _, mates = start("karp-sipser", forest)
    assert check_valid(forest, *mates) == leaves_first(n, tree)


def leaves_first(n, tree):
    """The size of a maximum matching of a tree given as (parent, child), parents numbered first."""
    free, size = np.ones(n, bool), 0
    for above, v in reversed(tree):
        if free[v] and free[above]:
            free[v] = free[above] = False
            size += 1
    return size


@pytest.mark.parametrize("case", ["chain", "chains", "triangular"])
def test_karp_sipser_leaves_nothing_where_degree_one_decides(case):
    it, size = CASES[case]
    _, mates = start("karp-sipser", it)
    assert check_valid(it, *mates) == size


def test_karp_sipser_comes_close_on_random_graphs():
    it = random(20_000, 20_000, 60_000, 9)
    _, mates = start("karp-sipser", it)
    _, greedy = start("cheap", it)
    assert check_valid(it, *mates) > 1.05 * check_valid(it, *greedy)


def test_karp_sipser_takes_vertices_whose_degree_falls_to_two_before_others():
    """Where degrees are left out of sight as they fall, 8 more of 1024 rows stay free."""
    it = BipartiteGraph(make("delaunay", 10, seed=1))
    _, mates = start("karp-sipser", it)
    assert check_valid(it, *mates) == 1021


def test_karp_sipser_takes_rows_of_lower_degree_first_however_high_degrees_are():
    """Among equals a row that the seed chooses comes first; matched rows are left out."""
    degrees = np.array([2**16 + 3, 7, 2**16, 3, 2**17, 7, 0, 1])
    row_to_col = np.where(degrees == 1, 5, -1)
    orders = [by_degree(row_to_col, degrees << 32, seed).tolist() for seed in range(40)]
    for order in orders:
        assert degrees[order[:3]].tolist() == [3, 7, 7]
        assert sorted(order) == [0, 1, 2, 3, 4, 5]
    assert len({tuple(order[1:3]) for order in orders}) == 2


def test_the_seed_fixes_and_changes_the_matching():
    it = random(500, 500, 3000, 10)
    matchings = [start("karp-sipser", it, seed=seed)[1][0] for seed in (1, 1, 2, 3)]
    assert np.array_equal(matchings[0], matchings[1])
    assert any(not np.array_equal(matchings[0], other) for other in matchings[2:])
