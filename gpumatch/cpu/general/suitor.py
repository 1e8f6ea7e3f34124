"""Suitor: the matching that takes the heaviest edge first, found by bids of vertices.

Order the edges by weight, and take one after the other if both of its ends are unmatched. The
result weighs at least half as much as any matching (Preis 1999). Each of its edges is locally
dominant: when it is taken, no edge beside it is heavier. So all vertices can act at once. A vertex
bids for the best neighbour that it can still win. A neighbour keeps the best bid, and the vertex
that loses its place bids again. The order is total, so the result is the same for any number of
threads and for any order of the bids:

    1. the greater weight,
    2. the smaller degree of the two ends together, as the minimum degree start has it; degrees
       from MOST_DEGREE on count as that, so that a byte holds one,
    3. the greater scrambled number of the pair, so that chains of equal weights stay short,
    4. the smaller vertices.

Encodings
    keys[e]       weight of entry e in the order of integers; entries up to 0 are never matched
    suitor[v]     best bid for v: its bidder << 32 | place of the entry in the bidder's row; -1 none
    degree[v]     the degree of v, MOST_DEGREE at most
    held[v]       a key that the best bid for v has at least; it may lag behind, and never exceeds
    bidder[k]     vertex that worker k goes on with, -1 for none
    next_of[k], last_of[k]   the range of vertices that worker k has taken and not begun

The positive floats have the order of their bits, so weights of float64 are read as int64.

Duals y of `dual_descent` tell which edges are in a heavy fractional matching: those of little slack
y_u + y_v - w. Taking the edges of least slack first is most often heavier than the heaviest first,
though it proves nothing. Then the key of an edge is unit / (unit + slack).

A vertex bids again only after a better bid has come for the neighbour that it had won, so it reads
its row at most once for each neighbour: O(sum of squared degrees) at worst. On random weights a row
is read 1.2 to 1.4 times.

Reference: Manne, Halappanavar, *New effective multithreaded matching algorithms*, IPDPS 2014.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpumatch.cpu.matching.sides import blocks
from gpumatch.cpu.numba_tools.atomics import cas, fetch_add, load
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["keys_of_slack", "match"]

BUDGET = 2**22
"""Entries that a worker reads before it returns: under half a second even if all miss the cache."""
MOST_DEGREE = 255
_NUMBER_BITS = 55  # of the scrambled number of a pair: on a GPU it shares a word with degrees
_RANGE = 256  # vertices that a worker takes at once
_PLACE = 0xFFFFFFFF


@kernel
def _scrambled(u, v):
    """A number of the pair, the same from both of its ends."""
    low, high = np.uint64(min(u, v)), np.uint64(max(u, v))
    number = low * np.uint64(0x9E3779B97F4A7C15) + high * np.uint64(0xC2B2AE3D27D4EB4F)
    number = (number ^ (number >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return (number ^ (number >> np.uint64(32))) >> np.uint64(64 - _NUMBER_BITS)


@kernel
def _precedes(u, rival, v, degree):
    """True if, of two edges of v with equal keys, that to u comes before that to the rival."""
    if degree[u] != degree[rival]:
        return degree[u] < degree[rival]
    number, other_number = _scrambled(u, v), _scrambled(rival, v)
    return number > other_number if number != other_number else u < rival


@kernel
def _loses(u, key, v, indptr, degree, keys, suitor):
    """True if the best bid for v comes before that of u."""
    bid = load(suitor, v)
    if bid < 0:
        return False
    rival = bid >> 32
    rival_key = keys[indptr[rival] + (bid & _PLACE)]
    return rival_key > key or (rival_key == key and _precedes(rival, u, v, degree))


@kernel
def _best_entry(u, indptr, indices, degree, keys, suitor, held):
    """The entry of the best neighbour that u can still win, -1 if there is none."""
    best, best_key = -1, 0
    for e in range(indptr[u], indptr[u + 1]):
        key = keys[e]
        if key <= 0 or key < best_key:
            continue
        v = indices[e]
        if key < held[v]:
            continue
        if key == best_key and not _precedes(v, indices[best], u, degree):
            continue
        if key == held[v] and _loses(u, key, v, indptr, degree, keys, suitor):
            continue
        best, best_key = e, key
    return best


@kernel
def _raise_to(held, v, key):
    seen = load(held, v)
    while seen < key and not cas(held, v, seen, key):
        seen = load(held, v)


@kernel
def _bid_for(u, e, indptr, indices, degree, keys, suitor, held):
    """Bid by entry e of u: the vertex that must bid now, u itself if it came too late; -1 none."""
    v, key = indices[e], keys[e]
    bid = (np.int64(u) << 32) | (e - indptr[u])
    while True:
        seen = load(suitor, v)
        rival = seen >> 32
        if seen >= 0:
            rival_key = keys[indptr[rival] + (seen & _PLACE)]
            if rival_key > key or (rival_key == key and _precedes(rival, u, v, degree)):
                _raise_to(held, v, rival_key)
                return u
        if cas(suitor, v, seen, bid):
            _raise_to(held, v, key)
            return rival


@kernel
def _bid(
    worker,
    budget,
    indptr,
    indices,
    degree,
    keys,
    suitor,
    held,
    next_vertex,
    bidder,
    next_of,
    last_of,
):
    """Let vertices bid until all have (True) or the budget is spent."""
    count = len(suitor)
    u, work = bidder[worker], 0
    while work < budget:
        if u < 0:
            if next_of[worker] == last_of[worker]:
                next_of[worker] = fetch_add(next_vertex, 0, _RANGE)
                last_of[worker] = min(next_of[worker] + _RANGE, count)
                if next_of[worker] >= count:
                    next_of[worker] = last_of[worker]
                    bidder[worker] = -1
                    return True
            u = next_of[worker]
            next_of[worker] += 1
        work += indptr[u + 1] - indptr[u] + 1
        e = _best_entry(u, indptr, indices, degree, keys, suitor, held)
        u = -1 if e < 0 else _bid_for(u, e, indptr, indices, degree, keys, suitor, held)
    bidder[worker] = u
    return False


@kernel
def _keys_of_slack(first, last, indptr, indices, weights, dual, unit, keys):
    for v in range(first, last):
        for e in range(indptr[v], indptr[v + 1]):
            slack = max((dual[v] + dual[indices[e]]) - weights[e], 0.0)
            keys[e] = unit / (unit + slack) if weights[e] > 0 else 0.0


def keys_of_slack(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    dual: np.ndarray,
    unit: float,
    threads: int,
) -> np.ndarray:
    """Keys for `match`: greater for an edge of less slack; 0 if its weight is not positive."""
    keys = np.empty(len(indices))
    ranges = [*blocks(indptr)]

    def work(k: int) -> None:
        _keys_of_slack(
            *ranges[k], indptr, indices, weights, dual, unit,  # IN
            keys,  # OUT
        )  # fmt: skip

    with Workers(threads, len(indices)) as workers:
        workers.deal(work, len(ranges))
    return keys.view(np.int64)


def match(
    indptr: np.ndarray,
    indices: np.ndarray,
    keys: np.ndarray,
    threads: int,
    beat: Callable[[], bool],
) -> tuple[np.ndarray, np.ndarray]:
    """The locally dominant matching by the keys.

    Parameters
    ----------
    indptr, indices, keys : int64, int32 and int64 arrays
        A symmetric graph without loops, with both entries of an edge of equal keys.
    threads : int
    beat : callable
        It is called at least every half second; True stops the run.

    Returns
    -------
    mate : int32 array
        The mate of each vertex; -1 unmatched.
    entry : int64 array
        An entry of the edge to it; -1 unmatched.
    """
    count = len(indptr) - 1
    degree = np.minimum(np.diff(indptr), MOST_DEGREE).astype(np.uint8)
    suitor, held = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    next_vertex = np.zeros(1, np.int64)
    with Workers(threads, len(indices)) as workers:
        bidder = np.full(workers.threads, -1, np.int64)
        next_of, last_of = np.zeros((2, workers.threads), np.int64)

        def bid(worker: int) -> bool:
            return _bid(
                worker, BUDGET, indptr, indices, degree, keys,  # IN
                suitor, held, next_vertex, bidder, next_of, last_of,  # IN, OUT
            )  # fmt: skip

        while not workers.run(bid, -(-count // _RANGE)):
            if beat():
                break
    return _taken(suitor, indptr)


def _taken(suitor: np.ndarray, indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mates and the entries of the vertices that are each other's suitors.

    At the end all suitors are. In a run that is stopped, those that are make a matching.
    """
    mate = (suitor >> 32).astype(np.int32)
    vertices = np.flatnonzero(mate >= 0)
    vertices = vertices[mate[mate[vertices]] == vertices]
    entry = np.full(len(mate), -1, np.int64)
    entry[vertices] = indptr[mate[vertices]] + (suitor[vertices] & _PLACE)
    mate[entry < 0] = -1
    return mate, entry
