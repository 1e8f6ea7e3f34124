"""Capacities of pairs as a caller gives them, in the order of the costs' entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.costs.base import Costs
from gpumatch.costs.sparse import SparseCosts
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import array_module, array_of, as_array, first_true

__all__ = ["PairCapacities"]


class PairCapacities:
    """The most that each pair may carry: a number for all, or one for each.

    Parameters
    ----------
    given : number, or array
        An array has the shape of the costs. For sparse costs it may be one of a number for each
        entry, in the order of the caller's data.
    source : costs, sparse matrix or tuple
        What the costs are made of.
    costs : Costs
        The costs, on the host.

    Attributes
    ----------
    values : NumPy array
        A number, a matrix, or numbers in the order of the entries of `costs`.

    Raises
    ------
    TypeError, ValueError
        If it is none of these, a capacity is negative or NaN, or entries are repeated.
    """

    def __init__(self, given: Any, source: Any, costs: Costs) -> None:
        if isinstance(given, (bool, np.bool_, str)):
            raise TypeError(f"pair_capacity must be a number, or one for each pair; got {given!r}")
        if is_tensor(given):
            given = source_of(given)
        values = array_of(np, as_array(given, "pair_capacity"))
        if values.dtype.kind not in "iuf":
            raise TypeError(f"pair_capacity must be real numbers; got dtype {values.dtype}")
        stray = first_true(~(values.ravel() >= 0))
        if stray is not None:
            raise ValueError(
                f"pair_capacity holds {values.ravel()[stray]}: capacities must be at least 0"
            )
        if values.ndim == 1 and costs.is_sparse:
            values = _in_order(values, source, costs)
        elif values.shape not in ((), costs.shape):
            forms = f"an array of shape {costs.shape}"
            if costs.is_sparse:
                forms += f", or {costs.nnz} numbers, one for each entry"
            raise ValueError(
                f"pair_capacity must be a number, or {forms}; got shape {values.shape}"
            )
        self.values, self._costs = values, costs

    def at(self, values: np.ndarray, rows: Any, cols: Any) -> Any:
        """Those of `values`, which are in the order of these, that belong to some pairs."""
        if values.ndim == 0:
            return np.broadcast_to(values, np.broadcast_shapes(rows.shape, cols.shape))
        if values.ndim == 2:
            return values[rows, cols]
        assert isinstance(self._costs, SparseCosts)
        places, _ = self._costs.graph.find(rows, cols)
        return values[places]


def _in_order(values: np.ndarray, source: Any, costs: Costs) -> np.ndarray:
    """Numbers in the order of a caller's data as numbers in the order of the costs' entries."""
    if is_tensor(source):
        source = source_of(source)
    length, order = costs.nnz, np.arange(costs.nnz)
    if not isinstance(source, Costs):
        if not isinstance(source, tuple) and source.format not in ("csr", "csc", "coo"):
            raise TypeError(
                "numbers for each entry need sparse costs in CSR, CSC or COO: pass a matrix"
            )
        length = len(source[2] if isinstance(source, tuple) else source.data)
        order, counts = (
            array_of(np, SparseCosts(_with_data(source, data)).weights).astype(np.int64)
            for data in (np.arange(length), np.ones(length, np.int64))
        )
        if first_true(counts != 1) is not None:
            raise ValueError("numbers for each entry need costs without repeated entries")
    if values.size not in (length, costs.nnz) or first_true(order >= values.size) is not None:
        raise ValueError(
            f"pair_capacity must be one number for each of {costs.nnz} entries; got {values.size}"
        )
    return values[order]


def _with_data(source: Any, data: np.ndarray) -> Any:
    """A sparse matrix or tuple with other numbers of its entries, where these are."""
    xp = array_module(source[2] if isinstance(source, tuple) else source.data)
    if xp is not np:
        data = xp.asarray(data, np.float64)  # cupyx has no matrices of integers
    if isinstance(source, tuple):
        return (*source[:2], data, source[3])
    made = source.copy()
    made.data = data
    return made
