"""SHA-256 of a problem in a canonical form, which docs/algorithms/proof_files.md states.

The hash of what was matched is that of its edges, and the hash of costs that of all numbers: the
entries of a sparse matrix, or a dense matrix. The hash of a graph is that of its adjacency matrix,
without its diagonal. None depends on how a caller holds them: repeated entries are merged, columns
ascend, and integers and floats have 8 bytes, the least first. The hash of points is that of their
coordinates and offsets as doubles, and that of a batch of the hashes of its problems.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any

import numpy as np

from gpumatch.bipartite import as_bipartite
from gpumatch.certificates.proof_parts import STORED
from gpumatch.costs import CostBatch, as_costs
from gpumatch.general.graph import pattern_of, weighted_of
from gpumatch.numeric.arrays import array_of

__all__ = ["hash_of", "hashes_of_batch"]

Named = tuple[str, tuple[int, int], str]
"""The kind of costs, the shape of the problem, and its hash in hexadecimal digits."""
_COMPARED = "bottleneck", "lexicographic"
"""Problems whose costs are compared, and never added."""


def hash_of(
    A: Any,
    problem: str,
    weight: Hashable = "weight",
    triangle: str = "both",
    *,
    maximize: bool = True,
) -> Named:
    """The kind of costs of a problem, its shape, and its hash.

    `weight`, `triangle` and `maximize` say what the edges of a graph are and weigh, as in
    `gpumatch.general.maximum_weight_matching`.

    Raises
    ------
    TypeError
        If the costs of an assignment are computed by a function.
    """
    if problem in ("matching", "edges"):
        graph = as_bipartite(A)
        places = graph.indptr, graph.indices
        return STORED, graph.shape, _digest("csr pattern", graph.shape, places)
    if problem.startswith("general"):
        return STORED, *_hash_of_graph(A, problem, weight, triangle, maximize)
    costs = as_costs(A, summed=problem not in _COMPARED)
    metric = getattr(costs, "metric", None)
    if isinstance(metric, str):
        return metric, costs.shape, _digest_of_points(costs)
    kind = "int64" if costs.is_integer else "float64"
    if costs.is_sparse:
        indptr, indices, numbers = costs.entries()
        places = indptr, indices
        return STORED, costs.shape, _digest(f"csr {kind}", costs.shape, places, numbers)
    if not costs.has_matrix:
        raise TypeError(
            "a proof in a file is one for stored costs, or for points; these are computed"
        )
    return STORED, costs.shape, _digest(f"dense {kind}", costs.shape, (), costs.dense())


def hashes_of_batch(A: Any, problem: str, sizes: Any = None) -> tuple[list[Named], Named]:
    """Kind, shape and hash of the costs of each problem of a batch, and of all together."""
    problems = CostBatch(A, sizes)
    named = [hash_of(problems[k], problem) for k in range(len(problems))]
    kinds = {costs for costs, _, _ in named}
    costs = kinds.pop() if len(kinds) == 1 else "mixed" if kinds else STORED
    made = _begun("batch")
    made.update(_bytes(np.array([len(named)]), "<i8"))
    for _, _, sha256 in named:
        made.update(bytes.fromhex(sha256))
    return named, (costs, problems.shape, made.hexdigest())


def _digest_of_points(costs: Any) -> str:
    X, Y = (array_of(np, side) for side in costs.given_points())
    made = _begun(f"points {costs.metric}")
    made.update(_bytes(np.array([*costs.shape, X.shape[1]]), "<i8"))
    sides = [X, Y]
    if costs.row_offset is not None:
        sides += [array_of(np, part) for part in (costs.row_offset, costs.col_offset)]
    for numbers in sides:
        made.update(_bytes(numbers + 0.0, "<f8"))  # no -0.0
    return made.hexdigest()


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


def _begun(form: str) -> Any:
    return hashlib.sha256(f"gpumatch-problem 1 {form}\n".encode())


def _digest(form: str, shape: tuple[int, int], places: Any, numbers: Any = None) -> str:
    made = _begun(form)
    for part in (np.array(shape), *places):
        made.update(_bytes(array_of(np, part), "<i8"))
    if numbers is not None:
        given = array_of(np, numbers)
        is_float = form.endswith("float64")
        made.update(_bytes(given + 0.0, "<f8") if is_float else _bytes(given, "<i8"))  # no -0.0
    return made.hexdigest()


def _bytes(array: np.ndarray, dtype: str) -> memoryview:
    return np.ascontiguousarray(array, dtype=dtype).reshape(-1).data.cast("B")
