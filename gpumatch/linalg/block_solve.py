"""Solve a system by the blocks of its block triangular form.

From the last block to the first, each is a system of its own, whose right-hand side lacks what the
unknowns of later blocks make up. Only diagonal blocks are factored, so there is no fill between
large ones.
Blocks of one row that follow each other are one triangular system. SciPy's substitution divides by
the diagonal beforehand, which loses numbers at the ends of the range. Then the system is solved as
other blocks are. Small systems that follow each other are one block too, because a factorization
has an overhead of a millisecond; between them there is fill of at most `SMALL` rows a column.
Those that are not coupled fill nothing in, however many they are.

Reference: Davis, Palamadai Natarajan, *Algorithm 907: KLU, a direct sparse solver for circuit
simulation problems*, ACM TOMS 37(3), 2010.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.dispatch.registry import BackendName
from gpumatch.linalg.dulmage_mendelsohn import dmperm
from gpumatch.linalg.entries import usable_csr
from gpumatch.linalg.lu import SingularMatrixError, checked_sides, in_columns, in_double, splu
from gpumatch.linalg.ordering import check_square
from gpumatch.linalg.refinement import ROUNDING, Equations, Sides, times_power
from gpumatch.results.tensors import like_sides

__all__ = ["solve_btf"]


class System(NamedTuple):
    """A range of rows and columns on the diagonal: a block, or blocks of one row.

    Attributes
    ----------
    begin, end : int
        Its first row, and the one after its last.
    is_triangular : bool
        True if its blocks have one row each.
    is_coupled : bool
        True if a row has an entry in a later system.
    """

    begin: int
    end: int
    is_triangular: bool
    is_coupled: bool = False


SMALL = 32
"""Rows of a system up to which it joins its neighbours."""
TOGETHER = 512
"""Rows that coupled systems which join have together, at most. Others cause no fill.

2,000 coupled blocks of two rows take 24 ms with 512 and 1,024, 78 with 64, and 0.5 s with 4,096, by
fill; 10,000 take 0.13 s, where a factorization for each took 19 s. 2,000 blocks that are
not coupled take 8 ms in one, and 18 in eight (processor time, busy machine).
"""


def solve_btf(
    A: Any, b: Any, *, backend: BackendName = "auto", seed: int = 0, threads: int | None = None
) -> Any:
    """Solve ``A @ x == b`` by the blocks of A's block triangular form.

    Parameters
    ----------
    A : square sparse matrix, tuple ``(indptr, indices, data, shape)``, or dense matrix
        As for `splu`, which factors each block.
    b : array of shape (n,) or (n, k)
        The right-hand sides.
    backend, seed, threads
        As for `dmperm`.

    Returns
    -------
    array like b

    Raises
    ------
    ValueError, TypeError, SingularMatrixError, RuntimeError
        As for `splu`.

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.linalg import solve_btf
    >>> A = np.array([[2.0, 1.0, 1.0], [0.0, 0.0, 4.0], [0.0, 1e-30, 0.0]])
    >>> solve_btf(A, A @ np.array([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """
    matrix = usable_csr(A)
    graph = BipartiteGraph((matrix.indptr, matrix.indices, matrix.shape))
    check_square(graph)
    right = checked_sides(b, matrix)
    run: dict[str, Any] = {"backend": backend, "seed": seed, "threads": threads}
    d = dmperm(graph, **run)
    if d.rr[3] < graph.nrows:
        raise SingularMatrixError(d.p[d.rr[2] :], d.q[d.cc[3] :])
    permuted, rest = in_double(matrix)[d.p][:, d.q], in_columns(right)[d.p]
    x = np.zeros_like(rest)
    with np.errstate(all="ignore"):
        for group in reversed(list(_joined(_systems(d.r, permuted)))):
            begin, end = group[0].begin, group[-1].end
            if len(group) == 1:
                _solve_system(permuted, rest, x, group[0], run)
                continue
            _solve_system(permuted, rest, x, System(begin, end, False), run)
            spoilt = ~np.isfinite(x[begin:end]).all(axis=0)
            if spoilt.any():
                own, sides = x[:, spoilt], rest[:, spoilt]
                for system in reversed(group):
                    _solve_system(permuted, sides, own, system, run)
                x[:, spoilt] = own
    result = np.empty_like(x)
    result[d.q] = x
    return like_sides(result.reshape(right.shape), b)


def _solve_system(
    permuted: Any, rest: np.ndarray, x: np.ndarray, system: System, run: dict[str, Any]
) -> None:
    """Write the unknowns of a system, which stands above those that are known."""
    begin, end, is_triangular, _ = system
    rows = permuted[begin:end]
    own, _ = Equations(rows[:, end:]).left(x[end:], Sides.of(rest[begin:end]))
    solve = _solve_triangular if is_triangular else _solve_block
    x[begin:end] = solve(rows[:, begin:end], own, run)


def _solve_block(block: Any, right: Sides, run: dict[str, Any]) -> np.ndarray:
    return splu(block, **run).solve_sides(right)


def _solve_triangular(block: Any, right: Sides, run: dict[str, Any]) -> np.ndarray:
    x = _back_substitution(block, times_power(right.values, right.power))
    longest = np.diff(block.indptr).max()
    doubtful = ~(Equations(block).errors(x, right) <= ROUNDING * (2 + longest)).all(axis=0)
    if doubtful.any():
        x[:, doubtful] = _solve_block(block, right.columns(doubtful), run)
    return x


def _systems(bounds: np.ndarray, permuted: Any) -> list[System]:
    """The systems of these blocks, in their order."""
    single = np.diff(bounds) == 1
    if not single.size:
        return []
    cuts = np.flatnonzero(~(single[1:] & single[:-1])) + 1
    firsts = np.concatenate([[0], cuts])
    begins, ends = bounds[firsts], bounds[np.append(cuts, single.size)]
    last = np.maximum.reduceat(permuted.indices, permuted.indptr[begins])
    columns = begins, ends, single[firsts], last >= ends
    return [*map(System._make, zip(*(column.tolist() for column in columns)))]


def _joined(systems: Iterable[System]) -> Iterator[list[System]]:
    """The systems in groups: small neighbours together.

    An infinite unknown would spoil others of its group, whose systems are solved apart then.
    """
    group: list[System] = []
    was_small, rows = False, 0
    for system in systems:
        size = system.end - system.begin
        is_small, coupled = size <= SMALL, size if system.is_coupled else 0
        if group and not (is_small and was_small and rows + coupled <= TOGETHER):
            yield group
            group, rows = [], 0
        group.append(system)
        was_small, rows = is_small, rows + coupled
    if group:
        yield group


def _back_substitution(block: Any, right: np.ndarray) -> np.ndarray:
    from scipy.sparse.linalg import spsolve_triangular

    return spsolve_triangular(block.astype(right.dtype), right, lower=False)
