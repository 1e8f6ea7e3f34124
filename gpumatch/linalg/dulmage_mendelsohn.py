"""The Dulmage–Mendelsohn decomposition of a sparse matrix's pattern.

A maximum matching cuts rows and columns into parts. C0 are the unmatched columns, and R0 the
unmatched rows. R1 and C1 are what alternating paths reach from C0, R3 and C3 what they reach from
R0. R2 and C2 are left. Each of R1, R2, R3 is matched to the columns of the same number. No path
leads from C0 to R0, because the matching is maximum. So there are no entries where a dot is:

           C0  C1  C2  C3
    R1      x   x   x   x      underdetermined: more columns than rows
    R2      .   .   x   x      well determined: square
    R3      .   .   .   x      overdetermined: more rows than columns
    R0      .   .   .   x

The parts that are reached are what a minimum vertex cover leaves out or takes in: the cover found
from the unmatched rows, and the one found from the unmatched columns. The strong components of the
middle part are its fine blocks. Neither the coarse parts (R1, R2, R3 with R0; C0 with C1, C2, C3)
nor the fine blocks depend on the matching.

References
----------
Dulmage, Mendelsohn, *Coverings of bipartite graphs*, Canadian J. Math. 10, 1958; Pothen, Fan,
*Computing the block triangular form of a sparse matrix*, ACM TOMS 16(4), 1990; Davis, *Direct
Methods for Sparse Linear Systems*, SIAM 2006, section 7.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpumatch.bipartite import BipartiteGraph, as_bipartite
from gpumatch.dispatch.backends import choose_components
from gpumatch.dispatch.by_device import cover_for
from gpumatch.dispatch.registry import BackendName
from gpumatch.interop.tensors import is_tensor
from gpumatch.linalg.ordering import by_block, moved_to
from gpumatch.matching import maximum_matching
from gpumatch.numeric.arrays import any_true, array_of
from gpumatch.results.tensors import with_tensors

__all__ = ["DulmageMendelsohn", "dmperm"]


class DulmageMendelsohn(NamedTuple):
    """A Dulmage–Mendelsohn decomposition; int32 arrays.

    Attributes
    ----------
    p, q : arrays of length nrows, ncols
        Permutations: ``A[p][:, q]`` is block upper triangular.
    r, s : arrays
        Fine blocks: block k is rows ``r[k]:r[k+1]`` and columns ``s[k]:s[k+1]`` of it. If there
        are columns left of the well-determined part, the first block is the underdetermined part.
        If there are rows below it, the last block is the overdetermined part. All others are
        square, with a zero-free diagonal, and cannot be reduced.
    cc, rr : arrays of length 5
        Coarse parts: columns C0, C1, C2, C3 begin at ``cc``, rows R1, R2, R3, R0 at ``rr``.
    """

    p: Any
    q: Any
    r: Any
    s: Any
    cc: Any
    rr: Any

    def __repr__(self) -> str:
        rows, cols = self.rr.tolist(), self.cc.tolist()
        return (
            f"DulmageMendelsohn({rows[4]} x {cols[4]}: underdetermined {rows[1]} x {cols[2]}, "
            f"well-determined {rows[2] - rows[1]} x {cols[3] - cols[2]}, "
            f"overdetermined {rows[4] - rows[2]} x {cols[4] - cols[3]}; {len(self.r) - 1} blocks)"
        )


def dmperm(
    A: Any, *, backend: BackendName = "auto", seed: int = 0, threads: int | None = None
) -> DulmageMendelsohn:
    """Permute any matrix to block upper triangular form, by its pattern alone.

    Parameters
    ----------
    A : sparse or dense matrix, tuple of CSR arrays, or BipartiteGraph
        Anything `gpumatch.BipartiteGraph` is made from, of any shape and structural rank. Stored
        entries count, stored zeros too; values are not looked at.
    backend, seed, threads
        As for `gpumatch.maximum_matching`.

    Returns
    -------
    DulmageMendelsohn
        A named tuple ``(p, q, r, s, cc, rr)``, as MATLAB's ``dmperm`` and CSparse's ``cs_dmperm``
        give it, counted from 0. Parts and blocks are the same for every backend and seed. The order
        of blocks that do not depend on each other may differ, and so may the matched pairs.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong; the message names it.

    Notes
    -----
    After the matching, O(nrows + ncols + nnz). Rows of a block keep their order. In R1, R2 and R3,
    the matched entries lie on a diagonal: row k of the permuted matrix has one in column
    ``cc[1] + k``. `gpumatch.verify` checks the result.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> A = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1]])
    >>> d = gm.linalg.dmperm(A)
    >>> A[d.p][:, d.q]
    array([[1, 1, 1, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1],
           [0, 0, 0, 1]])
    >>> d.r.tolist()
    [0, 1, 2, 3, 4]
    """
    if is_tensor(A):
        run = {"backend": backend, "seed": seed, "threads": threads}
        found: DulmageMendelsohn = with_tensors(dmperm, A, **run)
        return found
    given = as_bipartite(A)
    where, components = choose_components(backend, given)
    graph = moved_to(where, given)
    matching = maximum_matching(graph, backend=where, seed=seed, threads=threads)
    row_to_col, col_to_row = matching.row_to_col, matching.col_to_row
    block, _, total = blocks_of(graph, row_to_col, col_to_row, components)
    count = total - 2
    block[row_to_col < 0] = total
    xp = graph.xp
    p, starts = by_block(block, count + 3, xp)
    free_cols = (col_to_row < 0).nonzero()[0].astype(p.dtype)
    matched_rows = p[: matching.size]
    q = xp.concatenate([free_cols, row_to_col[matched_rows]])

    shift = free_cols.size
    parts = starts[[0, 1, count + 1, count + 2, count + 3]]
    cc = xp.concatenate([parts[:1], parts[:-1] + shift])
    r = xp.concatenate([starts[: count + 2], parts[-1:]])
    s = xp.concatenate([starts[:1], starts[1 : count + 2] + shift, cc[-1:]])
    has_first, has_last = shift > 0, int(parts[2]) < graph.nrows
    kept = slice(0 if has_first else 1, r.size if has_last else r.size - 1)
    fields = p, q, r[kept], s[kept], cc, parts
    return DulmageMendelsohn(*(array_of(given.xp, field) for field in fields))


class Blocks(NamedTuple):
    """The block of each row and of each column, in their order, and how many there are.

    0: R1, C0 and C1; then the fine blocks of R2 and C2; the last: R3, R0 and C3.
    """

    row_block: Any
    col_block: Any
    total: int


def blocks_of(graph: BipartiteGraph, row_to_col: Any, col_to_row: Any, components: Any) -> Blocks:
    """Find the blocks of a graph by a maximum matching; `components` finds strong components."""
    in_rows = _cover_from(graph, row_to_col, col_to_row)[0]  # all but R3 and R0
    is_r1 = _cover_from(graph.transpose(), col_to_row, row_to_col)[1]
    fine, count = components(graph, col_to_row, in_rows & ~is_r1)
    xp = graph.xp
    row_block, col_block = fine + 1, xp.empty(graph.ncols, fine.dtype)
    row_block[is_r1], row_block[~in_rows] = 0, count + 1
    matched = (col_to_row >= 0).nonzero()[0]
    col_block[:] = 0
    col_block[matched] = row_block[col_to_row[matched]]
    return Blocks(row_block, col_block, count + 2)


def _cover_from(graph: BipartiteGraph, row_to_col: Any, col_to_row: Any) -> tuple[Any, Any]:
    """The vertex cover found from the unmatched rows: all rows if there are none."""
    if any_true(row_to_col < 0):
        return cover_for(graph)(graph, row_to_col, col_to_row)
    return graph.xp.ones(graph.nrows, bool), graph.xp.zeros(graph.ncols, bool)
