"""Samples of products of cases, in which every two values that can meet still meet."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def pairwise(combinations: Iterable[T], factors: Callable[[T], Mapping[str, Hashable]]) -> list[T]:
    """Some of the combinations, in their order and the same ones each time.

    Those that hold the most new pairs come first, so that few are needed.

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
    pairs = _Pairs()
    left = [(number, pairs.of(factors(every[number]))) for number in order]
    unmet, kept = (1 << len(pairs.bits)) - 1, []
    least = max((own.bit_count() for _, own in left), default=0)
    while unmet:
        some, left = left, []
        for number, own in some:
            new = (own & unmet).bit_count()
            if new >= least:
                unmet &= ~own
                kept.append(number)
            elif new:
                left.append((number, own))
        least = max(least * 4 // 5, 1)
    return [every[number] for number in sorted(kept)]


class _Pairs:
    """A bit for each pair of values of two factors."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, Hashable], int] = {}  # of each value of each factor
        self.bits: dict[int, int] = {}  # of each pair of these
        self.known: dict[tuple[int, ...], int] = {(): 0}  # the bits of all pairs of these values

    def of(self, values: Mapping[str, Hashable]) -> int:
        """The bits of all pairs of these values."""
        numbers = self.numbers
        return self._of(tuple([numbers.setdefault(v, len(numbers)) for v in values.items()]))

    def _of(self, own: tuple[int, ...]) -> int:
        found = self.known.get(own)
        if found is None:
            *first, last = own
            found = self._of(own[:-1])
            for one in first:
                pair = one << 32 | last if one < last else last << 32 | one
                bit = self.bits.get(pair)
                if bit is None:
                    bit = self.bits[pair] = 1 << len(self.bits)
                found |= bit
            self.known[own] = found
        return found


def pairwise_product(
    values: Mapping[str, Collection[Any]], joined: Collection[str] = ()
) -> list[tuple[Any, ...]]:
    """A sample of a full product, each combination a tuple in the order of its factors.

    Parameters
    ----------
    values : mapping
        The values of each factor.
    joined : collection of str
        Factors that count as one: each of their combinations meets each value of each other factor.
    """
    names, every = list(values), [list(some) for some in values.values()]

    def factors(places: tuple[int, ...]) -> dict[str, Hashable]:
        place = dict(zip(names, places))
        together = tuple(place.pop(name) for name in joined)
        return {**place, " and ".join(joined): together} if joined else place

    sample = pairwise(itertools.product(*(range(len(some)) for some in every)), factors)
    return [tuple(some[k] for some, k in zip(every, places)) for places in sample]


def parametrize_pairwise(
    *joined: str, indirect: Collection[str] = (), **values: Collection[Any]
) -> pytest.MarkDecorator:
    """`pytest.mark.parametrize` with a pairwise sample of the product, in place of the product."""
    sample = pairwise_product(values, joined)
    return pytest.mark.parametrize(tuple(values), sample, indirect=list(indirect), ids=str)
