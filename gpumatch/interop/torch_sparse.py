"""Sparse torch tensors."""

from __future__ import annotations

import sys
from typing import Any

from gpumatch.arrays import from_dlpack, is_instance


def is_sparse_csr(source: Any) -> bool:
    """Whether `source` is a torch tensor in CSR."""
    return is_instance(source, "torch", "Tensor") and (
        source.layout == sys.modules["torch"].sparse_csr
    )


def csr_pattern(tensor: Any) -> tuple[Any, Any, tuple[int, int]]:
    """Offsets and columns as arrays where the tensor lives, and its shape."""
    indptr, indices = from_dlpack(tensor.crow_indices()), from_dlpack(tensor.col_indices())
    return indptr, indices, tuple(tensor.shape)
