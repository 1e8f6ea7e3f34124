"""Block triangular forms of square patterns, strong components and transversals."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import structural_rank

import gpumatch as gm
from gpumatch.cpu import components
from gpumatch.linalg import btf, dmperm, maxtrans, strongcomp
from graphs import make
from tests.linalg.oracle import PATTERNS, SQUARES


def check_form(A, p, q, r):
    """Permutations, no entry below the blocks, and blocks that networkx can't divide either."""
    n = A.shape[0]
    assert sorted(p) == sorted(q) == list(range(n))
    assert r[0] == 0
    assert r[-1] == n
    assert np.all(np.diff(r) > 0)
    permuted = np.asarray(A)[p][:, q] != 0
    block = np.repeat(np.arange(r.size - 1), np.diff(r))
    rows, cols = permuted.nonzero()
    assert np.all(block[rows] <= block[cols])
    assert nx.number_strongly_connected_components(
        nx.from_numpy_array(permuted, create_using=nx.DiGraph)
    ) == r.size - 1  # fmt: skip


def blocks_of(p, r):
    """The rows of each block; blocks that no entry joins may come in any order."""
    return {frozenset(p[begin:end].tolist()) for begin, end in pairwise(r.tolist())}


@given(A=SQUARES)
def test_btf(A):
    p, q, r = btf(A)
    check_form(A, p, q, r)
    rank = structural_rank(csr_array(A)) if A.any() else 0
    assert np.count_nonzero(A[p, q]) == rank
    if rank == A.shape[0]:
        d = dmperm(A)
        assert blocks_of(p, r) == blocks_of(d.p, d.r)


@given(A=SQUARES)
def test_strongcomp(A):
    p, r = strongcomp(A)
    check_form(A, p, p, r)


@given(A=SQUARES, data=st.data())
def test_strongcomp_of_permuted_columns(A, data):
    given_q = data.draw(st.permutations(range(A.shape[0])))
    p, q, r = strongcomp(A, given_q)
    check_form(A, p, q, r)
    assert q.tolist() == np.array(given_q, int)[p].tolist()
    again, r_again = strongcomp(A[:, np.array(given_q, int)])
    assert blocks_of(p, r) == blocks_of(again, r_again)


@pytest.mark.parametrize("budget", [1, 2, 7, 100])
def test_the_budget_does_not_change_the_components(monkeypatch, budget):
    A = make("uniform", 300, 2, seed=2)
    whole = strongcomp(A)
    assert 10 < whole[1].size < 300
    monkeypatch.setattr(components, "_BUDGET", budget)
    for part, again in zip(whole, strongcomp(A)):
        assert np.array_equal(part, again)


@pytest.mark.parametrize(
    ("q", "message"),
    [
        ([0, 1], "q must have n = 3 entries; got 2"),
        ([0, 1, 1], "permutation of 0 to 2; in order, its entry 2 is 1"),
        ([0, -1, 2], "permutation of 0 to 2; in order, its entry 0 is -1"),
        ([0, 1, 3], "permutation of 0 to 2; in order, its entry 2 is 3"),
    ],
)
def test_a_wrong_q_is_refused(q, message):
    with pytest.raises(ValueError, match=message):
        strongcomp(np.eye(3), q)


def test_a_q_of_floats_is_refused():
    with pytest.raises(TypeError, match="q must be integers"):
        strongcomp(np.eye(2), [0.0, 1.0])


@pytest.mark.parametrize("function", [btf, strongcomp])
def test_other_shapes_than_squares_are_refused(function):
    with pytest.raises(ValueError, match="A must be square; got 2 rows and 3 columns"):
        function(np.ones((2, 3)))


@given(A=PATTERNS)
def test_maxtrans(A):
    col = maxtrans(A)
    matched = np.flatnonzero(col >= 0)
    assert col.shape == (A.shape[0],)
    assert np.all(A[matched, col[matched]])
    assert np.unique(col[matched]).size == matched.size == gm.linalg.sprank(A)


def test_the_search_charges_each_entry_once(monkeypatch):
    """A row that comes back to its entries for each child has its budget back for what is left."""
    calls = []
    search, budget = components._search, 50
    monkeypatch.setattr(components, "_BUDGET", budget)
    monkeypatch.setattr(components, "_search", lambda *state: calls.append(1) or search(*state))
    arrow = np.eye(400)
    arrow[-1] = 1
    _, r = strongcomp(csr_array(arrow))
    assert len(r) == 401
    entries_and_rows = 2 * 400 - 1 + 2 * 400
    assert 400 // budget < len(calls) <= 1.5 * entries_and_rows / budget
