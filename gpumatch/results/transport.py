"""The result of `gpumatch.transport`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpumatch.numeric.arrays import array_module
from gpumatch.results.pairs import matrix_of

__all__ = ["Transport"]


class Transport:
    """A flow of masses from rows to columns, with the duals that prove it optimal.

    Attributes
    ----------
    row_ind, col_ind : int64 arrays
        The pairs with flow, by row and then by column.
    flow : array
        What each pair carries, in the masses' dtype.
    flow_units : int64 array
        The same in whole units.
    unit : int or float
        What a unit is: 1 for masses of integers, else a power of 2.
    size : int
        Number of pairs with flow.
    total : int or float
        What all pairs together carry.
    pair_costs : int64 or float64 array
        What a unit of mass costs, for each pair.
    row_flow, col_flow : arrays of length nrows, ncols
        What each row ships, and what each column gets, in the masses' dtype.
    objective : int or float
        Total cost: a Python int for integer costs and masses.
    row_dual, col_dual : int64 or float64 arrays of length nrows, ncols
        The duals that prove the flow optimal; `gpumatch.problems.transport` states how.
    gap : int or float
        A bound of the distance from the objective to the optimum. It is infinity if the flow does
        not reach what was asked for.
    proven : bool
        True if the flow is optimal, as for an `Assignment`.
    row_bounds, col_bounds : pairs of int64 arrays
        The least and the most units of each row and column, as the caller gave them.
    maximize, cardinality, cost_limit
        The arguments of the call.
    stats : dict
        ``algorithm``, ``backend``, ``seconds`` by part, ``trace``, and what the algorithm counts.

    Notes
    -----
    ``rows, cols, flow = result`` unpacks to `row_ind`, `col_ind` and `flow`.
    """

    _TENSORS = (
        *("row_ind", "col_ind", "flow", "flow_units", "row_flow", "col_flow"),
        *("row_dual", "col_dual", "pair_costs"),
    )
    """The arrays that a result in tensors has as tensors."""

    def __init__(
        self,
        row_ind: Any,
        col_ind: Any,
        flow_units: Any,
        row_dual: Any,
        col_dual: Any,
        *,
        row_bounds: tuple[Any, Any],
        col_bounds: tuple[Any, Any],
        unit: float,
        dtype: Any,
        pair_costs: Any,
        objective: float,
        gap: float,
        proven: bool,
        maximize: bool = False,
        cardinality: str = "full",
        cost_limit: float | None = None,
        cover: tuple[Any, Any] | None = None,
        stats: dict[str, Any] | None = None,
    ) -> None:
        self.row_ind, self.col_ind, self.flow_units = row_ind, col_ind, flow_units
        self.row_dual, self.col_dual, self.pair_costs = row_dual, col_dual, pair_costs
        self.row_bounds, self.col_bounds = row_bounds, col_bounds
        self.unit, self.dtype = unit, dtype
        self.objective, self.gap, self.proven = objective, gap, proven
        self.maximize, self.cardinality, self.cost_limit = maximize, cardinality, cost_limit
        self.stats = {} if stats is None else stats
        self._cover = cover

    def __iter__(self) -> Iterator[Any]:
        return iter((self.row_ind, self.col_ind, self.flow))

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else "not proven optimal"
        name = self.stats.get("algorithm")
        return (
            f"Transport({self.total} on {self.size} pairs, objective {self.objective}, {proof}, "
            f"{name})"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.row_bounds[1]), len(self.col_bounds[1])

    @property
    def size(self) -> int:
        return len(self.row_ind)

    @functools.cached_property
    def flow(self) -> Any:
        return self._in_masses(self.flow_units)

    @property
    def total(self) -> float:
        units = int(self.flow_units.sum())
        return units if isinstance(self.unit, int) else units * self.unit

    @functools.cached_property
    def row_flow(self) -> Any:
        return self._in_masses(self._sums(self.row_ind, self.shape[0]))

    @functools.cached_property
    def col_flow(self) -> Any:
        return self._in_masses(self._sums(self.col_ind, self.shape[1]))

    def cover_ind(self) -> tuple[Any, Any]:
        """The rows and columns of a cover, as int64 arrays; see `vertex_cover`."""
        if self._cover is None:
            raise ValueError("only a proven flow of cardinality 'maximum' has a vertex cover")
        return self._cover

    def vertex_cover(self) -> tuple[Any, Any]:
        """The rows and columns of a vertex cover whose masses add up to the total flow.

        Every pair that is allowed has its row or its column in the cover. So no flow is larger.

        Returns
        -------
        rows, cols : int64 arrays

        Raises
        ------
        ValueError
            If the flow is not proven, or not of cardinality ``"maximum"``.
        """
        return self.cover_ind()

    def edges(self) -> Any:
        """The pairs with flow: an int64 array of shape (size, 2)."""
        pairs = self.row_ind.repeat(2).reshape(-1, 2)
        pairs[:, 1] = self.col_ind
        return pairs

    def to_dict(self) -> dict[tuple[int, int], Any]:
        """What each pair carries, by (row, column)."""
        pairs = zip(self.row_ind.tolist(), self.col_ind.tolist())
        return dict(zip(pairs, self.flow.tolist()))

    def to_matrix(self, values: Any = None) -> Any:
        """The flow as a sparse matrix of shape (nrows, ncols).

        Parameters
        ----------
        values : array of length size, optional
            Other values of the entries, in the order of `row_ind`.

        Returns
        -------
        scipy.sparse.csr_array
            Or ``cupyx.scipy.sparse.csr_matrix`` if the arrays are on a device.

        Raises
        ------
        ValueError
            If there is not one value for each pair.

        Examples
        --------
        >>> import gpumatch as gm
        >>> gm.transport([[1, 3], [2, 1]], [2, 1], [1, 2]).to_matrix().toarray()
        array([[1, 1],
               [0, 1]])
        """
        degrees = array_module(self.row_ind).bincount(self.row_ind, minlength=self.shape[0])
        values = self.flow if values is None else values
        return matrix_of(degrees, self.col_ind, self.shape, values)

    def _sums(self, ends: Any, length: int) -> Any:
        """The units at each vertex of a side."""
        xp = array_module(ends)
        sums = xp.zeros(length, np.int64)
        xp.add.at(sums, ends, self.flow_units)
        return sums

    def _in_masses(self, units: Any) -> Any:
        if isinstance(self.unit, int):
            return units
        return (units * self.unit).astype(self.dtype)
