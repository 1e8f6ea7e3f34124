"""Orders of rows and columns that the forms here are made with."""

from __future__ import annotations

from typing import Any

from gpumatch.bipartite import BipartiteGraph
from gpumatch.dispatch.by_device import csr_for
from gpumatch.numeric.arrays import array_module
from gpumatch.results.pairs import Pairs

__all__ = ["by_block", "check_square", "diagonal_permutations", "moved_to"]


def by_block(block: Any, count: int, xp: Any) -> tuple[Any, Any]:
    """Sort vertices by their block, keeping their order within it.

    Parameters
    ----------
    block : int32 array
        The block of each vertex, in [0, count).

    Returns
    -------
    order, starts : int32 arrays
        ``order[starts[k]:starts[k + 1]]`` are the vertices of block k.
    """
    if block.size == 0:
        return xp.zeros(0, xp.int32), xp.zeros(count + 1, xp.int32)
    one_each = xp.arange(block.size + 1, dtype=xp.int32)  # row v of this CSR is {block[v]}
    starts, order = csr_for(block).transpose(one_each, block, count)
    return order, starts


def diagonal_permutations(pairs: Pairs) -> tuple[Any, Any]:
    """Permutations of rows and columns that put the pairs on the diagonal.

    That of the columns leaves them as they are, unless there are more columns than rows. Then that
    of the rows does.
    """
    xp, nrows, ncols = array_module(pairs.row_to_col), pairs.row_to_col.size, pairs.col_to_row.size
    if nrows >= ncols:
        return pairs.row_permutation(), xp.arange(ncols)
    return xp.arange(nrows), pairs.col_permutation()


def moved_to(backend: str, graph: BipartiteGraph) -> BipartiteGraph:
    """The graph where the backend needs it."""
    return graph.to_device() if backend == "cuda" else graph.to_host()


def check_square(graph: BipartiteGraph) -> None:
    """Raise ValueError unless there are as many columns as rows."""
    if graph.nrows != graph.ncols:
        raise ValueError(f"A must be square; got {graph.nrows} rows and {graph.ncols} columns")
