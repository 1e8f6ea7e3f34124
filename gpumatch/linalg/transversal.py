"""Maximum transversals: as many entries as possible, no two in a row or a column."""

from __future__ import annotations

from typing import Any

from gpumatch.dispatch.registry import BackendName
from gpumatch.matching import maximum_matching

__all__ = ["maxtrans", "sprank"]


def maxtrans(
    A: Any, *, backend: BackendName = "auto", seed: int = 0, threads: int | None = None
) -> Any:
    """Find a maximum transversal: for each row the column of an entry, no column twice.

    Parameters
    ----------
    A : sparse or dense matrix, tuple of CSR arrays, or BipartiteGraph
        Anything `gpumatch.BipartiteGraph` is made from.
    backend, seed, threads
        As for `gpumatch.maximum_matching`.

    Returns
    -------
    int32 array of length nrows
        The column of each row, -1 if the row has none. If there is no -1 and A is square,
        ``A[:, maxtrans(A)]`` has a zero-free diagonal.

    Notes
    -----
    These are the rows' mates of `gpumatch.maximum_matching`, which has more options and the proof.

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.linalg import maxtrans
    >>> maxtrans(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])).tolist()
    [1, 2, 0]
    """
    return maximum_matching(A, backend=backend, seed=seed, threads=threads).row_to_col


def sprank(
    A: Any, *, backend: BackendName = "auto", seed: int = 0, threads: int | None = None
) -> int:
    """Count the entries of a maximum transversal: the structural rank.

    It is the largest rank that a matrix with entries in these places can have.

    Parameters
    ----------
    A, backend, seed, threads
        As for `maxtrans`.

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.linalg import sprank
    >>> sprank(np.array([[1, 1, 1], [1, 0, 0], [1, 0, 0]]))
    2
    """
    return maximum_matching(A, backend=backend, seed=seed, threads=threads).size
