"""Threads of a GPU without a GPU: a seeded scheduler that takes turns among generators.

A kernel's thread is a generator over the thread's share of the vertices. At a bare ``yield`` it
waits for its next turn. No other thread interrupts what it does between two of them.

Threads form warps. A turn moves every lane of one warp to its next ``yield``, the lanes in random
order. So all have read before one writes, and any of them may write last. Each launch draws whether
warps have `WARP` lanes (lock-step) or one (the independent threads of newer devices), and for each
warp a pace between 1 and 1000, so that some threads end before others begin. Writes that other
threads see late or out of order are not modelled.

A warp's turns come at random times, exponentially distributed about its pace. Such times have no
memory, so the next warp is drawn among the running ones, weighted by 1 / pace.
"""

from __future__ import annotations

import gc
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, permutations

import numpy as np

# The paper's CT runs 256 x 256 threads in warps of 32. Scaled down, a thread of CT has several
# columns, and the launch several warps, on graphs of a hundred columns already.
THREAD_LIMIT = {"ct": 16, "mt": 65_536}
WARP = 4

TURNS_PER_HEARTBEAT = 1 << 13
TURNS_PER_DRAW = 1 << 8  # and two more for each warp; those of a warp that is done are void

Turns = Iterator[None]
DONE = object()


class Grid:
    """Runs kernels as threads that take turns in a seeded order.

    Parameters
    ----------
    launch : {"ct", "mt"}
        Constant number of threads, or one a vertex.
    seed : int
        Fixes the order.
    heartbeat : callable
        Called at each launch and about every `TURNS_PER_HEARTBEAT` turns. Its exceptions reach the
        caller.

    Attributes
    ----------
    launches : int
        Kernels run so far.
    """

    def __init__(
        self, launch: str, seed: int, heartbeat: Callable[[], object] = lambda: None
    ) -> None:
        self.launches = 0
        self._thread_limit = THREAD_LIMIT[launch]
        self._random = np.random.default_rng(seed)
        self._heartbeat = heartbeat
        self._turns = 0

    def thread_count(self, vertices: int) -> int:
        """Threads for this many vertices; further ones would have nothing to do."""
        return min(vertices, self._thread_limit)

    def begin_launch(self) -> None:
        """Count a launch: all there is to do for a kernel whose threads don't meet."""
        self.launches += 1
        self._heartbeat()

    def launch(
        self,
        thread: Callable[[Sequence[int]], Turns],
        vertices: int,
        active: Iterable[int] | None = None,
    ) -> None:
        """Run ``thread`` on every thread's share of ``range(vertices)``.

        With ``active``, a share has only those vertices. The others must have nothing to do.
        """
        self.begin_launch()
        count = self.thread_count(vertices)
        shares: Mapping[int, Sequence[int]]
        if active is None:
            shares = {tid: range(tid, vertices, count) for tid in range(count)}
        else:
            shares = _shares(active, count)
        width = int(self._random.choice((1, WARP)))
        if len(shares) == 1:
            self._run_alone(*map(thread, shares.values()))
            return
        with _no_garbage_collection():
            warps: dict[int, list[Turns]] = defaultdict(list)
            for tid, share in shares.items():
                warps[tid // width].append(thread(share))
            self._run(warps.values(), math.factorial(width))

    def _run_alone(self, lane: Turns) -> None:
        """Let the only lane come to its end."""
        while next(islice(lane, TURNS_PER_HEARTBEAT - 1, None), DONE) is not DONE:
            self._heartbeat()

    def _run(self, warps: Iterable[list[Turns]], order_count: int) -> None:
        """Give the warps their turns until all lanes are done."""
        orders = [_orders(warp, order_count) for warp in warps]
        rates = 10 ** self._random.uniform(-3, 0, len(orders))
        while orders:
            for number, order in self._draw(rates, order_count):
                for lane in orders[number][order]:
                    if next(lane, DONE) is DONE:
                        others = [other for other in orders[number][order] if other is not lane]
                        orders[number] = _orders(others, order_count)
            running = [number for number, lanes in enumerate(orders) if lanes[0]]
            orders, rates = [orders[number] for number in running], rates[running]

    def _draw(self, rates: np.ndarray, order_count: int) -> Iterator[tuple[int, int]]:
        """The next warps, drawn with odds given by the rates, and the orders of their lanes."""
        up_to = rates.cumsum()
        size = TURNS_PER_DRAW + 2 * len(rates)
        self._turns += size
        if self._turns >= TURNS_PER_HEARTBEAT:
            self._turns = 0
            self._heartbeat()
        numbers = up_to.searchsorted(self._random.uniform(0, up_to[-1], size))
        orders = self._random.integers(order_count, size=size)
        return zip(numbers.tolist(), orders.tolist())


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Thousands of threads would trigger the collector all the time, and it would find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _orders(lanes: list[Turns], count: int) -> list[tuple[Turns, ...]]:
    """All orders of the lanes, repeated until they are ``count``."""
    orders = list(permutations(lanes))
    return orders * (count // len(orders))


def _shares(active: Iterable[int], thread_count: int) -> Mapping[int, Sequence[int]]:
    """Each thread's active vertices, for the threads that have any."""
    shares: dict[int, list[int]] = defaultdict(list)
    for vertex in active:
        shares[vertex % thread_count].append(vertex)
    return shares
