"""What is taken for a batch of costs, and which problems it has."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.costs import CostBatch, SideBySide


def test_nested_lists_are_problems_and_two_levels_are_one():
    batch = gm.assign([[[1, 2], [0, 4]], [[1, 0]]])
    assert batch.row_to_col.tolist() == [[1, 0], [1, -1]]
    assert gm.assign([[[]]]).row_to_col.shape == (1, 1)
    assert gm.assign([[[1, 2]]]).objective.tolist() == [1]
    assert gm.assign([[]]).row_to_col.tolist() == [-1]
    none = gm.PointCosts.batch(np.zeros((0, 3, 2)), np.zeros((0, 4, 2)))
    assert len(gm.assign([])) == len(gm.assign(none)) == 0


class OnlyAnArrayForNumPy:
    def __init__(self, values):
        self.values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


def test_a_list_may_begin_with_what_is_an_array_for_numpy_only():
    for second in ([[1, 0]], [[1, 2], [0, 4]]):
        batch = gm.assign([OnlyAnArrayForNumPy([[1, 2], [0, 4]]), np.array(second)])
        assert batch.objective.tolist() == [2, 0 if len(second) == 1 else 2]
    assert gm.assign([OnlyAnArrayForNumPy([1, 2]), OnlyAnArrayForNumPy([0, 4])]).objective == 2


class OnlyDlpack:
    def __init__(self, values):
        self.values = np.array(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


@pytest.mark.parametrize("kind", [OnlyAnArrayForNumPy, OnlyDlpack])
def test_three_dimensions_may_be_those_of_what_is_read_as_an_array(kind):
    costs = np.random.default_rng(3).integers(0, 99, (4, 5, 7))
    expected = gm.assign(costs)
    for options in ({}, {"sizes": (5, 7)}, {"algorithm": "hungarian-tree"}):
        batch = gm.assign(kind(costs), **options)
        assert batch.objective.tolist() == expected.objective.tolist()
        assert gm.verify(kind(costs), batch).size == 20
    assert gm.assign(kind(costs[0])).objective == expected.objective[0]
    with pytest.raises(ValueError, match="2 dimensions"):
        gm.assign(kind(costs[None]))


def test_numbers_that_are_not_real_are_refused_in_a_batch():
    with pytest.raises(TypeError, match="problem 0: the costs must be real numbers"):
        gm.assign(np.ones((2, 3, 3), complex))


def test_a_batch_knows_where_its_costs_are():
    costs = np.random.default_rng(2).random((3, 4, 5))
    on_device = SimpleNamespace(
        __cuda_array_interface__={}, ndim=2, shape=(4, 5), dtype=costs.dtype
    )
    assert not CostBatch([csr_array(one) for one in costs]).on_device
    assert not CostBatch(costs).on_device
    assert CostBatch([costs[0], on_device]).on_device
    again = gm.assign(CostBatch(costs))
    assert np.array_equal(again.row_to_col, gm.assign(costs).row_to_col)


def test_problems_side_by_side_have_the_next_columns_each():
    costs = np.random.default_rng(3).random((4, 3, 7))
    problems = SideBySide(costs, [2, 0, 4, 1])
    assert problems.begins.tolist() == [0, 2, 2, 6]
    assert (problems.sizes.tolist(), problems.shape) == ([[3, 2], [3, 0], [3, 4], [3, 1]], (3, 4))
    expected = costs[0, :, :2], costs[1, :, 2:2], costs[2, :, 2:6], costs[3, :, 6:]
    for own, part in zip(problems, expected, strict=True):
        assert np.array_equal(own, part)


@pytest.mark.parametrize("shape", [(2,), (1, 2, 2), ()], ids=str)
def test_each_problem_of_a_list_has_two_dimensions(shape):
    with pytest.raises(ValueError, match="problem 1: the costs must have 2 dimensions"):
        gm.assign([np.ones((2, 2)), np.ones(shape), np.ones(shape)])


def test_truth_values_are_read_where_they_are_as_bytes():
    values = np.random.default_rng(3).random((4, 5, 6)) < 0.5
    batch = CostBatch(values)
    read = batch.read(1, 3, lambda _: pytest.fail("they are copied"))
    assert batch.in_place
    assert read.dtype == np.uint8
    assert np.shares_memory(read, values)
    assert np.array_equal(read, values[1:3].reshape(-1))


@pytest.mark.parametrize(("dtype", "in_place"), [("i4", True), ("i2", False)])
def test_integers_of_few_bits_are_copied_as_floats(dtype, in_place):
    values = np.random.default_rng(3).integers(-9, 9, (4, 5, 6)).astype(dtype)
    batch, room = CostBatch(values), np.empty(60)
    read = batch.read(1, 3, lambda most: room[:most])
    assert batch.in_place == in_place
    assert np.shares_memory(read, values if in_place else room)
    assert np.array_equal(read, values[1:3].reshape(-1))
