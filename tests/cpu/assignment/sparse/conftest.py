"""The fixtures that have the engine solve, and force a way through it."""

from __future__ import annotations

import pytest

from gpumatch.cpu.assignment.sparse import small
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.tuning import LONG, SHORT
from tests.cpu.assignment.sparse.forced import UNTRIED
from tests.cpu.assignment.tuned import tune


@pytest.fixture(autouse=True)
def engine_solves_squares_of_2000_rows(monkeypatch):
    """One call would solve them. They are large enough for all that the engine does."""
    monkeypatch.setattr(small, "ROWS_OF_SQUARE", 2**10)


@pytest.fixture(params=["trial"])
def path(request, monkeypatch):
    """With the trial that mostly serves small problems, a long one, which begins with bids, or the
    auction alone; columns bid, too.
    """
    trial = LONG if request.param == "bids" else SHORT
    is_alone = request.param in ("auction", "turns")
    tune(monkeypatch, sparse_tuning, trial=trial._replace(unmatched=-1) if is_alone else trial)
    if is_alone:
        tune(monkeypatch, sparse_tuning, small=0, fewest=1, few=1, few_paths=1)
        tune(monkeypatch, sparse_tuning, trial_with_spare=UNTRIED)
    if request.param == "turns":
        tune(monkeypatch, sparse_tuning, tail=1, fewest=0)
    return request.param


@pytest.fixture
def no_rival(monkeypatch):
    """Without the rival, which might end what a test looks at."""
    tune(monkeypatch, sparse_tuning, rival_reads=10**9)
