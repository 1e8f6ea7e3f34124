"""Maximum cardinality matching of any graph whose arrays are on the device.

1. Suitor with equal weights matches most vertices, those of small degree first.
2. The engine for bipartite graphs extends that to a maximum matching of the double cover. Its paths
   and cycles make a matching, in which neighbouring odd cycles leave no vertex (`double_cover`).
   The cover of the double cover gives the vertices that no augmenting path needs.
3. Trees from what the odd cycles leave match most of it (`trees`).

If nothing of that is left, the matching is maximum, and the parts of step 2 prove it: then nothing
goes to the host. This is so for bipartite graphs, and for most large graphs with a perfect
matching. Else the host searches from there (`task.fallback`), and the result comes back. So it does
with small graphs at once.
"""

from __future__ import annotations

import dataclasses

import cupy as cp

from gpumatch.contracts import GeneralMatchingTask, MatchingTask
from gpumatch.cuda.general import trees
from gpumatch.cuda.general.double_cover import DoubleCover, rounded, take_parts
from gpumatch.cuda.general.half_approximate import DeviceSteps
from gpumatch.cuda.matching import engine, min_degree
from gpumatch.cuda.matching.vertex_cover import cover
from gpumatch.cuda.surveys import count_matched
from gpumatch.numeric.halved_control import HalvedControl

__all__ = ["run"]

FEWEST = 2**17
"""Entries of a graph from which the device is faster. A Delaunay graph of 98,000 takes it 6 ms and
the host 4; one of 197,000 takes it 5 and the host 7 (H200)."""


def run(task: GeneralMatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless the control stopped it."""
    control, mate = task.control, task.mate
    matched = count_matched(mate) // 2
    if control.tick(matched):
        return False
    if task.indices.size < FEWEST:
        return _go_on_on_the_host(task)
    if not matched:
        with control.part("start"):
            mate[:] = DeviceSteps(task.indptr, task.indices, None, control).match()[0]
    with control.part("double cover"):
        odd_cycles = _match_double_cover(task)
    if not odd_cycles:
        return odd_cycles is not None
    with control.part("trees"):
        unmatched = trees.search(task, count_matched(mate) // 2)
    if unmatched is None or unmatched < 2:  # one has no other to lead to
        return unmatched is not None
    return _go_on_on_the_host(task)


def _match_double_cover(task: GeneralMatchingTask) -> int | None:
    """Make a matching of one of the double cover, and write the parts that this one proves.

    Returns
    -------
    int or None
        The odd cycles that leave a vertex unmatched; None if the control stopped the run.
    """
    control, mate = task.control, task.mate
    double = DoubleCover(task.indptr, task.indices)
    after, before = mate.copy(), mate.copy()
    halved = HalvedControl(control)
    cover_task = MatchingTask(double, after, before, halved, task.threads, task.seed)
    if control.stopped or not (min_degree.run(cover_task) and engine.run(cover_task)):
        return None
    found = rounded(double, after, before)
    mate[:] = found.mate
    size = count_matched(mate) // 2
    control.phase(found=0, matched=size, step="odd cycles", count=found.odd_cycles)
    outside, is_inner = cover(double, after, before)
    take_parts(double, outside, is_inner, task.part, task.OUTER, task.INNER)
    return found.unmatched_cycles


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
