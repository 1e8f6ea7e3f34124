"""The state of searches for flows: its places, outcomes, and marks in place of an entry.

The state of a search is an array `spot` of SPOTS integers, and two distances in an array `mark`, so
that a kernel that returns to Python goes on where it stopped. A kernel uses the places that it
needs.

    NEXT        the root that is served next
    HEAD, TAIL  columns at the front, or nodes, that are scanned and that are reached; HEAD is -1 if
                no search has begun
    LINE_HEAD, LINE_TAIL    the same of the rows of the tree
    NEAR        columns at the front
    WAITING     entries of the heap
    REACHED     vertices that have a distance
    SINK        the nearest end so far, or -1
    LEAVER      the row of the tree whose units stay, or -1
    SCANS       entries that have been read
    PATHS       paths that have been augmented
    FRONT       mark[FRONT]: the distance of the last vertex that has joined the tree
    LEAVE       mark[LEAVE]: that of the nearest end so far, from which on no path is shorter

A kernel returns SERVED if it has served all roots, SPENT if the budget is spent and another call
goes on, and STUCK if a root has no path. One search has FOUND an end, or a row whose units stay has
LEFT.

The entries with flow of a column are a list, which ends with END; the link of an entry that is in
no list is ABSENT.
"""

from __future__ import annotations

__all__ = [
    "ABSENT", "END", "FOUND", "FRONT", "HEAD", "LEAVE", "LEAVER", "LEFT", "LINE_HEAD", "LINE_TAIL",
    "MARKS", "NEAR", "NEXT", "PATHS", "REACHED", "SCANS", "SERVED", "SINK", "SPENT", "SPOTS",
    "STUCK", "TAIL", "WAITING",
]  # fmt: skip

END, ABSENT = -1, -2
NEXT, HEAD, TAIL, LINE_HEAD, LINE_TAIL, NEAR, WAITING = range(7)
REACHED, SINK, LEAVER, SCANS, PATHS, SPOTS = range(7, 13)
FRONT, LEAVE, MARKS = range(3)
SERVED, SPENT, STUCK, FOUND, LEFT = range(5)
