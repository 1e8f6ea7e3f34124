"""Maximum cardinality matching of any graph whose arrays are on the device.

Suitor with equal weights matches most vertices, those of small degree first. The engine for
bipartite graphs extends that to a maximum matching of the double cover, whose paths and cycles make
a matching (`double_cover`), in which neighbouring odd cycles leave no vertex. While that helps,
another double cover begins from this matching, and has fewer odd cycles.

If none of the cycles is odd, the matching is maximum, and the cover of the double cover is the
decomposition that proves it: of bipartite graphs, and of many others, nothing goes to the host.
Else the host goes on from this matching (`task.fallback`), and the result comes back.
"""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from typing import Any

import cupy as cp

from gpumatch.contracts import Control, GeneralMatchingTask, MatchingTask
from gpumatch.cuda.general.double_cover import DoubleCover, Rounded, rounded, take_parts
from gpumatch.cuda.general.half_approximate import DeviceSteps
from gpumatch.cuda.matching import engine, min_degree
from gpumatch.cuda.matching.vertex_cover import cover
from gpumatch.cuda.surveys import count_matched

__all__ = ["run"]

ROUNDS = 6
"""Double covers at most. Each begins from the matching that the last one gave, and another follows
while half of the unmatched cycles go."""


def run(task: GeneralMatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless the control stopped it."""
    control, mate = task.control, task.mate
    double = DoubleCover(task.indptr, task.indices)
    matched = count_matched(mate) // 2
    if control.tick(matched):
        return False
    if not matched:
        with control.part("start"):
            mate[:] = DeviceSteps(task.indptr, task.indices, None, control).match()[0]
    left, odd_cycles = mate.size + 1, 0
    for _ in range(ROUNDS):
        found = _round(task, double)
        if found is None:
            return False
        odd_cycles = found.odd_cycles
        if not odd_cycles or 2 * found.unmatched_cycles > left:
            break
        left = found.unmatched_cycles
    return not odd_cycles or _go_on_on_the_host(task)


def _round(task: GeneralMatchingTask, double: DoubleCover) -> Rounded | None:
    """Begin from the matching so far, and make one of the double cover; None if it was stopped.

    Without odd cycles, the parts are written, too.
    """
    control, mate = task.control, task.mate
    after, before = mate.copy(), mate.copy()
    halved: Any = _Halved(control)
    cover_task = MatchingTask(double, after, before, halved, task.threads, task.seed)
    with control.part("double cover"):
        if control.stopped or not (min_degree.run(cover_task) and engine.run(cover_task)):
            return None
        found = rounded(double, after, before)
    size = count_matched(found.mate) // 2
    if size >= count_matched(mate) // 2:
        mate[:] = found.mate
        control.phase(found=0, matched=size, step="odd cycles", count=found.odd_cycles)
    if not found.odd_cycles:
        outside, is_inner = cover(double, after, before)
        take_parts(double, outside, is_inner, task.part, task.OUTER, task.INNER)
    return found


def _go_on_on_the_host(task: GeneralMatchingTask) -> bool:
    assert task.fallback is not None
    names = "indptr", "indices", "mate", "part"
    with task.control.part("transfer"):
        arrays = {name: getattr(task, name).get() for name in names}
    on_host = dataclasses.replace(task, **arrays, fallback=None)
    try:
        return task.fallback(on_host)
    finally:
        task.mate[:] = cp.asarray(on_host.mate)
        task.part[:] = cp.asarray(on_host.part)


class _Halved:
    """The control of the double cover: two edges of the cover count as one of the graph."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.stopped, self.seconds = False, control.seconds

    def tick(self, matched: int) -> bool:
        self.stopped = self._control.tick(matched // 2)
        return self.stopped

    def phase(self, *, found: int, matched: int, levels: int = 0, **more: Any) -> None:
        self._control.phase(
            found=found, matched=matched // 2, levels=levels, step="double cover", **more
        )

    def part(self, name: str) -> AbstractContextManager[None]:
        return self._control.part(name)
