"""The double cover of a graph on the device: the host's side of double_cover.cu.

Device memory in addition to both mates of the cover: 56 bytes a vertex.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.cuda import memory
from gpumatch.cuda.kernels import BLOCK, OFFSETS, Source, blocks_for, kernels_for

__all__ = ["DoubleCover", "Rounded", "paired", "rounded", "take_parts"]

SOURCE = Source(
    "general/double_cover.cu",
    (
        *("take_pairs", "begin_links", "double_links", "take_turns", "name_cycles"),
        *("join_cycles<{Offset}>", "turn_cycles", "take_parts"),
    ),
    {"Offset": OFFSETS},
    structs=("Link", "Cover"),
)


class DoubleCover:
    """The double cover as a bipartite graph: its rows' lists and its columns' are the graph's."""

    has_rows = has_cols = on_device = True
    xp = cp

    def __init__(self, indptr: Any, indices: Any) -> None:
        self.indptr = self.col_indptr = indptr
        self.indices = self.col_indices = indices
        self.nrows = self.ncols = int(indptr.size) - 1

    @property
    def shape(self) -> tuple[int, int]:
        return self.nrows, self.ncols

    @property
    def nnz(self) -> int:
        return int(self.indices.size)


class Rounded(NamedTuple):
    """A matching, the number of odd cycles, and of those that leave a vertex unmatched."""

    mate: Any
    odd_cycles: int
    unmatched_cycles: int


class _Turns:
    """The matching that the paths and cycles of the cover's pairs give, and where they lie."""

    def __init__(self, double: DoubleCover, after: Any, before: Any) -> None:
        count = after.size
        memory.require_memory(56 * count, "the double cover")
        self._double, self._after, self._before = double, after, before
        self._kernels = kernels = kernels_for(SOURCE, Offset=double.indptr.dtype)
        self.mate, open_vertices = cp.empty(count, cp.int32), cp.empty(1 + count, cp.int32)
        open_vertices[:1].data.memset_async(0, 4)
        listed = open_vertices[1:]
        cover = kernels.struct("Cover")(
            count=count,  # IN
            after=after,
            before=before,
            mate=self.mate,  # OUT
            open={"items": listed, "size": open_vertices},
        )
        kernels["take_pairs"]((blocks_for(count),), (BLOCK,), (cover,))
        length = int(open_vertices[0])
        self._vertices = listed, np.int32(length)
        self._counts = cp.zeros(2, cp.int32)
        self.is_open = length > 0
        if not self.is_open:
            return
        self._grid = (blocks_for(length),), (BLOCK,)
        self._links = _numbered(kernels, listed, length, before)
        self._lengths = cp.zeros(count, cp.int32)
        kernels["take_turns"](
            *self._grid,
            (
                *(*self._vertices, after, before, self._links),  # IN
                *(self.mate, self._lengths, self._counts),  # IN, OUT
            ),
        )

    def join_cycles(self) -> None:
        """Let odd cycles that neighbour each other leave no vertex."""
        count, kernels, double = self.mate.size, self._kernels, self._double
        cycle_of, joints = memory.unmatched(count), memory.unmatched(count)
        kernels["name_cycles"](
            *self._grid,
            (
                *(*self._vertices, self._links, self._lengths),  # IN
                cycle_of,  # IN, OUT
            ),
        )
        kernels["join_cycles<{Offset}>"](
            *self._grid,
            (
                *(*self._vertices, double.indptr, double.indices, cycle_of),  # IN
                *(joints, self.mate, self._counts[1:]),  # IN, OUT
            ),
        )
        kernels["turn_cycles"](
            *self._grid,
            (
                *(*self._vertices, self._after, self._before, self._links),  # IN
                *(self._lengths, cycle_of, joints),  # IN
                self.mate,  # IN, OUT
            ),
        )

    def result(self) -> Rounded:
        odd_cycles, joined = self._counts.tolist()
        return Rounded(self.mate, odd_cycles, odd_cycles - joined)


def rounded(double: DoubleCover, after: Any, before: Any) -> Rounded:
    """A matching by edges of the graph, most of them pairs of the cover."""
    turns = _Turns(double, after, before)
    if turns.is_open:
        turns.join_cycles()
    return turns.result()


def paired(double: DoubleCover, after: Any, before: Any) -> Rounded:
    """A matching by pairs of the cover alone."""
    return _Turns(double, after, before).result()


def _numbered(kernels: Any, listed: Any, length: int, before: Any) -> Any:
    """The links of the listed vertices: their steps are their numbers along paths and cycles."""
    grid = (blocks_for(length),), (BLOCK,)
    room = before.size * kernels.struct("Link").nbytes
    links: Any = np.uintp(0)  # none before the first pass
    for _ in range(2):
        begun, doubled = cp.empty(room, cp.uint8), cp.empty(room, cp.uint8)
        kernels["begin_links"](
            *grid,
            (
                *(listed, np.int32(length), before, links),  # IN
                begun,  # OUT
            ),
        )
        for _ in range((length - 1).bit_length()):
            kernels["double_links"](
                *grid,
                (
                    *(listed, np.int32(length), begun),  # IN
                    doubled,  # OUT
                ),
            )
            begun, doubled = doubled, begun
        links = begun
    return links


def take_parts(
    double: DoubleCover, outside: Any, is_inner: Any, part: Any, outer: int, inner: int
) -> None:
    """Write the parts of the decomposition that the cover of the double cover gives."""
    kernels_for(SOURCE, Offset=double.indptr.dtype)["take_parts"](
        (blocks_for(part.size),),
        (BLOCK,),
        (
            *(np.int32(part.size), outside, is_inner),  # IN
            part,  # OUT
            *(np.int8(outer), np.int8(inner)),  # IN
        ),
    )
