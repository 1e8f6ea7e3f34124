"""Samples of products of cases, in which every two values that can meet still meet."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


def pairwise(combinations: Iterable[T], factors: Callable[[T], Mapping[str, Hashable]]) -> list[T]:
    """Some of the combinations, in their order and the same ones each time.

    Each two values of two factors that some combination holds are held by one of these. A fault
    that shows wherever certain values of one or two factors meet is seen as well as by all.

    Parameters
    ----------
    combinations : iterable
        All there are.
    factors : callable
        Name and value of each factor of a combination.
    """
    every = list(combinations)
    order = list(range(len(every)))
    random.Random(0).shuffle(order)
    met: set[tuple] = set()
    kept = []
    for number in order:
        pairs = set(itertools.combinations(sorted(factors(every[number]).items()), 2)) - met
        if pairs:
            met |= pairs
            kept.append(number)
    return [every[number] for number in sorted(kept)]
