"""Rows in the order of their blocks: what all block forms here are made with."""

from __future__ import annotations

from typing import Any

from gpumatch.bipartite import BipartiteGraph
from gpumatch.homes import csr_for

__all__ = ["by_block", "check_square", "moved_to"]


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


def moved_to(backend: str, graph: BipartiteGraph) -> BipartiteGraph:
    """The graph where the backend needs it."""
    return graph.to_device() if backend == "cuda" else graph.to_host()


def check_square(graph: BipartiteGraph) -> None:
    """Raise ValueError unless there are as many columns as rows."""
    if graph.nrows != graph.ncols:
        raise ValueError(f"A must be square; got {graph.nrows} rows and {graph.ncols} columns")
