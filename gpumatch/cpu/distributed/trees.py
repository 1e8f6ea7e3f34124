"""What the engine of `gpumatch.distributed.trees` needs of a side: the CPU's."""

from __future__ import annotations

from gpumatch.cpu.assignment.hungarian.problem import far_of, low_of
from gpumatch.cpu.assignment.hungarian.tree import (
    ENDS,
    FIRST,
    LEVELS,
    TAIL,
    augment,
    join,
    nearest_time,
    reverse,
    write_duals,
)

__all__ = [
    "ENDS",
    "FIRST",
    "LEVELS",
    "TAIL",
    "augment",
    "far_of",
    "join",
    "low_of",
    "nearest_time",
    "reverse",
    "write_duals",
]
