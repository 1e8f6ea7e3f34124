"""Sessions: live assignments and matchings."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import gpumatch as gm
from gpumatch.cpu.live import sparse_table
from gpumatch.cpu.live.calls import on_first_call
from gpumatch.cpu.live.cells import serve
from gpumatch.cpu.live.state import BOUND, COUNTS, FREE, USED
from gpumatch.cpu.numba_tools.compiled import short_kernel
from tests.live_changes import Drawn, run, run_graph, run_points


@pytest.mark.parametrize("first", [0, 16])
def test_random_changes_end_as_from_scratch(first):
    for seed in range(first, first + 16):
        run(seed, 24, between=1 + seed % 3)


def test_random_changes_of_points_end_as_from_scratch():
    for seed in range(32):
        run_points(seed, 12)
    run_points(3119, 60)  # former slots take no part after slots are compacted
    run_points(100776, 42)  # duals that columns have left large, for costs that are small


def test_random_changes_of_graphs_end_as_from_scratch():
    for seed in range(60):
        run_graph(seed, 12)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_many_random_changes_end_as_from_scratch(part):
    for seed in range(1000 * part + 100, 1000 * part + 105):
        run(seed, 1000, between=40)
    for seed in range(1000 * part + 100, 1000 * part + 130):
        run_points(seed, 60)
        run_graph(seed, 200)


# -- ids and snapshots -----------------------------------------------------------------------------


def test_ids_stay_when_others_go_and_slots_are_compacted():
    rng = np.random.default_rng(0)
    s = gm.Session(np.zeros((0, 4), int))
    rows: dict[int, np.ndarray] = {}
    for k in range(300):  # of which few are there at a time, so slots are taken anew
        costs = rng.integers(0, 100, 4)
        new = s.add_row(costs)
        assert new == k
        rows[new] = costs
        if len(rows) > 5:
            gone = int(rng.choice(list(rows)))
            s.remove_row(gone)
            del rows[gone]
            with pytest.raises(KeyError, match=f"no row with the id {gone}"):
                s.set_row(gone, costs)
        assert s.row_ids.tolist() == list(rows)
        assert s.costs().tolist() == [costs.tolist() for costs in rows.values()]
        a = s.solve()
        assert a.objective == gm.assign(np.array(list(rows.values()))).objective
        assert all(
            rows[i][j] == s.costs()[s.row_ids.tolist().index(i), j] for i, j in a.pairs.items()
        )
    assert s._table.costs[0].shape[0] < 64


def test_a_snapshot_does_not_change():
    s = gm.Session(np.array([[1.0, 9.0], [9.0, 1.0]]))
    a = s.solve()
    before = {name: np.copy(getattr(a, name)) for name in ("row_to_col", "row_dual", "pair_costs")}
    s.set_row(0, [9.0, 0.0])
    s.set_row(1, [0.0, 9.0])
    s.remove_col(0)
    b = s.solve()
    for name, values in before.items():
        assert np.array_equal(getattr(a, name), values)
    assert (a.col_ids.tolist(), b.col_ids.tolist()) == ([0, 1], [1])
    assert (a.pairs, b.pairs) == ({0: 0, 1: 1}, {0: 1})
    m_session = gm.GraphSession(np.eye(2))
    m = m_session.solve()
    m_session.remove_edges([0], [0])
    assert (m.size, m_session.solve().size, m.row_to_col.tolist()) == (2, 1, [0, 1])


def test_a_price_changes_nothing():
    drawn = Drawn(5)
    for _ in range(20):
        drawn.change()
    s = drawn.session
    before = pickle.dumps(s.solve())
    for _ in range(20):
        drawn.change(s.price_of)
    after = s.solve()
    assert np.array_equal(pickle.loads(before).row_to_col, after.row_to_col)
    assert np.array_equal(pickle.loads(before).row_dual, after.row_dual)
    with pytest.raises(ValueError, match="NaN"):
        s.price_of.set_row(int(s.row_ids[0]), np.full(s.shape[1], np.nan))
    assert np.array_equal(s.solve().row_to_col, after.row_to_col)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_pair_of_a_row_is_forbidden(kind, cardinality, maximize):
    """The objective must be right at once, before a report looks at the pairs again."""
    rng = np.random.default_rng(7)
    none = -np.inf if maximize else np.inf
    for of_line in (False, True):
        C = rng.random((4, 5)) + 1
        given = sp.csr_array(C) if kind == "sparse" else C
        s = gm.Session(given, cardinality=cardinality, maximize=maximize)
        col = int(s.solve().row_to_col[1])  # -1 of "any", which names some column, too
        C[1, col] = none
        if of_line:
            s.set_row(1, C[1])
        else:
            s.forbid(1, col % 5)
        expected = gm.assign(C, cardinality=cardinality, maximize=maximize).objective
        assert s.objective == pytest.approx(expected, rel=1e-14)


# -- infeasible states -----------------------------------------------------------------------------


def test_an_infeasible_session_tells_why_and_goes_on():
    s = gm.Session(np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]]))
    gone = s.add_row([1, 1, 1])
    s.remove_row(gone)
    for col in (1, 2):
        s.forbid(0, col)
        s.forbid(1, col)
    with pytest.raises(gm.InfeasibleError) as caught:
        s.solve()
    assert (caught.value.rows.tolist(), caught.value.cols.tolist()) == ([0, 1], [0])
    with pytest.raises(gm.InfeasibleError):
        _ = s.objective
    s.set_cost(1, 2, 6)
    assert s.solve().objective == 1 + 6 + 8
    assert s.price_of.forbid(1, 2) == np.inf
    assert s.solve().objective == 15


def test_rows_outnumber_columns_and_the_other_way_round():
    rng = np.random.default_rng(1)
    s = gm.Session(np.zeros((0, 0)))
    C = np.zeros((0, 0))
    for rows, cols in [(3, 0), (0, 5), (6, 0), (0, 2), (0, 6), (9, 0)]:
        for _ in range(rows):
            line = rng.random(C.shape[1])
            s.add_row(line)
            C = np.vstack([C, line])
        for _ in range(cols):
            line = rng.random(C.shape[0])
            s.add_col(line)
            C = np.column_stack([C, line])
        a = s.solve()
        assert a.objective == pytest.approx(gm.assign(C).objective)
        gm.verify(C, a)


def test_unmatched_points_that_go_change_which_side_is_free():
    """Nothing waits then, and the smaller side is another one all the same."""
    X, Y = np.array([[0.0], [1.0], [5.0]]), np.array([[0.1], [1.3]])
    s = gm.Session(gm.PointCosts(X, Y))
    assert s.solve().pairs == {0: 0, 1: 1}
    s.remove_row(2)
    a = s.solve()
    gm.verify(s.costs(), a)
    s.add_col([0.9])
    assert s.solve().pairs == {0: 0, 1: 2}


def test_the_total_of_points_is_that_of_the_pairs_after_slots_are_compacted():
    rng = np.random.default_rng(6)
    Y = rng.random((12, 2))
    s = gm.Session(gm.PointCosts(Y[:0], Y))
    for k in range(80):  # of which few are there at a time
        s.add_row(rng.random(2))
        if k >= 7:
            s.remove_row(k - 7)
        assert s.objective == pytest.approx(gm.assign(s.costs()).objective, abs=1e-12)


def test_many_points_wait_together():
    """More than may be loose, and none of them has a dual yet."""
    rng = np.random.default_rng(7)
    X, Y = rng.random((150, 2)), rng.random((160, 2))
    s = gm.Session(gm.PointCosts(X[:0], Y[:0]))
    for x in X:
        s.add_row(x)
    for y in Y:
        s.add_col(y)
    a = s.solve()
    assert a.objective == pytest.approx(gm.assign(gm.PointCosts(X, Y)).objective)
    gm.verify(s.costs(), a)


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(12, 15), (12, 12), (15, 12)])
def test_rounding_does_not_add_up(shape, monkeypatch):
    """Thousands of changes leave a gap that one run may leave, and are never solved afresh."""
    rng = np.random.default_rng(2)
    C = rng.random(shape) / 3
    s = gm.Session(C)
    monkeypatch.setattr(gm.Session, "_load", None)
    for k in range(2000):
        i = int(rng.integers(shape[0]))
        C[i] = rng.random(shape[1]) / 3 * 10.0 ** rng.integers(-3, 4)
        s.set_row(i, C[i])
        assert k % 10 or s.solve().proven
    a = s.solve()
    assert a.proven
    assert a.gap <= gm.verify(C, a).allowance


def test_rounding_left_by_a_line_goes_with_it():
    run(7806, 11, between=1, is_sparse=False)


@pytest.mark.parametrize(("seed", "put"), [(89, np.asarray), (73, sp.csr_array)])
def test_the_objective_is_no_longer_rounded_by_costs_that_are_gone(seed, put):
    """Duals of 1e30 have left their rounding, which is far above what the pairs cost now."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(4, 4)) * 10.0 ** rng.integers(-30, 31, (4, 4))
    s = gm.Session(put(C), cardinality="any")
    for k in range(12):
        C[k % 4] = rng.normal(size=4) * 10.0 ** rng.integers(-30, 31, 4)
        s.set_row(k % 4, C[k % 4])
        assert s.objective == pytest.approx(gm.assign(C, cardinality="any").objective, rel=1e-12)


@pytest.mark.parametrize(("metric", "scale"), [("chebyshev", 1e-30), ("cityblock", 1e-20)])
def test_the_objective_is_not_rounded_by_points_that_are_gone(metric, scale):
    rng = np.random.default_rng(3)
    for _ in range(10):
        X, Y = scale * rng.random((6, 2)), scale * rng.random((7, 2))
        s = gm.Session(gm.PointCosts(X, Y, metric=metric))
        far = [s.add_row(10.0 ** rng.integers(-3, 4) * rng.random(2)) for _ in range(2)]
        assert s.objective > 1e-8  # paths have passed all others by now
        for name in far:
            s.remove_row(name)
        s.set_row(2, X[2])
        expected = gm.assign(s.costs()).objective
        assert s.objective == pytest.approx(expected, rel=1e-12, abs=0)


def test_integers_are_exact_up_to_their_range():
    most = 2**49 // 4 - 1
    C = np.array([[most, -most, 0], [most - 1, 1 - most, 7], [-most, most, most]])
    s = gm.Session(C)
    assert s.solve().objective == gm.assign(C).objective
    s.set_cost(0, 0, -most)
    C[0, 0] = -most
    a = s.solve()
    assert type(a.objective) is int
    assert a.objective == gm.assign(C).objective
    assert a.row_dual.dtype == np.int64
    with pytest.raises(ValueError, match="too large"):
        s.set_cost(0, 0, most + 1)
    with pytest.raises(ValueError, match="too large"):
        s.add_row([0, 0, 0]), s.add_col([0, 0, 0, 0])
    with pytest.raises(ValueError, match="too large for a session"):
        gm.Session(C * 4)


def test_a_price_of_large_integers_leaves_room_for_more_rows():
    s = gm.Session([[1, 2], [3, 4]])
    large = 2**49 // 3 - 1
    assert s.price_of.set_row(0, [large, large]) > 0
    s.add_row([5, 6]), s.add_col([7, 8, 9])
    s.set_cost(0, 0, 2**49 // 4 - 1)
    with pytest.raises(ValueError, match="too large"):
        s.add_row([1, 1, 1]), s.add_col([1, 1, 1, 1])


def test_duals_of_integers_that_drift_are_found_anew():
    s = gm.Session(np.array([[1, 20], [30, 4]]))
    s._table.numbers[0][[0, 1], :2] += 2.0**52  # duals, and duals as they are shown
    s._table.numbers[1][[0, 1], :2] -= 2.0**52
    s.set_cost(0, 0, 2)
    loads, load = [], s._load
    s._load = lambda: loads.append(None) or load()
    assert s.objective == 6
    assert loads == [None]


# -- arguments -------------------------------------------------------------------------------------


def test_bad_arguments_are_named():
    s = gm.Session(np.ones((2, 3), int))
    for call, error, message in [
        (lambda: gm.Session(np.ones((2, 2)), maximize=1), TypeError, "maximize"),
        (lambda: gm.Session(np.ones((2, 2)), cardinality="most"), ValueError, "cardinality"),
        (lambda: gm.Session(np.ones((2, 2)), cost_limit="x"), TypeError, "cost_limit"),
        (lambda: s.set_row(0, [1, 2]), ValueError, "one number for each of 3 columns"),
        (lambda: s.set_col(0, [1, 2, 3]), ValueError, "one number for each of 2 rows"),
        (lambda: s.set_row(2, [1, 2, 3]), KeyError, "no row with the id 2"),
        (lambda: s.remove_col("a"), KeyError, "no column with the id 'a'"),
        (lambda: s.set_row(0, [1.5, 2, 3]), TypeError, "integers"),
        (lambda: s.set_cost(0, 0, 0.5), TypeError, "integers"),
        (lambda: s.set_cost(0, 0, float("nan")), ValueError, "NaN"),
        (lambda: s.set_cost(0, 0, -np.inf), ValueError, "would ask for a pair"),
        (lambda: s.set_cost(0, 0, "1"), TypeError, "real number"),
        (lambda: s.set_row(0, np.ones(3, complex)), TypeError, "real numbers"),
        (lambda: s.price_of.set_cost(5, 0, 1), KeyError, "no row with the id 5"),
        (lambda: gm.Session(gm.PointCosts([[2.0]], [[1.0]], "cosine")), TypeError, "metric"),
    ]:
        with pytest.raises(error, match=message):
            call()
    assert s.solve().objective == 2
    p = gm.Session(gm.PointCosts([[0.0, 1.0]], [[1.0, 0.0]]))
    for call, error, message in [
        (lambda: p.set_row(0, [1.0]), ValueError, "2 coordinates"),
        (lambda: p.add_col([np.inf, 0.0]), ValueError, "finite"),
        (lambda: p.add_col([np.nan, 0.0]), ValueError, "NaN"),
        (lambda: p.add_col([1e200, 0.0]), ValueError, "too large"),
        (lambda: p.set_cost(0, 0, 1.0), TypeError, "only points"),
    ]:
        with pytest.raises(error, match=message):
            call()
    assert p.solve().objective == 2.0
    g = gm.GraphSession(np.eye(2))
    for call, error, message in [
        (lambda: g.add_edges([0], [2]), ValueError, "cols must be from 0 to 1"),
        (lambda: g.add_edges([0, 1], [1]), ValueError, "as many"),
        (lambda: g.add_edges([0.5], [1]), TypeError, "rows"),
        (lambda: g.remove_edges([0, 0], [0, 1]), ValueError, "no edge of row 0 and column 1"),
    ]:
        with pytest.raises(error, match=message):
            call()
    assert g.solve().size == 2


def test_sparse_costs_forbid_what_they_do_not_store():
    C = sp.csr_array(np.array([[0, 3, 0], [2, 0, 0], [0, 0, 5]]))
    s = gm.Session(C)
    assert s.solve().objective == 10
    assert s.costs().nnz == 3
    s.set_cost(0, 2, 1)
    s.set_cost(2, 1, 1)
    a = s.solve()
    assert (a.objective, a.pairs) == (4, {0: 2, 1: 0, 2: 1})
    gm.verify(s.costs(), a)
    g = gm.GraphSession((np.array([0, 3]), np.array([1, 1, 0]), (1, 2)))
    assert g.graph().indices.tolist() == [0, 1]


def test_a_sparse_session_keeps_what_is_allowed_alone():
    """Its pickle is all that it keeps; two dense tables would take 16 MB."""
    rng = np.random.default_rng(8)
    n = 1000
    C = sp.csr_array(
        (rng.integers(1, 100, 3 * n), (np.arange(3 * n) // 3, rng.integers(0, n, 3 * n))), (n, n)
    )
    C = sp.csr_array(C + sp.eye_array(n, dtype=int) * 100)
    s = gm.Session(C, cardinality="any", maximize=True)
    for k in range(400):
        if k % 4:
            s.set_cost(int(rng.integers(n)), int(rng.integers(n)), int(rng.integers(1, 200)))
        else:
            s.forbid(*(int(end[k]) for end in C.nonzero()))
    a = s.solve()
    now = s.costs()
    gm.verify(now, a)
    assert a.objective == gm.assign(now, cardinality="any", maximize=True).objective
    assert len(pickle.dumps(s)) < 100 * now.nnz + 400 * n
    before = s._table.cost.size
    for k in range(300):  # cells that have become free are used again
        s.set_cost(0, k, 1)
        s.forbid(0, k)
    assert s._table.cost.size == before


def test_a_sparse_session_returns_to_python_between_searches(monkeypatch):
    calls = []

    def counted(*args):
        calls.append(left := serve(*args))
        return left

    monkeypatch.setattr(sparse_table, "serve", counted)
    monkeypatch.setattr(sparse_table, "BUDGET", 1)
    s = gm.Session(sp.csr_array(np.eye(8, dtype=int)), cardinality="any", maximize=True)
    for row in range(8):
        s.set_cost(row, 7 - row, 3)
    assert s.objective == 24
    assert len(calls) > 4
    assert calls[-1] == 0


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_side_that_fills_its_slots_has_room_for_a_root(is_sparse):
    """A search without an end notes the whole tree, of all slots of a side, and its root."""
    C = np.arange(256).reshape(16, 16) ** 2 % 37
    s = gm.Session(sp.csr_array(C + 1) if is_sparse else C + 1)
    s.add_row(np.ones(16))
    assert s.objective == gm.assign(np.vstack([C + 1, np.ones((1, 16), int)])).objective
    for marks in s._table.marks:
        is_bound = (marks[USED] == 1) & (marks[FREE] == 0)
        assert marks[COUNTS, BOUND] == np.count_nonzero(is_bound)


# -- pickles and threads ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["matrix", "sparse", "points", "graph"])
def test_a_session_pickles_with_its_state(kind):
    if kind == "graph":
        s = gm.GraphSession(np.eye(3))
        s.add_edges([0, 1], [1, 0])
        t = pickle.loads(pickle.dumps(s))
        for each in (s, t):
            each.remove_edges([0], [0])
        assert s.solve().row_to_col.tolist() == t.solve().row_to_col.tolist()
        return
    rng = np.random.default_rng(3)
    X, Y = rng.random((5, 2)), rng.random((6, 2))
    C = rng.random((5, 6))
    s = gm.Session(
        C if kind == "matrix" else sp.csr_array(C) if kind == "sparse" else gm.PointCosts(X, Y)
    )
    s.set_row(2, rng.random(2 if kind == "points" else 6))  # which waits
    t = pickle.loads(pickle.dumps(s))
    line = rng.random(2 if kind == "points" else 6)
    for each in (s, t):
        each.add_row(line)
        each.remove_row(0)
    assert s.solve().pairs == t.solve().pairs


@pytest.mark.parametrize("kind", ["matrix", "graph"])
def test_another_thread_gets_an_error(kind):
    """While one call converts its argument, another thread calls; then the first goes on."""
    inside, done = threading.Event(), threading.Event()

    class Slow:
        def __array__(self, dtype=None, copy=None):
            inside.set()
            assert done.wait(60)
            return np.zeros(2, np.int64)

    if kind == "matrix":
        s = gm.Session(np.ones((2, 2), int))
        thread = threading.Thread(target=s.set_row, args=(0, Slow()))
    else:
        s = gm.GraphSession(np.eye(2))
        thread = threading.Thread(target=s.add_edges, args=([0, 1], Slow()))
    thread.start()
    try:
        assert inside.wait(60)
        with pytest.raises(RuntimeError, match="one thread at a time"):
            s.solve()
    finally:
        done.set()
        thread.join()
    found = s.solve()
    assert (found.objective if kind == "matrix" else found.size) == (1 if kind == "matrix" else 2)


# -- complexity ------------------------------------------------------------------------------------


def test_a_change_reads_few_lines():
    """A path between two ends of a random matrix reads about the square root of its lines."""
    rng = np.random.default_rng(4)
    n = 400
    s = gm.Session(rng.random((n, n)))
    _ = s.objective
    before = s._table.lines
    for _ in range(50):
        s.set_row(int(rng.integers(n)), rng.random(n))
        _ = s.objective
    assert s._table.lines - before < 50 * 5 * n**0.5


def one_more(count):
    return count + 1


def test_a_live_kernel_is_compiled_when_it_is_first_called():
    kernel = short_kernel(one_more)
    names = {}
    names["call"] = first = on_first_call(names, "call", kernel, "i8", "i8")
    assert not kernel.signatures
    assert names["call"](3) == 4
    assert names["call"] is not first
    assert names["call"](4) == 5
    assert len(kernel.signatures) == 1
