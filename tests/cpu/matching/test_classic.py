"""What sets the classic algorithms apart: their phases, and the order of their searches."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.bipartite import BipartiteGraph
from gpumatch.cpu.matching.lookahead_search import LookaheadSearch
from gpumatch.cpu.matching.p_dbfs import _BreadthFirstSearch
from gpumatch.cpu.matching.sides import smaller_side
from gpumatch.cpu.numba_tools.workers import Workers
from tests.cpu.matching.cases import (
    CASES,
    FreeRun,
    chain,
    chains,
    check_valid,
    ladder,
    random,
    unmatched,
)
from tests.cpu.matching.cases import (
    graph as graph_of,
)
from tests.cpu.matching.runs import CLASSIC, extend, rungs, shifted

every_algorithm = pytest.mark.parametrize("name", CLASSIC)


def match(name, *arguments, **options):
    return extend(CLASSIC[name], *arguments, **options)


@pytest.mark.parametrize(("name", "n"), [("p-hk", 1000), ("p-pfp", 1000), ("p-dbfs", 200)])
def test_threads_that_reach_for_the_same_vertices_at_once(name, n):
    """All free rows try the columns of the other rows in one order, and those the free columns."""
    dense = np.zeros((2 * n, 2 * n), np.int8)
    dense[:n, :n] = dense[n:, n:] = 1
    dense[n + np.arange(n), np.arange(n)] = 1
    graph = BipartiteGraph(dense)
    for _ in range(5):
        mates = unmatched(graph)
        mates[0][n:], mates[1][:n] = np.arange(n), np.arange(n, 2 * n)
        match(name, graph, mates, threads=4)
        assert check_valid(graph, *mates) == 2 * n


@pytest.mark.parametrize(
    ("kind", "under_way"),
    [(LookaheadSearch, "_current"), (_BreadthFirstSearch, "_head")],
    ids=["lookahead", "p-dbfs"],
)
def test_no_search_is_under_way_when_a_phase_ends(small_budget, kind, under_way):
    """The next phase would go on with it, among the claims of another phase, and may never end.

    The only search is a long one, from which the kernel returns several times.
    """
    graph = chain(1000)
    with Workers(1, graph.nnz) as workers:
        search = kind(smaller_side(graph, *shifted(graph)), workers)
        assert search.phase(FreeRun(), 999) == 1
    assert getattr(search, under_way).tolist() == [-1]


@pytest.mark.parametrize("name", ["hk", "p-hk"])
def test_hopcroft_karp_takes_the_shortest_paths_first(name):
    graph = chains([5, 3, 9, 3])
    control = FreeRun()
    match(name, graph, shifted(graph), control)
    assert [found for found, _ in control.phases] == [2, 1, 1, 0]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("seed", range(4))
def test_a_phase_of_hopcroft_karp_is_a_maximal_set_of_shortest_paths(crowd, seed, threads):
    """Else the next phase's shortest paths would not be longer."""

    class Levels(FreeRun):
        def phase(self, *, levels, found, matched):
            if found:
                self.phases.append(levels)

    control = Levels()
    match("p-hk", random(3000, 3000, 7500, seed), control=control, threads=threads)
    assert len(control.phases) > 3
    assert all(np.diff(control.phases) > 0)


def test_duff_and_wibergs_searches_save_phases():
    graph = chains(range(1, 60))
    short, long = FreeRun(), FreeRun()
    match("hk", graph, shifted(graph), short)
    match("hkdw", graph, shifted(graph), long)
    assert len(short.phases) == 60
    assert len(long.phases) == 2


def test_fairness_goes_through_the_edges_backward_in_the_second_phase():
    """Row 0 takes column 0 and blocks row 1; then row 1 tries column 1 before column 0."""
    edges = {0: [0, 1, 2], 1: [0, 1], 2: [0, 1, 3], 3: [1, 4], 4: [2, 6], 5: [3, 7], 6: [4, 5]}
    graph = graph_of(7, 8, [(row, col) for row in edges for col in edges[row]])
    row_to_col, col_to_row = unmatched(graph)
    for row, col in [(2, 0), (3, 1), (4, 2), (5, 3), (6, 4)]:
        row_to_col[row], col_to_row[col] = col, row
    match("pfp", graph, (row_to_col, col_to_row))
    assert row_to_col.tolist() == [0, 1, 3, 4, 2, 7, 5]


@every_algorithm
def test_only_the_last_phase_finds_nothing(name):
    control = FreeRun()
    match(name, CASES["large"][0], control=control)
    found = [phase[0] for phase in control.phases]
    assert found[-1] == 0
    assert 0 not in found[:-1]


@every_algorithm
@pytest.mark.parametrize(
    ("graph", "begin"), [(chain(1000), shifted), (ladder(1000), rungs)], ids=["chain", "ladder"]
)
def test_the_only_path_is_found_in_the_first_phase(name, graph, begin):
    control = FreeRun()
    match(name, graph, begin(graph), control, threads=2)
    assert [found for found, _ in control.phases] == [1, 0]
