"""The Hungarian variants on the device: families of costs, shapes, types, stops, sizes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from gpumatch import InfeasibleError, assign, verify
from graphs import costs as cost_graphs
from tests.assignment_checks import check_proof
from tests.cuda.assignment.small_costs import small_costs
from tests.pairwise import parametrize_pairwise

pytestmark = pytest.mark.gpu

ALGORITHMS = {
    "hungarian-classical": {"algorithm": "hungarian-classical"},
    "hungarian-tree": {"algorithm": "hungarian-tree"},
    "paper's hungarian-tree": {"algorithm": "hungarian-tree", "search": "paper"},
}
DTYPES = ["int32", "int64", "float32", "float64"]

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


def on_gpu(C, algorithm, **options):
    return assign(C, backend="cuda", **ALGORITHMS[algorithm], **options)


def least(C):
    """SciPy's optimum."""
    rows, cols = linear_sum_assignment(C)
    return C[rows, cols].astype(float).sum()


def family(name, nrows, ncols, dtype):
    """A square of costs cut to the shape, because some families have no other."""
    square = cost_graphs.make(name, max(nrows, ncols), seed=nrows)
    return square[:nrows, :ncols].astype(dtype)


@parametrize_pairwise(
    *("algorithm", "dtype"),
    name=cost_graphs.FAMILIES,
    n=[1, 2, 17, 100, 500],
    dtype=DTYPES,
    algorithm=ALGORITHMS,
)
def test_families(name, n, dtype, algorithm):
    C = family(name, n, n, dtype)
    a = on_gpu(C, algorithm)
    verify(C, a)
    assert a.proven
    assert a.objective == pytest.approx(least(C), rel=1e-9)


@every_algorithm
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(1, 50), (50, 1), (100, 101), (300, 128), (128, 1_000)])
def test_rectangles(shape, maximize, algorithm):
    C = np.random.default_rng(shape).integers(-1_000, 1_000, shape)
    a = on_gpu(C, algorithm, maximize=maximize)
    verify(C, a)
    assert a.objective == (-least(-C) if maximize else least(C))


@every_algorithm
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ncols", [200, 201, 202, 203])
def test_rows_at_any_address(ncols, dtype, algorithm):
    """Loads of 16 bytes where rows begin at multiples of 16, of one cost elsewhere."""
    C = np.random.default_rng(ncols).integers(0, 500, (200, ncols)).astype(dtype)
    a = on_gpu(C, algorithm)
    verify(C, a)
    assert a.objective == least(C)


@every_algorithm
@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
@pytest.mark.parametrize("limit", [None, 120, 60.5])
@pytest.mark.parametrize("sparse", [False, True])
def test_limits_and_forbidden_pairs(sparse, limit, cardinality, algorithm):
    rng = np.random.default_rng(5)
    C = rng.integers(-50, 400, (150, 180)).astype(float)
    C[rng.random(C.shape) < 0.8] = np.inf
    if sparse:
        rows, cols = np.nonzero(np.isfinite(C))
        C = sp.csr_array((C[rows, cols].astype(np.int64), (rows, cols)), shape=C.shape)
    options = {"cardinality": cardinality, "cost_limit": limit}
    a = on_gpu(C, algorithm, **options)
    verify(C, a)
    on_cpu = assign(C, algorithm="shortest-augmenting-path", backend="cpu", **options)
    assert a.objective == pytest.approx(on_cpu.objective, rel=1e-12)


@every_algorithm
def test_infeasible_costs_are_refused(algorithm):
    C = np.random.default_rng(0).random((60, 60))
    C[:7, 6:] = np.inf
    with pytest.raises(ValueError, match="infeasible") as caught:
        on_gpu(C, algorithm)
    assert caught.value.rows.size > caught.value.cols.size


@every_algorithm
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_scales_of_floats(scale, algorithm):
    rng = np.random.default_rng(1)
    C = scale * (1 + 1e-12 * rng.integers(0, 1_000, (300, 300)))
    a = on_gpu(C, algorithm)
    verify(C, a)
    on_cpu = assign(C, algorithm="shortest-augmenting-path", backend="cpu")
    assert abs(a.objective - on_cpu.objective) <= 300 * 4 * np.spacing(scale)


@every_algorithm
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e-250])
def test_costs_of_the_smallest_exponents(scale, algorithm):
    """Units for them are below the least number; those of subnormal costs are exact."""
    steps = np.random.default_rng(8).integers(0, 1_000, (90, 100))
    C = scale * steps
    C[steps < 100] = np.inf
    a = on_gpu(C, algorithm, cost_limit=800 * scale)
    verify(C, a)
    b = on_gpu(C, algorithm, initial=a, cost_limit=800 * scale)
    verify(C, b)
    on_cpu = assign(C, algorithm="shortest-augmenting-path", backend="cpu", cost_limit=800 * scale)
    assert a.objective == pytest.approx(on_cpu.objective, rel=1e-12, abs=0)
    assert b.objective == pytest.approx(on_cpu.objective, rel=1e-12, abs=0)


@every_algorithm
def test_large_integers_are_exact(algorithm):
    C = np.random.default_rng(2).integers(-(2**50), 2**50, (300, 300))
    a = on_gpu(C, algorithm)
    verify(C, a)
    assert a.objective == assign(C, backend="cpu").objective


@every_algorithm
def test_duals_that_outgrow_fine_units(algorithm):
    """A row that takes the first column pushes all others on; its dual is twice their number."""
    n = 200
    C = np.full((n, n), np.inf)
    others = np.arange(n - 1)
    C[others, others] = -1.0
    C[others, others + 1] = 1.0
    C[n - 1, 0] = 1.0
    a = on_gpu(C, algorithm)
    verify(C, a)
    assert a.objective == n
    assert a.row_dual.max() > n


@every_algorithm
@pytest.mark.parametrize("shape", [(30, 30), (30, 40)])
def test_integers_that_take_all_64_bits(shape, algorithm):
    """Chains that push duals to 2n times the largest cost; initial prices are cut to what fits."""
    n, m = shape
    most = 2**62 // (n + 1) - 1
    rng = np.random.default_rng(n + m)
    i = np.arange(n)
    rows, cols = np.concatenate([i, i[1:]]), np.concatenate([i, i[:-1]])
    costs = np.concatenate([most - rng.integers(0, 9, n), rng.integers(0, 9, n - 1) - most])
    C = sp.coo_array((costs, (rows, cols)), shape=shape).tocsr()
    a = on_gpu(C, algorithm)
    assert verify(C, a).bound == a.objective == costs[:n].sum(dtype=object)
    b = on_gpu(C[::-1], algorithm, initial=a)
    assert verify(C[::-1], b).bound == b.objective == a.objective
    with pytest.raises(ValueError, match="infeasible"):
        on_gpu(sp.vstack([C[1:], C[:1], C[:1]]).tocsr()[1:], algorithm)


@every_algorithm
@pytest.mark.parametrize("blocks", [1, 2, 7, None])
def test_many_small_problems_of_every_kind(blocks, algorithm, monkeypatch):
    """Ties, infinities, limits and tiny numbers, on grids of few blocks too: each is proven."""
    from gpumatch.cuda.assignment.hungarian import search

    if blocks is not None:
        monkeypatch.setattr(search, "_most_blocks", lambda: blocks)
    rng = np.random.default_rng(10 if blocks is None else blocks)
    for _ in range(200):
        C = small_costs(rng)
        limit = [None, int(rng.integers(-3, 4)), float(rng.uniform(-5, 5))][rng.integers(3)]
        wish = {
            "cardinality": str(rng.choice(["full", "maximum", "any"])),
            "cost_limit": limit,
        }
        try:
            a = on_gpu(C, algorithm, **wish)
        except InfeasibleError:
            assert (wish["cardinality"], limit) == ("full", None)
        else:
            check_proof(C, a)


@every_algorithm
def test_an_adjacency_that_outgrows_its_room(algorithm, monkeypatch):
    from gpumatch.cuda.assignment.hungarian import classical

    monkeypatch.setattr(classical, "_EDGES_A_ROW", 1)
    C = np.random.default_rng(3).integers(0, 3, (400, 400))
    a = on_gpu(C, algorithm)
    verify(C, a)
    assert a.objective == least(C)


@every_algorithm
@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_launches_may_end_after_any_step(steps, algorithm, monkeypatch):
    from gpumatch.cuda.assignment.hungarian import search

    monkeypatch.setattr(search, "_STEPS_A_LAUNCH", steps)
    C = np.random.default_rng(steps).integers(0, 300, (150, 170))
    a = on_gpu(C, algorithm)
    verify(C, a)
    assert a.objective == least(C)


@every_algorithm
@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize(
    ("shape", "limit"), [((400, 400), None), ((400, 500), None), ((400, 500), 20)]
)
def test_a_stopped_run_goes_on_from_its_prices(shape, limit, at, algorithm, monkeypatch):
    from gpumatch.cuda.assignment.hungarian import search

    monkeypatch.setattr(search, "_STEPS_A_LAUNCH", 6)
    C = np.random.default_rng(at).integers(0, 10_000, shape)
    ticks = 0

    def stop(progress):
        nonlocal ticks
        ticks += 1
        return ticks == at

    part = on_gpu(C, algorithm, callback=stop, cost_limit=limit)
    assert not part.proven
    if shape[0] < shape[1]:
        assert not part.col_dual[part.col_to_row < 0].any()
    rest = on_gpu(C, algorithm, initial=part, cost_limit=limit)
    verify(C, rest)
    whole = on_gpu(C, algorithm, cost_limit=limit)
    paid, wanted = (a.objective + (limit or 0) * (400 - a.size) for a in (rest, whole))
    assert paid == wanted  # a pair at the limit may as well not be one
    assert sum(step["found"] for step in rest.stats["trace"]) <= 400 - part.size


@every_algorithm
def test_a_hundred_runs_of_costs_with_many_ties(algorithm):
    C = np.random.default_rng(6).integers(0, 20, (700, 800))
    want = least(C)
    for _ in range(100):
        assert on_gpu(C, algorithm).objective == want


@pytest.mark.parametrize("shape", [(1_500, 1_500), (1_500, 1_501), (1_203, 2_600), (2_600, 2_600)])
@pytest.mark.parametrize("name", ["uniform_float", "low_rank", "geom2", "two_cost"])
def test_columns_that_join_again(name, shape):
    """Levels that take in many distances at once, with ties and without, far and near the end."""
    C = family(name, *shape, np.float64)
    a = on_gpu(C, "hungarian-tree")
    verify(C, a)
    assert a.objective == pytest.approx(least(C), rel=1e-9)
    b = on_gpu(C, "hungarian-tree", cost_limit=float(np.median(C)))
    verify(C, b)


@pytest.mark.parametrize("limit", [None, 0.002, 0.0005])
@pytest.mark.parametrize("shape", [(1_000, 1_000), (1_000, 1_001), (1_000, 1_500)])
def test_a_search_finds_paths_for_many_trees(shape, limit):
    """Each search that ends at its nearest leaf, but the first of all, would find a path."""
    C = np.random.default_rng(8).random(shape)
    a = on_gpu(C, "hungarian-tree", cost_limit=limit)
    verify(C, a)
    found = [step["found"] for step in a.stats["trace"]]
    assert len(found) < 100
    assert sum(found[1:]) > 2 * len(found)


@every_algorithm
def test_statistics(algorithm):
    C = np.random.default_rng(7).integers(0, 1_000, (1_000, 1_000))
    a = on_gpu(C, algorithm)
    trace = a.stats["trace"]
    assert sum(step["found"] for step in trace) == 1_000
    assert trace[-1]["matched"] == 1_000
    assert all(step["levels"] > 0 for step in trace)
    parts = {"forward", "reverse and augmentation", "dual update"}
    parts |= {"compression"} if algorithm == "hungarian-classical" else set()
    assert all(0 < a.stats["seconds"][part] < a.stats["seconds"]["search"] for part in parts)


@pytest.mark.parametrize(("n", "is_whole"), [(46_400, True), (50_000, False)])
def test_more_than_two_to_the_31_pairs(n, is_whole):
    """Places past int32 in the matrix; the proof is checked on the device."""
    import cupy as cp

    from gpumatch.contracts import AssignmentTask, Solution
    from gpumatch.costs import DenseCosts
    from gpumatch.cuda.assignment.hungarian import tree

    if cp.cuda.Device().mem_info[0] < 20 * 2**30:
        pytest.skip("needs 20 GB of device memory")
    values = cp.random.default_rng(0).random((n, n), dtype=np.float32)
    if is_whole:
        cp.floor(cp.multiply(values, n, out=values), out=values)  # sums are exact
    row_to_col, col_to_row = cp.full((2, n), -1, np.int32)
    row_dual, col_dual = cp.zeros((2, n))
    solution = Solution(row_to_col, col_to_row, row_dual, col_dual)
    task = AssignmentTask(DenseCosts(values).problem(False, False), solution, Recorder())
    assert tree.run(task)
    assert (cp.sort(row_to_col) == cp.arange(n)).all()
    assert float(col_dual.max()) <= 0
    rows = cp.arange(n)
    paid = values[rows, row_to_col].astype(np.float64)
    allowance = 0 if is_whole else n * np.spacing(1.0)
    assert abs(paid.sum() - row_dual.sum() - col_dual.sum()) <= allowance
    for begin in range(0, n, 1_000):
        tile = slice(begin, begin + 1_000)
        slack = values[tile].astype(np.float64) - row_dual[tile, None] - col_dual
        assert slack.min() >= -allowance / n


class Recorder:
    """A control that never stops."""

    def __init__(self):
        self.seconds = {}

    def tick(self, matched):
        return False

    def phase(self, **numbers):
        pass

    def part(self, name):
        import contextlib

        return contextlib.nullcontext()
