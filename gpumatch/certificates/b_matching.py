"""Check that a b-matching is maximum, by code that algorithms do not share.

These are checked, for every edge of the input:

1. the pairs are edges, and none is there twice,
2. no vertex is in more of them than its capacity,
3. the capacities of the cover's vertices and the number of edges with no end in the cover add up to
   the number of pairs.

Theorem. Then no b-matching has more edges. Proof. Each edge of a b-matching has an end in the
cover, or is one of those that the cover misses. There are at most as many of the first kind as the
capacities of the cover add up to, and of the second kind as the cover misses. ∎
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.bipartite import as_bipartite
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    check_claim_of_size,
    count_of,
    edge_tiles,
    marks_of,
)
from gpumatch.numeric.arrays import array_of, first_true

__all__ = ["BMatchingCertificate", "verify_b_matching"]


class BMatchingCertificate(Certificate):
    """The proof of a b-matching, checked.

    ``bound`` is the sum of the cover's capacities and of the edges that it misses.
    """

    def __str__(self) -> str:
        return (
            f"maximum: {self.size} edges within the capacities, and a cover that proves that no "
            f"more than {self.bound} are possible, checked on {self.edges} edges"
        )


def verify_b_matching(A: Any, result: Any) -> BMatchingCertificate:
    """Check a b-matching and the cover that proves it maximum; see `gpumatch.verify`."""
    graph = as_bipartite(A)
    xp = graph.xp
    sides = []
    for side, length in zip(("row", "col"), graph.shape):
        ends = _ends(side, array_of(xp, getattr(result, f"{side}_ind")), length)
        capacity = array_of(xp, getattr(result, f"{side}_capacity"))
        degree = array_of(xp, getattr(result, f"{side}_degree"))
        _check_degrees(xp, side, ends, capacity, degree, length)
        sides.append((ends, capacity))
    (rows, row_capacity), (cols, col_capacity) = sides
    if rows.size != cols.size:
        raise CertificateError(f"row_ind has {rows.size} numbers, col_ind {cols.size}")
    check_claim_of_size(result, rows.size)
    try:
        cover = result.cover_ind()
    except ValueError as exc:
        raise CertificateError(str(exc)) from exc
    in_rows, in_cols = (
        marks_of(xp, array_of(xp, part), length, side)
        for part, length, side in zip(cover, graph.shape, ("row", "column"))
    )
    missed = _check_edges(graph, rows, cols, in_rows, in_cols)
    bound = missed + _total(row_capacity[in_rows]) + _total(col_capacity[in_cols])
    if rows.size != bound:
        raise CertificateError(
            f"there are {rows.size} edges, but the cover allows {bound}: no proof"
        )
    return BMatchingCertificate("b-matching", int(rows.size), bound, graph.nnz)


def _ends(side: str, ends: Any, length: int) -> Any:
    if ends.ndim != 1 or ends.dtype.kind not in "iu":
        raise CertificateError(
            f"{side}_ind must be a list of integers; got {ends.dtype} of shape {ends.shape}"
        )
    stray = first_true((ends < 0) | (ends >= np.int64(length)))
    if stray is not None:
        raise CertificateError(f"{side}_ind names {int(ends[stray])} of {length}")
    return ends.astype(np.int64, copy=False)


def _check_degrees(xp: Any, side: str, ends: Any, capacity: Any, degree: Any, length: int) -> None:
    """Check point 2, and that the claimed degrees are true."""
    for what, values in (("capacity", capacity), ("degree", degree)):
        if values.shape != (length,) or values.dtype.kind not in "iu":
            raise CertificateError(
                f"{side}_{what} must be {length} integers; got {values.dtype} of shape "
                f"{values.shape}"
            )
    counted = xp.bincount(ends, minlength=length)
    stray = first_true(counted != degree)
    if stray is not None:
        raise CertificateError(
            f"{side}_degree: number {stray} is {int(degree[stray])}, but there are "
            f"{int(counted[stray])} edges"
        )
    stray = first_true(counted > capacity)
    if stray is not None:
        raise CertificateError(
            f"{side}_ind names {stray} {int(counted[stray])} times: its capacity is "
            f"{int(capacity[stray])}"
        )


def _check_edges(graph: Any, rows: Any, cols: Any, in_rows: Any, in_cols: Any) -> int:
    """Check point 1; return how many edges the cover misses."""
    xp = graph.xp
    keys = xp.sort(rows * graph.ncols + cols)
    twice = first_true(keys[1:] == keys[:-1])
    if twice is not None:
        row, col = divmod(int(keys[twice]), graph.ncols)
        raise CertificateError(f"the edge of row {row} and column {col} is there twice")
    is_edge, missed = xp.zeros(keys.size, bool), 0
    for tile_rows, tile_cols in edge_tiles(graph):
        missed += count_of(~(in_rows[tile_rows] | in_cols[tile_cols]))
        if keys.size:
            there = tile_rows.astype(np.int64) * graph.ncols + tile_cols
            place = xp.minimum(xp.searchsorted(keys, there), keys.size - 1)
            is_edge[place[keys[place] == there]] = True
    stray = first_true(~is_edge)
    if stray is not None:
        row, col = divmod(int(keys[stray]), graph.ncols)
        raise CertificateError(f"row {row} and column {col} are paired, but that is no edge")
    return missed


def _total(capacities: Any) -> int:
    """The sum as a Python int, which does not overflow."""
    return sum(capacities.tolist())
