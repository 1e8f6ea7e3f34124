"""Strong components of a matched pattern on the device, in topological order.

A matched row and its column are one vertex, named by the row. An entry of row u in the column of
row w is an arc from u to w. The components are numbered so that arcs lead from a component to the
same or a later one.

The search is ECL-SCC's. Each vertex finds the greatest vertex that leads to it, its ancestor, and
the greatest that it leads to, its descendant. Arcs pass both on, and so do the vertices that stand
for them, which makes a path of any length short. If ancestor and descendant are the same vertex,
that is the greatest of the component. Vertices of one component agree in both. So all arcs between
vertices that don't agree are left out, and the next round has the vertices whose component is not
found yet. Usually they are few.

The order is ours. Along an arc neither the ancestor falls nor the descendant rises. So sorted by
ancestors, and by falling descendants where these agree, vertices come in topological order.
Vertices that agree in both are a group, which keeps its place in the order, and the next round
sorts each group in itself. Depth costs nothing: not even a path of all rows takes long.

Device memory in addition to the graph: 92 bytes a row and 24 an entry.

Reference: Alabandi, Sands, Biros, Burtscher, *A GPU algorithm for detecting strongly connected
components*, SC 2023.
"""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.contracts import Graph
from gpumatch.cuda import csr, memory
from gpumatch.cuda.kernels import OFFSETS, Source, kernels_for
from gpumatch.cuda.launches import Board, Cooperative

__all__ = ["strong_components"]

_BEGIN = "begin<{Offset}>"
SOURCE = Source(
    "components.cu",
    (_BEGIN, "find_reach", "regroup", "number_components"),
    {"Offset": OFFSETS},
    structs=("RoundState", "Digraph", "Search"),
    cooperative=True,
)

_BLOCK = 512
_SWEEPS_A_LAUNCH = 64  # the host looks in between, for Ctrl-C
_MOST_ENTRIES = 2**31 - 1
_BYTES_A_ROW, _BYTES_AN_ENTRY = 92, 24


def strong_components(
    graph: Graph, col_to_row: cp.ndarray, inside: cp.ndarray
) -> tuple[cp.ndarray, int]:
    """The component of each row inside, -1 for the others, and how many there are.

    ``col_to_row[j]`` is the row matched to column j. It may be -1 only where no row inside has an
    entry. Rows and columns of one matched pair are inside or outside together.

    Raises
    ------
    ValueError
        If there are 2**31 entries or more.
    MemoryError
        If the device has too little memory.
    """
    if graph.nnz > _MOST_ENTRIES:
        raise ValueError(
            f"strong components on 'cuda' take at most {_MOST_ENTRIES} entries; got {graph.nnz}"
        )
    if graph.nrows == 0:
        return cp.empty(0, np.int32), 0
    needed = _BYTES_A_ROW * graph.nrows + _BYTES_AN_ENTRY * graph.nnz
    memory.require_memory(needed, "the search for strong components")
    search = _Search(graph, col_to_row, inside)
    is_over = False
    while not is_over:
        search.find_reach()
        is_over = search.regroup()
    return search.numbered()


class _Search:
    """The rounds of a search, on the device."""

    def __init__(self, graph: Graph, col_to_row: cp.ndarray, inside: cp.ndarray) -> None:
        nrows = graph.nrows
        kernels = kernels_for(SOURCE, Offset=graph.indptr.dtype)
        self._launches = {name: Cooperative(kernels, name, block=_BLOCK) for name in SOURCE.kernels}
        self._board = Board(kernels.struct("RoundState"))
        self._inside = inside
        self._keys = cp.empty(nrows, np.int64)
        self._component = cp.empty(nrows, np.int32)
        blocks = max(launch.blocks for launch in self._launches.values())
        self._held = {
            "reach": cp.empty(2 * nrows, np.int32),
            "items": cp.empty(nrows, np.int32),
            "keys": self._keys,
            "number_of": cp.empty(nrows, np.int32),
            "component": self._component,
            "row_at": cp.full(nrows, -1, np.int32),
            "counts": cp.empty(blocks, np.int32),
        }
        self._search = kernels.struct("Search")(
            state=self._board.state, barrier=self._board.barrier, **self._held
        )
        self._parts = [_vertices_and_arcs(nrows, graph.nnz) for _ in range(2)]
        self._now, self._next = (kernels.struct("Digraph")(**parts) for parts in self._parts)
        self._launches[_BEGIN](
            *(csr.owners(graph.indptr, graph.indices), graph.indices, col_to_row),  # IN
            *(inside, np.int32(nrows), graph.indptr.dtype.type(graph.nnz)),  # IN
            *(self._search, self._now),  # OUT
        )

    def find_reach(self) -> None:
        """Find what the round's vertices reach, and are reached from."""
        self._board.seen["is_known"] = False
        while not self._board.seen["is_known"]:
            self._launches["find_reach"](
                *(self._search, self._now),  # IN, OUT
                np.int32(_SWEEPS_A_LAUNCH),  # IN
            )
            self._board.look()

    def regroup(self) -> bool:
        """Give the components that were found their places; True if these are all.

        Otherwise the others' vertices make the next round.
        """
        keys = self._keys[: int(self._board.seen["items"])]
        order = cp.argsort(keys)
        self._launches["regroup"](
            *(keys[order], order),  # IN
            *(self._search, self._now),  # IN
            self._next,  # OUT
        )
        self._now, self._next = self._next, self._now
        return int(self._board.seen["unresolved"]) == 0

    def numbered(self) -> tuple[cp.ndarray, int]:
        """The component of each row, and how many there are."""
        nrows = np.int32(self._component.size)
        self._launches["number_components"](
            *(self._inside, nrows),  # IN
            self._search,  # IN, OUT
        )
        self._board.look()
        return self._component, int(self._board.seen["components"])


def _vertices_and_arcs(nrows: int, nnz: int) -> dict[str, cp.ndarray]:
    """Room for a round."""
    rows = ("row_of", "first", "place")
    return {name: cp.empty(nrows, np.int32) for name in rows} | {
        "arcs": cp.empty(2 * max(nnz, 1), np.int32)
    }
