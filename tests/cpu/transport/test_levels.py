"""Groups of vertices: their sizes, their order, and how alike their members are."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu.transport.levels import MEMBERS, grouped


@pytest.mark.parametrize("kind", ["random", "ties", "equal"])
@pytest.mark.parametrize("count", [1, 4, 5, 33, 268, 1000])
def test_groups_divide_all_vertices_evenly(count, kind):
    rng = np.random.default_rng(count)
    features = {
        "random": rng.random((count, 3)),
        "ties": rng.integers(0, 2, (count, 3)).astype(float),
        "equal": np.zeros((count, 3)),
    }[kind]
    groups = grouped(features)
    sizes = np.diff(groups.begins)
    assert sorted(groups.members) == list(range(count))
    assert groups.begins[0] == 0
    assert groups.begins[-1] == count
    assert sizes.max() <= MEMBERS
    assert sizes.max() - sizes.min() <= 1
    assert (groups.heads == groups.members[(groups.begins[:-1] + groups.begins[1:]) // 2]).all()


def test_groups_are_intervals_of_one_feature():
    """A head is a median of its group, and no group reaches into another one."""
    values = np.random.default_rng(0).permutation(64)
    groups = grouped(values[:, None].astype(float))
    assert (values[groups.members] == np.arange(64)).all()


@pytest.mark.parametrize("count", [200, 257, 1000])
def test_spread_is_one_for_random_numbers(count):
    rng = np.random.default_rng(count)
    assert grouped(rng.random((count, 8))).spread == pytest.approx(1, abs=0.1)
    points, others = rng.random((count, 1, 2)), rng.random((8, 2))
    assert grouped(((points - others) ** 2).sum(axis=2)).spread < 0.3
