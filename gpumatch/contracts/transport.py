"""The contract of transport algorithms: what they receive and what they return.

A transport algorithm is a function

    solve(task: TransportTask) -> TransportSolution

The problem
-----------
Rows have a supply and columns have a demand. A unit that goes from row i to column j costs c_ij.
With f_ij >= 0 the integer flow of a pair and u_i >= 0 the units of row i that are not shipped,

    minimise    sum of c_ij f_ij  +  sum of row_limit_i u_i
    subject to  sum_j f_ij + u_i = supply_i,    sum_i f_ij <= demand_j

Without `row_limit`, each u_i is 0: every row ships all its supply, or the problem is infeasible.
The front door has turned the caller's problem into this one: costs to be maximised are negated,
and rows and columns have changed places if the columns are to be filled. So there may be more rows
than columns. Any number of rows and columns may be 0, and so may any supply or demand.

The proof
---------
With a dual u_i of each row and v_j of each column,

    u_i + v_j <= c_ij    for every pair that is allowed, with equality where f_ij > 0
    v_j <= 0             and v_j = 0 where column j is not full
    u_i <= row_limit_i   with equality where units of row i are not shipped

Then the cost is the sum of supply_i u_i and demand_j v_j, and no flow costs less. For integers all
of this holds exactly. For floats the equalities and the inequalities hold up to rounding; the
front door makes the inequalities exact, and reports the gap that results.
A row without supply and a column without demand have duals, too, and these are feasible.

Some algorithms keep lower bounds of columns: column j gets at least least_j units. Then v_j may be
above 0 where it gets no more, and it is 0 where it gets more and is not full. The cost is the sum
of supply_i u_i, and of demand_j v_j or for v_j > 0 least_j v_j.

The arrays are NumPy's for an algorithm of the CPU, and CuPy's for one of the GPU, which returns its
solution in CuPy's, too. An algorithm calls ``control.tick(units shipped)`` at least every half
second of work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpumatch.contracts import Control, Points

__all__ = [
    "AllPairs",
    "Beat",
    "BoundedSolution",
    "BoundedTask",
    "Nearest",
    "PairList",
    "SmallFlows",
    "SmallTransports",
    "TransportSolution",
    "TransportSolver",
    "TransportTask",
]


Beat = Callable[[], None]
"""It is called at least every half second, and raises Stopped."""
PairList = tuple[np.ndarray, np.ndarray]
"""Rows and columns of some pairs, int32."""


class Nearest(NamedTuple):
    """The cheapest pairs at duals of the columns.

    Attributes
    ----------
    row_dual : array
        The least reduced cost of each row.
    regret : array
        What the second cheapest column of each row costs more; 0 if only one was looked for.
    of_rows, of_cols : (rows, cols)
        The cheapest pairs of each row, and those of each column at the duals of the rows that are
        not among them.
    """

    row_dual: np.ndarray
    regret: np.ndarray
    of_rows: PairList
    of_cols: PairList


class AllPairs(Protocol):
    """All pairs of rows and columns, each of them allowed, wherever their costs are.

    What it gets and returns is on the host.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
        int64 or float64.
    extremes : (low, high)
        Bounds of all costs.
    """

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def extremes(self) -> tuple[Any, Any]: ...

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The costs of some pairs."""

    def features(self, side: int, others: np.ndarray) -> np.ndarray:
        """The costs of all rows with some columns, or, on side 1, of all columns with some rows."""

    def part(self, rows: np.ndarray, cols: np.ndarray) -> AllPairs | np.ndarray:
        """The pairs of some rows and columns; their matrix if it is small."""

    def conjugate(self, rows: np.ndarray, row_dual: np.ndarray, beat: Beat) -> np.ndarray:
        """The least cost of each column less the duals of some rows."""

    def nearest(self, col_dual: np.ndarray, most: tuple[int, int], beat: Beat) -> Nearest:
        """The cheapest pairs at duals of the columns, so many of each row and of each column."""

    def undercuts(
        self, row_dual: np.ndarray, col_dual: np.ndarray, tolerance: Any, most: int, beat: Beat
    ) -> PairList:
        """Pairs that cost less than their duals by more than the tolerance, a few of each row."""

    def row_minima(self, col_dual: np.ndarray) -> np.ndarray:
        """The least reduced cost of each row."""

    def matrix(self) -> np.ndarray | None:
        """All costs; None if they are computed."""


@dataclasses.dataclass(frozen=True)
class TransportTask:
    """A transport problem, and the caller's arguments for the run. An algorithm changes no array.

    Attributes
    ----------
    supply, demand : int64 arrays of length n and m
        Units, >= 0. The sum of each is at most 2**62.
    costs : int64 or float64 array of shape (n, m), C-contiguous, optional
        The costs of a dense problem to minimise; None if the problem is sparse or has points.
        Infinity in a matrix of floats forbids a pair. No cost is NaN or -infinity.
    forbidden : bool array of shape (n, m), optional
        Pairs that are forbidden in a dense matrix of integers; None if none is. It is always None
        for floats.
    indptr, indices, data : arrays, optional
        The costs of a sparse problem in CSR: int64, int32 or int64, int64 or float64. Only stored
        pairs are allowed, and a stored 0 is a cost of 0. The columns of a row ascend strictly. All
        data are finite.
    points : Points, optional
        The points whose distances are the costs to minimise, where no matrix is made of them. All
        pairs are allowed. Only algorithms that take points are given any.
    row_limit : array of length n, optional
        The cost of a unit that is not shipped, finite, of the costs' dtype. It may be negative.
        None if every row must ship all that it has. Then the total supply is at most the total
        demand.
    initial : (row_dual, col_dual), optional
        Duals to begin from, finite, of the costs' dtype. They need not be feasible or of any use.
    least : int64 array of length m, optional
        Units that each column must get, at most its demand, and together at most all supply. None
        if no column must get any. Only algorithms that take such tasks are given one.
    control : Control
    threads, seed : int
        As in `gpumatch.contracts.MatchingTask`.
    largest : int or float, optional
        A bound of the magnitudes of all finite costs and limits, if it is known.
    fallback : callable, optional
        The algorithm of the CPU, for a task of a GPU whose arrays the GPU's algorithm cannot solve,
        or which it has prepared.
    pairs : AllPairs, optional
        What the GPU tells that algorithm of its costs, in place of these.
    flow : int64 array of length nnz, optional
        Units of each entry of a sparse problem to begin with, within supply and demand; `initial`
        has duals that nearly fit. An auction has found them.

    Notes
    -----
    With integers, ``(min(n, m) + 1) * C < 2**62`` for the largest magnitude C of costs and limits.
    """

    supply: Any
    demand: Any
    control: Control
    costs: Any = None
    forbidden: Any = None
    indptr: Any = None
    indices: Any = None
    data: Any = None
    points: Points | None = None
    row_limit: Any = None
    initial: tuple[Any, Any] | None = None
    threads: int = 1
    seed: int = 0
    least: Any = None
    largest: float | None = None
    fallback: TransportSolver | None = None
    pairs: AllPairs | None = None
    flow: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.supply), len(self.demand)

    @property
    def is_sparse(self) -> bool:
        return self.data is not None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the costs, the limits and the duals: int64 or float64."""
        if self.points is not None:
            return np.dtype(np.float64)
        if self.pairs is not None:
            return self.pairs.dtype
        values = self.data if self.costs is None else self.costs
        return np.dtype(values.dtype)

    @property
    def is_integer(self) -> bool:
        return self.dtype.kind == "i"


@dataclasses.dataclass
class TransportSolution:
    """What a transport algorithm returns.

    Attributes
    ----------
    rows, cols, flow : int64 arrays
        The pairs with flow and their units, > 0. Each pair appears once, in the order of rows and
        then of columns. The flow never exceeds a supply or a demand.
    row_dual, col_dual : arrays of length n and m, of the costs' dtype
        The duals, finite. The inequalities of the proof hold wherever the run ends, stopped or
        infeasible runs included. The equalities hold if `is_optimal`.
    is_optimal : bool
        True if the algorithm has ended by itself with a cheapest flow. If it is False and
        `infeasible_rows` is None, the control has stopped the run, and the flow is what is shipped
        so far.
    infeasible_rows : int64 array, optional
        A Hall violator, in ascending order, if there is no limit and the rows cannot ship all:
        rows whose supply exceeds the demand of all columns that they may use. None otherwise.
    stats : dict
        Counts of the run, with names of the algorithm's own and values of plain Python types.
    """

    rows: Any
    cols: Any
    flow: Any
    row_dual: Any
    col_dual: Any
    is_optimal: bool
    infeasible_rows: Any = None
    stats: dict[str, Any] = dataclasses.field(default_factory=dict)


TransportSolver = Callable[[TransportTask], TransportSolution]
"""The type of a transport algorithm."""


@dataclasses.dataclass(frozen=True)
class BoundedTask:
    """A transport problem whose pairs, rows and columns have bounds. No array is changed.

    Minimise the sum of c_ij f_ij, where each pair carries 0 <= f_ij <= capacity_ij units, and each
    row and column has from its lower to its upper bound.

    Attributes
    ----------
    lower, upper : int64 arrays of length n + m
        The bounds of rows, then of columns, with 0 <= lower <= upper.
    indptr, indices, data : arrays
        The costs in CSR, as of a `TransportTask`.
    capacity : int64 array of length nnz
        The most units of each stored pair, >= 0.
    col_dual : array of length m, of the costs' dtype
        Duals to begin from, finite.
    control : Control

    Notes
    -----
    With integers, ``8 * (min(n, m) + 2) * C < 2**62`` for the largest magnitude C of costs and of
    the duals to begin from.
    """

    lower: np.ndarray
    upper: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    capacity: np.ndarray
    col_dual: np.ndarray
    control: Control

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, len(self.col_dual)


@dataclasses.dataclass
class BoundedSolution:
    """What an algorithm for a `BoundedTask` returns.

    Attributes
    ----------
    flow : int64 array of length nnz
        The units of each stored pair. No vertex and no pair is ever beyond its upper bound.
    row_dual, col_dual : arrays of length n and m
        The duals u and v. If `is_optimal`, u_i + v_j <= c_ij where a pair is not full, and
        u_i + v_j >= c_ij where it carries something. A dual is at most 0 where the vertex has more
        than its lower bound, and at least 0 where it has less than its upper bound.
    is_optimal : bool
        True if the algorithm has ended by itself with a cheapest flow. If it is False, and
        `violator` is None, the control has stopped the run.
    violator : (rows, cols, by_rows), optional
        Rows and columns that show that there is no flow between the bounds. If `by_rows`, the lower
        bounds of these rows add up to more than the upper bounds of these columns and the
        capacities of the rows' pairs to other columns. Otherwise the columns need more than these
        rows have and other rows' pairs to the columns carry.
    stats : dict
    """

    flow: np.ndarray
    row_dual: np.ndarray
    col_dual: np.ndarray
    is_optimal: bool
    violator: tuple[np.ndarray, np.ndarray, bool] | None = None
    stats: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class SmallTransports:
    """Many small dense transport problems, or one, that one compiled call solves after the other.

    Attributes
    ----------
    read, places, total, takes
        The costs, as of a `gpumatch.contracts.batch.BatchTask`.
    supply, demand : int64 arrays of shape (B, N) and (B, M)
        Units, >= 0; what a problem does not have is not read. Each sum is at most 2**62.
    goal : (sign, limit, takes_equal, largest)
        What to find as numbers, as in a `gpumatch.contracts.batch.Wish`, and the largest magnitude
        of costs.
    control : Control
    threads : int
    """

    read: Callable[[int, int, Any], Any]
    places: np.ndarray
    total: int
    takes: np.ndarray
    supply: np.ndarray
    demand: np.ndarray
    goal: tuple[float, float, bool, float]
    control: Control
    threads: int


@dataclasses.dataclass
class SmallFlows:
    """Their solutions. A problem that the kernels leave is not solved, and has no pairs.

    Attributes
    ----------
    is_solved : bool array of length B
        True if the problem's flow is proven optimal.
    begins : int64 array of length B + 1
        The pairs of problem k begin at begins[k], and end at begins[k + 1].
    rows, cols, units : int64 arrays
        The pairs with flow, by problem, row and column, and their units.
    paid : float64 array
        What a unit costs, for each pair.
    row_dual, col_dual : float64 arrays of shape (B, N) and (B, M)
        The duals, less the limit for the side with the smaller mass.
    cost : float64 array of shape (2, B)
        The cost in units of mass, as the sum of two floats; the sum is exact for integers.
    gap : float64 array of length B
        The gap in units of mass, rounded up.
    paths, scans : int64 arrays of length B
        Augmenting paths, and entries that were read for them.
    """

    is_solved: np.ndarray
    begins: np.ndarray
    rows: np.ndarray
    cols: np.ndarray
    units: np.ndarray
    paid: np.ndarray
    row_dual: np.ndarray
    col_dual: np.ndarray
    cost: np.ndarray
    gap: np.ndarray
    paths: np.ndarray
    scans: np.ndarray
