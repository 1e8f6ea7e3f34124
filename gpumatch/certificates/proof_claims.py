"""What a result has for the file of its proof: which problem it is of, and the parts of that."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from gpumatch.certificates.base import cover_of, csr_arrays, python_number
from gpumatch.certificates.hashes import hash_of, hashes_of_batch
from gpumatch.certificates.proof_parts import PARTS, Record, wide
from gpumatch.numeric.arrays import array_of

__all__ = ["record_of"]

_SIGNS = {
    "batch": (("errors",), ("counts",)),
    "ranking": (("tree",),),
    "edges": (("forced",),),
    "alternatives": (("tolerance",),),
    "lexicographic": (("levels",),),
    "general-weights": (("vertex_dual",),),
    "general-matching": (("mate", "tutte_berge_ind"),),
    "transport": (("flow_units", "row_bounds"),),
    "bottleneck": (("threshold_cover",),),
    "assignment": (("row_dual", "col_to_row"),),
    "matching": (("row_to_col", "col_to_row", "vertex_cover"),),
}
"""What only the results of a problem, and of those below it, have."""
_OTHERS = "bound", "row_capacity", "row_log_scale"
"""What only results have of which there are no files."""


def _problem_of(result: Any) -> str:
    if not any(hasattr(result, name) for name in _OTHERS):
        for problem, signs in _SIGNS.items():
            if any(all(hasattr(result, name) for name in names) for names in signs):
                return problem
    raise TypeError(f"there are no files of proofs for {type(result).__name__}")


def record_of(A: Any, result: Any, sizes: Any, weight: Hashable, triangle: str) -> Record:
    """What a file holds of a result; errors as of `gpumatch.certificates.save`."""
    problem = _problem_of(result)
    if problem == "batch":
        return _of_batch(A, result, sizes)
    if sizes is not None:
        raise TypeError("sizes are for a batch")
    _check_proven(result)
    maximize = getattr(result, "maximize", True)
    named = hash_of(A, problem, weight, triangle, maximize=maximize)
    return Record(problem, *named, _parts_of(problem, result))


def _of_batch(A: Any, result: Any, sizes: Any) -> Record:
    results = [result[number] for number in range(len(result))]
    kind = _problem_of(results[0]) if results else "assignment"
    hashes, all_of_them = hashes_of_batch(A, kind, sizes)
    if len(hashes) != len(results):
        raise ValueError(f"there are {len(hashes)} problems, but {len(results)} results")
    problems = []
    for number, (one, named) in enumerate(zip(results, hashes)):
        _check_proven(one, f"problem {number}: ")
        problems.append(Record(kind, *named, _parts_of(kind, one)))
    return Record("batch", *all_of_them, {"problems": problems})


def _check_proven(result: Any, which: str = "") -> None:
    if getattr(result, "proven", True) is not True:
        raise ValueError(f"{which}the result must be proven: a file says that it is the best")


def _parts_of(problem: str, result: Any) -> dict[str, Any]:
    own = _OWN[problem](result) if problem in _OWN else {}
    return {
        name: own[name] if name in own else _part_of(name, form, getattr(result, name))
        for name, form in PARTS[problem].items()
    }


# -- the parts that a result has under another name, or by a call ----------------------------------


def _of_matching(result: Any) -> dict[str, Any]:
    return dict(zip(("cover_rows", "cover_cols"), map(_ascending, cover_of(result))))


def _of_total(result: Any) -> dict[str, Any]:
    """The cover that "maximum" has; it is empty otherwise."""
    if result.cardinality == "maximum":
        return _of_matching(result)
    return dict(zip(("cover_rows", "cover_cols"), map(_ascending, ((), ()))))


def _of_bottleneck(result: Any) -> dict[str, Any]:
    names = "threshold_rows", "threshold_cols"
    return _of_total(result) | dict(zip(names, map(_ascending, result.threshold_cover())))


def _of_transport(result: Any) -> dict[str, Any]:
    own = _of_total(result)
    for side in ("row", "col"):
        bounds = getattr(result, f"{side}_bounds")
        own |= zip((f"{side}_lower", f"{side}_upper"), (wide(array_of(np, b)) for b in bounds))
    return own


def _of_general_matching(result: Any) -> dict[str, Any]:
    return {"tutte_berge": _ascending(result.tutte_berge_ind())}


def _of_ranking(result: Any) -> dict[str, Any]:
    tree = result.tree
    if tree is None:
        raise ValueError("there is no tree that proves this: ask k_best for proof=True")
    names = "parent", "place", "opened", "is_empty", "starts", "vertices"
    return {
        "row_to_col": _ids(result.row_to_col),
        "by_columns": bool(tree.by_columns),
        "order": _ids(tree.order),
        "differences": wide(array_of(np, tree.differences)),
        **{name: _ids(getattr(tree, name)) for name in names},
    }


def _of_lexicographic(result: Any) -> dict[str, Any]:
    levels = result.levels
    sizes = [len(level.vertices) for level in levels]
    none = np.zeros(0, np.int64)
    return {
        "level_value": wide(np.array([level.value for level in levels] or none)),
        "level_starts": np.cumsum([0, *sizes]).astype(np.int64),
        "level_vertices": _ids(np.concatenate([none, *(level.vertices for level in levels)])),
        "level_dual": _ids(np.concatenate([none, *(level.numbers for level in levels)])),
    }


def _of_entries(result: Any) -> dict[str, Any]:
    indptr, indices, _ = csr_arrays(result.matrix)
    return {"indptr": _ids(indptr), "indices": _ids(indices)}


def _of_alternatives(result: Any) -> dict[str, Any]:
    extra = csr_arrays(result.matrix)[2]
    own = _parts_of("assignment", result.assignment)
    return {**own, **_of_entries(result), "extra": wide(extra)}


_OWN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "matching": _of_matching,
    "assignment": _of_total,
    "bottleneck": _of_bottleneck,
    "transport": _of_transport,
    "general-matching": _of_general_matching,
    "ranking": _of_ranking,
    "lexicographic": _of_lexicographic,
    "alternatives": _of_alternatives,
    "edges": _of_entries,
}


def _part_of(name: str, form: str, given: Any) -> Any:
    if given is None:
        return None
    if form == "flag":
        return bool(given)
    if form == "word":
        return str(given)
    if form in ("number", "objective"):
        return python_number(f"the {name}", given)
    values = wide(array_of(np, given))
    if form in ("limit", "capacity"):
        return values.ravel() if values.ndim else values.item()
    return values.astype(np.int64) if form in ("ids", "order") else values


def _ids(given: Any) -> np.ndarray:
    return array_of(np, given).astype(np.int64).ravel()


def _ascending(vertices: Any) -> np.ndarray:
    return np.sort(_ids(vertices))
