"""What is known of costs (least, greatest, finite, complete) is true of them after every step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.costs import CostBatch, DenseCosts, as_costs

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"]
SOME = np.array([0, 2, 3]), np.array([1, 2, 4])
LIMITS = np.array([0, 1, -2, 1, 0])

STEPS = {
    "as given": lambda c: c,
    "minimised": lambda c: c.problem(False, False),
    "minimised, transposed": lambda c: c.problem(False, True),
    "maximised": lambda c: c.problem(True, False),
    "maximised, transposed": lambda c: c.problem(True, True),
    "as floats": lambda c: c.as_float(),
    "maximised as floats": lambda c: c.problem(True, False).as_float(),
    "transposed": lambda c: c.transpose(),
    "to the host": lambda c: c.to_host(),
    "restricted": lambda c: c.restricted(*SOME),
    "maximised and restricted": lambda c: c.problem(True, True).restricted(*SOME).transpose(),
    "up to a limit": lambda c: c.problem(False, False).up_to(1),
    "maximised, up to a limit": lambda c: c.problem(True, False).up_to(-1),
    "below limits": lambda c: c.below(LIMITS),
    "within limits": lambda c: c.within(LIMITS, False),
    "maximised within limits": lambda c: c.within(LIMITS, True).problem(True, False),
    "stored in CSR": lambda c: c.stored_sparse() if isinstance(c, DenseCosts) else c,
}


def matrix_of(dtype, infinity):
    rng = np.random.default_rng(7)
    low = 0 if np.dtype(dtype).kind in "bu" else -3
    matrix = rng.integers(low, 2 if dtype == "bool" else 5, (5, 6)).astype(dtype)
    if matrix.dtype.kind == "f":
        matrix[1, 2] = infinity
        matrix[4, 4] = infinity
    return matrix


def in_csr(matrix):
    """Also of float16, which SciPy's matrices do not hold."""
    csr = csr_array(matrix.astype(np.float64))
    return csr.indptr, csr.indices, csr.data.astype(matrix.dtype), csr.shape


def check(costs):
    """The attributes against the values themselves."""
    values = costs.values if isinstance(costs, DenseCosts) else costs.weights
    finite = values[np.isfinite(values)]
    assert costs.low == (values.min() if values.size else 0)
    assert costs.high == (values.max() if values.size else 0)
    assert costs.largest == max((abs(v) for v in finite.tolist()), default=0)
    assert all(type(part) is (int if costs.is_integer else float) for part in costs.extent)
    assert costs.is_finite == (finite.size == values.size)
    assert costs.is_complete == (finite.size == math.prod(costs.shape))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_extents_are_those_of_the_values(kind, dtype, step):
    for infinity in (math.inf, -math.inf):
        matrix = matrix_of(dtype, infinity)
        signed = any(word in step for word in ("minimised", "maximised", "limit"))
        if signed and (infinity < 0) is not ("maximised" in step) and matrix.dtype.kind == "f":
            continue  # refused: this infinity asks for a pair
        check(STEPS[step](as_costs(matrix if kind == "dense" else in_csr(matrix))))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((255, 257), "float64"), ((256, 256), "float32"), ((363, 363), "float64"),
        ((512, 512), "float64"),
        *(pytest.param(shape, "float32", marks=pytest.mark.long)  # the dense engine's kernels
          for shape in ((363, 363), (362, 400))),
    ],
    ids=str,
)  # fmt: skip
def test_a_pair_that_minus_infinity_forbids(shape, dtype):
    """Around 2**16, 2**17 and 2**18 costs, at every door of dense matrices."""
    rng = np.random.default_rng(1)
    C = np.outer(rng.random(shape[0]), rng.random(shape[1])).astype(dtype)
    C[0, 0] = -math.inf
    rows, cols = linear_sum_assignment(C.astype(np.float64), maximize=True)
    total = pytest.approx(math.fsum(C[rows, cols].tolist()), rel=1e-9)
    for cardinality in ("full", "maximum"):
        for source in (C, np.asfortranarray(C), -C):
            a = gm.assign(source, maximize=source[0, 0] < 0, cardinality=cardinality)
            assert abs(a.objective) == total
            assert gm.verify(source, a).size == min(shape)
    found = gm.optimize.linear_sum_assignment(C, maximize=True)
    assert math.fsum(C[found].tolist()) == total
    batch = gm.assign(CostBatch([C, C]), maximize=True)
    assert batch.objective.tolist() == [total, total]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [255, 363, 1500])
def test_a_pair_that_minus_infinity_forbids_on_a_device(n, dtype):
    """The prices of dense costs count from the least one, which turns with the signs."""
    rng = np.random.default_rng(1)
    C = np.outer(rng.random(n), rng.random(n)).astype(dtype)
    C[0, 0] = -math.inf
    expected = gm.assign(C, maximize=True, backend="cpu").objective
    for cardinality in ("full", "maximum"):
        a = gm.assign(C, maximize=True, cardinality=cardinality, backend="cuda")
        assert a.objective == pytest.approx(expected, rel=1e-9)
        assert gm.verify(C, a).size == n
