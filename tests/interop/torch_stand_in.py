"""As much of torch as is asked for, where torch is not installed: tensors that hold an array."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array


class Tensor:
    """A dense tensor, or a sparse one that holds an array of SciPy. None computes gradients."""

    requires_grad = False

    def __init__(
        self, values: Any, layout="strided", dtype=None, device="cpu", grad=False, lazy=()
    ):
        self.values_, self.layout, self.grad = values, layout, grad
        self.lazy = frozenset(lazy)  # "conj" and "neg", which no array can be
        self.dtype = str(values.dtype) if dtype is None else dtype
        self.device, self.is_cuda = SimpleNamespace(type=device), device == "cuda"
        self.shape, self.ndim = values.shape, len(values.shape)

    def _with(self, values=None, **changes):
        kept = {"layout": self.layout, "dtype": self.dtype, "grad": self.grad, "lazy": self.lazy}
        return Tensor(self.values_ if values is None else values, **{**kept, **changes})

    def detach(self):
        return self._with(grad=False)

    def float(self):
        return self._with(self.values_.astype(np.float32), dtype="float32")

    def long(self):
        return self._with(self.values_.astype(np.int64), dtype="int64")

    def resolve_conj(self):
        return self._with(lazy=self.lazy - {"conj"})

    def resolve_neg(self):
        return self._with(lazy=self.lazy - {"neg"})

    def numpy(self):
        if self.grad or self.lazy or self.dtype == "bfloat16" or self.layout != "strided":
            raise RuntimeError(f"no array of {self.dtype}, {self.layout}, {self.grad}, {self.lazy}")
        return self.values_

    def tolist(self):
        return self.values_.tolist()

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def requires_grad_(self):
        return self._with(grad=True)

    def bfloat16(self):
        return self._with(dtype="bfloat16")

    # -- sparse ----------------------------------------------------------------------------------

    def to_sparse_coo(self):
        return self._with(coo_array(self.values_), layout="sparse_coo")

    def to_sparse_csc(self):
        return self._with(csc_array(self.values_), layout="sparse_csc")

    def to_sparse_csr(self):
        assert self.layout == "strided"  # torch's conversions do not check what they read
        return self._with(csr_array(self.values_), layout="sparse_csr")

    def to_sparse_bsr(self, _):
        return self._with(csr_array(self.values_), layout="sparse_bsr")

    def sparse_dim(self):
        return self.ndim

    def _indices(self):
        return Tensor(np.array(self.values_.coords))

    def _values(self):
        return self.values()

    def crow_indices(self):
        assert self.layout == "sparse_csr"
        return Tensor(self.values_.indptr)

    def col_indices(self):
        return Tensor(self.values_.indices)

    def ccol_indices(self):
        assert self.layout == "sparse_csc"
        return Tensor(self.values_.indptr)

    def row_indices(self):
        return Tensor(self.values_.indices)

    def values(self):
        return Tensor(self.values_.data, dtype=self.dtype, grad=self.grad, lazy=self.lazy)


NAMES = ("strided", "sparse_csr", "sparse_coo", "sparse_csc", "bfloat16", "int32", "int64")
torch = SimpleNamespace(
    Tensor=Tensor,
    **{name: name for name in NAMES},
    from_numpy=Tensor,
    tensor=lambda values: Tensor(np.asarray(values), lazy={"conj", "neg"}),
)
