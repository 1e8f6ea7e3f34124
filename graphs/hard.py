"""Families of the experimental literature on bipartite matching, made to be hard.

The definitions are those of the programs behind

    Cherkassky, Goldberg, Martin, Setubal, Stolfi, "Augment or push: a computational study of
    bipartite matching and unit-capacity flow algorithms", ACM J. Exp. Algorithmics 3, 1998.

These are Setubal's ``rbg2`` (FewG, ManyG), Goldberg and Cherkassky's ``h8`` (Hi-Lo) and Stolfi's
``JCSGraphs`` (Rope, Hexa, Zipf).  Other random numbers are drawn here, and an edge drawn twice is
merged.  The numbering hides the structure if those programs hide it by default.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from graphs.csr import INDEX, pattern
from graphs.permute import rcp


def fewg(n: int, degree: float = 5.0, groups: int = 32, *, seed: int = 0) -> csr_array:
    """Return a FewG graph: 32 groups, each row joined to random columns of near groups.

    Rows and columns form a ring of groups; a row of group g takes a Poisson number of columns
    from the groups g - 1, g and g + 1.  Rows are numbered at random.

    Parameters
    ----------
    n : int
        Rows, and columns; a multiple of `groups`.
    degree : float
        Mean number of columns drawn for a row.
    groups : int
        Groups in the ring; at least 3.
    """
    group_size, rest = divmod(n, groups)
    if rest or groups < 3:
        raise ValueError(f"n = {n} must be a multiple of groups = {groups}, and groups at least 3")
    rng = np.random.default_rng(seed)
    degrees = np.minimum(rng.poisson(degree, n), 3 * group_size)
    group = np.repeat(np.arange(n) // group_size, degrees)
    columns = (group - 1) * group_size + rng.integers(3 * group_size, size=group.size)
    return pattern(np.repeat(rng.permutation(n), degrees), columns % n, (n, n))


def manyg(n: int, degree: float = 5.0, groups: int = 256, *, seed: int = 0) -> csr_array:
    """Return a ManyG graph: FewG with 256 groups.

    Parameters
    ----------
    n : int
        Rows, and columns; a multiple of `groups`.
    degree : float
        Mean number of columns drawn for a row.
    groups : int
        Groups in the ring; at least 3.
    """
    return fewg(n, degree, groups, seed=seed)


def hilo(k: int, pieces: int = 1, degree: int = 10) -> csr_array:
    """Return a Hi-Lo graph: one perfect matching, the diagonal, among up to 2 `degree` a row.

    In each piece row i meets columns i, i - 1, ..., `degree` of them or back to the first, and
    the same columns of the next piece.  The first row of the last piece has one column only,
    and each pair that is settled leaves one more row with one choice.

    Parameters
    ----------
    k : int
        Rows, and columns, of a piece.
    pieces : int
        Pieces.
    degree : int
        Columns that a row meets in a piece, at most.
    """
    row = np.arange(k)[:, None]
    column = row - np.arange(min(degree, k))
    i, offset = np.nonzero(column >= 0)
    j = column[i, offset]
    start = k * np.arange(pieces)[:, None]
    rows = [start + i, start[:-1] + i]
    columns = [start + j, start[1:] + j]
    n = k * pieces
    return pattern(
        np.concatenate([part.ravel() for part in rows]),
        np.concatenate([part.ravel() for part in columns]),
        (n, n),
    )


def rope(n: int, degree: float = 6.0, *, seed: int = 0) -> csr_array:
    """Return a Rope graph: a long chain of small layers with one maximum matching.

    Layers of rows and of columns alternate.  A matching joins each layer of rows to the layer of
    columns after it, and every maximum matching must use it.  Random decoys, about as dense as
    they can be, join that layer of columns to the next rows.  Numbered at random.

    Parameters
    ----------
    n : int
        Rows, and columns; those left over by the layers are isolated.
    degree : float
        Entries, divided by n.
    """
    rng = np.random.default_rng(seed)
    layers, thickness = rope_layers(n, degree)
    matched = np.arange(layers * thickness)
    cells = (layers - 1) * thickness**2  # places for decoys, of which some are taken, evenly
    decoys = min(cells, max(round(n * degree) - matched.size, 0))
    jitter = (1.0 - decoys / max(cells, 1)) * rng.random(decoys)
    cell = (np.arange(decoys) * (cells / max(decoys, 1)) + jitter).astype(np.int64)
    layer, place = np.divmod(cell, thickness**2)
    row, column = np.divmod(place, thickness)
    rows = np.concatenate([matched, (layer + 1) * thickness + row])
    columns = np.concatenate([matched, layer * thickness + column])
    return rcp(pattern(rows, columns, (n, n)), seed)


def rope_layers(n: int, degree: float) -> tuple[int, int]:
    """Return how many layers of rows a rope has, and the rows of one: as thin as they may be."""
    layers = np.arange(n, min(n, 3) - 1, -1)
    thickness = n // layers
    roomy = (layers + (layers - 1) * thickness) * thickness >= round(n * degree)
    chosen = int(roomy.argmax()) if roomy.any() else layers.size - 1
    return int(layers[chosen]), int(thickness[chosen])


def hexa(n: int, degree: float = 6.0, *, seed: int = 0) -> csr_array:
    """Return a Hexa graph: a union of random hexagons.

    Rows and columns are cut into equal blocks; each block of rows draws one cycle of three of its
    rows and three columns with each of many blocks of columns in turn.  Numbered at random.

    Parameters
    ----------
    n : int
        Rows, and columns; at least 3.
    degree : float
        Entries, divided by n.
    """
    rng = np.random.default_rng(seed)
    entries = round(n * degree)
    block = min(np.sqrt(n * n / max(entries // 6, 1)), max(3.0, 1.0 + 60.0 * entries / n))
    blocks = max(min(int(np.ceil(n / block)), n // 3), 1)
    bounds = np.arange(blocks + 1) * n // blocks
    hexagons = -(-np.diff(np.arange(blocks + 1) * entries // blocks) // 6)  # of a block of rows
    row_block = np.repeat(np.arange(blocks), hexagons)
    turn = np.arange(row_block.size) - np.repeat(np.cumsum(hexagons) - hexagons, hexagons)
    rows = _triples(bounds, row_block, rng)
    columns = _triples(bounds, (row_block + turn) % blocks, rng)
    u = np.concatenate([rows, rows])
    v = np.concatenate([columns[[1, 2, 0]], columns[[2, 0, 1]]])
    return rcp(pattern(u, v, (n, n)), seed)


def _triples(bounds: np.ndarray, block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw three distinct members of each named block, as three rows."""
    size = np.diff(bounds)[block]
    a = rng.integers(size)
    b = rng.integers(size - 1)
    b += b >= a
    c = rng.integers(size - 2)
    c += c >= np.minimum(a, b)
    c += c >= np.maximum(a, b)
    return bounds[block] + np.stack([a, b, c])


def zipf(n: int, degree: float = 6.0, *, seed: int = 0) -> csr_array:
    """Return a Zipf graph: row i and column j are joined with probability about 1 / (i j).

    A row's columns are drawn one from each of as many intervals, equally long on a logarithmic
    scale.  Numbered at random.

    Parameters
    ----------
    n : int
        Rows, and columns; at least 2.
    degree : float
        Entries, divided by n.
    """
    rng = np.random.default_rng(seed)
    row = np.arange(n)
    wanted = np.rint(n * degree * np.log(row + 1) / np.log(n)).astype(np.int64)
    placed = np.minimum.accumulate(wanted - row * n) + row * n  # no row takes more than n
    degrees = np.diff(placed, prepend=0)
    rows = np.repeat(row, degrees)
    interval = np.arange(rows.size) - np.repeat(placed - degrees, degrees)
    low, high = (
        np.rint((n + 1.0) ** ((interval + end) / degrees[rows])).astype(np.int64) - 1
        for end in (0, 1)
    )
    drawn = rng.integers(low, np.maximum(high, low + 1))
    # Where intervals share columns, take the next free one: running maxima within each row.
    row_start = 2 * n * rows
    columns = np.maximum.accumulate(row_start + drawn - interval) - row_start + interval
    return rcp(pattern(rows, columns.astype(INDEX), (n, n)), seed)
