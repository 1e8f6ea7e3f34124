"""Hungarian algorithms: the contract, budgets, stops at any tick, threads, starts, statistics."""

from __future__ import annotations

import functools
import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

import gpumatch as gm
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import DenseCosts
from gpumatch.cpu.assignment.hungarian import classical, problem, tree
from gpumatch.cpu.numba_tools import workers
from graphs import costs
from tests.assignment_cases import (
    CASES,
    DENSE_OPTIMA,
    DTYPES,
    LAPX_OPTIMUM,
    factors_of,
    lapx_cost_eps,
    or_library,
)
from tests.cpu.assignment.solved import (
    Solved,
    Trace,
    check_a_limit_where_no_column_is_left,
    check_rows_without_a_path,
    optimum,
    rounding,
    tight_pairs,
)
from tests.cpu.matching.cases import FreeRun
from tests.pairwise import pairwise

RUNS = {
    "classical": classical.run,
    "levels": tree.run,
    "stack": partial(tree.run, search="stack"),
}
EVERY_RUN = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
MODULES = problem, tree, classical


def set_budget(monkeypatch, budget):
    for module in MODULES:
        monkeypatch.setattr(module, "BUDGET", budget)


def stack(source, **wish):
    """The order of search that is not the default, from the front door."""
    return gm.assign(source, algorithm="hungarian-tree", search="stack", **wish)


# -- optimal, with duals that prove it -------------------------------------------------------------


SAMPLE = pairwise(
    ((name, case) for name in RUNS for case in CASES if max(case.shape) <= 200),
    lambda pair: {"run": pair[0], **factors_of(pair[1])},
)


@pytest.mark.parametrize(
    ("run", "case"),
    [pytest.param(RUNS[name], case, id=f"{name}-{case}") for name, case in SAMPLE],
)
def test_every_family(run, case):
    matrix = case.costs
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T.copy()
    wide = -wide if case.maximize else wide
    solved = Solved(run, wide)
    solved.check_optimal(rounding(wide))
    assert math.isclose(solved.total, optimum(wide), rel_tol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).str)
def test_every_dtype_from_the_stack(dtype):
    matrix = np.random.default_rng(5).integers(0, 2 if dtype is np.bool_ else 100, (23, 31))
    for source in (matrix.astype(dtype), matrix.T.astype(dtype)):
        for maximize in (False, True):
            a = stack(source, maximize=maximize)
            assert gm.verify(source, a).bound == a.objective
            assert a.objective == (-optimum(-matrix) if maximize else optimum(matrix))


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e290])
@pytest.mark.parametrize("family", ["uniform_float", "two_cost", "low_rank"])
@EVERY_RUN
def test_no_scale_is_special(run, family, scale):
    matrix = costs.make(family, 40, seed=4) * scale
    solved = Solved(run, matrix)
    solved.check_optimal(rounding(matrix))
    assert math.isclose(solved.total, optimum(matrix), rel_tol=1e-13)


@EVERY_RUN
def test_costs_of_many_magnitudes_end(run):
    rng = np.random.default_rng(6)
    matrix = rng.random((50, 50)) * 10.0 ** rng.integers(-30, 30, (50, 50))
    solved = Solved(run, matrix)
    solved.check_optimal(rounding(matrix))
    nearly = 1 + 1e-12 * rng.integers(0, 9, (50, 50))
    Solved(run, nearly).check_optimal(rounding(nearly))


@EVERY_RUN
def test_large_integers_are_exact(run):
    rng = np.random.default_rng(9)
    matrix = rng.integers(0, 3, (60, 60)) + 2**54 * rng.permutation(np.eye(60, dtype=np.int64))
    Solved(run, matrix).check_optimal()
    Solved(run, matrix - 2**55, limit=2**54).check_optimal()


@EVERY_RUN
def test_the_largest_integers_on_the_longest_path(run):
    n, most = 40, 2**62 // 41 - 1
    matrix = np.full((n, n), np.inf)
    i = np.arange(n)
    rows, cols = np.concatenate([i, i[1:]]), np.concatenate([i, i[:-1]])
    weights = np.repeat([most, -most], [n, n - 1])
    chain = coo_array((weights, (rows, cols)), shape=matrix.shape).tocsr()
    name = "hungarian-classical" if run is RUNS["classical"] else "hungarian-tree"
    options = {"search": "stack"} if run is RUNS["stack"] else {}
    a = gm.assign(chain, algorithm=name, **options)
    assert gm.verify(chain, a).bound == a.objective == n * most


def test_times_do_not_run_over():
    far, number = np.int64(2**63 - 1), np.int64
    assert problem.tight_at(number(5), number(1), number(-3), number(9), far) == 16
    late = problem.tight_at(number(5), number(0), number(-(2**62)), number(2**62), far)
    assert late == far
    assert problem.tight_at(far, number(-9), number(-9), number(0), far) == far


entries = st.integers(-3, 3) | st.integers(-(10**6), 10**6) | st.just(math.inf)
shapes = st.tuples(st.integers(0, 8), st.integers(0, 4)).map(lambda s: (s[0], s[0] + s[1]))
limits = st.none() | st.integers(-4, 4)


@EVERY_RUN
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@given(matrix=hnp.arrays(np.float64, shapes, elements=entries), limit=limits)
def test_agrees_with_scipy(run, kind, matrix, limit):
    solved = Solved(run, matrix, limit=limit, kind=kind)
    solved.check_matching()
    padded = matrix
    if limit is not None:
        own = np.full((len(matrix), len(matrix)), math.inf)
        np.fill_diagonal(own, limit)
        padded = np.hstack([matrix, own])
    try:
        expected = optimum(padded)
    except ValueError:
        assert solved.ended
        assert (solved.row_to_col < 0).any()
        return
    solved.check_optimal()
    assert solved.total == expected


@EVERY_RUN
def test_forbidden_integers_stay_forbidden(run):
    """A sparse problem has no inf; its integers need more than float64 holds."""
    rng = np.random.default_rng(3)
    allowed = rng.random((30, 40)) < 0.3
    allowed[:, :30] |= np.eye(30, dtype=bool)
    rows, cols = allowed.nonzero()
    weights = rng.integers(-3, 3, rows.size) + 2**54
    source = csr_array((weights, (rows, cols)), shape=allowed.shape)
    name = "hungarian-classical" if run is RUNS["classical"] else "hungarian-tree"
    options = {"search": "stack"} if run is RUNS["stack"] else {}
    a = gm.assign(source, algorithm=name, **options)
    assert gm.verify(source, a).bound == a.objective
    small = np.where(allowed, 0.0, math.inf)
    small[rows, cols] = weights - 2**54
    assert a.objective - 30 * 2**54 == optimum(small)


@EVERY_RUN
@pytest.mark.filterwarnings("error")
def test_a_column_that_no_row_may_have_does_no_harm(run):
    """It has no least cost, and its dual stays a number."""
    costs = np.array([[1.0, 2.0, np.inf], [2.0, 4.0, np.inf], [3.0, 1.0, np.inf]])
    solved = Solved(run, costs)
    assert solved.ended
    assert np.isfinite(solved.col_dual).all()
    assert (solved.row_to_col >= 0).sum() == 2


@EVERY_RUN
def test_rows_without_a_path_end_it(run):
    check_rows_without_a_path(functools.partial(Solved, run))


@EVERY_RUN
def test_a_limit_is_taken_where_no_column_is_left(run):
    check_a_limit_where_no_column_is_left(functools.partial(Solved, run))


# -- real instances --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["assign100", "assign300"])
def test_or_library_from_the_stack(name):
    matrix = or_library(name)
    a = stack(matrix)
    assert gm.verify(matrix, a).bound == a.objective == DENSE_OPTIMA[name]


def test_costs_that_break_absolute_tolerances_from_the_stack():
    matrix = lapx_cost_eps()
    a = stack(matrix)
    gm.verify(matrix, a)
    assert math.isclose(a.objective, LAPX_OPTIMUM, rel_tol=1e-14)


# -- what a run begins from, and how it stops ------------------------------------------------------


@EVERY_RUN
@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 8), st.integers(0, 6)),
    top=st.sampled_from([2, 9, 10**6]),
    limit=st.none() | st.integers(-2, 6),
)
def test_any_prices_and_pairs_will_do_to_begin(run, seed, shape, top, limit):
    rng = np.random.default_rng(seed)
    nrows, ncols = shape[0], sum(shape)
    matrix = rng.integers(0, top, (nrows, ncols))
    count = rng.integers(0, nrows, endpoint=True)
    mates = list(zip(rng.permutation(nrows)[:count], rng.permutation(ncols)[:count]))
    price = rng.integers(-top, top, ncols)
    cold = Solved(run, matrix, limit=limit)
    for dtype in (np.int64, np.float64):
        warm = Solved(run, matrix.astype(dtype), limit=limit, mates=mates, price=price)
        warm.check_optimal()
        assert warm.total == cold.total


@EVERY_RUN
@pytest.mark.parametrize("adoptions", [0, 1])
def test_prices_that_are_repaired_too_often_are_given_up(monkeypatch, run, adoptions):
    """A run then begins as one without prices and pairs."""
    monkeypatch.setattr(problem, "ADOPTIONS", adoptions)
    matrix = costs.uniform_integer(30, 30, 10, seed=4)
    price = np.random.default_rng(4).integers(-300, 300, 30)
    cold = Solved(run, matrix)
    warm = Solved(run, matrix, mates=[(row, row) for row in range(30)], price=price)
    warm.check_optimal()
    assert warm.row_to_col.tolist() == cold.row_to_col.tolist()
    assert warm.control.phases == cold.control.phases


@EVERY_RUN
def test_an_optimal_start_is_kept(run):
    for shape in ((50, 70), (50, 50)):
        matrix = costs.uniform_integer(*shape, seed=3)
        first = Solved(run, matrix)
        again = Solved(run, matrix, mates=zip(*first.pairs), price=first.col_dual)
        assert np.array_equal(again.row_to_col, first.row_to_col)
        assert [phase["found"] for phase in again.control.phases] == [0]
    higher = Solved(run, matrix, mates=zip(*first.pairs), price=first.col_dual + 10**6)
    assert [phase["found"] for phase in higher.control.phases] == [0]  # all are as high


@EVERY_RUN
def test_rows_that_take_none_are_not_counted(run):
    matrix = costs.uniform_integer(40, 50, seed=3)
    solved = Solved(run, matrix, limit=np.sort(matrix, axis=None)[60])
    assert 0 < solved.rows.size < 40
    assert solved.control.phases[-1]["matched"] == solved.rows.size
    assert solved.control.ticks[-1] == solved.rows.size


@EVERY_RUN
def test_prices_beyond_the_sums_of_integers_are_not_taken(run):
    matrix = (2**62 // 21 - 1) * np.random.default_rng(2).integers(-1, 2, (20, 20))
    price = np.random.default_rng(3).choice([-1, 1], 20) * (2**62 - 1)
    solved = Solved(run, matrix, price=price)
    solved.check_optimal()
    assert solved.total == Solved(run, matrix).total


@pytest.mark.parametrize("budget", [1, 100, 5000])
@pytest.mark.parametrize("shape", [(60, 60), (40, 100)], ids=str)
@pytest.mark.parametrize("limit", [None, 20])
@EVERY_RUN
def test_any_budget_gives_the_same_result(monkeypatch, run, shape, limit, budget):
    matrix = costs.uniform_integer(*shape, 10, seed=2)
    whole = Solved(run, matrix, limit=limit)
    set_budget(monkeypatch, budget)
    pieces = Solved(run, matrix, limit=limit)
    pieces.check_optimal()
    assert np.array_equal(pieces.row_to_col, whole.row_to_col)
    assert np.array_equal(pieces.col_dual, whole.col_dual)
    ticks = pieces.control.ticks
    assert ticks == sorted(ticks)
    if budget == 1:
        assert len(ticks) > len(whole.control.ticks) + shape[0]


@EVERY_RUN
def test_searches_stay_within_the_budget(monkeypatch, run):
    matrix = costs.two_cost(60, p=0.05, seed=2)
    whole = Solved(run, matrix).control
    for module in (tree, classical):
        monkeypatch.setattr(module, "BUDGET", 1)
    pieces = Solved(run, matrix).control
    assert pieces.phases == whole.phases
    scans = len(pieces.ticks) - len(whole.ticks)
    assert scans > 60


@pytest.mark.parametrize("budget", [1, 200, 10**6])
def test_each_call_of_a_kernel_that_ends_too_soon_is_a_beat(monkeypatch, budget):
    """So is each update of the duals, and each search."""
    monkeypatch.setattr(classical, "BUDGET", budget)
    kernels = {"_compress": False, "_update": False, "_grow": classical.SPENT}
    too_soon = Counter()

    def watched(name, kernel):
        def call(*arguments):
            outcome = kernel(*arguments)
            too_soon[name] += outcome == kernels[name]
            return outcome

        return call

    for name in kernels:
        kernel = getattr(classical, name)
        monkeypatch.setattr(classical, name, watched(name, kernel))
    control = Trace()
    control.phase = lambda **numbers: control.phases.append({**numbers, "at": len(control.ticks)})
    Solved(RUNS["classical"], costs.uniform_integer(40, 40, 10, seed=2), control=control)
    first, *searches = control.phases
    updates = sum(phase["updates"] for phase in searches)
    assert len(control.ticks) - first["at"] == too_soon.total() + updates + len(searches)
    assert updates > 2
    assert too_soon.keys() == kernels.keys()
    assert all(too_soon.values()) == (budget == 1)


@pytest.mark.parametrize("limit", [None, 20])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt()], ids=["stop", "interrupt"])
@EVERY_RUN
def test_stops_at_every_tick_leave_a_matching_and_a_bound(monkeypatch, run, limit, error):
    set_budget(monkeypatch, 300)
    matrix = costs.uniform_integer(20, 25, 10, seed=2) if limit else costs.geom2(20, seed=3)
    best = Solved(run, matrix, limit=limit)
    ticks = len(best.control.ticks)
    sizes = []
    for tick in range(1, ticks + 1):
        solved = Solved(run, matrix, limit=limit, control=Trace(tick, error))
        assert not solved.ended
        assert solved.error is error
        assert len(solved.control.ticks) == tick
        solved.check_matching()
        solved.check_duals(1e-9)
        assert solved.bound <= best.bound + 1e-9
        sizes.append(solved.rows.size)
    assert sizes == sorted(sizes)
    assert sizes[-1] == best.rows.size


def test_a_stopped_run_goes_on_from_where_it_was():
    matrix = costs.uniform_integer(60, 60, 10, seed=5)
    half = gm.assign(matrix, algorithm="hungarian-tree", callback=lambda p: p.matched >= 55)
    assert not half.proven
    assert 55 <= half.size < 60
    rest = gm.assign(matrix, algorithm="hungarian-tree", initial=half)
    assert gm.verify(matrix, rest).bound == rest.objective == optimum(matrix)
    assert rest.stats["trace"][0]["matched"] >= half.size


# -- how it works ----------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("budget", [10**6, 3000])
def test_threads_share_wide_levels_and_change_nothing(monkeypatch, threads, budget):
    matrix = costs.uniform_float(150, 170, seed=6)
    alone = Solved(RUNS["levels"], matrix)
    monkeypatch.setattr(workers, "_EDGES_EACH", 1)
    monkeypatch.setattr(tree, "WIDE", 1000)
    shared = []
    share = problem.Problem.share
    monkeypatch.setattr(problem.Problem, "share", lambda *args: shared.append(share(*args)))
    set_budget(monkeypatch, budget)
    together = Solved(RUNS["levels"], matrix, threads=threads)
    together.check_optimal(rounding(matrix))
    assert len(shared) > 20
    assert np.array_equal(together.row_to_col, alone.row_to_col)
    assert np.array_equal(together.col_dual, alone.col_dual)
    assert together.control.phases == alone.control.phases


@pytest.mark.parametrize("shape", [(30, 30), (20, 30)], ids=str)
@EVERY_RUN
def test_the_first_update_waits_for_a_maximum_matching(run, shape):
    """What the paper's Tables 2 and 3 call initial assignments."""
    matrix = costs.uniform_integer(*shape, seed=7)
    phases = Solved(run, matrix).control.phases
    first = next(k for k, phase in enumerate(phases) if phase["updates"])
    graph = csr_array(tight_pairs(matrix))
    most = np.count_nonzero(maximum_bipartite_matching(graph, "column") >= 0)
    assert phases[first - 1]["matched"] == most < shape[0]


@EVERY_RUN
def test_phases_add_up(run):
    matrix = costs.uniform_integer(80, factor=2, seed=1)
    phases = Solved(run, matrix).control.phases
    assert sum(phase["found"] for phase in phases) == phases[-1]["matched"] == 80
    assert all(phase["updates"] <= 80 for phase in phases)
    found = {phase["found"] for phase in phases[1:]}
    assert max(found) > 1 if run is RUNS["levels"] else found == {1}


@EVERY_RUN
def test_each_update_lets_a_column_join(run):
    """On i · j the k-th search takes k dual updates: one for each column it must pass."""
    n = 40
    solved = Solved(run, costs.machol_wien(n))
    solved.check_optimal()
    assert solved.row_to_col.tolist() == [*range(n)][::-1]
    updates = [phase["updates"] for phase in solved.control.phases]
    assert sum(updates) <= n * n / 2
    assert len(solved.control.ticks) > sum(updates)
    assert max(updates) < n


def test_lists_are_made_anew_after_dual_updates_only():
    only_ties = Solved(RUNS["classical"], costs.two_cost(60, seed=1)).control
    assert len(only_ties.phases) > 1
    assert not any(phase["updates"] for phase in only_ties.phases)
    assert only_ties.parts.count("matrix compression") == 1
    control = Solved(RUNS["classical"], costs.uniform_integer(60, 60, 10, seed=1)).control
    updates = [phase["updates"] for phase in control.phases[1:]]
    searches_after = sum(count > 0 for count in updates[:-1])
    assert control.parts.count("matrix compression") == 1 + sum(updates) + searches_after


@pytest.mark.parametrize(
    ("name", "own"),
    [("hungarian-classical", {"matrix compression"}), ("hungarian-tree", set())],
)
def test_seconds_of_every_step_are_recorded(name, own):
    a = gm.assign(costs.uniform_integer(100, 100, 10, seed=1), algorithm=name)
    steps = {"initial reduction", "first assignments", "forward pass", "dual update"}
    assert a.stats["seconds"].keys() == steps | own | {
        "compilation",
        "costs",
        "search",
        "reverse and augmentation",
    }
    assert a.stats["trace"][0]["found"] > 50


def test_the_order_of_the_search_is_checked():
    with pytest.raises(ValueError, match="search must be one of"):
        gm.assign([[1]], algorithm="hungarian-tree", search="queue")


@pytest.mark.parametrize("shape", [(30, 30), (20, 30)], ids=str)
def test_the_initial_reduction(shape):
    matrix = costs.uniform_integer(*shape, 10, seed=8)
    task = AssignmentTask(DenseCosts(matrix), Solution.empty(shape, is_integer=True), Trace())
    with problem.Problem(task, threads=1) as reduced:
        assert reduced.reduce(Trace())
        tight = matrix - reduced.row_dual[:, None] == reduced.col_dual
        assert np.array_equal(tight, tight_pairs(matrix))


def test_a_problem_that_is_left_waits_for_its_threads(monkeypatch):
    left = []

    class Waited(workers.Workers):
        def __exit__(self, *exception):
            left.append(exception[0])
            super().__exit__(*exception)

    monkeypatch.setattr(problem, "Workers", Waited)
    solution = Solution.empty((2, 3), is_integer=True)
    task = AssignmentTask(DenseCosts(np.ones((2, 3), int)), solution, Trace())
    with pytest.raises(KeyboardInterrupt), problem.Problem(task, threads=2):
        raise KeyboardInterrupt
    assert left == [KeyboardInterrupt]


# -- the parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("covered", "since", "expected"),
    [([], 0, (3, 1)), ([1], 0, (3, 2)), ([1, 2, 3], 0, (5, 0)), ([], 4, (7, 1))],
)
def test_the_soonest_pair_is_the_first_of_those_that_are_tight_then(covered, since, expected):
    far = np.int64(2**62)
    cover = np.zeros(5, bool)
    cover[covered] = True
    duals = np.array([0]), np.zeros(5, np.int64)
    slacks = np.array([[5, 3, 3, 3, far]]), *duals, np.array([since]), cover, far
    assert classical._soonest_pair(slacks, 0) == expected
    cover[:] = True
    assert classical._soonest_pair(slacks, 0) == (far, -1)


@pytest.mark.parametrize(("most", "expected"), [(2**60 - 1, False), (2**60, True)])
def test_limits_count_when_sums_might_overflow(most, expected):
    """(n + 1) times the limit, and a dual, from 2**62 on."""
    given = DenseCosts(np.ones((2, 2), np.int64))
    for sign in (1, -1):
        solution = Solution.empty((2, 2), is_integer=True)
        solution.col_dual[1] = sign * most
        task = AssignmentTask(given, solution, FreeRun(), limit=2**60)
        assert problem.Problem(task, threads=1)._may_overflow() is expected
        task = AssignmentTask(given, solution, FreeRun())
        assert not problem.Problem(task, threads=1)._may_overflow()
