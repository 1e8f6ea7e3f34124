"""Checks of arguments that several front doors have."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any

import numpy as np

from gpumatch.dispatch.registry import did_you_mean, option_names


def refuse_unknown(front_door: Callable[..., Any], problem: str, given: Iterable[str]) -> None:
    """Raise TypeError for a name that is neither an argument nor an option of an algorithm."""
    options = option_names(problem)
    for name in given:
        if name not in options:
            known = [*inspect.signature(front_door).parameters, *options]
            text = f"{front_door.__name__} got an unexpected argument {name!r}"
            raise TypeError(text + did_you_mean(name, known))


def check_one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Raise ValueError for a value that is not in `known`."""
    if value not in known:
        text = f"{name} must be one of {known}; got {value!r}"
        raise ValueError(text + did_you_mean(value, known))


def checked_flag(value: Any, name: str) -> bool:
    """Return a flag as bool, and raise TypeError for any other type: it is likely a mistake."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)


def checked_seed(seed: int) -> int:
    """Return a valid seed as int, or raise ValueError."""
    if not _is_integer(seed) or not 0 <= seed < 2**63:
        raise ValueError(f"seed must be an integer in [0, 2**63); got {seed!r}")
    return int(seed)


def checked_threads(threads: int | None) -> int:
    """Return the number of threads; None means all cores that this process may use."""
    if threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if not _is_integer(threads) or threads < 1:
        raise ValueError(f"threads must be an integer >= 1; got {threads!r}")
    return int(threads)


def _is_integer(value: Any) -> bool:
    """True for integers of any type but bool, which is likely a mistake."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
