"""What the host solves of a problem on the device: all of it, or what the device has prepared."""

from __future__ import annotations

import dataclasses
from typing import Any

import cupy as cp

from gpumatch.contracts.transport import AllPairs, TransportSolution, TransportTask

__all__ = ["solve_on_host"]

_ARRAYS = ("supply", "demand", "row_limit", "flow", "indptr", "indices", "data")
_OF_PAIRS = ("costs", "forbidden")
_OF_SOLUTION = ("rows", "cols", "flow", "row_dual", "col_dual", "infeasible_rows")


def solve_on_host(task: TransportTask, pairs: AllPairs | None = None) -> TransportSolution:
    """Copy the problem to the host, and let `task.fallback` solve it there.

    Costs of `pairs` stay on the device.

    Raises
    ------
    NotImplementedError
        If the task has no such algorithm.
    """
    if task.fallback is None:
        raise NotImplementedError("no algorithm of the GPU takes this problem")
    names = _ARRAYS if pairs is not None else _ARRAYS + _OF_PAIRS
    arrays: dict[str, Any] = {name: _on_host(getattr(task, name)) for name in names}
    if pairs is not None:
        arrays |= {"costs": None, "points": None, "pairs": pairs}
    if task.initial is not None:
        arrays["initial"] = tuple(map(_on_host, task.initial))
    found = task.fallback(dataclasses.replace(task, **arrays))
    arrays = {name: getattr(found, name) for name in _OF_SOLUTION}
    arrays = {name: None if one is None else cp.asarray(one) for name, one in arrays.items()}
    return dataclasses.replace(found, **arrays)


def _on_host(array: Any) -> Any:
    return None if array is None else cp.asnumpy(array)
