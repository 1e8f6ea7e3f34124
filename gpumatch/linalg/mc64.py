"""MC64's five jobs under their numbers, which cuDSS has too.

Reference: Duff, Koster, SIAM J. Matrix Anal. Appl. 20(4), 1999, and 22(4), 2001; HSL, *MC64*.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpumatch.assignment import assign
from gpumatch.costs import SparseCosts
from gpumatch.dispatch.registry import BackendName
from gpumatch.interop.tensors import is_tensor
from gpumatch.linalg.entries import entries_of, exactly_on, placed
from gpumatch.linalg.magnitudes import comparable, summable
from gpumatch.linalg.ordering import diagonal_permutations
from gpumatch.linalg.product_matching import maximum_product_matching
from gpumatch.matching import maximum_matching
from gpumatch.numeric.arrays import array_module, array_of
from gpumatch.results.pairs import Pairs
from gpumatch.results.tensors import with_tensors

__all__ = ["MC64", "mc64"]


class MC64(NamedTuple):
    """What `mc64` gives.

    Attributes
    ----------
    row_perm, col_perm : int arrays of length nrows, ncols
        Matched entries lie on the diagonal of ``A[row_perm][:, col_perm]``. One of the two leaves
        everything in its place: that of the columns, unless there are more columns than rows.
    rank : int
        Matched entries: the structural rank.
    row_log_scale, col_log_scale : float64 arrays
        The logarithms of the factors for rows and columns; 0 but for job 5.
    """

    row_perm: Any
    col_perm: Any
    rank: int
    row_log_scale: Any
    col_log_scale: Any

    def __repr__(self) -> str:
        return f"MC64({len(self.row_perm)} x {len(self.col_perm)}, rank {self.rank})"


def mc64(
    A: Any,
    job: int = 5,
    *,
    backend: BackendName = "auto",
    seed: int = 0,
    threads: int | None = None,
) -> MC64:
    """Permute large entries of a matrix to its diagonal, by one of MC64's jobs.

    Parameters
    ----------
    A : sparse matrix, tuple ``(indptr, indices, data, shape)``, or dense matrix
        As for `maximum_product_matching`. Zeros are no entries.
    job : {1, 2, 3, 4, 5}
        What is greatest on the diagonal: 1, the number of entries; 2 and 3, the least magnitude; 4,
        the sum of magnitudes; 5, their product, with the scaling of `maximum_product_matching`. Job
        2 raises a threshold by augmenting paths, and job 3 halves the thresholds between two. They
        find the same least magnitude; on a GPU, and if the matrix is structurally singular, both
        halve. If it is, jobs 2 to 5 choose among the matchings with most entries.
    backend, seed, threads
        As for `gpumatch.assign`.

    Returns
    -------
    MC64

    Raises
    ------
    ValueError, TypeError
        If there is no such job, or a value is not finite.

    Notes
    -----
    Magnitudes are compared as they are, and those of complex numbers in float64; none is too large.
    Sums are optimal up to rounding, and exact for integers unless they go beyond 2**62.

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.linalg import mc64
    >>> A = np.array([[6, 9, 0], [1, 5, 9], [0, 1, 1]])
    >>> [A[mc64(A, job).row_perm].diagonal().tolist() for job in (2, 4, 5)]
    [[6, 5, 1], [6, 1, 9], [6, 1, 9]]
    """
    if job not in (1, 2, 3, 4, 5):
        raise ValueError(f"job must be 1, 2, 3, 4 or 5; got {job!r}")
    if is_tensor(A):
        how = {"backend": backend, "seed": seed, "threads": threads}
        found: MC64 = with_tensors(mc64, A, job=job, **how)
        return found
    run: dict[str, Any] = {"backend": backend, "seed": seed, "threads": threads}
    if job == 5:
        s = maximum_product_matching(A, **run)
        return _permutations(s, s.row_log_scale, s.col_log_scale)
    given = entries_of(A)
    entries, where = placed(given, backend)
    run["backend"] = where
    matching = maximum_matching(entries.graph, **run)
    pairs: Pairs = matching
    if job > 1:
        run["cardinality"] = "full" if matching.size == min(entries.shape) else "maximum"
        if job == 4:
            run |= exactly_on(where)
        else:
            by_paths = job == 2 and where == "cpu" and run["cardinality"] == "full"
            run |= {"objective": "bottleneck", "algorithm": "paths" if by_paths else "thresholds"}
        as_costs = summable if job == 4 else comparable
        costs = SparseCosts.of(entries.graph, as_costs(entries.data, min(entries.shape)))
        pairs = assign(costs, maximize=True, **run)
    xp = array_module(given.data)
    mates = (array_of(xp, part) for part in (pairs.row_to_col, pairs.col_to_row))
    return _permutations(Pairs(*mates), *map(xp.zeros, entries.shape))


def _permutations(pairs: Pairs, row_log_scale: Any, col_log_scale: Any) -> MC64:
    """The permutations that put the pairs on the diagonal, and the scales."""
    row_perm, col_perm = diagonal_permutations(pairs)
    return MC64(row_perm, col_perm, pairs.size, row_log_scale, col_log_scale)
