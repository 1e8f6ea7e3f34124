"""SHA-256 of a problem in a canonical form, which docs/algorithms/proof_files.md states.

The hash of what was matched is that of its edges, and the hash of costs that of all numbers: the
entries of a sparse matrix, or a dense matrix. The hash of a graph is that of its adjacency matrix,
without its diagonal. None depends on how a caller holds them: repeated entries are merged, columns
ascend, and integers and floats have 8 bytes, the least first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any

import numpy as np

from gpumatch.bipartite import as_bipartite
from gpumatch.costs import as_costs
from gpumatch.general.graph import pattern_of, weighted_of
from gpumatch.numeric.arrays import array_of

__all__ = ["hash_of"]


def hash_of(
    A: Any,
    problem: str,
    weight: Hashable = "weight",
    triangle: str = "both",
    *,
    maximize: bool = True,
) -> tuple[tuple[int, int], str]:
    """The shape of a problem, and its hash in hexadecimal digits.

    `weight`, `triangle` and `maximize` say what the edges of a graph are and weigh, as in
    `gpumatch.general.maximum_weight_matching`.

    Raises
    ------
    TypeError
        If the costs of an assignment are computed, from points or by a function.
    """
    if problem == "matching":
        graph = as_bipartite(A)
        return graph.shape, _digest("csr pattern", graph.shape, (graph.indptr, graph.indices), None)
    if problem.startswith("general"):
        return _hash_of_graph(A, problem, weight, triangle, maximize)
    costs = as_costs(A, summed=problem != "bottleneck")
    kind = "int64" if costs.is_integer else "float64"
    if costs.is_sparse:
        *places, numbers = costs.entries()
        return costs.shape, _digest(f"csr {kind}", costs.shape, places, numbers)
    if not costs.has_matrix:
        raise TypeError("a proof in a file is one for stored costs; these are computed")
    return costs.shape, _digest(f"dense {kind}", costs.shape, (), costs.dense())


def _hash_of_graph(
    A: Any, problem: str, weight: Hashable, triangle: str, maximize: bool
) -> tuple[tuple[int, int], str]:
    graph, kind = pattern_of(A, triangle), "pattern"
    if problem == "general-weights":
        graph = weighted_of(A, weight, triangle, maximize=maximize)
        assert graph.weights is not None
        kind = "float64" if graph.weights.dtype.kind == "f" else "int64"
    shape = graph.order, graph.order
    return shape, _digest(f"graph {kind}", shape, (graph.indptr, graph.indices), graph.weights)


def _digest(form: str, shape: tuple[int, int], places: Any, numbers: Any) -> str:
    made = hashlib.sha256(f"gpumatch-problem 1 {form}\n".encode())
    for part in (np.array(shape), *places):
        made.update(_bytes(array_of(np, part), "<i8"))
    if numbers is not None:
        given = array_of(np, numbers)
        is_float = form.endswith("float64")
        made.update(_bytes(given + 0.0, "<f8") if is_float else _bytes(given, "<i8"))  # no -0.0
    return made.hexdigest()


def _bytes(array: np.ndarray, dtype: str) -> memoryview:
    return np.ascontiguousarray(array, dtype=dtype).reshape(-1).data.cast("B")
