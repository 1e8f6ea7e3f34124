"""Functions of costs in either form: a matrix, or CSR's offsets, columns and weights.

Compiled code knows the form by the type of its argument, interpreted code by the object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

__all__ = ["by_form"]


def by_form(dense: Any, stored: Any) -> Callable[..., Any]:
    """The kernel `dense` where the first argument is a matrix, else the kernel `stored`."""

    def chosen(entries: Any, *others: Any) -> Any:
        return (dense if isinstance(entries, np.ndarray) else stored)(entries, *others)

    @overload(chosen, strict=False)
    def _compiled(entries: Any, *others: Any) -> Any:
        return (dense if isinstance(entries, types.Array) else stored).py_func

    return chosen
