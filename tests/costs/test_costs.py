"""Costs: what they are made from, what is refused, and the form in which algorithms get them."""

from __future__ import annotations

import math
import sys
import warnings
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, dia_array, diags_array, random_array

import gpumatch as gm
import gpumatch.costs.base
from gpumatch.costs import CostBatch, DenseCosts, SparseCosts, as_costs, batch

X = math.inf
CSR = (np.array([0, 2, 2, 3]), np.array([0, 3, 1]), np.array([5, 0, -2]), (3, 4))
TALL = random_array((30, 20), density=0.2, rng=np.random.default_rng(1), format="csr")


def dense_of(costs):
    """A matrix with inf where a pair is forbidden."""
    matrix = np.full(costs.shape, X)
    if isinstance(costs, DenseCosts):
        matrix[:] = costs.values
    else:
        matrix[costs.graph.edges()] = costs.weights
    return matrix


# -- making ----------------------------------------------------------------------------------------


def test_dense_costs_share_the_callers_array():
    matrix = np.array([[1.0, X], [-2.0, 3.0]])
    costs = as_costs(matrix)
    assert costs.values is matrix
    assert (costs.low, costs.high, costs.largest) == (-2.0, X, 3.0)
    assert (costs.shape, costs.nnz, costs.is_integer, costs.is_complete) == (
        (2, 2),
        4,
        False,
        False,
    )
    assert repr(costs) == "DenseCosts(2 rows, 2 columns, float64, host)"


def test_a_subclass_of_arrays_is_an_array_in_costs():
    matrix = np.asmatrix([[1, 2], [3, 4]])
    costs = DenseCosts(matrix)
    assert type(costs.values) is np.ndarray
    assert np.shares_memory(costs.values, matrix)
    assert costs.at(np.array([0, 1]), np.array([1, 0])).tolist() == [2, 3]


def test_sparse_costs_have_arrays_of_their_own():
    costs = as_costs(TALL)
    for own in costs.entries():
        assert not any(np.shares_memory(own, part) for part in (TALL.data, TALL.indices))
    assert costs.nnz == TALL.nnz
    assert not costs.is_complete
    assert repr(costs) == f"SparseCosts(30 rows, 20 columns, {TALL.nnz} edges, float64, host)"


def test_costs_are_costs_already():
    for costs in (DenseCosts([[1]]), SparseCosts(CSR)):
        assert as_costs(costs) is costs


def test_stored_zeros_are_costs():
    expected = [[5, X, X, 0], [X, X, X, X], [X, -2, X, X]]
    for source in (CSR, csr_array(CSR[2::-1], shape=CSR[3])):
        assert dense_of(SparseCosts(source)).tolist() == expected


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_every_sparse_format(form):
    expected = np.where(TALL.toarray() != 0, TALL.toarray(), X)
    costs = SparseCosts(TALL.asformat(form))
    assert np.array_equal(np.where(dense_of(costs) == 0, X, dense_of(costs)), expected)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_unsorted_entries_keep_their_costs(dtype):
    indptr, indices, data, shape = CSR
    unsorted = indices[[1, 0, 2]].astype(dtype)
    costs = SparseCosts((indptr.astype(dtype), unsorted, data[[1, 0, 2]], shape))
    assert np.array_equal(dense_of(costs), dense_of(SparseCosts(CSR)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, bool])
def test_repeated_entries_are_summed(dtype):
    rows, cols = np.array([0, 1, 0, 0, 1]), np.array([2, 0, 2, 1, 0])
    data = np.array([1, 1, 1, 1, 0]).astype(dtype)
    order = np.argsort(rows, kind="stable")
    costs = SparseCosts((np.array([0, 3, 5]), cols[order], data[order], (2, 3)))
    assert dense_of(costs).tolist() == [[X, 1, 2], [1, X, X]]
    assert costs.weights.dtype == (np.float64 if dtype == np.float32 else np.int64)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_of_repeated_entries_beyond_int64_is_refused(sign):
    data = np.full(16, sign * 2**60)  # they would wrap to 0
    with pytest.raises(ValueError, match="are too large: repeated entries"):
        SparseCosts((np.array([0, 16]), np.zeros(16, int), data, (1, 1)))


def test_spare_room_behind_the_entries_is_not_looked_at():
    indptr, indices, data, shape = CSR
    room = np.append(indices, 99), np.append(data.astype(float), math.nan)
    costs = SparseCosts((indptr, *room, shape))
    assert np.array_equal(dense_of(costs), dense_of(SparseCosts(CSR)))


@pytest.mark.parametrize("tile", [1, 2, 7])
def test_extents_are_those_of_all_tiles(tile, monkeypatch):
    monkeypatch.setattr(gpumatch.costs.base, "HOST_TILE", tile)
    matrix = np.array([[1.0, 2.0], [-X, 0.0], [3.0, -8.0], [X, -5.0], [0.0, 6.0]])
    for source in (matrix, csr_array(np.where(matrix == 0, 0.5, matrix))):
        costs = as_costs(source)
        assert (costs.low, costs.high, costs.largest) == (-X, X, 8.0)
        assert not costs.is_complete
        costs = as_costs(source[:1])
        assert (costs.low, costs.high, costs.largest) == (1.0, 2.0, 2.0)
    matrix[4, 1] = math.nan
    for source in (matrix, csr_array(matrix)):
        with pytest.raises(ValueError, match="NaN"):
            as_costs(source)


# -- refusing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ([[math.nan]], ValueError, "NaN"),
        ([1.0], ValueError, "2 dimensions; got 1"),
        ([["1"]], TypeError, "real numbers; got dtype <U1"),
        (np.array([[1]], object), TypeError, "real numbers; got dtype object"),
        ([[2**61]], ValueError, r"\(n \+ 1\) \* max"),
        ([[-(2**61)]], ValueError, "integer costs up to 2305843009213693952 are too large for 1"),
        ([[1e308]], ValueError, "overflow"),
        ([[1.2e307]], ValueError, "overflow"),  # as 8 * (n + 1) of it do
        ((*CSR[:2], CSR[2].reshape(1, -1), CSR[3]), ValueError, "data must have 1 dimension"),
        ((*CSR[:2], CSR[2][:2], CSR[3]), ValueError, "data must have 3 entries; got 2"),
        ((CSR[0], CSR[1] + 9, *CSR[2:]), ValueError, "indices: 12 lies outside"),
        (([0, 2], [0, 0], [2**60, 2**60], (1, 1)), ValueError, "too large"),
        (([0, 4], [0] * 4, [2**62] * 4, (1, 1)), ValueError, "up to 4611686018427387904 are too"),
        (([0, 16], [0] * 16, [2**60] * 16, (1, 1)), ValueError, "up to 18446744073709551616 are"),
        (([0, 2], [1, 0], [math.nan, 1], (1, 2)), ValueError, "NaN, first at entry 0 of the data"),
        (coo_array(np.ones(3)), ValueError, "2 dimensions; got 1"),
        (np.ma.masked_less([[1, 2]], 2), TypeError, "masked array: fill it"),
        (None, TypeError, "must be a matrix of numbers, .* got NoneType"),
        ("costs.npy", TypeError, "got str"),
        (networkx.MultiGraph([(0, 1)]), ValueError, "several values of 'weight'"),
        (diags_array([0.0, 1.0]), ValueError, "DIA, .* a cost of 0 looks like no entry"),
    ],
)
def test_what_is_refused(source, error, message):
    with pytest.raises(error, match=message):
        as_costs(source)


def test_dia_without_zeros_is_as_any_other():
    assert SparseCosts(diags_array([3.0, 1.0])).weights.tolist() == [3, 1]
    shifted = dia_array((np.array([[0.0, 7.0]]), [1]), shape=(2, 2))  # its 0 lies outside
    assert SparseCosts(shifted).weights.tolist() == [7]


def test_the_first_nan_is_named(monkeypatch):
    monkeypatch.setattr("gpumatch.costs.base.HOST_TILE", 6)
    matrix = np.ones((5, 4))
    matrix[[2, 3], [3, 1]] = math.nan
    with pytest.raises(ValueError, match="the costs hold NaN, first at row 2, column 3"):
        as_costs(matrix)
    with pytest.raises(ValueError, match="first at entry 11 of the data"):
        as_costs(csr_array(matrix))


def test_infinities_of_both_signs_are_no_sum():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="NaN"):
            SparseCosts(([0, 2], [0, 0], [X, -X], (1, 1)))


def test_infinities_forbid_in_one_direction_only():
    for matrix in (np.array([[1.0, X]]), csr_array([[1.0, X]])):
        costs = as_costs(matrix)
        costs.problem(maximize=False, transposed=False)
        with pytest.raises(ValueError, match="-inf forbids"):
            costs.problem(maximize=True, transposed=False)
        costs = as_costs(-matrix)
        costs.problem(maximize=True, transposed=False)
        with pytest.raises(ValueError, match="hold -inf"):
            costs.problem(maximize=False, transposed=False)


# -- the form for algorithms -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "dense", "sparse"),
    [
        (bool, np.int32, np.int64),
        (np.uint16, np.int32, np.int64),
        (np.int32, np.int32, np.int64),
        (np.uint64, np.int32, np.int64),
        (">i8", np.int32, np.int64),
        (np.float16, np.float32, np.float64),
        (np.float32, np.float32, np.float64),
        (np.longdouble, np.float64, np.float64),
    ],
)
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_problems(dtype, dense, sparse, maximize, transposed):
    given = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtype)
    expected = (-1 if maximize else 1) * given.astype(float)
    expected = expected.T if transposed else expected
    rows = np.array([0, 3, 6]), np.array([0, 1, 2, 0, 1, 2])
    for source, kind in ((given, dense), ((*rows, given.ravel(), (2, 3)), sparse)):
        problem = as_costs(source).problem(maximize, transposed)
        assert np.array_equal(dense_of(problem), expected)
        values = problem.values if isinstance(problem, DenseCosts) else problem.weights
        assert values.dtype == kind
        assert values.flags.c_contiguous
        assert values.flags.writeable


@pytest.mark.parametrize(("cost", "dtype"), [(2**25 - 1, np.int32), (2**25, np.int64)])
def test_integers_are_narrow_where_sums_stay_so(cost, dtype):
    for sign in (1, -1):
        problem = DenseCosts(np.array([[0, sign * cost]])).problem(sign < 0, False)
        assert problem.values.dtype == dtype
        assert problem.values.tolist() == [[0, cost]]


def test_the_least_int32_can_be_maximised():
    problem = DenseCosts(np.array([[-(2**31), 0]], np.int32)).problem(True, False)
    assert problem.values.tolist() == [[2**31, 0]]


@pytest.mark.parametrize("shape", [(2, 1000), (1000, 2)], ids=str)
def test_sums_are_as_long_as_the_shorter_side(shape):
    """So integers may be larger than if a sum had as many terms as the longer one."""
    large = 2**57
    matrix = csr_array(([large, -large], ([0, 1], [1, 0])), shape=shape)
    costs = SparseCosts(matrix)
    assert SparseCosts.of(costs.graph, costs.weights).largest == large
    assert DenseCosts(matrix.toarray()).largest == large
    assert gm.assign(matrix, cardinality="maximum").objective == 0
    with pytest.raises(ValueError, match="too large"):
        SparseCosts(csr_array(2**55 * np.eye(1000, dtype=np.int64)))


def test_a_problem_in_the_right_form_is_not_copied():
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        matrix = np.full((3, 4), 2**30 if dtype == np.int64 else 1, dtype)
        assert DenseCosts(matrix).problem(False, False).values is matrix


def test_infinities_of_sparse_problems_are_dropped():
    costs = SparseCosts(csr_array([[1.0, X, 2.0], [X, 3.0, X]]))
    assert costs.nnz == 6
    assert costs.problem(False, True).nnz == 3


# -- parts and pairs -------------------------------------------------------------------------------

MATRIX = np.where(np.random.default_rng(2).random((8, 11)) < 0.5, X, np.arange(88.0).reshape(8, 11))


def forms():
    rows, cols = np.isfinite(MATRIX).nonzero()
    entries = MATRIX[rows, cols]
    return [
        DenseCosts(MATRIX),
        SparseCosts(coo_array((entries, (rows, cols)), shape=MATRIX.shape)),
        SparseCosts(csc_array(MATRIX)).problem(False, False),
        SparseCosts(csc_array(MATRIX)),  # stores inf where a pair is forbidden
    ]


@pytest.mark.parametrize("tile", [None, 1, 30])
@pytest.mark.parametrize("costs", forms(), ids=repr)
def test_parts_of_costs(costs, tile, monkeypatch):
    if tile is not None:
        monkeypatch.setattr(gpumatch.costs.base, "HOST_TILE", tile)
    rows, cols = np.array([1, 4, 5]), np.array([0, 2, 3, 9])
    for these, those in ((rows, cols), (rows[[2, 0, 1]], cols[::-1])):
        part = dense_of(costs.restricted(these, those))
        assert np.array_equal(part, MATRIX[np.ix_(these, those)])
    assert np.array_equal(dense_of(costs.transpose()), MATRIX.T)
    assert np.array_equal(dense_of(costs.transpose().transpose()), MATRIX)
    assert np.array_equal(dense_of(costs.up_to(40)), np.where(MATRIX <= 40, MATRIX, X))
    pattern = np.isfinite(MATRIX)
    assert [part.tolist() for part in costs.pattern().edges()] == [
        part.tolist() for part in pattern.nonzero()
    ]
    assert costs.largest == MATRIX[pattern].max()


@pytest.mark.parametrize("costs", [*forms(), SparseCosts(csr_array((8, 11)))], ids=repr)
def test_pairs(costs):
    rows, cols = (part.ravel() for part in np.indices(MATRIX.shape))
    expected = np.isfinite(dense_of(costs)).ravel()
    assert np.array_equal(costs.allows(rows, cols), expected)
    there = rows[expected], cols[expected]
    assert np.array_equal(costs.at(*there), MATRIX[there])


FEW = csr_array(np.array([[0, 2, 0], [3, 0, 4]], np.int32))  # 12 + 12 bytes of graph, 12 of data


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (np.ones((2, 3), np.int8), (6, 6, 4, True, True, True, False, 0)),
        (np.ones((2, 3)), (6, 48, 8, True, True, True, False, 0)),
        (np.array([[1, X]], np.float32), (2, 8, 4, False, False, True, False, 0)),
        (np.array([[1, -X]]), (2, 16, 8, False, False, True, False, 0)),
        (FEW, (3, 36, 8, True, False, False, True, 96)),
        (csr_array([[1.0, X]]), (2, 32, 8, False, False, False, True, 64)),
        (csr_array(np.ones((2, 2))), (4, 60, 8, True, True, False, True, 128)),
    ],
)
def test_what_costs_say_of_themselves(source, expected):
    costs = as_costs(source)
    assert expected == (
        costs.nnz,
        costs.nbytes,
        costs.itemsize,
        costs.is_finite,
        costs.is_complete,
        costs.has_matrix,
        costs.is_sparse,
        costs.unfolding_bytes,
    )
    assert not costs.on_device
    assert costs.labels == (None, None)


@pytest.mark.parametrize("source", [np.ones((0, 3)), np.ones((2, 0), int), csr_array((3, 4))])
def test_of_no_costs_none_is_large(source):
    costs = as_costs(source)
    assert (costs.low, costs.high, costs.largest) == (0, 0, 0)
    assert costs.to_host() is costs
    assert costs.stored() is costs


def test_pairs_whose_numbers_are_beyond_int32():
    n = 70_000
    rows = np.arange(n, dtype=np.int32)
    costs = SparseCosts(coo_array((np.arange(1.0, n + 1), (rows, rows[::-1])), shape=(n, n)))
    assert costs.allows(rows, rows[::-1]).all()
    assert not costs.allows(rows, rows).any()
    assert np.array_equal(costs.at(rows, rows[::-1]), np.arange(1.0, n + 1))


@pytest.mark.parametrize("form", [np.array, csr_array], ids=["dense", "sparse"])
def test_either_infinity_forbids_a_pair(form):
    """Which of the two does depends on what is asked; the other one is refused elsewhere."""
    costs = as_costs(form([[1.0, -np.inf, np.inf, -2.0]]))
    assert costs.allows(np.zeros(4, int), np.arange(4)).tolist() == [True, False, False, True]


# -- every kind ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tile", [None, 1, 30])
@pytest.mark.parametrize("costs", [*forms(), SparseCosts(csr_array((8, 11)))], ids=repr)
def test_tiles_make_up_the_matrix(costs, tile, monkeypatch):
    if tile is not None:
        monkeypatch.setattr(gpumatch.costs.base, "HOST_TILE", tile)
    expected = dense_of(costs)
    assert np.array_equal(costs.dense(), expected)
    own = np.empty((8, 22))[:, 11:]
    assert costs.dense(out=own) is own
    assert np.array_equal(own, expected)
    seen = np.full(costs.shape, X)
    for part in costs.tiles():
        rows, cols, values = costs.tile(part)
        seen[rows, cols] = values
        assert np.all((part.start <= rows) & (rows < part.stop))
        assert values.size <= max(tile or 88, 11) + 11
    assert np.array_equal(seen, expected)


def test_integers_have_a_far_of_their_own():
    costs = SparseCosts(CSR)
    far = 2**63 - 1
    assert costs.dense().tolist() == [[5, far, far, 0], [far] * 4, [far, -2, far, far]]
    assert costs.dense().dtype == np.int64


@pytest.mark.parametrize(
    ("shape", "rows"),
    [((5, 4), [4, 1]), ((4, 8), [2, 2]), ((3, 9), [1, 1, 1]), ((2, 16), [1, 1]), ((2, 99), [1, 1])],
)
def test_a_tile_holds_as_many_rows_as_have_room(shape, rows, monkeypatch):
    monkeypatch.setattr(gpumatch.costs.base, "HOST_TILE", 16)
    values = np.zeros(shape)
    for tiles in (DenseCosts(values).tiles(), gpumatch.costs.base.row_tiles(values)):
        assert [tile.stop - tile.start for tile in tiles] == rows
    empty = np.zeros((20, 0))
    for tiles in (DenseCosts(empty).tiles(), gpumatch.costs.base.row_tiles(empty)):
        assert [(tile.start, tile.stop) for tile in tiles] == [(0, 16), (16, 20)]


def test_edges_without_weights_cost_an_integer():
    G = networkx.Graph([("a", "x", {"weight": 2.5}), ("b", "x")])
    for weight, kind, weights in (
        (None, np.int64, [1, 1]),
        ("weight", np.float64, [2.5, 1]),
    ):
        costs = SparseCosts.from_networkx(G, weight, ["a", "b"])
        assert (costs.dtype, costs.weights.tolist()) == (kind, weights)
    with pytest.raises(ValueError, match="no edge has the attribute 'size', but 'weight'"):
        SparseCosts.from_networkx(G, "size", ["a", "b"])


# -- batches on a device ---------------------------------------------------------------------------


class OnDevice(np.ndarray):
    """An array of CuPy's, as far as batches know."""

    __cuda_array_interface__ = None


@pytest.fixture
def cupy(monkeypatch):
    """What is used of CuPy, with arrays that are on the host."""
    library = SimpleNamespace(
        ndarray=OnDevice,
        asarray=lambda values, dtype=None: np.asarray(values, dtype).view(OnDevice),
        ascontiguousarray=lambda values, dtype=None: np.ascontiguousarray(values, dtype).view(
            OnDevice
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", library)
    return library


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (np.ones((2, 2)), False),
        (np.ones((2, 2)).view(OnDevice), True),
        (csr_array(np.eye(2)), False),
        (SimpleNamespace(data=np.ones(2).view(OnDevice)), True),
        (SimpleNamespace(data=memoryview(b""), __cuda_array_interface__={}), True),
    ],
    ids=["host", "device", "sparse", "sparse on device", "another library's"],
)
def test_what_is_on_a_device(part, expected):
    assert batch._is_on_device(part) is expected
    assert CostBatch([np.ones((2, 2))]).on_device is False


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["f4", "f4"], "f4"), (["f4", "f8"], "f8"), (["i4", ">i4"], "i4"), (["i4", "i8"], "i8"),
        (["i2", "i4"], "i4"), (["i8", "f4"], "f8"),
    ],
)  # fmt: skip
def test_costs_of_a_list_come_to_the_device_in_one_dtype(cupy, dtypes, expected):
    values = np.arange(12).reshape(3, 4)
    for form in (
        np.array,
        np.asfortranarray,
        cupy.asarray,
        lambda part: cupy.asarray(part)[:, ::2],
    ):
        given = [form(values.astype(dtype)) for dtype in dtypes]
        parts, dtype = CostBatch(given).on_one_device()
        assert dtype == np.dtype(expected)
        for part, known in zip(parts, given):
            assert type(part) is OnDevice
            assert part.dtype == dtype
            assert part.tolist() == known.tolist()
            assert part.strides[1] == dtype.itemsize <= part.strides[0]
    kept = cupy.asarray(values.astype(expected))
    assert CostBatch([kept]).on_one_device()[0][0] is kept
    whole, _ = CostBatch(np.stack([values.astype(name).T for name in dtypes])).on_one_device()
    assert whole.flags.c_contiguous
    assert whole.tolist() == [values.T.tolist()] * 2


@pytest.mark.usefixtures("cupy")
def test_what_kernels_read_not_stays_where_it_is():
    for given in ([np.ones((2, 2)), csr_array(np.eye(2))], [np.ones((2, 2), complex)]):
        assert CostBatch(given).on_one_device() is None
