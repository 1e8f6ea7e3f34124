"""Shortest augmenting paths in a small dense table: the search that short calls share.

Row i of a problem may take column j at ``table[i, j]``, where ``far`` forbids it, or none at
``limit``; ``far`` says that it must have a column. If both cost the same, ``takes_equal`` says that
it takes the column. There are no more rows than columns. If all columns are to be matched, they are
priced at their least costs and given to rows that have these costs (column reduction). Each
unmatched row gets a shortest augmenting path. It ends in an unmatched column, or in a row of the
tree for which taking none is cheaper. If ``limits`` are given, ``limits[i]`` is the limit of row i.
A row without a path stays unmatched. No later path could change that, so there are as many pairs as
can be.

With ``takes_equal``, no row and column are both unmatched at the end whose pair costs the limit or
less, however sums are rounded. Let a search reach row i at the front f, and let ``offset`` be what
is added there to the reduced costs of the row. Row i may take none at the distance
max(limit + offset, f). An unmatched column j has the price 0, so its distance is then at most
table[i, j] + offset. If table[i, j] <= limit, that is no more than limit + offset, because rounding
keeps the order. So the front never passes the distance at which row i would take none, and the
search ends in an unmatched column instead.

The search is Dijkstra's, as in `gpumatch.cpu.searches.dense`. But scanning a row and
choosing the next column are loops without a branch, over whole vectors, because a processor cannot
predict branches on costs that it has not seen before. Beyond FEW columns, the table is padded with
forbidden pairs. A column in the tree has the price -inf and the distance inf, so that nothing is
offered to it. The number of an unmatched column is encoded in its mate, below 0. So the least mate
of the nearest columns names an unmatched one if there is one.

If one row has all the least costs, for example if costs are products, trees are large and regular,
and the processor can predict the branches. Up to LISTED columns, those outside the tree are then in
a list and looked at one by one. The rows are taken from the end that is farther from its nearest
column, because that makes paths shorter.

    table[i, j]         cost of the pair
    vectors[PRICE, j]   dual of column j; if the search is by vectors, -inf while it is in the tree
    vectors[DIST, j]    distance of column j from the root; inf in the same case
    links[MATE, j]      row matched to column j; j - width if there is none
    links[PRED, j]      row from which column j is reached
    links[TREE, k]      columns of the tree in the order of joining; vectors[REACH, k] and
    vectors[PAID, k]    their distances and prices. As a list: the columns outside the tree, and
                        after them those of the tree
    found[COL, i]       column matched to row i, or UNMATCHED; WAITS before it is searched from

Vectors are rows of few arrays, because each view of an array costs an atomic count. Up to NEAR
columns, they should be on the stack, as a kernel's other variables are. AMD's processors look for a
line in the nearest cache by a hash of its address. Of two lines far apart that have the same, they
find only the one that was read last, and a search may take 1.4 times as long. Pages that are near
each other have different ones.

References
----------
Crouse, *On implementing 2D rectangular assignment algorithms*, IEEE Transactions on Aerospace and
Electronic Systems 52(4), 2016.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import fused, inlined, vector_kernel
from gpumatch.cpu.numba_tools.error_free import down, lost
from gpumatch.cpu.numba_tools.prefetch import LINE, prefetch_far
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import view

__all__ = [
    "COL",
    "LINKS",
    "MATE",
    "NEAR",
    "NEAR_LINKS",
    "NEAR_VECTORS",
    "PAD",
    "PRED",
    "PRICE",
    "TREE",
    "UNMATCHED",
    "VECTORS",
    "WAITS",
    "augment_rows",
    "begin_prices",
    "dual_below",
    "match_rows",
    "nearest",
    "price_columns",
    "rows_at_once",
    "vectors_in",
    "width_for",
]

PAD = 16  # columns that are read at once: 2 or 4 vectors of float64
FEW = 19  # columns up to which a whole vector of them is too many: a little more than one PAD
FETCHED = 8  # cache lines that are fetched ahead for each row that is scanned
NEAR = 512  # columns up to which the vectors should be on the stack: 30 KiB with what is found
LISTED = 36  # columns up to which a list of them may be kept: about two PADs
NARROW = 6
"""Columns up to which the exact distances of all columns of a row cost little."""
HALF = LINE // 2 // 8
"""Numbers in half of a cache line."""
SHIFTED = 200
"""Columns up to which vectors begin in the middle of a line.

A search writes two numbers just before it reads the vectors that these are in. Processors that read
64 bytes at once then wait for a line to be written. Two halves of lines are there sooner, but more
columns come from farther away, line by line.
"""
VECTORS = 4
PRICE, DIST, REACH, PAID = range(VECTORS)
LINKS = 3
MATE, PRED, TREE = range(LINKS)
COL = 1
UNMATCHED, WAITS = -1, -2
NEAR_VECTORS, NEAR_LINKS = NEAR * VECTORS, NEAR * LINKS

_NONE = np.int32(2**31 - 1)
_STUCK, _LEAVES = -1, -2  # no path; row i takes none: _LEAVES - i


@inlined
def width_for(ncols):
    """Return the columns of the table for a problem with so many."""
    return ncols if ncols <= FEW else -(-ncols // PAD) * PAD


@inlined
def vectors_in(memory, width):
    """Return the vectors of so many columns, in memory that begins with a cache line."""
    return view(memory, HALF if width <= SHIFTED else 0, (VECTORS, width))


@inlined
def rows_at_once(table):
    """Return how many rows are filled at once, column by column.

    If they are a multiple of a KiB apart, their columns have few places in the cache.
    """
    return 8 if table.shape[1] % 128 == 0 else greater(table.shape[0], 1)


@fused
def match_rows(
    table, vectors, links, found, ncols, reduces, gives_up, limit, takes_equal, far, ahead
):  # fmt: skip
    """Match the rows at least cost; return how many have no path.

    ``reduces`` is True if all rows and columns must be matched and `price_columns` came before. If
    ``gives_up`` is True, the first row without a path ends the call. ``ahead`` is None, or memory
    to bring into the caches meanwhile, as bytes, and an array with the place to begin from.
    """
    nrows, width = found.shape[1], table.shape[1]
    for row in range(nrows):
        found[COL, row] = WAITS
    for col in range(width):
        links[MATE, col] = col - width
    count = _give_columns(vectors, links, found, far) if reduces else 0
    for col in range(width):
        vectors[PRICE, col] = vectors[PRICE, col] if reduces and vectors[PRICE, col] < far else 0
    listed = ncols if count == 1 and ncols <= LISTED else 0
    return augment_rows(
        table, vectors, links, found, listed, gives_up, limit, None, takes_equal, far, ahead
    )  # fmt: skip


@inlined
def begin_prices(vectors, links, far):
    """Set the prices of all columns to infinity."""
    for col in range(vectors.shape[1]):
        vectors[PRICE, col] = far
        links[PRED, col] = 0


@vector_kernel
def price_columns(table, vectors, links, far):
    """Price the columns at their least costs, and name rows that have these."""
    begin_prices(vectors, links, far)
    for row in range(table.shape[0]):
        for col in range(table.shape[1]):
            cost, price, before = table[row, col], vectors[PRICE, col], links[PRED, col]
            links[PRED, col] = row if cost < price else before
            vectors[PRICE, col] = lesser(cost, price)


@vector_kernel
def _give_columns(vectors, links, found, far):
    """Give columns to rows that have their least costs, the last first; return how many.

    If one row has all least costs, it gets the first column. So lapx's and SciPy's own examples of
    ties have the answers that these give.
    """
    count, first = 0, 0
    for col in range(found.shape[1] - 1, -1, -1):
        row = links[PRED, col]
        first = col if vectors[PRICE, col] < far else first
        if found[COL, row] < 0 and vectors[PRICE, col] < far:
            found[COL, row] = col
            links[MATE, col] = row
            count += 1
    if count == 1 and links[MATE, first] < 0:
        row = links[PRED, first]
        last = found[COL, row]
        links[MATE, last] = links[MATE, first] + last - first  # that of an unmatched column
        found[COL, row], links[MATE, first] = first, row
    return count


@vector_kernel
def nearest(table, vectors, row, far):
    """Return the distance of a row from its nearest column."""
    least = far
    for col in range(table.shape[1]):
        least = lesser(least, table[row, col] - vectors[PRICE, col])
    return least


@vector_kernel
def dual_below(table, vectors, row, most):
    """Return ``most``, or what is left of the distance of a row from a nearer column, rounded down.

    ``most`` is the rounded distance of the row's mate, or what the row costs without one. Rounding
    keeps the order, so only columns within ``most`` can be nearer. In NARROW rows, their exact
    distances tell if any is. In others, the float below the least is below all of them, for the
    price of one float: exact distances would take three times as long.
    """
    if table.shape[1] <= NARROW:
        least, error = most, 0.0
        for col in range(table.shape[1]):
            cost, price = table[row, col], vectors[PRICE, col]
            there = cost - price
            least = lesser(least, there)
            error = lesser(error, lost(cost, price, there) if there <= most else 0.0)
        return down(least, error)
    least = nearest(table, vectors, row, np.inf)
    return most if least > most else down(least, -1.0)


@vector_kernel
def augment_rows(
    table, vectors, links, found, listed, gives_up, limit, limits, takes_equal, far, ahead
):  # fmt: skip
    """Match the rows that wait by shortest augmenting paths; return how many have none.

    ``listed`` is the number of columns if a list of them is to be kept, else 0.
    """
    nrows, stuck = found.shape[1], 0
    backwards = listed and nearest(table, vectors, nrows - 1, far) > nearest(table, vectors, 0, far)
    for k in range(nrows):
        root = nrows - 1 - k if backwards else k
        if found[COL, root] != WAITS:
            continue
        found[COL, root] = UNMATCHED
        if listed:
            sink = _search_one_by_one(table, vectors, links, root, listed, far)
        else:
            sink = _search(
                table, vectors, links, found, root, limit, limits, takes_equal, far, ahead
            )
        if sink == _STUCK:
            stuck += 1
            if gives_up:
                break
            continue
        row = root
        if sink < 0:
            row = _LEAVES - sink
            sink, found[COL, row] = found[COL, row], UNMATCHED
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
def _search_one_by_one(table, vectors, links, root, ncols, far):
    """Search from ``root``; return the nearest unmatched column, or _STUCK.

    Of ways that are as short, the last one found is kept.
    """
    left, at, front = ncols, 0, far
    for k in range(ncols):
        col = ncols - 1 - k
        there = table[root, col] - vectors[PRICE, col]
        links[TREE, k] = col
        links[PRED, col] = root
        vectors[DIST, col] = there
        if there < front or (there == front and links[MATE, col] < 0):
            front = there
            at = k
    while front < far:
        col = np.uintp(links[TREE, at])  # Numba does not check unsigned indices for a sign
        row = links[MATE, col]
        if row < 0:
            for k in range(left, ncols):
                passed = np.uintp(links[TREE, k])
                vectors[PRICE, passed] += vectors[DIST, passed] - front
            return links[TREE, at]
        left -= 1
        links[TREE, at], links[TREE, left] = links[TREE, left], col
        offset = front - (table[row, col] - vectors[PRICE, col])
        least = far
        for k in range(left):
            col = np.uintp(links[TREE, k])
            there = (table[row, col] - vectors[PRICE, col]) + offset
            known = vectors[DIST, col]
            if there <= known:
                known = there
                vectors[DIST, col] = there
                links[PRED, col] = row
            if known < least or (known == least and links[MATE, col] < 0):
                least = known
                at = k
        front = least if least > front else front
    return _STUCK


@fused
def _search(table, vectors, links, found, root, limit, limits, takes_equal, far, ahead):
    """Search from ``root`` by vectors; return the nearest unmatched column, or _STUCK.

    If a row of the tree takes none, the result is _LEAVES less the number of the row.
    """
    if limits is not None:
        limit = limits[root]
    size, leave, leaver = 0, limit, root
    front = _start(table, vectors, links, root, far)
    while front < leave or (takes_equal and front == leave):
        if ahead is not None:
            _fetch_some(ahead)
        row = _least_mate(vectors, links, front)
        if row < 0:
            _lower_prices(vectors, links, size, front)
            return row + table.shape[1]
        col = np.uintp(found[COL, row])
        offset = front - (table[row, col] - vectors[PRICE, col])
        if limits is not None:
            limit = limits[row]
        going = greater(limit + offset, front)  # by rounding, the sum may be less
        if limit < far and going < leave:
            leave, leaver = going, row
        links[TREE, size] = col
        vectors[REACH, size] = front
        vectors[PAID, size] = vectors[PRICE, col]
        size += 1
        vectors[PRICE, col] = -2 * far  # farther than any offset brings nearer
        vectors[DIST, col] = far
        least = _relax(table, vectors, links, row, offset, far)
        front = least if least > front else front
    if leave < far:
        _lower_prices(vectors, links, size, leave)
        return _LEAVES - leaver
    for k in range(size):
        vectors[PRICE, links[TREE, k]] = vectors[PAID, k]
    return _STUCK


@vector_kernel
def _lower_prices(vectors, links, size, front):
    """Lower the prices of the tree's columns by what they are nearer than ``front``."""
    for k in range(size):
        vectors[PRICE, links[TREE, k]] = vectors[PAID, k] + (vectors[REACH, k] - front)


@inlined
def _fetch_some(ahead):
    """Bring the next lines into the caches, without waiting for them."""
    costs, place = ahead
    if place[0] < costs.size:
        for k in range(FETCHED):
            prefetch_far(costs, place[0] + k * LINE)
        place[0] += FETCHED * LINE


@inlined
def _start(table, vectors, links, root, far):
    """Set the distances of the columns from ``root``; return the least."""
    least = far
    for col in range(table.shape[1]):
        there = table[root, col] - vectors[PRICE, col]
        vectors[DIST, col] = there
        links[PRED, col] = root
        least = lesser(least, there)
    return least


@inlined
def _relax(table, vectors, links, row, offset, far):
    """Offer every column outside the tree the way through ``row``; return the least distance."""
    least = far
    for col in range(table.shape[1]):
        there = (table[row, col] - vectors[PRICE, col]) + offset
        known, before = vectors[DIST, col], links[PRED, col]
        nearest = lesser(there, known)
        vectors[DIST, col] = nearest
        links[PRED, col] = row if there < known else before
        least = lesser(least, nearest)
    return least


@inlined
def _least_mate(vectors, links, front):
    """Return the least mate among the columns within ``front``."""
    least = _NONE
    for col in range(vectors.shape[1]):
        least = lesser(least, links[MATE, col] if vectors[DIST, col] <= front else _NONE)
    return least
