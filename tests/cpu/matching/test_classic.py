"""The classic algorithms find maximum matchings, from any start, interrupted or not, in few phases.

Every result is proven maximum by a vertex cover (`cases.check_maximum`), not by another algorithm.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching import (
    cheap,
    hk,
    hkdw,
    karp_sipser,
    level_search,
    lookahead_search,
    p_dbfs,
    p_hk,
    p_pfp,
    pfp,
)
from gpumatch.cpu.numba_tools import workers
from tests.cpu.matching.cases import (
    CASES,
    STRUCTURAL_RANK,
    FreeRun,
    StopAt,
    chain,
    chains,
    check_maximum,
    check_valid,
    ladder,
    random,
    real_matrix,
    unmatched,
)
from tests.cpu.matching.cases import (
    graph as graph_of,
)

ALGORITHMS = {"hk": hk, "hkdw": hkdw, "pfp": pfp, "p-hk": p_hk, "p-pfp": p_pfp, "p-dbfs": p_dbfs}
PARALLEL = ["p-hk", "p-pfp", "p-dbfs"]
STARTS = {"none": None, "cheap": cheap, "karp-sipser": karp_sipser}


def start(name, graph, seed=0):
    mates = unmatched(graph)
    if STARTS[name] is not None:
        STARTS[name].run(MatchingTask(graph, *mates, FreeRun(), seed=seed))
    return mates


def match(name, graph, mates=None, control=None, threads=1):
    """Extend the mates by the algorithm; whether it finished, and the mates."""
    mates = unmatched(graph) if mates is None else mates
    control = FreeRun() if control is None else control
    finished = ALGORITHMS[name].run(MatchingTask(graph, *mates, control, threads))
    return finished, mates


@pytest.fixture
def crowd(monkeypatch):
    """Let small graphs be shared out to all threads, level by level, a few edges at a time."""
    monkeypatch.setattr(workers, "_EDGES_EACH", 1)
    monkeypatch.setattr(level_search, "_WIDE", 2)
    with_small_budget(monkeypatch)


def with_small_budget(monkeypatch):
    """Let searches return to Python every few hundred edges."""
    for module in level_search, lookahead_search, p_dbfs:
        monkeypatch.setattr(module, "BUDGET", 300)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_matching_is_maximum(name, init, case):
    graph, size = CASES[case]
    finished, mates = match(name, graph, start(init, graph))
    assert finished is True
    assert check_maximum(graph, *mates) == (
        size if size is not None else check_valid(graph, *mates)
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", PARALLEL)
def test_many_threads_in_each_others_way_find_a_maximum(crowd, name, case):
    graph, _ = CASES[case]
    finished, mates = match(name, graph, threads=4)
    assert finished
    check_maximum(graph, *mates)


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


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(st.integers(1, 14), st.integers(1, 14), st.integers(0, 50)),
    st.integers(0, 2**32 - 1),
    st.sampled_from(list(ALGORITHMS)),
    st.sampled_from(list(STARTS)),
)
def test_random_graphs(shape, seed, name, init):
    graph = random(*shape, seed)
    _, mates = match(name, graph, start(init, graph))
    check_maximum(graph, *mates)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("tick", [1, 2, 3, 4, 7, 12])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_stopped_run_leaves_a_valid_matching_to_go_on_from(crowd, name, tick, threads):
    graph, _ = CASES["large"]
    finished, mates = match(name, graph, control=StopAt(tick), threads=threads)
    assert finished is False
    check_valid(graph, *mates)
    finished, mates = match(name, graph, mates, threads=threads)
    assert finished
    check_maximum(graph, *mates)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_exception_from_tick_leaves_a_valid_matching(crowd, name):
    class Interrupt(FreeRun):
        ticks = 0

        def tick(self, matched):
            self.ticks += 1
            if self.ticks > 5:
                raise KeyboardInterrupt
            return False

    graph, _ = CASES["large"]
    mates = unmatched(graph)
    with pytest.raises(KeyboardInterrupt):
        match(name, graph, mates, Interrupt(), threads=3)
    check_valid(graph, *mates)
    match(name, graph, mates)
    check_maximum(graph, *mates)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_ticks_see_consistent_matchings_of_the_size_they_are_told(crowd, name):
    class Watch(FreeRun):
        def tick(self, matched):
            assert check_valid(graph, *mates) == matched
            return False

    graph, _ = CASES["wide"]
    mates = unmatched(graph)
    match(name, graph, mates, Watch(), threads=3)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_budget_does_not_change_the_matching(monkeypatch, name):
    graph, _ = CASES["large"]
    _, whole = match(name, graph)
    with_small_budget(monkeypatch)
    _, in_pieces = match(name, graph)
    assert np.array_equal(whole[0], in_pieces[0])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_thread_gives_one_matching(name):
    graph, _ = CASES["large"]
    assert np.array_equal(match(name, graph)[1][0], match(name, graph)[1][0])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_matched_vertices_stay_matched(name):
    graph, _ = CASES["sparse"]
    before = start("cheap", graph)
    _, after = match(name, graph, tuple(side.copy() for side in before))
    for mates_before, mates_after in zip(before, after):
        assert np.all(mates_after[mates_before >= 0] >= 0)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_phases_add_up_and_only_the_last_finds_nothing(name):
    graph, _ = CASES["large"]
    control = FreeRun()
    _, mates = match(name, graph, control=control)
    found = [phase[0] for phase in control.phases]
    assert [phase[1] for phase in control.phases] == np.cumsum(found).tolist()
    assert found[-1] == 0
    assert 0 not in found[:-1]
    assert control.phases[-1][1] == check_valid(graph, *mates)


def shifted(graph):
    """Match each row of a chain to the next column: the path to the free ones passes all rows."""
    row_to_col, col_to_row = unmatched(graph)
    for row in range(graph.nrows):
        last = graph.indices[graph.indptr[row + 1] - 1]
        if last != row:
            row_to_col[row], col_to_row[last] = last, row
    return row_to_col, col_to_row


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_path_through_all_vertices_needs_no_recursion(name):
    graph = chain(100_000)
    control = FreeRun()
    _, mates = match(name, graph, shifted(graph), control)
    assert np.array_equal(mates[0], np.arange(100_000))
    assert control.phases == [(1, 100_000), (0, 100_000)]


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


def rungs(graph):
    """Match each row of a ladder but the first within its level: the path passes all levels."""
    cols = np.arange(-1, graph.nrows - 1, dtype=np.int32)
    rows = np.append(np.arange(1, graph.nrows, dtype=np.int32), [-1, -1]).astype(np.int32)
    return cols, rows


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_ladder_with_exponentially_many_walks(name):
    """2,000 levels: who visits a vertex twice in a phase does not come back."""
    graph = ladder(2000)
    control = FreeRun()
    _, mates = match(name, graph, rungs(graph), control, threads=2)
    assert check_maximum(graph, *mates) == graph.nrows
    assert [found for found, _ in control.phases] == [1, 0]


@pytest.mark.parametrize("matrix", STRUCTURAL_RANK)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_real_matrices_have_their_structural_rank(real, name, matrix):
    graph = real(matrix)
    _, mates = match(name, graph, start("cheap", graph), threads=2)
    assert check_maximum(graph, *mates) == STRUCTURAL_RANK[matrix]


@pytest.fixture(scope="session")
def real():
    """Real matrices by name, read once; the test is skipped where there is none."""
    graphs = {}

    def read(name):
        if name not in graphs:
            graphs[name] = real_matrix(name)
        if graphs[name] is None:
            pytest.skip(f"GPUMATCH_DATA holds no {name}.mtx.gz")
        return graphs[name]

    return read
