"""By how much the best assignment with a pair is worse than the optimum, for all pairs.

The vertices are rows with what they have, and the hub. An arc says that a row takes what another
one has, or leaves it to the hub, at the slack of the pair. The best assignment that has a pair is
the optimum changed along the cheapest cycle through its arc: its slack and the shortest path from
its head back to its tail. From each row goes one search, Dijkstra's, against the arcs, no farther
than is asked for.

Encodings
---------
``indptr, heads, slack``   arcs by their tails
``back, tails, length``    the same arcs by their heads
``dist``                   distance to the row; ``far`` if it is not known
``extra[a]``               the cost of the cheapest cycle through arc a; ``far`` above `within`
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.csr import transpose_values
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.searches.heap import drop_top, push

__all__ = ["cycles_within"]

_CHUNK = 2**19  # arcs looked at between two returns to Python, a search at least


def cycles_within(
    indptr: np.ndarray, heads: np.ndarray, slack: np.ndarray, rows: int, within: float, threads: int
) -> np.ndarray:
    """The cost of the cheapest cycle through each arc of the first `rows` tails.

    O(rows (arcs + vertices log vertices)) at most.
    """
    vertices = indptr.size - 1
    back, tails, length = transpose_values(indptr, heads, slack, vertices)
    far = np.inf if slack.dtype.kind == "f" else 2**62
    extra = np.full(slack.size, far, slack.dtype)
    ahead = iter(range(0, rows, 64))

    def serve(_: int) -> bool:
        dist = np.full(vertices, far, slack.dtype)
        reached, done = np.empty(vertices, np.int64), np.zeros(vertices, np.int8)
        keys, heap = np.empty(slack.size + 1, slack.dtype), np.empty(slack.size + 1, np.int64)
        for first in ahead:
            row, last = first, min(first + 64, rows)
            while row < last:
                row = _search(
                    row, last, indptr, heads, slack, back, tails, length,  # IN
                    slack.dtype.type(within), slack.dtype.type(far), _CHUNK,  # IN
                    extra, dist, reached, done, keys, heap,  # OUT
                )  # fmt: skip
        return True

    with Workers(threads, slack.size) as workers:
        workers.run(serve, rows)
    return extra


@kernel
def _search(
    row, last, indptr, heads, slack, back, tails, length, within, far, budget,
    extra, dist, reached, done, keys, heap,
):  # fmt: skip
    """Search from the rows while the budget lasts; return the row to go on with."""
    while row < last and budget > 0:
        dist[row] = within - within
        reached[0] = row
        count, waiting = 1, 0
        push(keys, heap, waiting, dist[row], row)
        waiting += 1
        while waiting > 0:
            front, vertex = keys[0], heap[0]
            waiting -= 1
            drop_top(keys, heap, waiting)
            if done[vertex] == 1:
                continue
            done[vertex] = 1
            budget -= back[vertex + 1] - back[vertex] + 1
            for arc in range(back[vertex], back[vertex + 1]):
                there, tail = front + length[arc], tails[arc]
                if there <= within and there < dist[tail]:
                    if dist[tail] == far:
                        reached[count] = tail
                        count += 1
                    dist[tail] = there
                    push(keys, heap, waiting, there, tail)
                    waiting += 1
        for arc in range(indptr[row], indptr[row + 1]):
            there = dist[heads[arc]]
            if there < far and slack[arc] + there <= within:
                extra[arc] = slack[arc] + there
        for at in range(count):
            dist[reached[at]] = far
            done[reached[at]] = 0
        row += 1
    return row
