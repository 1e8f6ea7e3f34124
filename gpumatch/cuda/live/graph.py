"""A maximum matching that is kept on a device while edges come and go: the host's side.

It has the methods of `gpumatch.cpu.live.graph.LiveGraph`. Changes come in batches: lists.cu makes
all of one side at once, in the order of its vertices; trees.cu finds the paths.

Device memory: 4 bytes an edge on each side, with room for more, and 52 bytes a vertex.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Graph
from gpumatch.cuda import memory
from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board, Cooperative

__all__ = ["LiveGraph", "distinct_rows"]

LISTS = Source(
    "live/lists.cu",
    ("find_edges", "reserve", "append", "remove_edges", "part_pairs", "number_edges"),
    structs=("Lists",),
)
TREES = Source(
    "live/trees.cu",
    ("grow_trees",),
    structs=("Lists", "Side", "Meet", "State", "Trees"),
    cooperative=True,
)
_BLOCK = TREES.constant("kBlock")
_LANES = 32  # of a warp, which has an edge or a vertex
LEVELS_A_LAUNCH = 1024
"""The host looks in between: Ctrl-C."""


def distinct_rows(indptr: Any, indices: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """CSR without duplicates, each row's columns in order."""
    numbers = Lists(indptr, indices).numbers(shape[1])
    return _csr_of(cp.unique(numbers), shape)


def _csr_of(numbers: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """CSR of edges that are numbered row * columns + column, in order."""
    first = cp.arange(shape[0] + 1, dtype=np.int64) * max(shape[1], 1)
    indptr = cp.searchsorted(numbers, first).astype(np.int64)
    return indptr, (numbers % max(shape[1], 1)).astype(np.int32)


class Lists:
    """The lists of neighbours of one side."""

    def __init__(self, indptr: Any, indices: Any) -> None:
        self.start = indptr[:-1].astype(np.int64)
        self.length = cp.diff(indptr).astype(np.int32)
        self.room = self.length.copy()
        used = int(indices.size)
        self.pool = cp.empty(used + used // 8 + 64, np.int32)
        self.pool[:used] = indices
        self.end = cp.array([used], np.uint64)

    @property
    def members(self) -> dict[str, Any]:
        """Those of the struct of lists.cuh."""
        return {
            "start": self.start,
            "length": self.length,
            "room": self.room,
            "pool": self.pool,
            "end": self.end,
        }

    def find(self, vertices: Any, others: Any) -> Any:
        """Which of these pairs are edges."""
        found = cp.empty(vertices.size, np.bool_)
        self._launch("find_edges", vertices, others, found)
        return found

    def append(self, vertices: Any, others: Any) -> None:
        """Add edges that are not there; the vertices are in order."""
        places = cp.empty(vertices.size, np.int64)
        kernels = kernels_for(LISTS)
        count = np.int32(vertices.size)
        used = int(self.end[0])
        kernels["reserve"](
            (blocks_for(vertices.size),),
            (BLOCK,),
            (
                *(kernels.struct("Lists")(**self.members), vertices, count),  # IN
                places,  # OUT
            ),
        )
        self._make_room(used)
        self._launch("append", vertices, others, places)

    def remove(self, vertices: Any, others: Any) -> None:
        """Remove edges that are there; the vertices are in order."""
        self._launch("remove_edges", vertices, others)

    def _launch(self, name: str, vertices: Any, others: Any, *more: Any) -> None:
        kernels = kernels_for(LISTS)
        kernels[name](
            (blocks_for(_LANES * vertices.size),),
            (BLOCK,),
            (
                kernels.struct("Lists")(**self.members),  # IN, OUT
                *(vertices, others, np.int32(vertices.size), *more),  # IN; places found are OUT
            ),
        )

    def _make_room(self, used: int) -> None:
        """Make the pool as long as has been reserved, and by a half longer."""
        needed = int(self.end[0])
        if needed <= self.pool.size:
            return
        memory.require_memory(6 * needed, "the lists of a session")
        pool = cp.empty(needed + needed // 2, np.int32)
        pool[:used] = self.pool[:used]
        self.pool = pool

    def numbers(self, others: int) -> Any:
        """The edges as numbers, vertex * others + neighbour, in the order of the vertices."""
        indptr = cp.zeros(self.length.size + 1, np.int64)
        indptr[1:] = cp.cumsum(self.length, dtype=np.int64)
        numbers = cp.empty(int(indptr[-1]), np.int64)
        kernels = kernels_for(LISTS)
        kernels["number_edges"](
            (blocks_for(_LANES * self.length.size),),
            (BLOCK,),
            (
                kernels.struct("Lists")(**self.members),  # IN
                *(np.int32(self.length.size), np.int64(max(others, 1)), indptr),
                numbers,  # OUT
            ),
        )
        return numbers


class LiveGraph:
    """A bipartite graph and a matching of it.

    Parameters
    ----------
    graph : Graph
        Without duplicates (`distinct_rows`).
    mates : pair of int32 arrays
        A matching.
    """

    backend = "cuda"

    def __init__(self, graph: Graph, mates: tuple[Any, Any]) -> None:
        self.row_to_col, self.col_to_row = mates
        shape = self.shape
        memory.require_memory(52 * sum(shape) + 10 * int(graph.indices.size), "a session")
        self.rows = Lists(graph.indptr, graph.indices)
        self.cols = Lists(graph.col_indptr, graph.col_indices)
        # Of forward trees and of backward ones: near_tree, far_tree, before, taken, queue.
        self.trees = [
            tuple(memory.unmatched(size) for size in (near, far, far, near, near + far))
            for near, far in (shape, shape[::-1])
        ]
        self.base = self.free = 0  # the trees of the last phase have numbers from base to free
        self.last_ended: int | None = None  # the kind of trees

    @property
    def shape(self) -> tuple[int, int]:
        return self.row_to_col.size, self.col_to_row.size

    def csr(self) -> tuple[Any, Any]:
        """The graph in CSR, each row's columns in order."""
        return _csr_of(cp.sort(self.rows.numbers(self.shape[1])), self.shape)

    def has_edges(self, rows: Any, cols: Any) -> Any:
        """Which of these pairs are edges."""
        return self.rows.find(rows, cols)

    def add_edges(self, rows: Any, cols: Any) -> None:
        """Add edges; those that are there already stay."""
        numbers = self._distinct(rows, cols)
        rows, cols = self._ends(numbers)
        numbers = numbers[~self.rows.find(rows, cols)]
        if numbers.size:
            self.rows.append(*self._ends(numbers))
            self.cols.append(*self._turned_ends(numbers))

    def remove_edges(self, rows: Any, cols: Any) -> int:
        """Remove edges that are there; return how many were of the matching."""
        numbers = self._distinct(rows, cols)
        if not numbers.size:
            return 0
        rows, cols = self._ends(numbers)
        parted = cp.zeros(1, np.int32)
        kernels_for(LISTS)["part_pairs"](
            (blocks_for(numbers.size),),
            (BLOCK,),
            (
                *(rows, cols, np.int32(numbers.size)),  # IN
                *(self.row_to_col, self.col_to_row, parted),  # IN, OUT
            ),
        )
        self.rows.remove(rows, cols)
        self.cols.remove(*self._turned_ends(numbers))
        return int(parted[0])

    def _distinct(self, rows: Any, cols: Any) -> Any:
        return cp.unique(rows.astype(np.int64) * max(self.shape[1], 1) + cols)

    def _ends(self, numbers: Any) -> tuple[Any, Any]:
        """Rows, in order, and columns."""
        ncols = max(self.shape[1], 1)
        return (numbers // ncols).astype(np.int32), (numbers % ncols).astype(np.int32)

    def _turned_ends(self, numbers: Any) -> tuple[Any, Any]:
        """Columns, in order, and rows."""
        turned = cp.sort(_turned(numbers, *self.shape))
        nrows = max(self.shape[0], 1)
        return (turned // nrows).astype(np.int32), (turned % nrows).astype(np.int32)

    def solve(self) -> dict[str, int]:
        """Make the matching maximum; how many paths, phases and levels it took."""
        stats = {"found": 0, "phases": 0, "levels": 0}
        self.last_ended = None
        while True:
            seen = self._phase()
            if not (seen["roots"][0] and seen["roots"][1]):
                return stats
            stats["found"] += int(seen["found"])
            stats["phases"] += 1
            stats["levels"] += int(seen["level"])
            if not seen["found"]:
                self.last_ended = int(seen["next"][0] < seen["last"][0])
                return stats

    def _phase(self) -> Any:
        """Grow trees until one kind has ended; the `State` of trees.cu then."""
        if self.free + max(self.shape) >= 2**31:
            for near_tree, far_tree, *_ in self.trees:
                memory.set_unmatched(near_tree)
                memory.set_unmatched(far_tree)
            self.free = 0
        self.base = self.free
        kernels = kernels_for(TREES)
        board = Board(kernels.struct("State"))
        described = self._described(kernels, board)
        grow = Cooperative(kernels, "grow_trees", block=_BLOCK, most=-(-max(self.shape) // _BLOCK))
        is_new = True
        while is_new or not board.seen["has_ended"]:
            grow(
                described,  # IN, OUT
                *(np.int32(is_new), np.int32(LEVELS_A_LAUNCH)),  # IN
            )
            board.look()
            is_new = False
        self.free = self.base + int(max(board.seen["roots"]))
        return board.seen

    def _described(self, kernels: Any, board: Board) -> Any:
        """The struct of trees.cu."""
        mates = self.row_to_col, self.col_to_row
        sides = []
        for lists, mate, trees in zip((self.rows, self.cols), mates, self.trees):
            near_tree, far_tree, before, taken, queue = trees
            sides.append({
                "lists": lists.members,
                "count": mate.size,
                "mate": mate,
                "near_tree": near_tree,
                "far_tree": far_tree,
                "before": before,
                "taken": taken,
                "queue": queue,
            })  # fmt: skip
        self._meets = cp.empty(2 * min(self.shape) + 2, np.int32)
        return kernels.struct("Trees")(
            forward=sides[0],
            backward=sides[1],
            meets=self._meets,
            state=board.state,
            barrier=board.barrier,
            base=self.base,
        )

    def cover(self) -> tuple[Any, Any]:
        """Marks of the rows and columns of a minimum vertex cover, after `solve`."""
        if self.last_ended is None:
            rows_are_in = bool((self.row_to_col >= 0).all())
            nrows, ncols = self.shape
            return cp.full(nrows, rows_are_in), cp.full(ncols, not rows_are_in)
        near, far = (tree >= self.base for tree in self.trees[self.last_ended][:2])
        if self.last_ended == 0:  # from the unmatched rows
            return ~near, far
        return far, ~near


def _turned(numbers: Any, nrows: int, ncols: int) -> Any:
    """Edges that are numbered by rows, numbered by columns."""
    return numbers % max(ncols, 1) * max(nrows, 1) + numbers // max(ncols, 1)
