"""The result of `gpumatch.transport`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from gpumatch.numeric.arrays import array_module
from gpumatch.numeric.units import units_at
from gpumatch.results.pairs import matrix_of

__all__ = ["BatchTransport", "Transport"]


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
    pair_capacity : int, or int64 array, optional
        The most units of a pair: of all pairs, as a matrix, or in the order of the sparse costs'
        sorted entries. None if pairs have no capacity.
    maximize, cardinality, cost_limit
        The arguments of the call.
    stats : dict
        ``algorithm``, ``backend``, ``seconds`` by part, ``trace``, and what the algorithm counts.

    Notes
    -----
    ``rows, cols, flow = result`` unpacks to `row_ind`, `col_ind` and `flow`.
    """

    _TENSORS: tuple[str, ...] = (
        *("row_ind", "col_ind", "flow", "flow_units", "row_flow", "col_flow"),
        *("row_dual", "col_dual", "pair_costs", "total"),
    )
    """What a result in tensors makes of its arrays: tensors, or a number that is no array."""

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
        pair_capacity: Any = None,
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
        self.pair_capacity = pair_capacity
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
        return self._in_masses(units_at(self.row_ind, self.flow_units, self.shape[0]))

    @functools.cached_property
    def col_flow(self) -> Any:
        return self._in_masses(units_at(self.col_ind, self.flow_units, self.shape[1]))

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

    def _in_masses(self, units: Any) -> Any:
        if isinstance(self.unit, int):
            return units
        return (units * self.unit).astype(self.dtype)


def _of_each(name: str, brackets: str = "") -> Any:
    """An attribute of each problem of a batch. For the batch, it raises an error."""

    def refuse(self: Any) -> NoReturn:
        raise AttributeError(
            f"a batch has no {name} of its own; each problem has one: t[k].{name}{brackets}"
        )

    return property(refuse, doc=f"Only each problem has this: ``t[k].{name}{brackets}``.")


class BatchTransport(Transport):
    """The flows of B problems. ``t[k]`` is that of problem k, and iteration yields each.

    Its arrays have a row for each problem. Entries of rows and columns that a problem does not have
    are 0. Each problem has its own pairs, bounds, matrix and cover: ``t[k].to_matrix()``.

    Attributes
    ----------
    row_dual, col_dual : int64 or float64 arrays of shapes (B, n) and (B, m)
    row_flow, col_flow : arrays of the same shapes
    size : int64 array of length B
    total : array of length B
    objective : int64 or float64 array of length B
        Integers are float64 if one of them is beyond int64; ``t[k].objective`` is exact.
    gap : float64 array of length B
    proven : bool array of length B
    shape : (int, int)
        Rows and columns that have room for each problem.
    sizes : int64 array of shape (B, 2)
        The rows and columns of each problem.
    errors : dict
        With ``on_error="mark"``: the error of each problem that has no flow, by its number. Such a
        problem has no pairs and is not proven.
    maximize, cardinality, cost_limit, stats
        As of a `Transport`.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> C = np.array([[[4, 1], [2, 0]], [[1, 5], [6, 1]]])
    >>> t = gm.transport(C, supply=[2, 1], demand=np.array([[1, 2], [3, 0]]))
    >>> t.objective.tolist(), t.row_dual.shape
    ([4, 8], (2, 2))
    >>> [flow.tolist() for _, _, flow in t]
    [[2, 1], [2, 1]]
    """

    _TENSORS: tuple[str, ...] = ("row_dual", "col_dual", "row_flow", "col_flow", "total")

    size: Any = None
    total: Any = None
    shape: Any = None
    proven: Any

    row_ind, col_ind, flow, flow_units, pair_costs, unit, dtype, row_bounds, col_bounds = (
        _of_each(name)
        for name in (
            *("row_ind", "col_ind", "flow", "flow_units", "pair_costs", "unit", "dtype"),
            *("row_bounds", "col_bounds"),
        )
    )
    cover_ind, vertex_cover, edges, to_dict, to_matrix = (
        _of_each(name, "()")
        for name in ("cover_ind", "vertex_cover", "edges", "to_dict", "to_matrix")
    )

    def __init__(
        self,
        results: Any,
        *,
        arrays: dict[str, Any] | None = None,
        shape: tuple[int, int],
        sizes: Any,
        errors: dict[int, Exception],
        maximize: bool,
        cardinality: str,
        cost_limit: float | None,
        stats: dict[str, Any],
    ) -> None:
        self._results, self.sizes, self.errors = results, sizes, errors
        self.maximize, self.cardinality, self.cost_limit = maximize, cardinality, cost_limit
        self.stats = stats
        self.shape = shape
        given = arrays or self._arrays()
        for name in ("row_dual", "col_dual", "row_flow", "col_flow"):
            setattr(self, name, given[name])
        for name in ("size", "total", "objective", "gap", "proven"):
            setattr(self, name, self._numbers(name, given[name]))

    def _arrays(self) -> dict[str, Any]:
        """What the results have, each kind together: arrays of sides, and lists of numbers."""
        sides = {
            name: self._side(name, side)
            for side, names in enumerate((("row_dual", "row_flow"), ("col_dual", "col_flow")))
            for name in names
        }
        numbers = ("size", "total", "objective", "gap", "proven")
        return sides | {name: [getattr(one, name) for one in self._results] for name in numbers}

    def _side(self, name: str, side: int) -> Any:
        """The arrays of all problems, each in a row of its own."""
        parts = [getattr(one, name) for one in self._results]
        dtype = np.result_type(*(part.dtype for part in parts)) if parts else np.dtype(np.int64)
        found = self._xp.zeros((len(parts), self.shape[side]), dtype)
        for k, part in enumerate(parts):
            found[k, : part.size] = part
        return found

    @property
    def _xp(self) -> Any:
        return array_module(self._results[0].row_dual) if self._results else np

    def _numbers(self, name: str, numbers: list[Any]) -> Any:
        dtypes = {"proven": bool, "gap": np.float64, "size": np.int64}
        is_whole = all(type(number) is int and abs(number) < 2**63 for number in numbers)
        return self._xp.asarray(
            np.array(numbers, dtypes.get(name, np.int64 if is_whole else np.float64))
        )

    def __repr__(self) -> str:
        count = len(self)
        return f"BatchTransport({count} problems, {int(self.proven.sum())} proven optimal)"

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._results)

    def __getitem__(self, k: int) -> Transport:
        if not -len(self) <= k < len(self):
            raise IndexError(f"problem {k} of {len(self)}")
        return self._results[k]
