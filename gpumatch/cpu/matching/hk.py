"""HK: Hopcroft and Karp's algorithm, which is P-HK by one thread.

The result depends only on the graph and the matching given.

Reference: Hopcroft, Karp, *An n^5/2 algorithm for maximum matchings in bipartite graphs*, SIAM J.
Comput. 2(4), 1973.
"""

from __future__ import annotations

import dataclasses

from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching import p_hk

__all__ = ["run"]


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    return p_hk.run(dataclasses.replace(task, threads=1))
