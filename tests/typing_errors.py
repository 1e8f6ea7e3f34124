"""Calls that mypy must refuse: an ignore that is not needed is an error of `make lint`.

Nothing here is run.
"""

from __future__ import annotations

import gpumatch as gm


def wrong(C: list[list[int]]) -> None:
    gm.assign(C, cardinality="ful")  # type: ignore[call-overload]
    gm.assign(C, backend="gpu")  # type: ignore[call-overload]
    gm.assign(C, objective="bottleneck", cardinality="any")  # type: ignore[call-overload]
    gm.assign(C, objective="least")  # type: ignore[call-overload]
    gm.assign(C, algorithm="engin")  # type: ignore[call-overload]
    gm.assign(C, algorithm="engine", scaling="none")  # type: ignore[call-overload]
    gm.assign(C, algorithm="auction", search="paper")  # type: ignore[call-overload]
    gm.assign(C, algorithm="hungarian-tree", search="papers")  # type: ignore[call-overload]
    gm.assign(C, cost_limits=3)  # type: ignore[call-overload]
    gm.maximum_matching(C, algorithm="hk", launch="ct")  # type: ignore[call-overload]
    gm.maximum_matching(C, init="greedy")  # type: ignore[call-overload]
    gm.maximum_matching(C, backend="gpu")  # type: ignore[call-overload]
    gm.linalg.dmperm(C, backend="gpu")  # type: ignore[arg-type]


def right(C: list[list[int]]) -> tuple[float, int]:
    a: gm.Assignment = gm.assign(C, cardinality="maximum", backend="cpu")
    m: gm.Matching = gm.maximum_matching(C, init="karp-sipser")
    rows, cols = a
    return a.objective + gm.assign(C, objective="bottleneck").size, m.size + len(rows) + len(cols)
