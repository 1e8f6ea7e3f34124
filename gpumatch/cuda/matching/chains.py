"""Contract long chains of vertices with two neighbours, and match them: see chains.cu.

A search takes a level for each row of a chain, and one of 100,000 vertices takes 2.3 µs a level.
Pointer jumping takes 2 log2(n) rounds for all chains together, and a search of the contracted graph
has few levels. On graphs whose chains are short it would take longer than the search.

Device memory in addition to the graph: 24 bytes a vertex, 16 more if there are cycles, and 32 for
each entry of a hub, while the graph is contracted; 12 bytes a vertex while chains are matched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import Graph
from gpumatch.cuda import csr, memory
from gpumatch.cuda.kernels import BLOCK, OFFSETS, Kernels, Source, blocks_for, kernels_for

__all__ = ["Census", "Contraction", "contract", "may_pay"]

SOURCE = Source(
    "matching/chains.cu",
    (
        "find_neighbours<{Offset}>",
        "begin_steps",
        "begin_least",
        "jump",
        "jump_to_least",
        "list_chains",
        "list_hubs<{Offset}>",
        "find_direct<{Offset}>",
        "find_winners",
        "match_chains",
    ),
    {"Offset": OFFSETS},
    structs=("Sides<{Offset}>", "Chains", "Mates"),
)

# The least mean of vertices in a chain from which contraction pays. On an H200, paths of 2 million
# vertices in all take 6 ms if they are contracted. The search takes 2.7 for paths of 250 vertices,
# 5.8 for 1,000 and 215 for 100,000, and more if the paths are linked: 36 for a link every 100.
LONG = 512
FEWEST = 2**14  # vertices in chains below which it does not
MOST = 2**28  # vertices whose nodes and distances fit into 32 bits
_LOOK_EVERY = 4  # rounds of jumps
_NEITHER = 2**31 - 1  # in `wins`: above all vertices


class Census(NamedTuple):
    """How many vertices of a graph, or of one of its sides, have one, two, or more entries."""

    leaves: int
    middles: int
    hubs: int

    def may_have_long_chains(self) -> bool:
        """True if chains may be long: a chain has two ends, and a hub ends three or more."""
        in_chains = self.leaves + self.middles
        return in_chains >= FEWEST and 2 * in_chains >= LONG * (self.leaves + 3 * self.hubs)


def may_pay(graph: Graph, census: Census) -> bool:
    """True if chains may be long. `census` counts the sides whose edges the graph has."""
    if not census.may_have_long_chains() or sum(graph.shape) > MOST:
        return False
    if graph.has_rows and graph.has_cols:
        return True
    indices, count = (
        (graph.indices, graph.ncols) if graph.has_rows else (graph.col_indices, graph.nrows)
    )
    degrees = cp.bincount(indices, minlength=count)
    other = [int(are.sum()) for are in (degrees == 1, degrees == 2, degrees > 2)]
    return Census(*map(sum, zip(census, other))).may_have_long_chains()


@dataclass
class _Contracted:
    """A contracted graph, as algorithms of the GPU see it."""

    nrows: int
    ncols: int
    indptr: Any
    indices: Any
    col_indptr: Any
    col_indices: Any
    xp: Any = cp
    has_rows: bool = True
    has_cols: bool = True
    on_device: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        return self.nrows, self.ncols

    @property
    def nnz(self) -> int:
        return int(self.indices.size)


class Contraction:
    """A graph without its chains.

    Attributes
    ----------
    graph : Graph
        The contracted graph, with the same vertices.
    pairs : int
        The pairs that a maximum matching has more than one of the contracted graph.
    """

    graph: Graph
    pairs: int

    def __init__(self, kernels: Kernels, whole: Graph) -> None:
        self._kernels, self._whole = kernels, whole
        nrows, ncols = whole.shape
        self._vertices = nrows + ncols
        self._sides = kernels.struct("Sides")(
            indptr=whole.indptr, indices=whole.indices,
            col_indptr=whole.col_indptr, col_indices=whole.col_indices,
            nrows=nrows, ncols=ncols,
        )  # fmt: skip
        self._counts = cp.zeros(3, np.uint64)
        self._neighbours = cp.empty((self._vertices, 2), np.int32)
        self._by_vertex("find_neighbours<{Offset}>", self._sides, self._neighbours, self._counts)

    @property
    def hub_entries(self) -> int:
        """The entries of all hubs."""
        return int(self._counts[0])

    def make(self, room: int) -> None:
        """Contract the graph. There are at most `room` edges."""
        self._find_places()
        self._list_edges(room)

    def _find_places(self) -> None:
        """Find where each vertex is in its chain."""
        nodes = 2 * self._vertices
        self._steps, self._least = cp.empty((nodes, 2), np.int32), None
        self._by_node("begin_steps", self._neighbours, np.int32(nodes), self._steps)
        most = nodes.bit_length() + 1
        for k in range(1, most + 1):
            if k % _LOOK_EVERY == 0 or k == most:
                self._counts[1:2] = 0
            self._by_node("jump", np.int32(nodes), self._steps, self._counts)
            if k % _LOOK_EVERY == 0 and not int(self._counts[1]):
                break
        if int(self._counts[1]):
            self._least = cp.empty((nodes, 2), np.int32)
            self._by_node("begin_least", self._neighbours, np.int32(nodes), self._least)
            for _ in range(most):
                self._by_node("jump_to_least", np.int32(nodes), self._least)
        nrows, ncols = self._whole.shape
        self._chains = self._kernels.struct("Chains")(
            neighbours=self._neighbours, steps=self._steps, least=self._least,
            nrows=nrows, ncols=ncols,
        )  # fmt: skip

    def _list_edges(self, room: int) -> None:
        """List the edges of the contracted graph, and make it."""
        nrows, ncols = self._whole.shape
        edges, size = cp.empty((max(room, 1), 2), np.int32), cp.zeros(1, np.int32)
        self._by_vertex("list_chains", self._chains, edges, size, self._counts)
        self._by_vertex("list_hubs<{Offset}>", self._sides, self._chains, edges, size)
        rows, cols = edges[: int(size[0])].T
        self.graph = _Contracted(
            nrows, ncols, *csr.from_edges(rows, cols, nrows), *csr.from_edges(cols, rows, ncols)
        )
        self.pairs = int(self._counts[2])

    def match(self, row_to_col: Any, col_to_row: Any) -> tuple[Any, Any]:
        """The mates in the whole graph, from those in the contracted one."""
        nrows = self._whole.shape[0]
        wins = cp.full(nrows, _NEITHER, np.int32)
        found = row_to_col.copy(), col_to_row.copy()
        mates = self._mates(row_to_col, col_to_row)
        self._by_vertex("find_direct<{Offset}>", self._sides, self._chains, mates, wins)
        self._by_vertex("find_winners", self._chains, mates, wins)
        self._by_vertex("match_chains", self._chains, mates, wins, self._mates(*found))
        return found

    def _mates(self, row_to_col: Any, col_to_row: Any) -> Any:
        return self._kernels.struct("Mates")(row_to_col=row_to_col, col_to_row=col_to_row)

    def _by_vertex(self, kernel: str, *arguments: Any) -> None:
        self._kernels[kernel]((blocks_for(self._vertices),), (BLOCK,), arguments)

    def _by_node(self, kernel: str, *arguments: Any) -> None:
        self._kernels[kernel]((blocks_for(2 * self._vertices),), (BLOCK,), arguments)


def contract(graph: Graph) -> Contraction | None:
    """The contraction of a graph; None if its chains turn out not to be long."""
    vertices = sum(graph.shape)
    memory.require_memory(24 * vertices, "contracting chains")
    kernels = kernels_for(SOURCE, Offset=graph.indptr.dtype)
    contraction = Contraction(kernels, graph)
    room = contraction.hub_entries
    if LONG * room > 2 * vertices:
        return None
    contraction.make(room)
    return contraction
