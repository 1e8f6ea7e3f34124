"""The auction on the device: the reference's rounds, gaps, both convergence tests, stops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, eye_array, random_array

import gpumatch as gm
from gpumatch.costs import DenseCosts
from gpumatch.numeric.auction_schedule import Precision
from graphs import costs

pytestmark = pytest.mark.gpu

CONVERGENCE = pytest.mark.parametrize("convergence", ["counter", "reduction"])
TRACED = ("step", "epsilon", "rounds", "found", "matched")


def solve(matrix, backend="cuda", **wish):
    return gm.assign(matrix, algorithm="auction", backend=backend, **wish)


def optimum(matrix):
    rows, cols = linear_sum_assignment(matrix)
    return matrix[rows, cols].sum()


def auctions(a):
    """What the trace tells of the auctions."""
    return [tuple(p[name] for name in TRACED) for p in a.stats["trace"] if "epsilon" in p]


def sparse_matrix(nrows, ncols, degree, seed):
    """Integers at random places, and large ones on the diagonal."""
    rng = np.random.default_rng(seed)
    matrix = random_array((nrows, ncols), density=degree / ncols, rng=rng, format="csr")
    matrix.data = np.ceil(matrix.data * 100)
    return csr_array(matrix + 150 * eye_array(nrows, ncols), dtype=np.int64)


# -- the same auction as elsewhere -----------------------------------------------------------------


@CONVERGENCE
@pytest.mark.parametrize("shape", [(20, 20), (150, 150), (150, 170), (170, 150), (40, 2000)])
@pytest.mark.parametrize("family", ["uniform_float", "geom2", "low_rank"])
def test_it_is_the_auction_of_the_cpu(family, shape, convergence):
    """Round for round: the same numbers of them, the same pairs and prices.

    The columns' auctions have ties. Of these the CPU takes the first in sparse costs only.
    """
    matrix = costs.make(family, *shape, seed=5)
    a = solve(matrix, finish="epsilon", convergence=convergence)
    b = solve(csr_array(matrix), backend="cpu", finish="epsilon")
    assert auctions(a) == auctions(b)
    assert (a.row_to_col == b.row_to_col).all()
    assert (a.col_dual == b.col_dual).all()
    assert (a.row_dual == b.row_dual).all()


def state_of(kernels_rounds, matrix, epsilon, spread, reduces):
    """Assignment and prices on the device after so many rounds from prices of 0."""
    import cupy as cp

    from gpumatch.cuda.assignment import auction

    nrows, ncols = matrix.shape
    rows = auction._Side.of(cp.full(nrows, -np.inf))
    cols = auction._Side.of(cp.zeros(ncols))
    entries = auction._Entries.of(DenseCosts(cp.asarray(matrix)), 0)
    floor = auction._Floor(rows, cols, entries, reduces)
    cap = cp.asarray(np.inf)
    floor.open(cap)
    for _ in range(kernels_rounds):
        floor.hold_rounds(cap, np.float64(spread), np.float64(epsilon), 1)
    return floor.seen, rows.mate.get(), cols.mate.get(), cols.dual.get()


@CONVERGENCE
@pytest.mark.parametrize("family", ["two_cost", "constant", "machol_wien", "uniform_integer"])
@pytest.mark.parametrize("shape", [(12, 15), (70, 70)])
def test_every_round_is_the_papers(family, shape, convergence):
    """Ties, too: the first of the best objects, and of the highest bidders the first."""
    from gpumatch.reference.interleaving import Grid
    from gpumatch.reference.vasconcelos2009 import rounds

    matrix = costs.make(family, *shape).astype(float)
    benefit, price = -matrix, np.zeros(shape[1])
    mates = np.full(shape[0], -1, np.int32), np.full(shape[1], -1, np.int32)
    steps = rounds(benefit, price, *mates, 0.25, 99.0, convergence, Grid("ct", 0))
    for count, step in enumerate(itertools.islice(steps, 25), start=1):
        seen, row_to_col, col_to_row, dual = state_of(
            count, matrix, 0.25, 99.0, convergence == "reduction"
        )
        assert (row_to_col == mates[0]).all()
        assert (col_to_row == mates[1]).all()
        assert (dual == -price).all()
        assert seen["round"] == count
        assert seen["assigned"] == step.assigned == shape[0] - seen["waiting"]


@CONVERGENCE
@pytest.mark.parametrize("scaling", ["epsilon", "none"])
@pytest.mark.parametrize("shape", [(60, 60), (60, 80)])
def test_a_launch_a_round_is_the_same_auction(shape, scaling, convergence):
    form = {"scaling": scaling, "convergence": convergence, "finish": "epsilon"}
    matrix = costs.make("uniform_float", *shape, seed=2)
    looks = []
    a = solve(matrix, host_loop="round", callback=lambda _: looks.append(0), **form)
    b = solve(matrix, **form)
    assert auctions(a) == auctions(b)
    assert (a.row_to_col == b.row_to_col).all()
    assert (a.col_dual == b.col_dual).all()
    assert len(looks) >= sum(phase["rounds"] for phase in a.stats["trace"] if "rounds" in phase)


@pytest.mark.parametrize("shape", [(200, 200), (200, 260), (260, 200)])
@pytest.mark.parametrize("wish", [{}, {"cost_limit": 60}, {"cardinality": "any"}], ids=str)
def test_both_ways_to_converge_are_one_auction(shape, wish):
    for matrix in (costs.make("uniform_integer", *shape), sparse_matrix(*shape, 4, 5)):
        a, b = (solve(matrix, convergence=way, **wish) for way in ("counter", "reduction"))
        assert auctions(a) == auctions(b)
        assert (a.row_to_col == b.row_to_col).all()
        assert (a.col_dual == b.col_dual).all()


def test_the_order_of_the_threads_changes_nothing():
    matrix = costs.make("uniform_integer", 900, 1000, factor=0.1)
    a = solve(matrix)
    for _ in range(20):
        b = solve(matrix)
        assert auctions(a) == auctions(b)
        assert (a.row_to_col == b.row_to_col).all()
        assert (a.col_dual == b.col_dual).all()


# -- optimal, and proven ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("ncols", [200, 201, 202, 203, 700])
def test_rows_at_any_address(ncols, dtype):
    """Loads of 16 bytes where rows begin at multiples of 16, of one cost elsewhere."""
    matrix = costs.make("uniform_integer", 200, ncols).astype(dtype)
    a = solve(matrix)
    gm.verify(matrix, a)
    assert a.proven
    assert a.objective == optimum(matrix)


@CONVERGENCE
@pytest.mark.parametrize("shape", [(300, 300), (300, 450), (450, 300)])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize(
    "wish",
    [{}, {"cardinality": "any", "maximize": True}, {"cost_limit": 60}, {"cardinality": "maximum"}],
    ids=str,
)
def test_it_is_optimal_on_sparse_costs(shape, dtype, wish, convergence):
    matrix = sparse_matrix(*shape, 4, 5).astype(dtype)
    a = solve(matrix, convergence=convergence, **wish)
    gm.verify(matrix, a)
    assert a.proven
    best = gm.assign(matrix, algorithm="shortest-augmenting-path", backend="cpu", **wish)
    limit = wish.get("cost_limit", 0)
    assert a.objective - limit * a.size == best.objective - limit * best.size


@CONVERGENCE
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_absent_edges_are_never_taken(share, convergence):
    rng = np.random.default_rng(3)
    matrix = rng.random((250, 300))
    matrix[rng.random(matrix.shape) < share] = np.inf
    a = solve(matrix, convergence=convergence)
    gm.verify(matrix, a)
    assert a.objective == pytest.approx(optimum(matrix), rel=1e-12)


def test_a_row_that_may_have_one_column_gets_it():
    matrix = np.full((300, 300), np.inf)
    matrix[:, 0] = matrix[0] = 1.0
    np.fill_diagonal(matrix, 5.0)
    matrix[7, 1:] = np.inf
    matrix[7, 0] = 1000.0
    matrix[0, 7] = 2.0
    a = solve(matrix)
    gm.verify(matrix, a)
    assert a.row_to_col[7] == 0
    assert a.objective == optimum(matrix)


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_infeasible_does_not_loop(sparse):
    matrix = np.random.default_rng(0).random((300, 400))
    matrix[:7, 6:] = np.inf
    if sparse:
        rows, cols = np.isfinite(matrix).nonzero()
        matrix = csr_array((matrix[rows, cols], (rows, cols)), shape=matrix.shape)
    with pytest.raises(gm.InfeasibleError) as caught:
        solve(matrix)
    assert caught.value.rows.tolist() == [*range(7)]
    assert caught.value.cols.tolist() == [*range(6)]


@pytest.mark.parametrize("family", ["uniform_integer", "machol_wien", "low_rank"])
@pytest.mark.parametrize("shape", [(100, 101), (100, 400), (400, 100)])
def test_columns_left_over_have_the_price_zero(family, shape):
    """And were priced on the way: the columns had auctions too."""
    matrix = costs.make(family, *shape, seed=2)
    a = solve(matrix)
    gm.verify(matrix, a)
    assert a.objective == pytest.approx(optimum(matrix), rel=1e-12)
    assert (a.col_dual[a.col_to_row < 0] == 0).all()
    assert (a.row_dual[a.row_to_col < 0] == 0).all()
    if family == "low_rank":
        assert "reverse" in [step for step, *_ in auctions(a)]


def test_prices_to_begin_from_do_no_harm():
    matrix = costs.make("uniform_integer", 200, 300, seed=1)
    other = costs.make("uniform_integer", 200, 300, seed=2)
    a = solve(matrix, initial=solve(other))
    gm.verify(matrix, a)
    assert a.objective == optimum(matrix)
    assert len(auctions(a)) < len(auctions(solve(matrix)))


# -- exact or not ----------------------------------------------------------------------------------


def test_integers_leave_no_gap_to_close(monkeypatch):
    from gpumatch.cuda.assignment.hungarian import tree

    monkeypatch.setattr(tree, "run", None)
    for matrix in (
        costs.make("uniform_integer", 300),
        costs.make("machol_wien", 200, 250),
        2**48 + costs.make("uniform_integer", 100, factor=2**30),  # scaled, beyond a float64
    ):
        assert solve(matrix).objective == optimum(matrix)


def test_integers_too_large_to_be_scaled_are_exact_nonetheless():
    matrix = np.random.default_rng(3).integers(2**52, 2**53, (200, 260))
    a = solve(matrix)
    gm.verify(matrix, a)
    assert a.objective == int(optimum(matrix))
    loose = solve(matrix, finish="epsilon")
    assert (loose.proven, loose.size) == (False, 200)
    assert loose.gap > 0
    assert 0 <= loose.objective - a.objective <= loose.gap


@pytest.mark.parametrize("shape", [(300, 300), (300, 390), (390, 300)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", ["uniform_float", "geom2", "low_rank"])
def test_a_gap_that_is_left_is_at_most_n_epsilon(family, dtype, shape):
    matrix = costs.make(family, *shape, seed=4).astype(dtype)
    exact = matrix.astype(np.float64)
    a = solve(matrix, finish="epsilon")
    rows_are_fewer = shape[0] <= shape[1]
    epsilon = Precision.of(DenseCosts(matrix if rows_are_fewer else matrix.T), None).epsilon
    bound = a.row_dual.sum() + a.col_dual.sum()
    tolerance = 300 * np.spacing(exact.max())
    assert not a.proven
    assert bound <= optimum(exact) + tolerance <= a.objective + 2 * tolerance
    assert 0 <= a.gap <= min(shape) * epsilon * (1 + 1e-9)
    assert (exact - a.row_dual[:, None] - a.col_dual >= -np.spacing(exact.max())).all()
    closed = solve(matrix)
    gm.verify(matrix, closed)
    assert closed.objective == pytest.approx(optimum(exact), rel=1e-12)


def test_the_gap_is_closed_from_the_auctions_prices(monkeypatch):
    from gpumatch.cuda.assignment.hungarian import tree

    seen = []
    close = tree.run

    def spy(task):
        seen.append((int((task.solution.row_to_col >= 0).sum()), task.solution.col_dual.min()))
        return close(task)

    monkeypatch.setattr(tree, "run", spy)
    matrix = costs.make("uniform_float", 300)
    assert solve(matrix).objective == pytest.approx(optimum(matrix))
    assert seen[0][0] == 300
    assert seen[0][1] < 0


# -- control ---------------------------------------------------------------------------------------


@CONVERGENCE
@pytest.mark.parametrize("rounds", [1, 2, 7])
@pytest.mark.parametrize("shape", [(150, 150), (150, 170)])
def test_launches_may_end_after_any_round(monkeypatch, shape, rounds, convergence):
    from gpumatch.cuda.assignment import auction

    matrix = costs.make("low_rank", *shape)
    whole = solve(matrix, finish="epsilon")
    monkeypatch.setattr(auction, "_ROUNDS_A_LAUNCH", rounds)
    split = solve(matrix, finish="epsilon", convergence=convergence)
    assert auctions(whole) == auctions(split)
    assert (whole.row_to_col == split.row_to_col).all()
    assert (whole.col_dual == split.col_dual).all()


def test_launches_may_end_by_the_entries_looked_at(monkeypatch):
    from gpumatch.cuda.assignment import auction

    matrix = costs.make("low_rank", 300, 320)
    whole = solve(matrix, finish="epsilon")
    monkeypatch.setattr(auction, "_ENTRIES_A_LAUNCH", 1)
    launches = []
    split = solve(matrix, finish="epsilon", callback=lambda _: launches.append(0))
    assert auctions(whole) == auctions(split)
    assert len(launches) >= sum(phase["rounds"] for phase in split.stats["trace"])
    assert (whole.col_dual == split.col_dual).all()


@pytest.mark.parametrize("shape", [(80, 80), (80, 120)])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_it_stops_at_any_tick_with_a_matching_and_a_bound(monkeypatch, shape, dtype, sparse):
    from gpumatch.cuda.assignment import auction

    monkeypatch.setattr(auction, "_ROUNDS_A_LAUNCH", 1)
    dense = costs.make("uniform_integer", *shape, factor=10, seed=1).astype(dtype)
    matrix = csr_array(dense + 1) if sparse else dense
    dense = dense + 1 if sparse else dense
    best = optimum(dense)
    seen = []
    solve(matrix, callback=lambda _: seen.append(0))
    assert len(seen) >= 30
    stopped = [solve_until(matrix, last) for last in range(1, len(seen), len(seen) // 15)]
    for a in stopped:
        bound = a.row_dual.sum() + a.col_dual.sum()
        assert np.unique(a.col_ind).size == a.size
        assert (a.col_to_row[a.col_ind] == a.row_ind).all()
        assert a.gap == (np.inf if a.size < 80 else a.objective - bound)
        assert bound <= best + 1e-9
        assert (dense - a.row_dual[:, None] - a.col_dual >= -1e-9).all()
        resumed = solve(matrix, initial=a)
        gm.verify(matrix, resumed)
        assert resumed.objective == best
    assert sum(not a.proven for a in stopped) >= 10
    assert {a.size == 80 for a in stopped} == {False, True}


def solve_until(matrix, last):
    """Stop at that tick."""
    ticks = itertools.count(1)
    return solve(matrix, callback=lambda _: next(ticks) >= last)


def test_an_interrupt_carries_the_assignment_so_far(monkeypatch):
    from gpumatch.cuda.assignment import auction

    def interrupt(progress):
        if progress.phase == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(auction, "_ROUNDS_A_LAUNCH", 20)
    matrix = costs.make("uniform_integer", 200)
    with pytest.raises(KeyboardInterrupt) as caught:
        solve(matrix, callback=interrupt)
    a = caught.value.result
    assert (a.size, a.proven) == (200, False)
    assert (np.sort(a.col_ind) == np.arange(200)).all()
    assert (matrix - a.row_dual[:, None] - a.col_dual >= 0).all()
    assert solve(matrix).proven


def test_costs_on_the_device():
    import cupy as cp

    for matrix in (costs.make("uniform_integer", 300, 400), costs.make("uniform_float", 200)):
        before = cp.asarray(matrix)
        a = solve(before.copy())
        gm.verify(before, a)
        assert a.objective == pytest.approx(optimum(matrix), rel=1e-12)
        assert isinstance(a.row_to_col, cp.ndarray)


@pytest.mark.parametrize("wish", [{}, {"cost_limit": 60.5}], ids=str)
def test_gaps_of_sparse_costs_are_closed_where_a_dense_matrix_has_no_room(monkeypatch, wish):
    from gpumatch.cuda import memory

    def room_for_all_else(nbytes, purpose):
        if purpose == "the matrix of sparse costs":
            raise MemoryError(purpose)

    matrix = sparse_matrix(200, 260, 4, 5) * 1.1
    whole = solve(matrix, **wish)
    monkeypatch.setattr(memory, "require_memory", room_for_all_else)
    a = solve(matrix, **wish)
    assert a.proven
    gm.verify(matrix, a)
    assert a.objective - 60.5 * a.size == pytest.approx(whole.objective - 60.5 * whole.size)
    with pytest.raises(MemoryError):
        gm.assign(matrix, algorithm="hungarian-tree", backend="cuda", **wish)


def test_too_large_for_the_device(monkeypatch):
    from gpumatch.cuda import memory

    def too_little(nbytes, purpose):
        raise MemoryError(f"{purpose} needs {nbytes} bytes")

    monkeypatch.setattr(memory, "require_memory", too_little)
    with pytest.raises(MemoryError, match="needs"):
        solve(costs.make("uniform_integer", 50))
