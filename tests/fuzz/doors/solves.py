"""`splu`, `factorized` and `solve_btf`, on systems whose solution is known.

A well conditioned matrix with a known solution is scaled by powers of two, which round nothing, so
the solution is known for the scaled one, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

import gpumatch as gm
from tests.fuzz import containers, sizes
from tests.fuzz.judgement import require
from tests.fuzz.trials import Trial

ACCURATE = 1e-9
FORMS = ("csr", "csc", "coo", "unsorted", "csr_matrix", "tuple")


def solves(trial: Trial) -> None:
    n = sizes.square(trial, 600)
    if n == 0:
        return
    matrix = _well_conditioned(trial, n)
    trial.sized(matrix.nnz)
    spread = trial.pick((0, 30, 450))
    row_power = trial.rng.integers(-spread, spread, n, endpoint=True)
    col_power = trial.rng.integers(-spread, spread, n, endpoint=True)
    power = row_power[matrix.row] + col_power[matrix.col]
    data = np.ldexp(matrix.data, power)
    sides = trial.pick((None, 1, 3))
    x = trial.rng.integers(1, 9, (n,) if sides is None else (n, sides)).astype(float)
    b = np.ldexp((matrix.tocsr() @ x).T, row_power).T
    expected = np.ldexp(x.T, -col_power).T
    rows, cols = (trial.rng.permutation(n) for _ in range(2))
    order = np.lexsort((cols[matrix.col], rows[matrix.row]))
    A = containers.sparse_form(
        trial, rows[matrix.row][order], cols[matrix.col][order], data[order], (n, n), only=FORMS
    )
    right, wanted = np.empty_like(b), np.empty_like(expected)
    right[rows], wanted[cols] = b, expected
    kind = trial.pick(("splu", "solve_btf", "factorized", "transposed"))
    trial.note(A=A, b=right, door=kind, spread=spread)
    found = _solved(kind, A, right, wanted)
    if kind == "transposed":
        return
    worst = _worst(found, wanted)
    require(worst <= ACCURATE, f"a solution is off by {worst}, relative to it")


def _solved(kind: str, A: Any, right: Any, wanted: Any) -> Any:
    if kind == "solve_btf":
        return gm.linalg.solve_btf(A, right)
    if kind == "factorized":
        return gm.linalg.factorized(A)(right)
    lu = gm.linalg.splu(A)
    if kind == "transposed":
        other = lu.solve(lu.solve(right) * 0, trans="T")
        require(not other.any(), "the transposed system of 0 has another solution")
    return lu.solve(right)


def _worst(found: np.ndarray, wanted: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        off = np.ldexp(abs(found - wanted), -np.frexp(wanted)[1])
    return float(np.where(np.isfinite(off), off, np.inf).max(initial=0))


def _well_conditioned(trial: Trial, n: int) -> sparse.coo_array:
    """Diagonally dominant, with integers, perhaps reducible."""
    count = trial.integer(0, 4 * n)
    rows, cols = trial.rng.integers(0, n, (2, count))
    if trial.chance(0.3):
        rows, cols = np.minimum(rows, cols), np.maximum(rows, cols)  # triangular
    values = trial.rng.integers(1, 9, count) * trial.rng.choice([-1.0, 1.0], count)
    off = sparse.coo_array((values, (rows, cols)), shape=(n, n)).tocsr()
    off.setdiag(0)
    off.eliminate_zeros()
    sums = abs(off).sum(axis=1) + abs(off).sum(axis=0) + 1.0
    return (off + sparse.diags_array(sums)).tocoo()
