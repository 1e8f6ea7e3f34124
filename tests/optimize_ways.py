"""The two ways of `linear_sum_assignment` through small dense matrices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import gpumatch.optimize
from gpumatch.cpu.assignment.small import pairs_only

WAYS = ["at once", "by assign"]
"""One compiled call, and that of all other matrices."""


@contextmanager
def going(way: str) -> Iterator[None]:
    """Have all calls go one of the ways."""
    with pytest.MonkeyPatch.context() as patch:
        if way == "by assign":
            patch.setattr(gpumatch.optimize, "_SOLVERS", {})
            patch.setattr(pairs_only, "solver", lambda dtype: None)
            patch.setattr(pairs_only, "pairs", lambda values, maximize: None)
        yield
