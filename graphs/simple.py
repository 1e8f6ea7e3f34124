"""Small graphs with a known answer: chains, ladders, stars, complete and empty graphs.

They have no randomness.  Chains and ladders are numbered so that a greedy start, which takes
rows in order and gives each its first free column, leaves one row whose only augmenting path
runs through the whole graph.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from graphs.csr import pattern


def chain(n: int) -> csr_array:
    """Return a path through n rows and n columns, with one perfect matching.

    Row i < n - 1 meets columns i and i + 1, row n - 1 meets column 0.

    Parameters
    ----------
    n : int
        Rows, and columns; at least 1.
    """
    i = np.arange(n - 1)
    rows = np.concatenate([i, i, [n - 1]])
    columns = np.concatenate([i, i + 1, [0]])
    return pattern(rows, columns, (n, n))


def ladder(levels: int, width: int = 2) -> csr_array:
    """Return a layered graph whose augmenting path goes through every level.

    Each level has `width` rows and as many columns.  A row meets its own column and all columns
    of the next level; the last level meets one further column, and one further row meets the
    first level.  Levels multiply the number of shortest paths by `width`: a search that does not
    mark what it has visited takes exponential time.

    Parameters
    ----------
    levels : int
        Levels of the ladder; at least 1.
    width : int
        Rows, and columns, a level.
    """
    n = levels * width
    rows, columns = _rungs(levels, width)
    foot = np.arange(width)
    return pattern(
        np.concatenate([rows, n - 1 - foot, np.full(width, n)]),
        np.concatenate([columns, np.full(width, n), foot]),
        (n + 1, n + 1),
    )


def dead_end_ladder(levels: int) -> csr_array:
    """Return a root between two ladders that lead nowhere and one chain that does.

    The shape of SciPy issue 26147: with a greedy start, the one augmenting path follows the
    chain, as deep as the ladders.  A depth-first search that does not mark dead ends first walks
    the 2**levels paths of a ladder.  One ladder is numbered before the chain and one after it,
    so that neither order of neighbours helps.

    Parameters
    ----------
    levels : int
        Levels of each ladder and of the chain; at least 1.

    References
    ----------
    https://github.com/scipy/scipy/issues/26147
    """
    rungs, legs = _rungs(levels, 2)
    before, chain_start, after = 0, 2 * levels, 3 * levels
    root = exit_column = 5 * levels
    link = chain_start + np.arange(levels)
    tops = np.array([before, before + 1, chain_start, after, after + 1])
    rows = [rungs + before, rungs + after, link, link, np.full(tops.size, root)]
    columns = [legs + before, legs + after, link, np.append(link[1:], exit_column), tops]
    return pattern(np.concatenate(rows), np.concatenate(columns), (root + 1, exit_column + 1))


def _rungs(levels: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges from each row of a ladder to its own column and to the next level's columns."""
    own = np.arange(levels * width)
    upper = own[: (levels - 1) * width]
    next_level = (upper // width + 1)[:, None] * width + np.arange(width)
    return (
        np.concatenate([own, np.repeat(upper, width)]),
        np.concatenate([own, next_level.ravel()]),
    )


def stars(count: int, leaves: int) -> csr_array:
    """Return disjoint stars: each row meets `leaves` columns of its own.

    Parameters
    ----------
    count : int
        Stars, one a row.
    leaves : int
        Columns a star.
    """
    columns = np.arange(count * leaves)
    return pattern(columns // max(leaves, 1), columns, (count, count * leaves))


def complete(nrows: int, ncols: int | None = None) -> csr_array:
    """Return the matrix with every entry.

    Parameters
    ----------
    nrows : int
        Rows.
    ncols : int, optional
        Columns; as many as rows unless given.
    """
    return csr_array(np.ones((nrows, nrows if ncols is None else ncols), bool))


def empty(nrows: int, ncols: int | None = None) -> csr_array:
    """Return the matrix with no entry.

    Parameters
    ----------
    nrows : int
        Rows.
    ncols : int, optional
        Columns; as many as rows unless given.
    """
    return csr_array((nrows, nrows if ncols is None else ncols), dtype=bool)
