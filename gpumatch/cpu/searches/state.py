"""The state of searches and of queues of bidders: its places, outcomes, marks in place of a mate.

The state of a search, or of a `Queue` of bidders, is an array `spot` of SPOTS integers, so that
a kernel that returns to Python goes on where it stopped. A kernel uses the places that its header
names.

    NEXT      the vertex that is served next: unmatched[NEXT]
    KEPT      vertices that are put off: unmatched[:KEPT]
    HEAD      vertices of a tree, or of the columns at the front, that are scanned: tree[:HEAD];
              -1 if no search has begun; in a ring, the place of the first bidder
    TAIL      vertices of the tree: tree[:TAIL]
    LEAVER    the row of the tree that takes no column, or -1
    SCANS     entries (of a matrix: lines) that have been read
    WAITING   entries of the heap; in a ring, bidders
    NEAR      columns at the front, scanned or not: near[:NEAR]
    REACHED   columns that have a distance: reached[:REACHED]
    SINK      the nearest unmatched column so far, or -1
    PUSHED    how often columns have been put into the heap
    LOOKED    looks at lines of a matrix while rows bid
    KNEW      bids without a look

Two distances stand in an array `mark`: FRONT, that of the last column that has joined the tree, and
LEAVE, that of the nearest end so far, from which on no path is shorter.

A kernel returns why it ended:

    FOUND     a shortest path ends in an unmatched column; for many rows: all of them are served
    LEFT      a shortest path ends in a row that takes no column
    SPENT     the budget is spent, and another call goes on
    STUCK     a row has no path
    CLASH     a column belongs to the search of another thread
    DONE      no more bidders wait than may
    LOW       a price is below all prices of a feasible problem

In place of a mate stands UNMATCHED, or LOCKED while a thread changes the vertex. In place of
a thread that owns a column stands NOBODY.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "AHEAD",
    "CLASH",
    "DONE",
    "FOUND",
    "FRONT",
    "HEAD",
    "KEPT",
    "KNEW",
    "LEAVE",
    "LEAVER",
    "LEFT",
    "LOCKED",
    "LOOKED",
    "LOW",
    "NEAR",
    "NEXT",
    "NOBODY",
    "PUSHED",
    "REACHED",
    "SCANS",
    "SINK",
    "SPENT",
    "SPOTS",
    "STUCK",
    "TAIL",
    "UNMATCHED",
    "WAITING",
    "Queue",
]

(
    NEXT,
    KEPT,
    HEAD,
    TAIL,
    LEAVER,
    SCANS,
    WAITING,
    NEAR,
    REACHED,
    SINK,
    LOOKED,
    KNEW,
    PUSHED,
    SPOTS,
) = range(14)
FRONT, LEAVE = range(2)
FOUND, LEFT, SPENT, STUCK, CLASH, DONE, LOW = range(7)
UNMATCHED, LOCKED = -1, -2
NOBODY = 0

AHEAD = 12
"""Places of a queue by which reads of bidders are fetched ahead into the caches.

In CSR these are the row pointers; the entries are fetched half as far ahead, and the prices a
quarter.
"""


class Queue:
    """A ring of rows, or columns, that wait to bid, and its state, as `bidding` explains them."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = np.zeros(1 << int(rows.size).bit_length(), np.int32)
        self.rows[: rows.size] = rows
        self.state = np.zeros(SPOTS, np.int64)
        self.state[WAITING] = rows.size

    @property
    def waiting(self) -> np.ndarray:
        """The rows, or columns, that wait now, in their order."""
        places = self.state[HEAD] + np.arange(self.state[WAITING])
        return self.rows[places & (self.rows.size - 1)]

    @property
    def ring(self) -> tuple[np.ndarray, np.ndarray]:
        """The arrays of the queue, as kernels take them."""
        return self.rows, self.state
