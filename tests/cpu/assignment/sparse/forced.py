"""The ways through the engine that tests force, and runs on the entries that are finite."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse.tuning import SPARE
from tests.cpu.assignment.solved import Solved

PATHS = ["trial", "bids", "auction", "turns"]
UNTRIED = SPARE._replace(bids=0, unmatched=-1)
EVERY_PATH = pytest.mark.parametrize("path", PATHS, indirect=True)


def solve(matrix, **given):
    """A run on the entries that are finite."""
    return Solved(sparse_engine.run, matrix, kind="sparse", **given)


def thinned(matrix, share, rng):
    """The costs as floats, with so many pairs allowed, and those of a diagonal."""
    allowed = rng.random(matrix.shape) < share
    np.fill_diagonal(allowed, True)
    return np.where(allowed, matrix, np.inf)


def steps(solved):
    return [phase["step"] for phase in solved.control.phases]
