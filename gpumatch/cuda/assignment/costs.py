"""The costs and the result of an assignment on the device: what its algorithms share."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.cuda import kernels as module

__all__ = ["NEVER", "copy_to", "dense_matrix", "moved_to_device"]

NEVER = np.int64(2**63 - 1)
"""Forbids a pair among integers: kNever in dense_costs.cuh."""


def copy_to(target: Any, source: cp.ndarray) -> None:
    """Copy from the device into an array on the host or the device."""
    target[:] = source.get() if isinstance(target, np.ndarray) else source


def moved_to_device(costs: Any) -> Any:
    """The costs on the device: themselves, or a copy.

    Raises
    ------
    MemoryError
        If the device has no room for it.
    """
    if not costs.on_device:
        module.require_memory(costs.nbytes, "a copy of the costs")
    return costs.to_device()


def dense_matrix(costs: Any) -> tuple[cp.ndarray, bool]:
    """The costs as a matrix on the device, and whether no pair is forbidden.

    Parameters
    ----------
    costs : Costs
        A problem, on the host or the device.

    Returns
    -------
    values : array of shape (nrows, ncols)
        What dense costs on the device hold, itself. Forbidden pairs cost inf, or `NEVER`.
    is_complete : bool

    Raises
    ------
    MemoryError
        If the device has no room for it.
    """
    costs = moved_to_device(costs)
    return costs.dense(), costs.is_complete
