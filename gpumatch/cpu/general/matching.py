"""Maximum cardinality matching of any graph: the driver.

1. Karp–Sipser matches most vertices (`karp_sipser`).
2. The double cover gives a fractional matching, and with it all but one vertex of each odd cycle,
   and the vertices that no augmenting path needs (`double_cover`).
3. A forest with blossoms matches what the odd cycles have left (`blossoms`).

The parts of the Gallai–Edmonds decomposition are D and A of the double cover, and of the rest the
outer and the inner vertices of the forest.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import GeneralMatchingTask
from gpumatch.cpu.general import blossoms, double_cover, karp_sipser
from gpumatch.numeric.arrays import count_matched

__all__ = ["run"]


def run(task: GeneralMatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    mate, control = task.mate, task.control
    with control.part("start"):
        if not karp_sipser.run(task):
            return False
    with control.part("double cover"):
        fractional = double_cover.solve(task)
        if fractional is None:
            return False
        mate[:] = fractional.mate
        size, cycles = count_matched(mate) // 2, fractional.odd_cycles
        control.phase(found=0, matched=size, step="odd cycles", count=cycles)
    with control.part("blossoms"):
        label = np.zeros(mate.size, np.int32)
        label[fractional.is_outer | fractional.is_inner] = blossoms.OUTSIDE
        if not blossoms.search(task.indptr, task.indices, mate, label, control):
            return False
    task.part[(label > 0) | fractional.is_outer] = task.OUTER
    task.part[((label < 0) & (label != blossoms.OUTSIDE)) | fractional.is_inner] = task.INNER
    return True
