"""HK: Hopcroft and Karp's algorithm: P-HK by one thread.

The result depends on the graph and the matching given only.

Reference: Hopcroft, Karp, *An n^5/2 algorithm for maximum matchings in bipartite graphs*, SIAM J.
Comput. 2(4), 1973.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.cpu.matching import p_hk

__all__ = ["run"]


def run(
    graph: Any,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
    control: Any,
    *,
    threads: int,
    seed: int,
) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    return p_hk.run(graph, row_to_col, col_to_row, control, threads=1, seed=seed)
