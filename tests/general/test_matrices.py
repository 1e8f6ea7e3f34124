"""Matrices of the SuiteSparse collection, symmetrised: each result is verified."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import block_array, csr_array

import gpumatch as gm

HERE = sorted((Path(__file__).parents[2] / "datasets").glob("*.mtx.gz"))
FOLDER = os.environ.get("GPUMATCH_DATA")
THERE = sorted((Path(FOLDER) / "matrices").glob("*.mtx.gz")) if FOLDER else []


def name_of(path):
    return path.name.split(".")[0]


def symmetrised(path):
    """A + A^T of a square matrix without its diagonal; the graph of rows and columns of others."""
    A = csr_array(gm.io.read(path)).astype(np.float64)
    A = A + A.T if A.shape[0] == A.shape[1] else block_array([[None, A], [A.T, None]], format="csr")
    A = csr_array(abs(A))
    A.sort_indices()
    return A


def check(path):
    A = symmetrised(path)
    m = gm.general.maximum_matching(A)
    assert m.proven
    gm.verify(A, m)
    n = A.shape[0]
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    weights = (1 + 7919 * (rows + A.indices) % 1000 + rows * A.indices % 10).astype(np.int64)
    W = csr_array((weights, A.indices, A.indptr), shape=A.shape)
    for cardinality in ("any", "maximum"):
        w = gm.general.maximum_weight_matching(W, cardinality=cardinality)
        assert w.proven
        gm.verify(W, w)
    assert w.size == m.size


@pytest.mark.parametrize("path", HERE, ids=name_of)
def test_matrices_of_the_repository(path):
    check(path)


@pytest.mark.long
@pytest.mark.parametrize("path", THERE, ids=name_of)
def test_matrices_at_hand(path):
    check(path)
