"""Block triangular forms of square patterns: strong components, after a matching or without.

References
----------
Duff, Reid, *An implementation of Tarjan's algorithm for the block triangularization of a matrix*,
ACM TOMS 4(2), 1978; Pothen, Fan, ACM TOMS 16(4), 1990; Davis, Palamadai Natarajan, *Algorithm 907:
KLU*, ACM TOMS 37(3), 2010.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpumatch.bipartite import BipartiteGraph, as_bipartite
from gpumatch.contracts import Components
from gpumatch.dispatch.backends import choose_components
from gpumatch.dispatch.registry import BackendName
from gpumatch.interop.tensors import is_tensor
from gpumatch.linalg.ordering import by_block, check_square, moved_to
from gpumatch.matching import maximum_matching
from gpumatch.numeric.arrays import array_module, array_of, first_true, index_array
from gpumatch.results.tensors import with_tensors

__all__ = ["BlockTriangularForm", "btf", "strongcomp"]


class BlockTriangularForm(NamedTuple):
    """Permutations to a block triangular form; int32 arrays.

    Attributes
    ----------
    p, q : arrays of length n
        ``A[p][:, q]`` is block upper triangular.
    r : array
        Block k is rows and columns ``r[k]:r[k+1]`` of it.
    """

    p: Any
    q: Any
    r: Any

    def __repr__(self) -> str:
        return f"BlockTriangularForm({len(self.p)} rows, {len(self.r) - 1} blocks)"


def btf(
    A: Any, *, backend: BackendName = "auto", seed: int = 0, threads: int | None = None
) -> BlockTriangularForm:
    """Permute a square matrix to block upper triangular form, by its pattern alone.

    Parameters
    ----------
    A : square sparse or dense matrix, tuple of CSR arrays, or BipartiteGraph
        Anything `gpumatch.BipartiteGraph` is made from. Stored entries count, stored zeros too.
    backend, seed, threads
        As for `gpumatch.maximum_matching`.

    Returns
    -------
    BlockTriangularForm
        A named tuple ``(p, q, r)``, as scikit-sparse's ``btf`` gives it. The diagonal has as many
        entries as the structural rank. If that is n, the blocks are those of `dmperm`, and no
        permutations give smaller ones. Otherwise the rows and columns that are left are paired in
        their order, and ``q`` is a permutation all the same; `dmperm` then tells more.

    Raises
    ------
    ValueError, TypeError
        If A is not square, or an argument is wrong; the message names it.

    Notes
    -----
    After the matching, O(n + nnz).

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.linalg import btf
    >>> A = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 1]])
    >>> p, q, r = btf(A)
    >>> A[p][:, q]
    array([[1, 1, 0],
           [0, 1, 1],
           [0, 1, 1]])
    >>> r.tolist()
    [0, 1, 3]
    """
    if is_tensor(A):
        run = {"backend": backend, "seed": seed, "threads": threads}
        found: BlockTriangularForm = with_tensors(btf, A, **run)
        return found
    given, graph, where, components = _square(A, backend)
    matching = maximum_matching(graph, backend=where, seed=seed, threads=threads)
    q, col_to_row = matching.row_to_col.copy(), matching.col_to_row.copy()
    free_rows, free_cols = (q < 0).nonzero()[0], (col_to_row < 0).nonzero()[0]
    q[free_rows], col_to_row[free_cols] = free_cols, free_rows
    return BlockTriangularForm(*_in_arrays_of(given, _form(graph, components, q, col_to_row)))


def strongcomp(A: Any, q: Any = None, *, backend: BackendName = "auto") -> tuple[Any, ...]:
    """Permute a square matrix to block upper triangular form by its strong components.

    Parameters
    ----------
    A : square sparse or dense matrix, tuple of CSR arrays, or BipartiteGraph
        As for `btf`. An entry (i, j) leads from i to j.
    q : integer array of length n, optional
        A permutation: find the components of ``A[:, q]`` instead.
    backend
        As for `gpumatch.maximum_matching`.

    Returns
    -------
    p, r : int32 arrays
        ``A[p][:, p]`` is block upper triangular, and block k is ``r[k]:r[k+1]`` of it. These are
        scikit-sparse's results.
    p, q, r : int32 arrays
        If `q` is given. ``A[p][:, q]`` is block upper triangular with the ``q`` returned.

    Raises
    ------
    ValueError, TypeError
        If A is not square, or `q` is no permutation.

    Notes
    -----
    O(n + nnz).

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.linalg import strongcomp
    >>> p, r = strongcomp(np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1]]))
    >>> p.tolist(), r.tolist()
    ([1, 2, 0], [0, 2, 3])
    """
    if is_tensor(A):
        found: tuple[Any, ...] = with_tensors(strongcomp, A, q=q, backend=backend)
        return found
    given, graph, _, components = _square(A, backend)
    xp, n = graph.xp, graph.nrows
    if q is None:
        same = xp.arange(n, dtype=xp.int32)
        p, _, r = _in_arrays_of(given, _form(graph, components, same, same))
        return p, r
    row_to_col = array_of(xp, _permutation(q, n)).astype(xp.int32)
    col_to_row = xp.empty(n, xp.int32)
    col_to_row[row_to_col] = xp.arange(n, dtype=xp.int32)
    return _in_arrays_of(given, _form(graph, components, row_to_col, col_to_row))


def _square(
    A: Any, backend: BackendName
) -> tuple[BipartiteGraph, BipartiteGraph, BackendName, Components]:
    """The graph as given, the same where it is searched, that backend, and the search."""
    given = as_bipartite(A)
    check_square(given)
    where, components = choose_components(backend, given)
    return given, moved_to(where, given), where, components


def _form(
    graph: BipartiteGraph, components: Components, row_to_col: Any, col_to_row: Any
) -> tuple[Any, Any, Any]:
    """p, q and r of the strong components of A with these columns on its diagonal."""
    everything = graph.xp.ones(graph.nrows, bool)
    p, r = by_block(*components(graph, col_to_row, everything), graph.xp)
    return p, row_to_col[p], r


def _permutation(q: Any, n: int) -> Any:
    """`q` as an array, checked."""
    order = index_array(q, "q")
    if order.size != n:
        raise ValueError(f"q must have n = {n} entries; got {order.size}")
    in_order = array_module(order).sort(order)
    stray = first_true(in_order != array_module(order).arange(n))
    if stray is not None:
        raise ValueError(
            f"q must be a permutation of 0 to {n - 1}; in order, its entry {stray} is "
            f"{int(in_order[stray])}"
        )
    return order


def _in_arrays_of(given: BipartiteGraph, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(array_of(given.xp, array) for array in arrays)
