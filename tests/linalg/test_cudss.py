"""Solves by cuDSS: what it is given, with SciPy in its place."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gpumatch.linalg import SingularMatrixError, cudss
from graphs import matrices
from tests import nvmath_stand_in


@pytest.fixture
def nvmath(monkeypatch):
    nvmath_stand_in.install(monkeypatch)


@pytest.mark.usefixtures("nvmath")
@pytest.mark.parametrize("family", matrices.FAMILIES)
def test_static_pivots_suffice(family):
    matrix = matrices.make(family, 400, seed=1)
    x = np.random.default_rng(0).random((400, 3))
    with cudss(matrix, options={"blocking": True}) as system:
        for wanted in (x, x[:, 0], x + 1j):
            right = matrix @ wanted
            rest = np.linalg.norm(right - matrix @ system.solve(right))
            assert rest <= 1e-10 * np.linalg.norm(right)
        assert system.solver.options == {"blocking": True}
    assert system.solver.freed


@pytest.mark.usefixtures("nvmath")
def test_what_it_does_not_solve():
    with pytest.raises(SingularMatrixError, match="2 rows have entries in 1 columns only"):
        cudss(np.array([[1.0, 0.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="A must be square"):
        cudss(np.ones((2, 3)))
    with pytest.raises(ValueError, match="trans must be 'N'; got 'T'"):
        cudss(np.eye(2)).solve(np.ones(2), "T")


def test_nvmath_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvmath", None)
    for matrix in (np.eye(2), np.ones((2, 3))):  # before anything is done with it
        with pytest.raises(ImportError, match="pip install 'nvmath-python"):
            cudss(matrix)
