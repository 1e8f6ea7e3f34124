"""Dulmage–Mendelsohn decompositions: the parts and blocks of an oracle, and the proof of each."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import mmread
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, eye_array, lil_array
from scipy.sparse.csgraph import structural_rank

import gpumatch as gm
from gpumatch.linalg import DulmageMendelsohn, dmperm
from tests.cases import CASES, SMALL
from tests.linalg.oracle import PATTERNS, decomposition, of_result
from tests.test_real_matrices import RANKS

# Rows and columns of each part in the order of the rows, one column and one row too many.
EXAMPLE = np.array(
    [
        [1, 1, 0, 1, 0, 1],  # R1
        [0, 0, 1, 1, 1, 0],  # R2
        [0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 1, 1],  # R2, a block of its own
        [0, 0, 0, 0, 0, 1],  # R3, R0
        [0, 0, 0, 0, 0, 1],
    ]
)


@given(A=PATTERNS)
def test_parts_and_blocks_are_those_of_the_oracle(A):
    d = dmperm(A)
    assert of_result(d) == decomposition(A)
    gm.verify(A, d)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_case_table(case):
    d = dmperm(case.graph)
    assert d.rr[3] == case.size
    assert gm.verify(case.graph, d).blocks == d.r.size - 1


@pytest.mark.parametrize("name", RANKS)
def test_real_matrices(name):
    folder = os.environ.get("GPUMATCH_DATA")
    if folder is None:
        pytest.skip("GPUMATCH_DATA is not set: no real matrices here")
    A = mmread(Path(folder) / "matrices" / f"{name}.mtx.gz", spmatrix=False).tocsr()
    certificate = gm.verify(A, dmperm(A))
    assert certificate.size == RANKS[name]


def test_what_an_example_gives():
    d = dmperm(EXAMPLE)
    assert isinstance(d, DulmageMendelsohn)
    p, q, r, s, cc, rr = d
    assert rr.tolist() == [0, 1, 4, 5, 6]
    assert cc.tolist() == [0, 1, 2, 5, 6]
    assert r.tolist() == [0, 1, 3, 4, 6]
    assert s.tolist() == [0, 2, 4, 5, 6]
    assert {part.dtype for part in d} == {np.dtype(np.int32)}
    assert p.tolist() == [0, 1, 2, 3, 4, 5]
    assert sorted(q[:2]) == [0, 1]
    assert np.all(EXAMPLE[p, np.roll(q, -1)][:5])


@pytest.mark.parametrize(
    ("shape", "r", "s"),
    [((0, 0), [0], [0]), ((0, 3), [0, 0], [0, 3]), ((3, 0), [0, 3], [0, 0])],
)
def test_sides_without_vertices(shape, r, s):
    d = dmperm(np.zeros(shape))
    assert (d.r.tolist(), d.s.tolist()) == (r, s)


def test_a_pattern_without_entries_is_a_block_of_columns_and_one_of_rows():
    d = dmperm(csr_array((3, 2)))
    assert (d.r.tolist(), d.s.tolist()) == ([0, 0, 3], [0, 2, 2])
    assert (d.rr.tolist(), d.cc.tolist()) == ([0, 0, 0, 0, 3], [0, 2, 2, 2, 2])


@given(A=PATTERNS, data=st.data())
def test_the_order_of_rows_and_columns_does_not_matter(A, data):
    rows = np.array(data.draw(st.permutations(range(A.shape[0]))), int)
    cols = np.array(data.draw(st.permutations(range(A.shape[1]))), int)
    d = dmperm(A[rows][:, cols])
    moved = d._replace(p=rows[d.p], q=cols[d.q])
    assert of_result(moved) == of_result(dmperm(A))


@pytest.mark.parametrize("case", SMALL[::4], ids=[case.name for case in SMALL[::4]])
@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("threads", [1, 2])
def test_seed_and_threads_do_not_matter(case, seed, threads):
    assert of_result(dmperm(case.graph, seed=seed, threads=threads)) == of_result(
        dmperm(case.graph)
    )


def test_a_triangular_pattern_stays_as_it_is():
    d = dmperm(np.triu(np.ones((30, 30))))
    assert d.p.tolist() == d.q.tolist() == list(range(30))
    assert d.r.tolist() == list(range(31))


def test_a_chain_of_blocks_does_not_recurse():
    """The search goes through all rows before it ends the first block."""
    n = 300_000
    d = dmperm(eye_array(n, format="csr") + eye_array(n, k=-1, format="csr"))
    assert d.r.size == n + 1
    assert d.p.tolist() == list(range(n - 1, -1, -1))


# -- input ---------------------------------------------------------------------------------------


def csr_tuple(A):
    matrix = csr_array(A)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.shape


def shuffled_and_repeated(A):
    matrix = coo_array(A)
    order = np.random.default_rng(0).permutation(2 * matrix.nnz) % matrix.nnz
    order = order[np.argsort(matrix.row[order], kind="stable")]
    counts = np.bincount(matrix.row[order], minlength=A.shape[0])
    return np.append(0, np.cumsum(counts)), matrix.col[order], A.shape


def with_stored_zeros(A):
    matrix = csr_array(A)
    matrix.data[:] = 0
    return matrix


FORMS = [
    csr_array, csc_array, coo_array, lil_array, csr_matrix, csr_tuple, shuffled_and_repeated,
    with_stored_zeros, gm.BipartiteGraph,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=[form.__name__ for form in FORMS])
def test_every_kind_of_input(form):
    assert of_result(dmperm(form(EXAMPLE))) == of_result(dmperm(EXAMPLE))


def test_a_backend_without_the_search_is_refused():
    with pytest.raises(ValueError, match="runs on 'cpu' and 'cuda', not on 'reference'"):
        dmperm(EXAMPLE, backend="reference")


@pytest.mark.parametrize("wrong", [{"backend": "gpu"}, {"threads": 0}, {"seed": -1}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        dmperm(EXAMPLE, **wrong)


@given(A=PATTERNS)
def test_the_rank_is_scipys(A):
    assert gm.linalg.sprank(A) == (structural_rank(csr_array(A)) if A.any() else 0)
