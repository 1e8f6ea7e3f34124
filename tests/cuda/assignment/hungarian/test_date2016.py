"""The paper's two searches on the device, step by step beside the reference, which is the paper."""

from __future__ import annotations

import pytest

from graphs import costs
from tests.cuda.assignment.hungarian.date2016_beside import MATRICES, ClassicalBeside, TreeBeside

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("blocks", [1, 3, None])
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("kind", [TreeBeside, ClassicalBeside])
def test_each_step_is_the_papers(kind, name, blocks, monkeypatch):
    from gpumatch.cuda.assignment import hungarian
    from gpumatch.cuda.assignment.hungarian import classical, search, tree  # noqa: F401  as attributes

    monkeypatch.setattr(search, "_STEPS_A_LAUNCH", 1)
    monkeypatch.setattr(classical, "_EDGES_A_ROW", 4096)  # lists are never begun anew for room
    if blocks is not None:
        monkeypatch.setattr(search, "_most_blocks", lambda: blocks)
    assert kind(MATRICES[name], hungarian).run() > 1


def test_initial_assignments_are_a_maximum_matching_of_tight_pairs():
    """As the reference has it, and as the paper's Table 2 counts."""
    from gpumatch import assign

    matrix = costs.uniform_integer(300, seed=7)
    there, here = (
        assign(matrix, algorithm="hungarian-tree", backend=backend, search="paper")
        for backend in ("reference", "cuda")
    )
    initial, expected = (sum(phase["initial"] for phase in a.stats["trace"]) for a in (here, there))
    assert initial == expected
    assert 250 < initial < 300
    assert sum(phase["found"] for phase in here.stats["trace"]) == 300
    assert here.objective == there.objective
