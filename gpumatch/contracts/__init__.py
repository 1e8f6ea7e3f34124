"""The contracts of this library: what an algorithm receives and what it returns.

A matching algorithm, or a start, is a function

    run(task: MatchingTask, **its own options) -> bool

It extends in place the matching in ``task.row_to_col`` and ``task.col_to_row``. Both arrays hold a
matching whenever Python runs. The function returns True if the algorithm has ended by itself. Then
a start's matching is maximal, and a search's matching is maximum. It returns False if the control
has stopped the run.

An algorithm for b-matchings is a function ``run(task: BMatchingTask)`` that does the same with the
marks of edges. It returns the marks of a cover's rows and columns: the capacities of the cover and
the number of edges that it misses add up to the edges taken. It returns None if the control has
stopped the run.

An algorithm for maximum matchings of graphs that need not be bipartite is a function
``run(task: GeneralMatchingTask)`` that does the same with ``task.mate``. When it has ended by
itself, ``task.part`` has the Gallai–Edmonds decomposition, which proves the matching maximum.

An assignment algorithm is a function

    run(task: AssignmentTask, **its own options) -> bool

``task.costs`` is a problem (see `gpumatch.costs`): each of n rows gets one of m >= n columns, at
least total cost. ``task.limit`` is the cost of an unmatched row, or None if every row must be
matched. ``task.solution`` holds the pairs and the duals to begin from, which may be no pairs and
duals of 0. It holds the result at the end, and a matching whenever Python runs.

- Return value: True if the algorithm has ended by itself. Then the assignment is optimal if the
  algorithm is exact. If a row is unmatched although there is no limit, no full assignment exists.
  False if the control has stopped the run.
- Duals at the end: ``row_dual[i] + col_dual[j] <= c_ij``, with equality on matched pairs;
  ``col_dual <= 0``, and 0 for unmatched columns; ``row_dual <= limit``, and equal to the limit for
  unmatched rows.
- ``has_duals``: True if the arrays now satisfy these inequalities, up to one rounding of each row's
  dual. Then no assignment costs less than the sum of the duals. Only the algorithm knows this. The
  attribute is False when an algorithm is called. An algorithm sets it to True after it has written
  the last dual, and to False before it changes any dual, so that it is right wherever the run
  stops. The equalities need not hold: the gap is what they lack.
- ``are_fair``: True if the duals satisfy the inequalities as numbers, without any rounding. It is
  False when an algorithm is called. Where an algorithm leaves it False, the costs are read once
  more (`gpumatch.numeric.fair_duals`).

An algorithm calls ``control.tick`` at least every half second of work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from gpumatch.numeric.arrays import array_module, array_of
from gpumatch.running.kept_memory import kept_full

__all__ = [
    "AssignmentTask",
    "BMatchingTask",
    "Components",
    "Control",
    "Costs",
    "Cover",
    "CsrTools",
    "Entries",
    "GeneralMatchingTask",
    "Graph",
    "MatchingTask",
    "Mates",
    "Points",
    "Rounding",
    "Solution",
    "Stopped",
    "Task",
    "Tile",
]

# The types name NumPy's arrays. Arrays of a device are CuPy's, which have the same methods.
Mates = tuple[np.ndarray, np.ndarray]
"""The column of each row and the row of each column; -1 means unmatched."""
Entries = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]
"""Costs as kernels read them: a matrix, or CSR as (indptr, indices, weights)."""
Tile = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows, columns and costs of pairs, in arrays that broadcast."""


class Points(NamedTuple):
    """Points whose distances are the costs of a problem; `gpumatch.costs.points` has the formulas.

    Attributes
    ----------
    rows, cols : float64 arrays of shape (n, d) and (m, d)
        The points, C-contiguous.
    metric : {"sqeuclidean", "euclidean", "cityblock", "chebyshev"}
    is_half : bool
        True if the distances are halved.
    sign : float
        1, or -1 if distances and offsets are negated.
    row_offset, col_offset : float64 arrays, optional
        What is added to the distances: both, or none.
    """

    rows: Any
    cols: Any
    metric: str
    is_half: bool
    sign: float
    row_offset: Any = None
    col_offset: Any = None


class Rounding(NamedTuple):
    """How far computed costs may be from the exact ones that they stand for.

    The computed cost c of a pair with offsets r and s is wrong by at most
    ``share * (|c| + |r| + |s|) + pair``. Stored costs are exact.

    Attributes
    ----------
    share : float
        The relative part.
    pair : float
        The absolute part.
    added : float
        The sum of the magnitudes of all offsets.
    """

    share: float = 0.0
    pair: float = 0.0
    added: float = 0.0


class Stopped(Exception):
    """Raised inside an algorithm when the control stops the run."""


class Control(Protocol):
    """The line between a running algorithm and the caller: `gpumatch.running.control.Control`."""

    stopped: bool
    seconds: dict[str, float]

    def tick(self, matched: int) -> bool:
        """Report the number of matched rows; True means that the algorithm must stop now."""

    def phase(self, *, found: int, matched: int, levels: int = 0, **more: Any) -> None:
        """Record a finished phase."""

    def part(self, name: str) -> AbstractContextManager[None]:
        """Add the time spent inside to ``seconds[name]``."""


class Graph(Protocol):
    """A bipartite graph in CSR, in both directions; see `gpumatch.bipartite`."""

    nrows: int
    ncols: int

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def indptr(self) -> Any: ...
    @property
    def indices(self) -> Any: ...
    @property
    def col_indptr(self) -> Any: ...
    @property
    def col_indices(self) -> Any: ...
    @property
    def has_rows(self) -> bool: ...
    @property
    def has_cols(self) -> bool: ...
    @property
    def on_device(self) -> bool: ...
    @property
    def xp(self) -> Any: ...


class CsrTools(Protocol):
    """Functions that sort and transpose CSR arrays: a module of `cpu` or of `cuda`."""

    def is_canonical(self, indptr: Any, indices: Any) -> bool: ...
    def canonical(self, indptr: Any, indices: Any, nrows: int) -> tuple[Any, Any]: ...
    def from_edges(self, rows: Any, cols: Any, nrows: int) -> tuple[Any, Any]: ...
    def transpose(self, indptr: Any, indices: Any, ncols: int) -> tuple[Any, Any]: ...
    def owners(self, indptr: Any, indices: Any) -> Any: ...
    def greatest(self, vertices: Any, values: Any, count: int) -> Any: ...


class Cover(Protocol):
    """Finds the vertex cover of a maximum matching, as a mark for each row and each column."""

    def __call__(self, graph: Graph, row_to_col: Any, col_to_row: Any) -> tuple[Any, Any]: ...


class Components(Protocol):
    """Finds the strong components of a matched pattern.

    It returns the component of each row in `inside`, with -1 for all other rows, and the number of
    components. Let i and k be rows in `inside`, with an entry of row i in the column matched to k.
    Then the component of k is that of i or a later one.
    """

    def __call__(self, graph: Graph, col_to_row: Any, inside: Any) -> tuple[Any, int]: ...


class Costs(Protocol):
    """The costs of a problem; `gpumatch.costs.base.Costs` documents each member."""

    largest: float
    low: float
    high: float
    rounding: Rounding

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def unfolding_bytes(self) -> int: ...
    @property
    def far(self) -> Any: ...
    @property
    def has_matrix(self) -> bool: ...
    @property
    def is_sparse(self) -> bool: ...
    @property
    def on_device(self) -> bool: ...
    @property
    def xp(self) -> Any: ...
    @property
    def is_integer(self) -> bool: ...
    @property
    def is_complete(self) -> bool: ...
    @property
    def points(self) -> Points | None: ...
    @property
    def device_function(self) -> Any: ...
    @property
    def is_computed(self) -> bool: ...
    def stored(self) -> Costs: ...
    def readable(self) -> Costs: ...
    def near(self, limit: float, rows: Any, cols: Any) -> tuple[Any, Any] | None: ...
    def of_points(self, points: Points) -> Costs: ...
    def tiles(self) -> Iterator[slice]: ...
    def tile(self, rows: slice) -> Tile: ...
    def dense(self, out: Any = None) -> Any: ...
    def entries(self) -> Entries: ...
    def of_pairs(self, indptr: Any, indices: Any, weights: Any) -> Costs: ...
    def pattern(self) -> Graph: ...
    def restricted(self, rows: Any, cols: Any) -> Costs: ...
    def transpose(self) -> Costs: ...
    def to_host(self) -> Costs: ...
    def to_device(self) -> Costs: ...
    def as_float(self) -> Costs: ...
    def at(self, rows: Any, cols: Any) -> Any: ...
    def allows(self, rows: Any, cols: Any) -> Any: ...
    def of_mates(self, row_to_col: Any, threads: int = 1) -> Any: ...


@dataclasses.dataclass
class Solution:
    """The arrays of an assignment during a run, on the device of its costs.

    Attributes
    ----------
    row_to_col, col_to_row : int32 arrays
        The column of each row and the row of each column; -1 means unmatched.
    row_dual, col_dual : int64 or float64 arrays
        The duals: int64 if costs and limit are integers.
    has_duals : bool
        True if the duals are feasible now, so that their sum bounds the cost of any assignment.
    are_fair : bool
        True if that holds as numbers: no rounding has left a dual of floats too large.
    cover : pair of int arrays, optional
        The rows and the columns of a vertex cover with as many vertices as there are pairs.
    """

    row_to_col: Any
    col_to_row: Any
    row_dual: Any
    col_dual: Any
    has_duals: bool = False
    cover: tuple[Any, Any] | None = None
    are_fair: bool = False

    @classmethod
    def empty(cls, shape: tuple[int, int], *, is_integer: bool, xp: Any = np) -> Solution:
        """A solution without pairs and with duals of 0, in arrays of `xp`: NumPy or CuPy."""
        number = np.int64 if is_integer else np.float64
        full = kept_full if xp is np else xp.full
        nrows, ncols = shape
        return cls(
            full(nrows, -1, np.int32),
            full(ncols, -1, np.int32),
            full(nrows, 0, number),
            full(ncols, 0, number),
        )

    @property
    def xp(self) -> Any:
        """The library of the arrays: NumPy or CuPy."""
        return array_module(self.row_to_col)

    @property
    def mates(self) -> tuple[Any, Any]:
        return self.row_to_col, self.col_to_row

    @property
    def duals(self) -> tuple[Any, Any]:
        return self.row_dual, self.col_dual

    def copy(self) -> Solution:
        return Solution(
            self.row_to_col.copy(),
            self.col_to_row.copy(),
            self.row_dual.copy(),
            self.col_dual.copy(),
            self.has_duals,
            self.cover,
            self.are_fair,
        )

    def to_host(self) -> Solution:
        """The solution in NumPy arrays. It shares the arrays that are NumPy's already."""
        return Solution(
            array_of(np, self.row_to_col),
            array_of(np, self.col_to_row),
            array_of(np, self.row_dual),
            array_of(np, self.col_dual),
            self.has_duals,
            self.cover,
            self.are_fair,
        )

    def clear(self) -> None:
        """Remove all pairs, and set all duals to 0."""
        self.has_duals = self.are_fair = False
        self.row_to_col[:] = self.col_to_row[:] = -1
        self.row_dual[:] = self.col_dual[:] = 0

    def assign_from(self, other: Solution) -> None:
        """Copy the pairs and duals of another solution of equal shape, from host or device."""
        self.has_duals = self.are_fair = False
        for target, source in zip((*self.mates, *self.duals), (*other.mates, *other.duals)):
            target[:] = array_of(self.xp, source)
        self.has_duals, self.are_fair = other.has_duals, other.are_fair

    def transpose(self) -> Solution:
        """The solution of the transposed problem. It shares the arrays."""
        cover = None if self.cover is None else self.cover[::-1]
        return Solution(*self.mates[::-1], *self.duals[::-1], self.has_duals, cover, self.are_fair)


@dataclasses.dataclass
class MatchingTask:
    """A matching to extend, with the caller's arguments for the run.

    Attributes
    ----------
    graph : Graph
        It is on the host for an algorithm of the CPU, on the device for one of the GPU.
    row_to_col, col_to_row : int32 arrays
        The matching to extend, on the graph's device; -1 means unmatched.
    control : Control
    threads : int
        The number of CPU threads.
    seed : int
        The seed of all random choices.
    """

    graph: Graph
    row_to_col: Any
    col_to_row: Any
    control: Control
    threads: int = 1
    seed: int = 0

    @property
    def mates(self) -> tuple[Any, Any]:
        return self.row_to_col, self.col_to_row


@dataclasses.dataclass(frozen=True)
class BMatchingTask:
    """A b-matching to extend: edges, of which each vertex is in no more than its capacity.

    Attributes
    ----------
    graph : Graph
    is_taken : bool array of length nnz
        The b-matching to extend: a mark for each edge, in the order of ``graph.indices``.
    row_room, col_room : int64 arrays of length nrows, ncols
        How many more edges each vertex may be in. They change with `is_taken`.
    control : Control
    """

    graph: Graph
    is_taken: Any
    row_room: Any
    col_room: Any
    control: Control


@dataclasses.dataclass(frozen=True)
class GeneralMatchingTask:
    """A matching of an undirected graph to extend, with the caller's arguments for the run.

    Attributes
    ----------
    indptr, indices : int arrays
        The neighbours of each vertex in CSR, sorted; each edge is there from both ends, and no
        vertex is its own neighbour. On the host.
    mate : int32 array
        The matching to extend: the mate of each vertex, -1 means unmatched.
    part : int8 array
        Written at the end: the part of the Gallai–Edmonds decomposition that each vertex is in,
        `OUTER` for D, `INNER` for A and `PERFECT` for C. One unmatched vertex may be left as
        `PERFECT`: then a search from it alone writes the parts that are missing.
    solve_cover : callable
        An algorithm for matchings of bipartite graphs on the host, for the graph's double cover.
    control : Control
        Its ticks and phases count matched edges.
    threads, seed : int
        As in `MatchingTask`.
    fallback : callable, optional
        Of a task whose arrays are on a device: the search of the host for what the device leaves.
        It gets the same task with its arrays on the host, and parts of the vertices that it needs
        not look at.
    """

    indptr: Any
    indices: Any
    mate: Any
    part: Any
    solve_cover: Callable[[MatchingTask], bool]
    control: Control
    threads: int = 1
    seed: int = 0
    fallback: Callable[[GeneralMatchingTask], bool] | None = None

    PERFECT: ClassVar[int] = 0
    OUTER: ClassVar[int] = 1
    INNER: ClassVar[int] = 2

    @property
    def is_decomposed(self) -> bool:
        """True if the parts of all vertices are known, once the matching is maximum."""
        return not bool(((self.mate < 0) & (self.part == self.PERFECT)).any())


@dataclasses.dataclass
class AssignmentTask:
    """An assignment problem, the solution to change, and the caller's arguments for the run.

    Attributes
    ----------
    costs : Costs
        The costs to minimise, with no more rows than columns. They are on the host for an algorithm
        of the CPU, on the device for one of the GPU.
    solution : Solution
        The pairs and duals to begin from, and the result at the end, on the device of the costs.
    control : Control
    limit : int or float, optional
        The cost of an unmatched row; None if every row must be matched.
    threads, seed : int
        As in `MatchingTask`.
    fallback : callable, optional
        An algorithm of the CPU that finishes the task if the device has too little memory for the
        chosen algorithm. The front door sets it if the registry names one.
    is_fresh : bool
        True if the caller gave no initial assignment, and no team of threads has given up.
    may_be_infeasible : bool
        True if a full assignment may not exist and the algorithm must detect that early. The front
        door sets it only for algorithms with `detects_infeasible` in the registry.
    """

    costs: Costs
    solution: Solution
    control: Control
    limit: float | None = None
    threads: int = 1
    seed: int = 0
    fallback: Callable[[AssignmentTask], bool] | None = None
    is_fresh: bool = False
    may_be_infeasible: bool = False

    @property
    def mates(self) -> tuple[Any, Any]:
        return self.solution.mates

    @property
    def duals(self) -> tuple[Any, Any]:
        return self.solution.duals

    def with_costs(self, costs: Costs) -> AssignmentTask:
        """A copy of the task with its costs in another form. It shares the solution."""
        return dataclasses.replace(self, costs=costs)

    def run_on_host(self, run: Callable[[AssignmentTask], bool]) -> bool:
        """Continue the task with an algorithm of the CPU, on copies, and return its result."""
        solution = self.solution.to_host()
        try:
            return run(dataclasses.replace(self, costs=self.costs.to_host(), solution=solution))
        finally:
            self.solution.assign_from(solution)

    def matching(self, graph: Graph, row_to_col: Any, col_to_row: Any) -> MatchingTask:
        """A task that extends a matching of the pairs in `graph`, whatever they cost."""
        return MatchingTask(graph, row_to_col, col_to_row, self.control, self.threads, self.seed)


Task = TypeVar("Task", MatchingTask, AssignmentTask)
"""The task of a matching algorithm or of an assignment algorithm."""
