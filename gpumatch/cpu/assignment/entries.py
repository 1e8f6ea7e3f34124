"""Functions of costs in either form: a matrix, or CSR's offsets, columns and weights.

Compiled code knows the form by the type of its argument, interpreted code by the object. Kernels
belong in the file of their compiled callers, for Numba's cache looks out for changes of that only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

__all__ = ["by_form"]


def by_form(dense: Any, stored: Any) -> Callable[..., Any]:
    """The kernel `dense` where the first argument is a matrix, else the kernel `stored`.

    A compiled caller compiles what the kernel is made of; the kernel's own options do not count.
    """

    def chosen(entries: Any, *others: Any) -> Any:
        return (dense if isinstance(entries, np.ndarray) else stored)(entries, *others)

    @overload(chosen, strict=False)
    def _chosen_kernel(entries: Any, *others: Any) -> Any:
        return (dense if isinstance(entries, types.Array) else stored).py_func

    return chosen
