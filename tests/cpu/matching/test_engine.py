"""The engine finds maximum matchings from any start, alone or in a crowd, interrupted or not.

Every result is proven maximum by a vertex cover (`cases.check_maximum`), not by another algorithm.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching import cheap, forests, karp_sipser, lookahead_search
from gpumatch.cpu.matching import engine as matching_engine
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

STARTS = {"none": None, "cheap": cheap, "karp-sipser": karp_sipser}


def start(name, graph):
    mates = unmatched(graph)
    if STARTS[name] is not None:
        STARTS[name].run(MatchingTask(graph, *mates, FreeRun()))
    return mates


def match(graph, mates=None, control=None, threads=1):
    """Extend the mates; whether the engine finished, and the mates."""
    mates = unmatched(graph) if mates is None else mates
    control = FreeRun() if control is None else control
    return matching_engine.run(MatchingTask(graph, *mates, control, threads)), mates


def scattered(graph, share, seed):
    """A matching of about a share of the rows, each with its first free column."""
    row_to_col, col_to_row = unmatched(graph)
    for row in np.flatnonzero(np.random.default_rng(seed).random(graph.nrows) < share):
        cols = graph.indices[graph.indptr[row] : graph.indptr[row + 1]]
        for col in cols[col_to_row[cols] < 0][:1]:
            row_to_col[row], col_to_row[col] = col, row
    return row_to_col, col_to_row


@pytest.fixture(params=["forests", "one by one", "one by one, then forests"])
def way(request, monkeypatch):
    """Small graphs are left to the forests, searched from one row after the other, or begun so."""
    if request.param == "forests":
        monkeypatch.setattr(matching_engine, "_FEW_EDGES", -1)
    elif request.param == "one by one":
        monkeypatch.setattr(matching_engine, "_FEW_EDGES", 10**9)
        monkeypatch.setattr(matching_engine, "_READINGS", 10**9)
    else:
        monkeypatch.setattr(matching_engine, "_FEW_EDGES", 10**9)
        monkeypatch.setattr(matching_engine, "_READINGS", 0)
    return request.param


@pytest.fixture
def forests_only(monkeypatch):
    """Leave small graphs to the forests, too."""
    monkeypatch.setattr(matching_engine, "_FEW_EDGES", -1)


@pytest.fixture
def small_budget(monkeypatch, forests_only):
    """Let kernels return to Python every few edges."""
    monkeypatch.setattr(forests, "BUDGET", 100)
    monkeypatch.setattr(lookahead_search, "BUDGET", 100)


@pytest.fixture
def crowd(monkeypatch, small_budget):
    """Let small graphs be shared out to all threads, level by level."""
    monkeypatch.setattr(workers, "_EDGES_EACH", 1)
    monkeypatch.setattr(forests, "_WIDE", 2)


class Phases(FreeRun):
    """Remember all that is told about each phase."""

    def phase(self, **told):
        self.phases.append(told)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("case", CASES)
def test_the_matching_is_maximum(case, init, threads, way):
    graph, size = CASES[case]
    finished, mates = match(graph, start(init, graph), threads=threads)
    assert finished is True
    assert check_maximum(graph, *mates) == (
        size if size is not None else check_valid(graph, *mates)
    )


@pytest.mark.parametrize("case", CASES)
def test_many_threads_in_each_others_way_find_a_maximum(crowd, case):
    graph, _ = CASES[case]
    for seed in range(3):
        finished, mates = match(graph, scattered(graph, 0.8, seed), threads=4)
        assert finished
        check_maximum(graph, *mates)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 150)),
    st.integers(0, 2**32 - 1),
    st.floats(0, 1),
)
def test_random_graphs_from_random_matchings(way, shape, seed, share):
    graph = random(*shape, seed)
    _, mates = match(graph, scattered(graph, share, seed))
    check_maximum(graph, *mates)


@pytest.mark.parametrize("threads", [1, 3])
def test_phases_go_on_from_what_sweeps_leave(crowd, monkeypatch, threads):
    """A sweep after every phase: the trees that stood before it must leave no trace."""
    monkeypatch.setattr(matching_engine, "_PATIENCE", 0)
    phases_after_a_sweep = 0
    for seed in range(60):
        graph = random(120, 120, 300, seed)
        control = Phases()
        _, mates = match(graph, scattered(graph, 0.9, seed), control, threads)
        check_maximum(graph, *mates)
        sweeps = ["edges" not in phase for phase in control.phases]
        phases_after_a_sweep += any(sweeps) and len(sweeps) > 1 + sweeps.index(True)
    assert phases_after_a_sweep > 30


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("tick", [1, 2, 3, 5, 8, 13, 30])
def test_a_stopped_run_leaves_a_valid_matching_to_go_on_from(crowd, tick, threads):
    graph, _ = CASES["large"]
    finished, mates = match(graph, control=StopAt(tick), threads=threads)
    assert finished is False
    check_valid(graph, *mates)
    finished, mates = match(graph, mates, threads=threads)
    assert finished
    check_maximum(graph, *mates)


def test_a_run_stopped_before_its_one_call_leaves_all_as_it_was(way):
    graph, _ = CASES["sparse"]
    before = start("cheap", graph)
    finished, after = match(graph, tuple(side.copy() for side in before), StopAt(1))
    assert finished is False
    for mates_before, mates_after in zip(before, after):
        assert np.array_equal(mates_before, mates_after)


@pytest.mark.parametrize("tick", [1, 4, 9])
def test_an_exception_from_tick_leaves_a_valid_matching(crowd, tick):
    class Interrupt(StopAt):
        def tick(self, matched):
            if super().tick(matched):
                raise KeyboardInterrupt
            return False

    graph, _ = CASES["large"]
    mates = unmatched(graph)
    with pytest.raises(KeyboardInterrupt):
        match(graph, mates, Interrupt(tick), threads=3)
    check_valid(graph, *mates)
    match(graph, mates)
    check_maximum(graph, *mates)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("case", ["wide", "sparse", "chains"])
def test_ticks_see_consistent_matchings_of_the_size_they_are_told(crowd, case, threads):
    class Watch(FreeRun):
        def tick(self, matched):
            assert check_valid(graph, *mates) == matched
            return False

    graph, _ = CASES[case]
    mates = scattered(graph, 0.5, 0)
    match(graph, mates, Watch(), threads=threads)


def test_the_budget_does_not_change_the_matching(request, forests_only):
    graph, _ = CASES["large"]
    _, whole = match(graph)
    request.getfixturevalue("small_budget")
    _, in_pieces = match(graph)
    assert np.array_equal(whole[0], in_pieces[0])


def test_one_thread_gives_one_matching():
    graph, _ = CASES["large"]
    assert np.array_equal(match(graph)[1][0], match(graph)[1][0])


def test_matched_vertices_stay_matched():
    graph, _ = CASES["sparse"]
    before = start("cheap", graph)
    _, after = match(graph, tuple(side.copy() for side in before))
    for mates_before, mates_after in zip(before, after):
        assert np.all(mates_after[mates_before >= 0] >= 0)


@pytest.mark.parametrize("threads", [1, 3])
def test_phases_add_up(crowd, threads):
    graph, _ = CASES["large"]
    control = FreeRun()
    _, mates = match(graph, control=control, threads=threads)
    found = [phase[0] for phase in control.phases]
    assert [phase[1] for phase in control.phases] == np.cumsum(found).tolist()
    assert found[-1] == 0
    assert control.phases[-1][1] == check_valid(graph, *mates)


@pytest.mark.parametrize("case", ["0x0", "0x5", "5x0", "no edges"])
def test_nothing_to_match_needs_no_phase(case, way):
    control = FreeRun()
    match(CASES[case][0], control=control)
    assert control.phases == []


@pytest.mark.parametrize("case", ["complete 3x8", "complete 8x3", "cycle"])
def test_a_saturated_side_needs_no_phase(case, way):
    graph, _ = CASES[case]
    _, mates = match(graph)
    control = FreeRun()
    match(graph, mates, control)
    assert control.phases == []


def blind_alleys(length):
    """Two chains that no path leaves, and four vertices that are matched in two phases.

    Row 0 takes column 0 first and so keeps row 1 from it; column 1 is left for row 0. One alley has
    a row more than columns, the other a column more than rows.
    """
    rows = [(2 + i + d, 2 + i) for i in range(length) for d in (0, 1)]
    cols = [(3 + length + i, 2 + length + i + d) for i in range(length) for d in (0, 1)]
    graph = graph_of(3 + 2 * length, 3 + 2 * length, [(0, 0), (0, 1), (1, 0), *rows, *cols])
    row_to_col, col_to_row = unmatched(graph)
    for i in range(length):
        row_to_col[3 + i], col_to_row[2 + i] = 2 + i, 3 + i
        row_to_col[3 + length + i], col_to_row[3 + length + i] = 3 + length + i, 3 + length + i
    return graph, (row_to_col, col_to_row)


def test_trees_without_a_path_are_not_grown_again(forests_only):
    graph, mates = blind_alleys(100)
    control = Phases()
    match(graph, mates, control)
    assert check_maximum(graph, *mates) == 202
    assert [phase["found"] for phase in control.phases] == [1, 1, 0]
    assert control.phases[0]["edges"] > 200
    assert control.phases[1]["edges"] < 20
    assert control.phases[2]["edges"] < 20


def test_one_by_one_an_alley_is_read_once():
    graph, mates = blind_alleys(100)
    control = Phases()
    match(graph, mates, control)
    assert check_maximum(graph, *mates) == 202
    (phase,) = control.phases
    assert phase["found"] == 2
    assert phase["edges"] <= graph.nnz + 10


def test_one_by_one_roots_pass_by_the_tree_that_one_of_them_grew():
    roots, alley = 50, 100
    chained = [(row, row + d) for row in range(alley) for d in (0, 1) if row + d < alley]
    graph = graph_of(alley + roots, alley, [*chained, *((alley + k, 0) for k in range(roots))])
    row_to_col, col_to_row = unmatched(graph)
    row_to_col[:alley] = col_to_row[:] = np.arange(alley)
    row_to_col[0] = col_to_row[0] = -1  # column 0 is taken by a root, and then row 0 is one
    control = Phases()
    match(graph, (row_to_col, col_to_row), control)
    assert check_maximum(graph, row_to_col, col_to_row) == alley
    assert control.phases[0]["edges"] <= graph.nnz + 2


def two_stars_and_a_way_round(transposed):
    """A path that the columns' forest finds only if a released pair joins it.

    Column 0 takes row 0 first, which column 1 needs; then column 0 can go on by row 1, matched to
    column 2, to row 2. Column 3's star makes keeping trees worth while; row 3's larger one makes
    the rows' forest wait.
    """
    edges = {(0, 0), (0, 1), (1, 0), (1, 2), (2, 2)}
    pairs = [(1, 2)]
    for tip in range(4, 24):
        edges |= {(tip, 3), (tip, tip)}
        pairs.append((tip, tip))
    for tip in range(24, 124):
        edges |= {(3, tip), (tip, tip)}
        pairs.append((tip, tip))
    if transposed:
        edges, pairs = {(j, i) for i, j in edges}, [(j, i) for i, j in pairs]
    graph = graph_of(124, 124, sorted(edges))
    row_to_col, col_to_row = unmatched(graph)
    for row, col in pairs:
        row_to_col[row], col_to_row[col] = col, row
    return graph, (row_to_col, col_to_row)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_released_pair_joins_the_forest_beside_it(forests_only, transposed):
    graph, mates = two_stars_and_a_way_round(transposed)
    control = Phases()
    match(graph, mates, control)
    assert check_maximum(graph, *mates) == 123
    assert [phase["found"] for phase in control.phases] == [1, 1, 0]
    assert control.phases[1]["edges"] < 20


@pytest.mark.parametrize("threads", [1, 3])
def test_grafting_always_finds_what_growing_anew_would(crowd, monkeypatch, threads):
    monkeypatch.setattr(forests, "_GRAFTING", 1e9)
    monkeypatch.setattr(matching_engine, "_PATIENCE", 1e9)
    for seed in range(150):
        graph = random(60 + seed % 3 * 60, 180 - seed % 5 * 30, 330, seed)
        _, mates = match(graph, scattered(graph, seed % 10 / 10, seed), threads=threads)
        check_maximum(graph, *mates)


def test_after_a_collision_all_trees_are_grown_again():
    graph, mates = blind_alleys(100)
    control = FreeRun()
    with workers.Workers(1, graph.nnz) as crew:
        pair = forests.Forests(graph, *mates, crew)
        assert pair.grow(control, 200)
        assert pair.augment(control, 200)
        read = pair.read
        pair._totals[forests._COLLIDED] = 1
        assert pair.renew(control, 201)
        assert pair.grow(control, 201)
        assert pair.read > read - 20


def test_who_cannot_have_both_roots_of_a_path_lets_go_and_tells():
    graph, mates = blind_alleys(1)
    with workers.Workers(1, graph.nnz) as crew:
        pair = forests.Forests(graph, *mates, crew)
    rows, cols, totals = pair._rows, pair._cols, pair._totals
    cols.bridge[0] = 1 + 1  # taken by row 1
    assert not forests._close(0, 0, 0, 0, rows, cols, totals)
    assert rows.bridge[0] == 0
    assert cols.bridge[0] == 2
    assert totals[forests._COLLIDED] == 1
    assert totals[forests._FOUND] == 0


def shifted(graph):
    """Match each row of a chain to the next column: the path to the free ones passes all rows."""
    row_to_col, col_to_row = unmatched(graph)
    for row in range(graph.nrows):
        last = graph.indices[graph.indptr[row + 1] - 1]
        if last != row:
            row_to_col[row], col_to_row[last] = last, row
    return row_to_col, col_to_row


def test_a_path_through_all_vertices():
    graph = chain(100_000)
    control = Phases()
    _, mates = match(graph, shifted(graph), control)
    assert np.array_equal(mates[0], np.arange(100_000))
    assert [phase["found"] for phase in control.phases] == [1]


def test_disjoint_paths_of_all_lengths_are_found_in_one_phase():
    graph = chains(range(2, 60))
    control = Phases()
    match(graph, shifted(graph), control)
    assert [phase["found"] for phase in control.phases] == [58]
    assert control.phases[0]["edges"] <= graph.nnz


def rungs(graph):
    """Match each row of a ladder but the first within its level: the path passes all levels."""
    cols = np.arange(-1, graph.nrows - 1, dtype=np.int32)
    rows = np.append(np.arange(1, graph.nrows, dtype=np.int32), [-1, -1]).astype(np.int32)
    return cols, rows


@pytest.mark.parametrize("threads", [1, 2])
def test_a_ladder_with_exponentially_many_walks(threads):
    graph = ladder(2000)
    control = Phases()
    _, mates = match(graph, rungs(graph), control, threads)
    assert check_maximum(graph, *mates) == graph.nrows
    assert sum(phase["found"] for phase in control.phases) == 1
    assert sum(phase.get("edges", 0) for phase in control.phases) <= 2 * graph.nnz


@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("matrix", STRUCTURAL_RANK)
def test_real_matrices_have_their_structural_rank(real, matrix, init):
    graph = real(matrix)
    _, mates = match(graph, start(init, graph), threads=2)
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
