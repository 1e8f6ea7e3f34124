"""Every door that is open on a GPU, with problems of all sizes."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import described
from tests.fuzz.doors import DOORS
from tests.fuzz.trials import Trial, run


@pytest.mark.gpu
@pytest.mark.parametrize("door", [name for name in DOORS if "cuda" in DOORS[name].backends])
def test_doors_on_a_device(door):
    if not DOORS[door].is_open("cuda"):
        pytest.skip(f"{DOORS[door].needs} is not installed")
    outcomes = [run(Trial(seed, backend="cuda", door=door)) for seed in range(10, 20)]
    faults = [described(outcome) for outcome in outcomes if outcome.is_fault]
    assert not faults, "\n".join(faults)
