"""Shortest augmenting paths in a small dense table: the search that short calls share.

Row i of a problem may take column j at ``table[i, j]``, where ``far`` forbids it, or none at
``limit``; ``far`` says that it must have a column. There are no more rows than columns. If all
columns are to be matched, they are priced at their least costs and given to rows that have these
costs (column reduction). Each row that is left gets a shortest augmenting path, which ends in a
free column, or in a row of the tree for which taking none is cheaper. A row without a path stays
free. No later path could change that, so there are as many pairs as can be.

The search is Dijkstra's, as in `gpumatch.cpu.assignment.dense_paths`. But scanning a row and
choosing the next column are loops without a branch, over whole vectors, because a processor cannot
predict branches on costs that it has not seen before. Beyond FEW columns, the table is padded with
forbidden pairs. A column in the tree has the price -inf and the distance inf, so that nothing is
offered to it. The number of a free column is encoded in its mate, below 0. So the least mate of the
nearest columns names a free one if there is one.

If one row has all the least costs, for example if costs are products, trees are large and regular,
and the processor can predict the branches. Up to LISTED columns, those outside the tree are then in
a list and looked at one by one. The rows are taken from the end that is farther from its nearest
column, because that makes paths shorter.

    table[i, j]       cost of the pair
    table[PRICE, j]   dual of column j; if the search is by vectors, -inf while it is in the tree
    table[DIST, j]    distance of column j from the root; inf in the same case
    links[MATE, j]    row matched to column j; j - width if there is none
    links[PRED, j]    row from which column j is reached
    links[TREE, k]    columns of the tree in the order of joining; table[REACH, k] and
    table[PAID, k]    their distances and prices. As a list: the columns outside the tree, and after
                      them those of the tree
    found[COL, i]     column matched to row i, or -1

Vectors are rows of few arrays, because each view of an array costs an atomic count.

References
----------
Crouse, *On implementing 2D rectangular assignment algorithms*, IEEE Transactions on Aerospace and
Electronic Systems 52(4), 2016.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import fused, inlined, vector_kernel
from gpumatch.cpu.numba_tools.prefetch import LINE, prefetch
from gpumatch.cpu.numba_tools.vector_min import lesser

__all__ = [
    "COL",
    "LINKS",
    "MATE",
    "PAD",
    "PRICE",
    "VECTORS",
    "match_rows",
    "nearest",
    "rows_at_once",
    "width_for",
]

PAD = 16  # columns that are read at once: 2 or 4 vectors of float64
FEW = 19  # columns up to which a whole vector of them is too many: a little more than one PAD
FETCHED = 8  # cache lines that are fetched ahead for each row that is scanned
LISTED = 36  # columns up to which a list of them may be kept: about two PADs
VECTORS = 4  # rows of the table besides the costs
PRICE, DIST, REACH, PAID = range(-VECTORS, 0)
LINKS = 3
MATE, PRED, TREE = range(LINKS)
COL = 1

_NONE = np.int32(2**31 - 1)
_STUCK, _LEAVES = -1, -2  # no path; row i takes none: _LEAVES - i


@inlined
def width_for(ncols):
    """Columns of the table for so many of the problem."""
    return ncols if ncols <= FEW else -(-ncols // PAD) * PAD


@inlined
def rows_at_once(table):
    """Rows to be filled at once, column by column.

    If they are a multiple of a KiB apart, their columns have few places in the cache.
    """
    return 8 if table.shape[1] % 128 == 0 else table.shape[0]


@vector_kernel
def match_rows(table, links, found, ncols, reduces, limit, far, ahead):
    """Match the rows at least cost; how many have no path.

    ``reduces``: all columns are to be matched, and all rows. ``ahead`` is None, or an array to be
    brought into the caches meanwhile, and an array that holds the place from which on.
    """
    nrows, width = found.shape[1], table.shape[1]
    for row in range(nrows):
        found[COL, row] = -1
    for col in range(width):
        links[MATE, col] = col - width
        table[PRICE, col] = 0
    count = _reduce_columns(table, links, found, far) if reduces else 0
    listed = ncols if count == 1 and ncols <= LISTED else 0
    return _augment(table, links, found, listed, limit, far, ahead)


@vector_kernel
def _reduce_columns(table, links, found, far):
    """Price the columns at their least costs, and give them to rows that have these; how many."""
    nrows, width = found.shape[1], table.shape[1]
    for col in range(width):
        table[PRICE, col] = table[0, col]
        links[PRED, col] = 0
    for row in range(1, nrows):
        for col in range(width):
            cost, price, before = table[row, col], table[PRICE, col], links[PRED, col]
            links[PRED, col] = row if cost < price else before
            table[PRICE, col] = lesser(cost, price)
    count = 0
    for col in range(nrows):
        row = links[PRED, col]
        if found[COL, row] < 0 and table[PRICE, col] < far:
            found[COL, row] = col
            links[MATE, col] = row
            count += 1
    for col in range(width):
        table[PRICE, col] = table[PRICE, col] if table[PRICE, col] < far else 0
    return count


@vector_kernel
def nearest(table, row, far):
    """The distance of a row from its nearest column."""
    least = far
    for col in range(table.shape[1]):
        least = lesser(least, table[row, col] - table[PRICE, col])
    return least


@vector_kernel
def _augment(table, links, found, listed, limit, far, ahead):
    """Match the free rows by shortest augmenting paths; how many have none.

    ``listed`` is the number of columns if a list of them is to be kept, else 0.
    """
    nrows, stuck = found.shape[1], 0
    backwards = listed and nearest(table, nrows - 1, far) > nearest(table, 0, far)
    for k in range(nrows):
        root = nrows - 1 - k if backwards else k
        if found[COL, root] >= 0:
            continue
        if listed:
            sink = _search_one_by_one(table, links, root, listed, far)
        else:
            sink = _search(table, links, found, root, limit, far, ahead)
        if sink == _STUCK:
            stuck += 1
            continue
        row = root
        if sink < 0:
            row = _LEAVES - sink
            sink, found[COL, row] = found[COL, row], -1
            if row == root:
                continue
        while True:
            row = links[PRED, sink]
            links[MATE, sink] = row
            found[COL, row], sink = sink, found[COL, row]
            if row == root:
                break
    return stuck


@fused
def _search_one_by_one(table, links, root, ncols, far):
    """Search from ``root``; return the nearest free column, or _STUCK."""
    left, at, front = ncols, 0, far
    for k in range(ncols):
        col = ncols - 1 - k
        there = table[root, col] - table[PRICE, col]
        links[TREE, k] = col
        links[PRED, col] = root
        table[DIST, col] = there
        if there < front or (there == front and links[MATE, col] < 0):
            front = there
            at = k
    while front < far:
        col = np.uintp(links[TREE, at])  # Numba does not check unsigned indices for a sign
        row = links[MATE, col]
        if row < 0:
            for k in range(left, ncols):
                passed = np.uintp(links[TREE, k])
                table[PRICE, passed] += table[DIST, passed] - front
            return links[TREE, at]
        left -= 1
        links[TREE, at], links[TREE, left] = links[TREE, left], col
        offset = front - (table[row, col] - table[PRICE, col])
        least = far
        for k in range(left):
            col = np.uintp(links[TREE, k])
            there = (table[row, col] - table[PRICE, col]) + offset
            known = table[DIST, col]
            if there < known:
                known = there
                table[DIST, col] = there
                links[PRED, col] = row
            if known < least or (known == least and links[MATE, col] < 0):
                least = known
                at = k
        front = least if least > front else front
    return _STUCK


@fused
def _search(table, links, found, root, limit, far, ahead):
    """The same by vectors. A row of the tree may take none: _LEAVES less its number."""
    size, leave, leaver = 0, limit, root
    front = _start(table, links, root, far)
    while front < leave:
        if ahead is not None:
            _fetch_some(ahead)
        row = _least_mate(table, links, front)
        if row < 0:
            _lower_prices(table, links, size, front)
            return row + table.shape[1]
        col = np.uintp(found[COL, row])
        offset = front - (table[row, col] - table[PRICE, col])
        if limit < far and limit + offset < leave:
            leave, leaver = limit + offset, row
        links[TREE, size] = col
        table[REACH, size] = front
        table[PAID, size] = table[PRICE, col]
        size += 1
        table[PRICE, col] = -2 * far  # farther than any offset brings nearer
        table[DIST, col] = far
        least = _relax(table, links, row, offset, far)
        front = least if least > front else front
    if leave < far:
        _lower_prices(table, links, size, leave)
        return _LEAVES - leaver
    for k in range(size):
        table[PRICE, links[TREE, k]] = table[PAID, k]
    return _STUCK


@vector_kernel
def _lower_prices(table, links, size, front):
    """Lower the prices of the tree's columns by what they are nearer than ``front``."""
    for k in range(size):
        table[PRICE, links[TREE, k]] = table[PAID, k] + (table[REACH, k] - front)


@inlined
def _fetch_some(ahead):
    """Bring the next lines into the caches, without waiting for them."""
    costs, place = ahead
    if place[0] < costs.size:
        step = LINE // costs.itemsize
        for k in range(FETCHED):
            prefetch(costs, place[0] + k * step)
        place[0] += FETCHED * step


@inlined
def _start(table, links, root, far):
    """Set the distances of the columns from ``root``; return the least."""
    least = far
    for col in range(table.shape[1]):
        there = table[root, col] - table[PRICE, col]
        table[DIST, col] = there
        links[PRED, col] = root
        least = lesser(least, there)
    return least


@inlined
def _relax(table, links, row, offset, far):
    """Offer every column outside the tree the way through ``row``; return the least distance."""
    least = far
    for col in range(table.shape[1]):
        there = (table[row, col] - table[PRICE, col]) + offset
        known, before = table[DIST, col], links[PRED, col]
        nearest = lesser(there, known)
        table[DIST, col] = nearest
        links[PRED, col] = row if there < known else before
        least = lesser(least, nearest)
    return least


@inlined
def _least_mate(table, links, front):
    """The least mate among the columns within ``front``."""
    least = _NONE
    for col in range(table.shape[1]):
        least = lesser(least, links[MATE, col] if table[DIST, col] <= front else _NONE)
    return least
