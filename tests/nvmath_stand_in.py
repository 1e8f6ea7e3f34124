"""A stand-in for nvmath-python, whose cuDSS needs a GPU."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

from scipy.sparse import csr_array
from scipy.sparse.linalg import splu


def install(monkeypatch):
    """Put it in nvmath's place for a test."""
    for name in ("nvmath", "nvmath.sparse", "nvmath.sparse.advanced"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["nvmath.sparse.advanced"].DirectSolver = StaticPivots


class StaticPivots:
    """What is used of nvmath's `DirectSolver`, with SuperLU that must not leave the diagonal."""

    def __init__(self, a, b, *, options=None):
        assert isinstance(a, csr_array)
        assert a.dtype == b.dtype
        self.a, self.b, self.options, self.freed = a, b, options, False

    def plan(self):
        self.planned = True

    def factorize(self):
        assert self.planned
        self.lu = splu(self.a.tocsc(), diag_pivot_thresh=0.0)
        self.factorization_info = SimpleNamespace(lu_nnz=self.lu.nnz)

    def reset_operands(self, *, b):
        assert (b.dtype, b.shape) == (self.b.dtype, self.b.shape)
        assert b.flags.c_contiguous
        self.b = b

    def solve(self):
        return self.lu.solve(self.b)

    def free(self):
        self.freed = True
