"""The results of `gpumatch.assign`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from gpumatch.results.pairs import Labels, Pairs

__all__ = ["Assignment", "BatchAssignment", "SmallAssignment"]


class Assignment(Pairs):
    """An assignment of rows to columns, with the duals that prove it optimal.

    Attributes
    ----------
    row_ind, col_ind : int64 arrays
        The assigned pairs, by row.
    row_to_col, col_to_row : int32 arrays of length nrows, ncols
        The column of each row and the row of each column; -1 means unmatched.
    unmatched_rows, unmatched_cols : int64 arrays, or lists of nodes for a networkx graph
        The rows and columns in no pair.
    size : int
        Number of pairs.
    pair_costs : int64 or float64 array of length size
        The cost of each pair, by row.
    objective : int or float
        Total cost of the pairs; a Python int for integer costs.
    row_dual, col_dual : int64 or float64 arrays of length nrows, ncols
        The duals that prove the assignment optimal; `gpumatch.problems.cardinality` states how.
    gap : int or float
        A bound of the distance from the objective to the optimum: the difference to the dual bound.
        It is infinity if a full or maximum assignment has too few pairs.
    proven : bool
        True if the assignment is optimal. Then the gap is 0, or an exact algorithm on floats has
        ended by itself and the gap is within the rounding of the costs in use.
    maximize, cardinality, cost_limit
        The arguments of the call. Limits of rows are in an array on the device of the costs.
    stats : dict
        ``algorithm``, ``backend``, ``seconds`` by part, ``compilation`` among them, and ``trace``:
        one dict a phase.
    """

    def __init__(
        self,
        row_to_col: Any,
        col_to_row: Any,
        row_dual: Any,
        col_dual: Any,
        *,
        pair_costs: Any,
        objective: float,
        gap: float,
        proven: bool,
        maximize: bool = False,
        cardinality: str = "full",
        cost_limit: Any = None,
        cover: tuple[Any, Any] | None = None,
        labels: Labels = (None, None),
        size: int | None = None,
        stats: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(row_to_col, col_to_row, labels, size)
        self.row_dual, self.col_dual, self.pair_costs = row_dual, col_dual, pair_costs
        self.objective, self.gap, self.proven = objective, gap, proven
        self.maximize, self.cardinality, self.cost_limit = maximize, cardinality, cost_limit
        self.stats = {} if stats is None else stats
        self._cover = cover

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else "not proven optimal"
        name = self.stats.get("algorithm")
        return f"Assignment({self.size} pairs, objective {self.objective}, {proof}, {name})"

    def cover_ind(self) -> tuple[Any, Any]:
        if self._cover is None:
            raise ValueError("only a proven assignment of cardinality 'maximum' has a vertex cover")
        return self._cover


class SmallAssignment(Assignment):
    """An assignment by one compiled call, of microseconds.

    Its arrays are parts of those that the kernel has written. They, what pairs cost and the
    statistics are made when they are first asked for, because all of them take as long as the call.

    Parameters
    ----------
    mates : int32 array
        The columns of the rows, then the rows of the columns.
    numbers : int64 or float64 array
        The duals of the rows, those of the columns, and what the pairs of the rows cost.
    nrows : int
    times : (float, float)
        The seconds of compilation, and those of the search.
    kept : int
        The rows that have the columns of the start.
    others
        As of an `Assignment`, which is proven.
    """

    def __init__(
        self,
        mates: np.ndarray,
        numbers: np.ndarray,
        nrows: int,
        times: tuple[float, float],
        kept: int,
        *,
        size: int,
        objective: float,
        gap: float,
        maximize: bool,
        cardinality: str,
        cost_limit: float | None,
        cover: tuple[Any, Any] | None,
    ) -> None:
        self._written = mates, numbers, nrows, times, kept
        self.size, self.objective, self.gap, self.proven = size, objective, gap, True
        self.maximize, self.cardinality, self.cost_limit = maximize, cardinality, cost_limit
        self._cover, self._labels = cover, (None, None)

    def __getattr__(self, name: str) -> Any:
        if name not in _MADE_ON_DEMAND or "_written" not in self.__dict__:
            return super().__getattribute__(name)  # which raises the error
        mates, numbers, nrows, times, kept = self._written
        both = mates.size
        made: Any
        if name == "stats":
            made = self._statistics(times, kept)
        elif name == "pair_costs":
            costs = numbers[both:]
            made = costs if self.size == nrows else costs[mates[:nrows] >= 0]
        elif name in ("row_to_col", "col_to_row"):
            made = mates[:nrows] if name == "row_to_col" else mates[nrows:]
        else:
            made = numbers[:nrows] if name == "row_dual" else numbers[nrows:both]
        self.__dict__[name] = made
        return made

    def _statistics(self, times: tuple[float, float], kept: int) -> dict[str, Any]:
        found = self.size - kept
        return {
            "algorithm": "engine",
            "backend": "cpu",
            "phases": 1,
            "levels": 0,
            "seconds": {"compilation": times[0], "costs": 0.0, "search": times[1]},
            "trace": [{"levels": 0, "found": found, "matched": self.size, "step": "paths"}],
        }


_MADE_ON_DEMAND = frozenset(
    ("row_to_col", "col_to_row", "row_dual", "col_dual", "pair_costs", "stats")
)


def _of_each(name: str, brackets: str) -> Any:
    """An attribute of each problem of a batch. For the batch, it raises an error."""

    def refuse(self: Any) -> NoReturn:
        raise AttributeError(
            f"a batch has no {name} of its own; each problem has one: a[k].{name}{brackets}"
        )

    return property(refuse, doc=f"Only each problem has this: ``a[k].{name}{brackets}``.")


_ARRAYS_OF_A_BATCH = (
    *("row_to_col", "col_to_row", "row_dual", "col_dual", "pair_costs"),
    *("size", "objective", "gap", "proven"),
)


class BatchAssignment(Assignment):
    """The assignments of B problems. ``a[k]`` is that of problem k, and iteration yields each.

    Its arrays have a row for each problem. Entries of rows and columns that a problem does not have
    are -1 in arrays of mates, and 0 in arrays of duals and costs. Each problem has its own pairs,
    matrix, permutations and cover: ``a[k].to_matrix()``.

    Attributes
    ----------
    row_to_col, col_to_row : int32 arrays of shapes (B, n) and (B, m)
    row_dual, col_dual : int64 or float64 arrays of the same shapes
    pair_costs : int64 or float64 array of shape (B, n)
        The cost of each row's pair.
    size : int64 array of length B
    objective : int64 or float64 array of length B
    gap : float64 array of length B
    proven : bool array of length B
    sizes : int64 array of shape (B, 2)
        The rows and columns of each problem.
    errors : dict
        With ``on_error="mark"``: the error of each problem that has no assignment, by its number.
        Such a problem has no pairs and is not proven. On a device, the first access waits for the
        results and finds the errors.
    maximize, cardinality, cost_limit, stats
        As of an `Assignment`. If problems have their own limits, these are a list.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> a = gm.assign(np.array([[[4, 1], [2, 0]], [[1, 5], [6, 1]]]))
    >>> a.row_to_col.tolist(), a.objective.tolist()
    ([[1, 0], [0, 1]], [3, 2])
    >>> [cols.tolist() for rows, cols in a]
    [[1, 0], [0, 1]]
    """

    row_to_col: Any
    col_to_row: Any
    row_dual: Any
    col_dual: Any
    pair_costs: Any
    size: Any
    objective: Any
    gap: Any
    proven: Any

    row_ind, col_ind, unmatched_rows, unmatched_cols = (
        _of_each(name, "") for name in ("row_ind", "col_ind", "unmatched_rows", "unmatched_cols")
    )
    cover_ind, vertex_cover, edges, to_dict, to_matrix, row_permutation, col_permutation = (
        _of_each(name, "()")
        for name in (
            *("cover_ind", "vertex_cover", "edges", "to_dict", "to_matrix"),
            *("row_permutation", "col_permutation"),
        )
    )

    def __init__(
        self,
        read: Callable[[str], Any],
        *,
        sizes: Any,
        marks: Any,
        errors: dict[int, Exception] | Callable[[], dict[int, Exception]],
        maximize: bool,
        cardinality: str,
        cost_limit: Any,
        stats: dict[str, Any],
    ) -> None:
        self._read = read  # makes an array by its name, once: on a device, this takes time
        self.sizes, self._marks, self._errors = sizes, marks, errors
        self.maximize, self.cardinality, self.cost_limit = maximize, cardinality, cost_limit
        self.stats, self._labels = stats, (None, None)

    def __getattr__(self, name: str) -> Any:
        if name not in _ARRAYS_OF_A_BATCH or "_read" not in self.__dict__:
            return super().__getattribute__(name)  # which raises the error
        array = self.__dict__[name] = self._read(name)
        return array

    def __getstate__(self) -> dict[str, Any]:
        known = {name: getattr(self, name) for name in _ARRAYS_OF_A_BATCH}
        state = {**self.__dict__, **known, "_errors": self.errors}
        del state["_read"]
        return state

    @property
    def errors(self) -> dict[int, Exception]:
        if callable(self._errors):
            self._errors = self._errors()
        return self._errors

    def __repr__(self) -> str:
        count = len(self)
        return f"BatchAssignment({count} problems, {int(self.proven.sum())} proven optimal)"

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Assignment]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> Assignment:
        if not -len(self) <= k < len(self):
            raise IndexError(f"problem {k} of {len(self)}")
        nrows, ncols = self.sizes[k].tolist()
        row_to_col = self.row_to_col[k, :nrows]
        cover = None
        if self.cardinality == "maximum" and self.proven[k]:
            in_rows, in_cols = self._marks[0][k], self._marks[1][k]
            cover = in_rows[:nrows].nonzero()[0], in_cols[:ncols].nonzero()[0]
        objective, gap, limits = self.objective[k].item(), self.gap[k].item(), self.cost_limit
        return Assignment(
            row_to_col,
            self.col_to_row[k, :ncols],
            self.row_dual[k, :nrows],
            self.col_dual[k, :ncols],
            pair_costs=self.pair_costs[k, :nrows][row_to_col >= 0],
            objective=objective,
            gap=int(gap) if isinstance(objective, int) and gap < np.inf else gap,
            proven=bool(self.proven[k]),
            maximize=self.maximize,
            cardinality=self.cardinality,
            cost_limit=limits[k] if isinstance(limits, list) else limits,
            cover=cover,
            size=int(self.size[k]),
            stats=self.stats,
        )
