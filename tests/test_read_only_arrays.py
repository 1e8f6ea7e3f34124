"""Read-only arrays: no kernel is compiled once more for them, and none is copied for that."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment.small import with_duals
from gpumatch.cpu.assignment.sparse import small as sparse_small
from gpumatch.cpu.searches import dense as dense_search
from gpumatch.numeric.arrays import exactly, for_kernels

KERNELS = [with_duals.solve_range, sparse_small._solve, dense_search.augment]


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def with_read_only_arrays(matrix):
    parts = map(read_only, (matrix.data, matrix.indices, matrix.indptr))
    return csr_array(tuple(parts), shape=matrix.shape)


def sparse_costs():
    rng = np.random.default_rng(3)
    return csr_array(np.where(rng.random((30, 30)) < 0.3, rng.random((30, 30)), np.eye(30)))


FLOATS = np.random.default_rng(2).random((20, 20))
CALLS = {
    "small": lambda: (gm.assign, FLOATS),
    "small integers": lambda: (gm.assign, (100 * FLOATS).astype(np.int64)),
    "batch": lambda: (gm.assign, np.stack([FLOATS, 1 - FLOATS])),
    "dense": lambda: (
        lambda costs: gm.assign(costs, algorithm="shortest-augmenting-path"),
        FLOATS,
    ),
    "sparse": lambda: (gm.assign, sparse_costs()),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_compiled_for_read_only_arrays(name):
    call, given = CALLS[name]()
    call(given)
    before = [len(kernel.signatures) for kernel in KERNELS]
    call(with_read_only_arrays(given) if isinstance(given, csr_array) else read_only(given))
    assert [len(kernel.signatures) for kernel in KERNELS] == before


@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2)], ids=["whole", "strided"])
def test_kernels_get_the_same_memory(part):
    given = np.arange(12.0)
    assert for_kernels(given) is given
    given.flags.writeable = False
    shared = for_kernels(given[part])
    assert shared.flags.writeable
    assert shared.strides == given[part].strides
    assert np.shares_memory(shared, given)
    assert not given.flags.writeable


def test_a_view_for_kernels_keeps_the_memory():
    shared = for_kernels(read_only(np.arange(1000)))
    others = [np.full(1000, -1) for _ in range(100)]
    assert shared.tolist() == list(range(1000))
    assert len(others) == 100


def test_a_read_only_array_of_the_right_type_is_not_copied():
    given = read_only(np.arange(4, dtype=np.int32))
    assert np.shares_memory(exactly(given, np.int32), given)
    assert not np.shares_memory(exactly(given, np.int64), given)
