"""Random problems at every door, as many as take some minutes, always the same."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import described
from tests.fuzz.doors import DOORS
from tests.fuzz.trials import Trial, run

PARTS = 2
PROBLEMS = 300
"""Of all doors and parts together. Twice as many passed."""
SEED = 10**6
ALL = sum(door.weight for door in DOORS.values())


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", DOORS)
def test_random_problems(name, part):
    door = DOORS[name]
    if not door.is_open("cpu"):
        pytest.skip(f"{door.needs} is not installed")
    count = max(1, round(PROBLEMS * door.weight / ALL / PARTS))
    first = SEED * (part + 1)
    outcomes = [run(Trial(seed, door=name)) for seed in range(first, first + count)]
    faults = [described(outcome) for outcome in outcomes if outcome.is_fault]
    assert not faults, "\n".join(faults[:3])
