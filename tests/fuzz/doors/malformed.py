"""CSR and CSC arrays that do not fit each other: a clear error at every door, and no crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import gpumatch as gm
from tests.fuzz.judgement import require
from tests.fuzz.trials import Trial

DOORS: dict[str, Callable[[Any], Any]] = {
    "assign": gm.assign,
    "bottleneck": lambda A: gm.assign(A, objective="bottleneck"),
    "maximum": lambda A: gm.assign(A, cardinality="maximum"),
    "maximum_matching": gm.maximum_matching,
    "dmperm": gm.linalg.dmperm,
    "btf": gm.linalg.btf,
    "strongcomp": gm.linalg.strongcomp,
    "product": gm.linalg.maximum_product_matching,
    "mc64": lambda A: gm.linalg.mc64(A, 4),
    "mc64-2": lambda A: gm.linalg.mc64(A, 2),
    "splu": gm.linalg.splu,
    "solve_btf": lambda A: gm.linalg.solve_btf(
        A, np.ones(A[3][0] if type(A) is tuple else A.shape[0])
    ),
    "BipartiteGraph": gm.BipartiteGraph,
    "SparseCosts": gm.SparseCosts,
}
PATTERNS = {
    *("maximum_matching", "dmperm", "btf", "strongcomp", "BipartiteGraph"),
    *("csgraph matching", "structural_rank"),
}
"""Doors that do not look at the values, so that there may be too few."""
SCIPYS = {
    "csgraph": gm.csgraph.min_weight_full_bipartite_matching,
    "csgraph matching": gm.csgraph.maximum_bipartite_matching,
    "structural_rank": gm.csgraph.structural_rank,
}


def malformed(trial: Trial) -> None:
    n = trial.scaled(trial.integer(2, 8))
    count = trial.integer(1, 3 * n)
    trial.sized(count)
    kind = trial.pick((np.int32, np.int32, np.int64))
    indptr = np.sort(trial.rng.integers(0, count, n + 1, endpoint=True)).astype(kind)
    indptr[0], indptr[-1] = 0, count
    indices = trial.rng.integers(0, n, count).astype(kind)
    data = trial.rng.random(count) + 0.5
    for _ in range(trial.integer(1, 2)):
        indptr, indices, data = _broken(trial, n, indptr, indices, data)
    as_tuple = trial.chance(0.6)
    names = [*DOORS] if as_tuple else [*DOORS, *SCIPYS]
    name = trial.pick(names)
    is_sound = _is_sound(n, indptr, indices, indices if name in PATTERNS else data)
    if as_tuple:
        A: Any = (indptr, indices, data, (n, n))
    else:
        A = _object(trial.pick((sparse.csr_array, sparse.csc_array)), n, indptr, indices, data)
    trial.note(
        door=name, indptr=indptr, indices=indices, data=data, n=n, container=type(A).__name__
    )
    try:
        (DOORS | SCIPYS)[name](A)
    except (ValueError, TypeError, RuntimeError):  # a singular matrix is a RuntimeError
        return
    require(is_sound, "arrays that do not fit each other are taken")


def _is_sound(n: int, indptr: Any, indices: Any, data: Any) -> bool:
    """Whether the arrays are CSR; there may be more entries than are used."""
    return bool(
        indptr.size == n + 1 and indptr[0] == 0 and (np.diff(indptr) >= 0).all()
        and indptr[-1] <= min(indices.size, data.size)
        and ((indices[: indptr[-1]] >= 0) & (indices[: indptr[-1]] < n)).all()
    )  # fmt: skip


def _broken(trial: Trial, n: int, indptr: Any, indices: Any, data: Any) -> tuple[Any, Any, Any]:
    kind = trial.pick(("indptr", "indptr", "indices", "indices", "short", "long", "sound"))
    bad = trial.pick((-1, n, n + 1, 5, 10**8, -(10**8), 2**31 - 1))
    if kind == "indptr":
        indptr = indptr.copy()
        indptr[trial.integer(0, indptr.size - 1)] = bad
    elif kind == "indices" and indices.size:
        indices = indices.copy()
        indices[trial.integer(0, indices.size - 1)] = bad
    elif kind == "short":
        part = trial.integer(0, 2)
        indptr, indices, data = (
            array[:-1] if k == part else array for k, array in enumerate((indptr, indices, data))
        )
    elif kind == "long":
        indices, data = np.append(indices, indices[:1]), np.append(data, 1.0)
    return indptr, indices, data


def _object(kind: Any, n: int, indptr: Any, indices: Any, data: Any) -> Any:
    """A sparse object whose arrays are set behind SciPy's back."""
    matrix = kind((n, n))
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, data
    return matrix
