"""PFP: Pothen and Fan's algorithm with lookahead and fairness, which is P-PFP by one thread.

The result depends only on the graph and the matching given.

Reference: Pothen, Fan, *Computing the block triangular form of a sparse matrix*, ACM TOMS 16(4),
1990; Duff, Kaya, Uçar, *Design, implementation, and analysis of maximum transversal algorithms*,
ACM TOMS 38(2), 2011, section 2.2 (PF+).
"""

from __future__ import annotations

import dataclasses

from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching import p_pfp

__all__ = ["run"]


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    return p_pfp.run(dataclasses.replace(task, threads=1))
