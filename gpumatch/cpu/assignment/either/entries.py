"""Kernels for the entries of costs: a matrix, or CSR's offsets, columns and weights.

Compiled code knows which of the two it has by the type of its argument, interpreted code by the
object. A kernel and its compiled callers may be in different files: after an edit of either, both
are compiled again (`gpumatch.cpu.numba_tools.cache`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from gpumatch.contracts import Entries

__all__ = ["by_entries", "count_entries"]


def count_entries(entries: Entries) -> int:
    """Return the number of entries."""
    return entries[1].size if isinstance(entries, tuple) else entries.size


def by_entries(dense: Any, stored: Any) -> Callable[..., Any]:
    """Return the kernel `dense` if the first argument is a matrix, else the kernel `stored`.

    A compiled caller compiles the kernel's Python function with its own flags, not the kernel's.
    """

    def chosen(entries: Any, *others: Any) -> Any:
        return (dense if isinstance(entries, np.ndarray) else stored)(entries, *others)

    @overload(chosen, strict=False)
    def _chosen_kernel(entries: Any, *others: Any) -> Any:
        return (dense if isinstance(entries, types.Array) else stored).py_func

    return chosen
