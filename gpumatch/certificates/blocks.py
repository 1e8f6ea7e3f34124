"""Check Dulmage–Mendelsohn decompositions and block triangular forms, by code of its own.

Names are those of `gpumatch.linalg.dulmage_mendelsohn`. These are checked, for every entry of the
input:

1. p and q are permutations, and rr, cc, r, s cut rows and columns into parts and blocks that fit
   each other: R1, R2, R3 have as many rows as C1, C2, C3 have columns, and the fine blocks are one
   of all before R2 and C2, square ones in them, and one of all behind them,
2. no entry lies below the diagonal blocks,
3. rows of R1, R2, R3 have an entry in the column of C1, C2, C3 with the same number,
4. each square block is strongly connected; in R1, each row reaches C0, and in R3, each row is
   reached from R0.

By 2 and 3 the matching of 3 has as many edges as a cover has vertices, R1, R2 and C3, so it is
maximum. By 4 the parts and the blocks are the finest ones, which are unique. For 4, a matched pair
is a vertex, an entry leads from its row's pair to its column's pair, and only entries inside blocks
count. C0 is one vertex more, which leads to all of R1, and R0 another, which all of R3 lead to.
Then 4 asks that the vertices of each block are strongly connected. SciPy finds these components.

A block triangular form is checked as the middle part of a decomposition that has no other. If its
diagonal lacks entries, the matrix may be structurally singular; that there are no more pairs is not
checked then.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.bipartite import BipartiteGraph, as_bipartite
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    ClaimedBlocks,
    ClaimedForm,
    count_of,
    edge_tiles,
)
from gpumatch.numeric.arrays import array_of, first_true


@dataclass(frozen=True)
class BlocksCertificate(Certificate):
    """The proof of a Dulmage–Mendelsohn decomposition, checked.

    Attributes
    ----------
    problem : str
        ``"blocks"``, or ``"form"`` for a block triangular form.
    size : int
        Entries on the diagonal: the structural rank.
    bound : int
        Vertices of the cover R1, R2, C3; of a form, all rows.
    edges : int
        Entries that were checked.
    blocks : int
        Fine blocks, the underdetermined and the overdetermined one among them.
    """

    blocks: int

    def __str__(self) -> str:
        return (
            f"finest: {self.blocks} blocks on a diagonal of {self.size} entries, "
            f"checked on {self.edges} entries"
        )


def verify_blocks(A: Any, result: ClaimedBlocks) -> BlocksCertificate:
    """Check a Dulmage–Mendelsohn decomposition; see `gpumatch.verify`."""
    graph = as_bipartite(A)
    claim = _Claim(graph, result)
    claim.check_parts()
    claim.check_blocks()
    claim.check_entries()
    unpaired = first_true(claim.missing_pairs())
    if unpaired is not None:
        raise CertificateError(
            f"row {unpaired} lies on the diagonal with column {int(claim.mate[unpaired])}, "
            "but there is no entry"
        )
    claim.check_components()
    size, bound = claim.rr[3], claim.rr[2] + graph.ncols - claim.cc[3]
    return BlocksCertificate("blocks", size, bound, graph.nnz, len(claim.r) - 1)


def verify_form(A: Any, result: ClaimedForm) -> BlocksCertificate:
    """Check a block triangular form; see `gpumatch.verify`."""
    graph = as_bipartite(A)
    n = graph.nrows
    if graph.ncols != n:
        raise CertificateError(f"A must be square; got {n} rows and {graph.ncols} columns")
    claim = _Claim(graph, _Parts(result, cc=[0, 0, 0, n, n], rr=[0, 0, n, n, n]))
    claim.check_blocks()
    claim.check_entries()
    claim.check_components()
    size = n - count_of(claim.missing_pairs())
    return BlocksCertificate("form", size, n, graph.nnz, len(claim.r) - 1)


class _Parts:
    """A block triangular form as a decomposition."""

    def __init__(self, form: ClaimedForm, cc: list[int], rr: list[int]) -> None:
        self.p, self.q, self.r, self.s = form.p, form.q, form.r, form.r
        self.cc, self.rr = np.array(cc), np.array(rr)


class _Claim:
    """A result and its graph; the bounds of parts and blocks are lists of ints."""

    def __init__(self, graph: BipartiteGraph, result: ClaimedBlocks) -> None:
        self.graph = graph
        self.p = _permutation(graph.xp, result.p, graph.nrows, "p")
        self.q = _permutation(graph.xp, result.q, graph.ncols, "q")
        self.rr = _bounds(result.rr, graph.nrows, "rr")
        self.cc = _bounds(result.cc, graph.ncols, "cc")
        self.r = _bounds(result.r, graph.nrows, "r")
        self.s = _bounds(result.s, graph.ncols, "s")

    def check_parts(self) -> None:
        """Point 1, coarse."""
        for name, bounds in (("rr", self.rr), ("cc", self.cc)):
            if len(bounds) != 5:
                raise CertificateError(f"{name} must have 5 entries; got {len(bounds)}")
        for part in (1, 2, 3):
            rows = self.rr[part] - self.rr[part - 1]
            cols = self.cc[part + 1] - self.cc[part]
            if rows != cols:
                raise CertificateError(f"R{part} has {rows} rows, but C{part} has {cols} columns")

    def check_blocks(self) -> None:
        """Point 1, fine."""
        if len(self.r) != len(self.s):
            raise CertificateError(f"r has {len(self.r)} entries, but s has {len(self.s)}")
        rows, cols = list(self.r), list(self.s)
        if self.cc[2] > 0:
            rows, cols = rows[1:], cols[1:]
        if self.rr[2] < self.graph.nrows:
            rows, cols = rows[:-1], cols[:-1]
        ends = [rows[:1], rows[-1:], cols[:1], cols[-1:]]
        if ends != [[self.rr[1]], [self.rr[2]], [self.cc[2]], [self.cc[3]]]:
            raise CertificateError("r and s do not begin and end the square blocks where R2 does")
        for k, (height, width) in enumerate(zip(np.diff(rows), np.diff(cols))):
            if height != width or height == 0:
                raise CertificateError(
                    f"block {k + int(self.cc[2] > 0)} has {height} rows and {width} columns, "
                    "but must be square"
                )

    def check_entries(self) -> None:
        """Point 2."""
        xp = self.graph.xp
        row_block = array_of(xp, _block_of(_places(array_of(np, self.p)), self.r))
        col_block = array_of(xp, _block_of(_places(array_of(np, self.q)), self.s))
        for rows, cols in edge_tiles(self.graph):
            below = first_true(row_block[rows] > col_block[cols])
            if below is not None:
                raise CertificateError(
                    f"the entry of row {int(rows[below])} and column {int(cols[below])} lies "
                    "below the diagonal blocks"
                )

    @functools.cached_property
    def mate(self) -> Any:
        """The column that lies on the diagonal with each row, -1 for none."""
        mate = self.graph.xp.full(self.graph.nrows, -1, np.int64)
        mate[self.p[: self.rr[3]]] = self.q[self.cc[1] :]
        return mate

    def missing_pairs(self) -> Any:
        """Marks of the rows without the entry on the diagonal, which point 3 asks for."""
        is_missing = self.mate >= 0
        for rows, cols in edge_tiles(self.graph):
            is_missing[rows[self.mate[rows] == cols]] = False
        return is_missing

    def check_components(self) -> None:
        """Point 4."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        graph, size = self.graph.to_host(), self.rr[3]
        at_row, at_col = _places(array_of(np, self.p)), _places(array_of(np, self.q))
        c0, r0 = size, size + 1  # pairs are numbered by their row's place, and these follow
        of_row = np.where(at_row < size, at_row, r0)
        of_col = np.where(at_col < self.cc[1], c0, at_col - self.cc[1])
        rows, cols = graph.edges()
        inside = _block_of(at_row, self.r)[rows] == _block_of(at_col, self.s)[cols]
        r1, r3 = np.arange(self.rr[1]), np.arange(self.rr[2], size)
        tails = np.concatenate([of_row[rows[inside]], np.full(r1.size, c0), r3])
        heads = np.concatenate([of_col[cols[inside]], r1, np.full(r3.size, r0)])
        arcs = np.ones(tails.size, np.int8), (tails, heads)
        _, label = connected_components(
            coo_array(arcs, shape=(size + 2, size + 2)).tocsr(), connection="strong"
        )
        vertices = np.arange(size + 2)
        block = np.append(_block_of(vertices[:size], self.r), [0, len(self.r) - 2])
        is_used = np.append(np.ones(size, bool), [self.cc[2] > 0, self.rr[2] < graph.nrows])
        vertices = vertices[is_used]
        some = np.empty(len(self.r), np.int64)  # of each block, a vertex
        some[block[vertices]] = vertices
        apart = first_true(label[vertices] != label[some[block[vertices]]])
        if apart is not None:
            raise CertificateError(f"block {block[vertices[apart]]} is not strongly connected")


def _permutation(xp: Any, given: Any, n: int, name: str) -> Any:
    order = array_of(xp, given)
    if order.shape != (n,) or order.dtype.kind not in "iu":
        raise CertificateError(
            f"{name} must be {n} integers; got {order.dtype} of shape {order.shape}"
        )
    if first_true(xp.sort(order) != xp.arange(n)) is not None:
        raise CertificateError(f"{name} is no permutation of 0 to {n - 1}")
    return order


def _bounds(given: Any, end: int, name: str) -> list[int]:
    """Where parts or blocks begin, checked: from 0, never falling, to the end."""
    array = array_of(np, given)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise CertificateError(
            f"{name} must be a list of integers; got {array.dtype} of shape {array.shape}"
        )
    bounds = array.tolist()
    if bounds[0] != 0 or bounds[-1] != end or bounds != sorted(bounds):
        raise CertificateError(f"{name} must rise from 0 to {end}")
    return bounds


def _places(order: np.ndarray) -> np.ndarray:
    """Where each vertex stands in a permutation."""
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return places


def _block_of(places: np.ndarray, bounds: list[int]) -> np.ndarray:
    """The block that each place lies in; blocks may be empty."""
    return np.searchsorted(np.array(bounds), places, side="right") - 1
