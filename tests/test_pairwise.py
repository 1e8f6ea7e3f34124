"""A pairwise sample holds every pair of values, and little more."""

from __future__ import annotations

import itertools

from tests.cases import EVERY_CASE, PROVEN
from tests.pairwise import pairwise, pairwise_product

FACTORS = {"a": range(9), "b": range(8), "c": range(3), "d": range(2)}


def product(is_allowed=lambda combination: True):
    combinations = (dict(zip(FACTORS, values)) for values in itertools.product(*FACTORS.values()))
    return [combination for combination in combinations if is_allowed(combination)]


def pairs(combinations):
    return {
        pair
        for combination in combinations
        for pair in itertools.combinations(sorted(combination.items()), 2)
    }


def test_every_pair_is_met_by_few():
    sample = pairwise(product(), dict)
    assert pairs(sample) == pairs(product())
    assert 72 <= len(sample) <= 80  # of 432, where a and b alone need 72


def test_pairs_that_no_combination_holds_are_not_asked_for():
    allowed = product(lambda combination: combination["a"] < 5 or combination["d"] == 1)
    sample = pairwise(allowed, dict)
    assert pairs(sample) == pairs(allowed)
    assert all(combination in allowed for combination in sample)


def test_the_sample_is_in_order_and_the_same_each_time():
    sample = pairwise(product(), dict)
    assert sample == pairwise(product(), dict)
    assert sample == sorted(sample, key=lambda combination: tuple(combination.values()))


def test_every_algorithm_on_each_backend_meets_every_case():
    def met(chosen):
        return {(run.algorithm, run.backend, case.name) for run, _, case in chosen}

    sample = [param.values for param in PROVEN]
    assert met(sample) == met(EVERY_CASE)
    assert len(sample) < len(EVERY_CASE) / 3


def test_joined_factors_count_as_one():
    """Every two of their values meet every value of each other factor."""
    sample = pairwise_product(FACTORS, joined=("c", "d"))
    whole = list(itertools.product(*FACTORS.values()))
    for k in range(2):
        assert {(*one[2:], one[k]) for one in sample} == {(*one[2:], one[k]) for one in whole}
    assert {one[:2] for one in sample} == {one[:2] for one in whole}
    assert len(sample) < len(whole) / 3


def test_values_of_a_product_need_not_be_hashable():
    assert pairwise_product({"a": [[1], {}], "b": [None]}) == [([1], None), ({}, None)]
