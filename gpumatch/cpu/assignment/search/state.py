"""The marks of searches and bids: places in their state, outcomes, and what stands for a mate.

The state of a search, or of a queue of bidders, is an array `spot` of SPOTS integers, so that
a kernel that returns to Python goes on where it stopped. A kernel uses the places that its header
names.

    NEXT      the vertex that is served next: free[NEXT]
    KEPT      vertices that are put off: free[:KEPT]
    HEAD      vertices of a tree, or of the columns at the front, that are scanned: tree[:HEAD];
              -1 if no search has begun; in a ring, the place of the first bidder
    TAIL      vertices of the tree: tree[:TAIL]
    LEAVER    the row of the tree that takes no column, or -1
    SCANS     entries (of a matrix: lines) that have been read
    WAITING   entries of the heap; in a ring, bidders
    NEAR      columns at the front, scanned or not: near[:NEAR]
    REACHED   columns that have a distance: reached[:REACHED]
    SINK      the nearest unmatched column so far, or -1
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

__all__ = [
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
    "REACHED",
    "SCANS",
    "SINK",
    "SPENT",
    "SPOTS",
    "STUCK",
    "TAIL",
    "UNMATCHED",
    "WAITING",
]

NEXT, KEPT, HEAD, TAIL, LEAVER, SCANS, WAITING, NEAR, REACHED, SINK, LOOKED, KNEW, SPOTS = range(13)
FRONT, LEAVE = range(2)
FOUND, LEFT, SPENT, STUCK, CLASH, DONE, LOW = range(7)
UNMATCHED, LOCKED = -1, -2
NOBODY = 0
