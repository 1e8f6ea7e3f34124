"""What an operation returns is asked about once; what a call returns, in each function."""

import operator

import numpy as np
import pytest
from numba.core import types
from numba.extending import overload

from gpumatch.cpu.numba_tools.operations import Operations
from gpumatch.cpu.numba_tools.parts import Kernel


def first_of(array, at):
    return array[at] + 1.5 if array[at] > 0 and at else 0.0


def second_of(array, at):
    return 2 * (array[at] + 1.5) if at and array[at] > 0 else 1.0


def compiled(function):
    """A kernel of which nothing is kept on the disk."""
    return Kernel(function, {})


@pytest.fixture
def asked(monkeypatch):
    """The operations that Numba's type inference has asked about."""
    asked, ask = [], types.Function.get_call_type

    def noting(function, context, args, kws):
        if isinstance(context, Operations):
            asked.append(function.typing_key)
        return ask(function, context, args, kws)

    monkeypatch.setattr(types.Function, "get_call_type", noting)
    return asked


def test_an_operation_is_asked_about_once(asked):
    array = np.array([3.0, 4.0], np.float32)
    assert compiled(first_of)(array, 1) == 5.5
    asked.clear()
    assert compiled(second_of)(array, 1) == 11.0
    assert operator.mul in asked  # which the first has not
    assert not {operator.getitem, operator.add, operator.gt, bool} & {*asked}


def twice(one):
    """A number twice."""
    return 2 * one


@overload(twice)
def twice_compiled(one):
    return twice


def test_a_call_of_another_function_is_asked_about_again(asked):
    def four_times(one):
        return twice(twice(one))

    for _ in range(2):
        asked.clear()
        assert compiled(four_times)(3) == 12
        assert twice in asked
