"""Assignment of costs that are on a device: solved there, never copied to the host."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpumatch as gm
import gpumatch.costs.base
from tests.assignment_checks import check_violator, close, optimum, sparse
from tests.cuda.pools import fresh_pool

pytestmark = pytest.mark.gpu


@pytest.fixture
def no_copy(monkeypatch):
    """CuPy, which brings vectors to the host but neither costs nor graphs."""

    def to_host(source):
        assert not source.on_device
        return source

    for kind in (gm.DenseCosts, gm.SparseCosts, gm.BipartiteGraph):
        monkeypatch.setattr(kind, "to_host", to_host)
    return pytest.importorskip("cupy")


def on_device(cp, matrix, form):
    """The matrix as it is, or its finite entries."""
    if form == "dense":
        return cp.asarray(matrix)
    csr = sparse(matrix)
    return (*map(cp.asarray, (csr.indptr, csr.indices, csr.data)), csr.shape)


def worth(a):
    """What is least with a limit, and unique; pairs that cost just that are no matter."""
    return a.objective - (a.cost_limit or 0) * a.size


WISHES = [
    {},
    {"maximize": True},
    {"cost_limit": 5},
    {"cost_limit": 2.5},
    {"cardinality": "any"},
    {"cardinality": "maximum"},
    {"cardinality": "maximum", "cost_limit": 4},
]


@pytest.mark.emulated
@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_costs_on_a_device_are_solved_there(no_copy, wish, form, dtype, monkeypatch):
    cp = no_copy
    monkeypatch.setattr(gpumatch.costs.base, "DEVICE_TILE", 100)
    rng = np.random.default_rng(8)
    for shape in ((30, 30), (25, 40), (40, 25)):
        matrix = rng.integers(-9, 20, shape).astype(dtype)
        if matrix.dtype.kind == "f" and not wish.get("maximize"):
            matrix[rng.random(shape) < 0.6] = math.inf
        if "cardinality" not in wish and "cost_limit" not in wish:
            np.fill_diagonal(matrix, 19)
        source = on_device(cp, matrix, form)
        a = gm.assign(source, **wish)
        gm.verify(source, a)
        assert (a.stats["algorithm"], a.stats["backend"]) == ("engine", "cuda")
        arrays = a.row_ind, a.col_ind, a.row_to_col, a.col_to_row, a.row_dual, a.col_dual
        assert {type(array) for array in arrays} == {cp.ndarray}
        assert worth(a) == worth(gm.assign(matrix, backend="cpu", **wish))


@pytest.mark.emulated
@pytest.mark.parametrize("maximize", [False, True])
def test_subnormal_costs_of_the_host_are_no_zeros_on_a_device(maximize):
    """A GPU reads those of float32 as 0. The host sends them in double."""
    numbers = np.random.default_rng(9).integers(-50, 50, (20, 23))
    costs = np.ldexp(numbers, -149).astype(np.float32)
    costs[3, 4] = -math.inf if maximize else math.inf
    wish = {"maximize": maximize, "cost_limit": np.ldexp(-11.0, -149)}
    a = gm.assign(costs, backend="cuda", **wish)
    assert a.stats["backend"] == "cuda"
    assert a.pair_costs.tolist() == costs[a.row_ind, a.col_ind].tolist()
    assert worth(a) == worth(gm.assign(costs, backend="cpu", **wish)) != 0
    gm.verify(costs, a)


@pytest.mark.emulated
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("least", "other", "sent"),
    [
        (2.0**-149, 1.0, np.float64),
        (-(2.0**-127), 1.0, np.float64),
        (-(2.0**-127), -1.0, np.float64),
        (2.0**-126, 1.0, np.float32),
        (-(2.0**-126), math.inf, np.float32),
        (-(2.0**-126), -1.0, np.float32),
        (0.0, -0.0, np.float32),
    ],
)
def test_only_matrices_with_subnormal_costs_are_sent_in_double(least, other, sent, order):
    costs = np.full((3, 4), other, np.float32, order)
    costs[2, 3] = least
    there = gm.DenseCosts(costs).to_device()
    assert there.dtype == sent
    assert there.values.get().tolist() == costs.tolist()
    assert there.extent == (min(least, other), max(least, other), there.largest)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("tall", [False, True])
def test_costs_on_a_device_that_are_infeasible(no_copy, tall, form):
    matrix = np.random.default_rng(2).random((40, 60))
    matrix[5:12, 3:] = math.inf
    matrix = matrix.T if tall else matrix
    with pytest.raises(
        gm.InfeasibleError, match=r"7 (rows|columns) may be assigned to 3"
    ) as caught:
        gm.assign(on_device(no_copy, matrix, form))
    check_violator(np.isfinite(matrix), caught.value)


@pytest.mark.emulated
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_beginning_from_an_assignment_on_a_device(no_copy, form):
    matrix = np.random.default_rng(3).integers(0, 10**6, (80, 120)).astype(float)
    source = on_device(no_copy, matrix, form)
    a = gm.assign(source)
    for initial in (a, a.row_to_col, a.row_to_col.get()):
        again = gm.assign(source, initial=initial)
        assert again.objective == a.objective
    again = gm.assign(source, initial=a)
    assert sum(phase["found"] for phase in again.stats["trace"]) == 0


@pytest.mark.emulated
def test_costs_on_a_device_by_an_algorithm_of_the_cpu():
    cp = pytest.importorskip("cupy")
    matrix = np.random.default_rng(4).random((30, 40))
    a = gm.assign(cp.asarray(matrix), backend="cpu")
    assert a.stats["algorithm"] == "engine"
    assert type(a.row_dual) is cp.ndarray
    assert close(a.objective, optimum(matrix))
    with pytest.raises(ValueError, match="pass backend='cpu' to copy"):
        gm.assign(cp.asarray(matrix), algorithm="shortest-augmenting-path")


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("entries", "arguments", "message"),
    [
        ([[1.0, math.nan]], {}, "NaN"),
        ([[math.inf, math.nan]], {}, "NaN"),
        ([[1.0, -math.inf]], {}, "hold -inf"),
        ([[1.0, math.inf]], {"maximize": True}, "hold inf"),
        ([[2**61]], {}, "too large"),
        ([[1, 2]], {"cost_limit": 2**61}, "too large"),
    ],
)
def test_wrong_costs_on_a_device(no_copy, entries, arguments, message):
    cp = no_copy
    dense = cp.array(entries)
    cells = cp.arange(dense.size)
    for source in (dense, (cp.array([0, dense.size]), cells, dense.ravel(), dense.shape)):
        with pytest.raises(ValueError, match=message):
            gm.assign(source, **arguments)


def test_costs_of_torch(no_copy):
    torch = pytest.importorskip("torch")
    matrix = np.random.default_rng(6).integers(1, 100, (30, 40)).astype(np.float32)
    tensor = torch.from_numpy(matrix)
    for source in (tensor, tensor.cuda(), tensor.to_sparse_csr(), tensor.cuda().to_sparse_csr()):
        a = gm.assign(source)
        gm.verify(source, a)
        assert a.objective == optimum(matrix)
        assert isinstance(a.row_to_col, torch.Tensor)
        assert a.row_to_col.device == source.device


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_a_large_matrix_is_never_copied(no_copy, dtype):
    """With room for half of it: for making costs, solving, and verifying."""
    cp = no_copy
    with fresh_pool() as pool:
        matrix = cp.random.default_rng(5).random((12_000, 12_000), np.float32) * 12_000
        matrix = matrix.astype(dtype)
        if dtype == np.int32:
            matrix *= 2**17  # which the host's problems hold in int64
        pool.free_all_blocks()
        pool.set_limit(size=pool.used_bytes() + matrix.nbytes // 2)
        gm.verify(matrix, gm.assign(matrix))
        with pytest.raises(MemoryError, match=r"a copy of the costs needs 576000000 bytes .* free"):
            gm.assign(matrix, maximize=True)
        if dtype == np.float32:  # infinities ask for a scan of their own
            matrix[0, :9] = math.inf
            gm.verify(matrix, gm.assign(matrix))


@pytest.mark.long
def test_fifty_thousand_rows_of_ten_gigabytes(no_copy):
    cp = no_copy
    n = 50_000
    if cp.cuda.Device().mem_info[0] < 12 * 2**30:
        pytest.skip("needs 12 GB of device memory")
    matrix = cp.random.default_rng(7).random((n, n), dtype=np.float32)
    for begin in range(0, n, 1000):
        tile = matrix[begin : begin + 1000]
        cp.floor(cp.multiply(tile, n // 10, out=tile), out=tile)  # sums are exact
    a = gm.assign(matrix)
    certificate = gm.verify(matrix, a)
    assert (a.size, a.gap, certificate.edges) == (n, 0, n * n)
    assert certificate.bound == a.objective


def test_a_host_matrix_goes_to_the_gpu_where_there_is_room():
    matrix = np.random.default_rng(5).integers(0, 500, (1_500, 1_500))
    with fresh_pool() as pool:
        assert gm.assign(matrix).stats["backend"] == "cuda"
        pool.free_all_blocks()
        pool.set_limit(size=pool.used_bytes() + 4 * matrix.size)
        a = gm.assign(matrix)
        assert (a.stats["backend"], a.objective) == ("cpu", optimum(matrix))
