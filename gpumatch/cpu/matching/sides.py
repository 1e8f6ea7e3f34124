"""The two sides of a bipartite graph, as the searches on the CPU see them.

A search grows alternating trees from the unmatched vertices of one side, the *near* one. It needs
the edges of the near side only, and the mates of both:

    indptr, indices   CSR from near vertices to far vertices
    mate[u]           far vertex matched to near u, -1 when u is unmatched
    far_mate[v]       near vertex matched to far v, -1 when v is unmatched

Kernels stop after about BUDGET edges and go on when they are called again, so that Python can look
at the clock. Their state between calls is in arrays, and the mates are then a valid matching.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpumatch.contracts import Graph

__all__ = ["BUDGET", "Side", "blocks", "free_vertices", "larger_side", "smaller_side"]

BUDGET = 2**22
"""Edges a kernel visits before it returns: under half a second even if each is a cache miss."""


class Side(NamedTuple):
    """The near side of a search; see the module."""

    indptr: np.ndarray
    indices: np.ndarray
    mate: np.ndarray
    far_mate: np.ndarray


def smaller_side(graph: Graph, row_to_col: np.ndarray, col_to_row: np.ndarray) -> Side:
    """Return the side with fewer vertices, and so fewer unmatched ones, as near; rows on a tie."""
    if graph.nrows <= graph.ncols:
        return Side(graph.indptr, graph.indices, row_to_col, col_to_row)
    return Side(graph.col_indptr, graph.col_indices, col_to_row, row_to_col)


def larger_side(graph: Graph, row_to_col: np.ndarray, col_to_row: np.ndarray) -> Side:
    """Return the side that ``smaller_side`` does not return."""
    if graph.nrows <= graph.ncols:
        return Side(graph.col_indptr, graph.col_indices, col_to_row, row_to_col)
    return Side(graph.indptr, graph.indices, row_to_col, col_to_row)


def free_vertices(side: Side) -> np.ndarray:
    """Return the unmatched near vertices that have an edge, ascending (int32)."""
    return np.flatnonzero((side.mate < 0) & (np.diff(side.indptr) > 0)).astype(np.int32)


def blocks(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Cut the vertices into ranges ``first, last`` of about BUDGET edges and vertices each."""
    first, count = 0, len(indptr) - 1
    edges = int(indptr[-1])
    while first < count:
        end = indptr.dtype.type(min(int(indptr[first]) + BUDGET, edges))  # else NumPy casts indptr
        last = int(np.searchsorted(indptr, end, side="right")) - 1
        last = min(max(last, first + 1), first + BUDGET, count)
        yield first, last
        first = last
