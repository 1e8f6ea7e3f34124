"""`gpumatch.linalg` on data that is on a device: results there, and no copy of the matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.linalg import (
    BlockTriangularForm,
    DulmageMendelsohn,
    btf,
    dmperm,
    maxtrans,
    sprank,
    strongcomp,
)
from graphs import grid, uniform
from tests.cases import CASES
from tests.linalg.oracle import of_result

pytestmark = pytest.mark.gpu


@pytest.fixture
def no_copy(monkeypatch):
    """CuPy; graphs on a device stay there."""

    def to_host(source):
        assert not source.on_device
        return source

    monkeypatch.setattr(gm.BipartiteGraph, "to_host", to_host)
    return pytest.importorskip("cupy")


def on_device(cp, pattern):
    matrix = csr_array(pattern)
    return cp.asarray(matrix.indptr), cp.asarray(matrix.indices), matrix.shape


def on_host(cp, arrays):
    assert all(isinstance(array, cp.ndarray) and array.dtype == np.int32 for array in arrays)
    return [array.get() for array in arrays]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_decompositions(no_copy, case):
    pattern = gm.BipartiteGraph(case.graph).to_csr()
    d = DulmageMendelsohn(*on_host(no_copy, dmperm(on_device(no_copy, pattern))))
    assert d.rr[3] == case.size
    gm.verify(pattern, d)
    assert of_result(d) == of_result(dmperm(pattern, backend="cpu"))


def test_a_decomposition_on_the_device_is_verified():
    cp = pytest.importorskip("cupy")
    pattern = on_device(cp, uniform(2_000, 2, seed=1))
    assert gm.verify(pattern, dmperm(pattern)).size == sprank(pattern)


@pytest.mark.parametrize("pattern", [uniform(5_000, 4, seed=1), grid(80, 0.8, seed=2)])
def test_block_triangular_forms(no_copy, pattern):
    given = on_device(no_copy, pattern)
    form = BlockTriangularForm(*on_host(no_copy, btf(given)))
    assert gm.verify(pattern, form).size == sprank(pattern, backend="cpu")
    assert sprank(given) == (no_copy.asnumpy(maxtrans(given)) >= 0).sum()


def test_strong_components(no_copy):
    pattern = uniform(5_000, 2, seed=3)
    p, r = on_host(no_copy, strongcomp(on_device(no_copy, pattern)))
    blocks = np.searchsorted(r, np.arange(5_000), side="right")
    rows, cols = pattern[p][:, p].nonzero()
    assert (blocks[rows] <= blocks[cols]).all()
    assert np.array_equal(np.sort(np.diff(r)), np.sort(np.diff(strongcomp(pattern)[1])))


def test_data_on_the_host_comes_back_to_the_host():
    pattern = uniform(1_000, 3, seed=4)
    d = dmperm(pattern, backend="cuda")
    assert all(isinstance(part, np.ndarray) for part in d)
    assert of_result(d) == of_result(dmperm(pattern, backend="cpu"))
