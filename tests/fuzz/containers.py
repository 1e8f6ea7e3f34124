"""The forms in which a matrix is given; none of them may change the answer."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tests.fuzz.trials import Trial


class Arrays:
    """An object that is an array for NumPy only."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.values, dtype)


def _strided(values: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * size + 1 for size in values.shape], values.dtype)
    view = wide[tuple(slice(1, None, 2) for _ in values.shape)]
    view[...] = values
    return view


def _reversed(values: np.ndarray) -> np.ndarray:
    back = (slice(None, None, -1),) * values.ndim
    return np.ascontiguousarray(values[back])[back]


def _readonly(values: np.ndarray) -> np.ndarray:
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def _misaligned(values: np.ndarray) -> np.ndarray:
    raw = np.zeros(values.nbytes + 1, np.uint8)[1:]
    view = raw.view(values.dtype).reshape(values.shape)
    view[...] = values
    return view


def _frame(values: np.ndarray) -> Any:
    import pandas

    return pandas.DataFrame(values)


def _tensor(values: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(values))


def _on_device(values: np.ndarray) -> Any:
    import cupy

    return cupy.asarray(values)


DENSE: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": _strided,
    "reversed": _reversed,
    "readonly": _readonly,
    "misaligned": _misaligned,
    "swapped": lambda values: values.astype(values.dtype.newbyteorder()),
    "list": lambda values: values.tolist(),
    "frame": _frame,
    "protocol": Arrays,
    "matrix": np.asmatrix,
    "tensor": _tensor,
}
_NEEDS = {"frame": "pandas", "tensor": "torch"}
"""The library of a form, where it is not one of ours."""
_TORCH = {"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"}
_CUPYX = {"float32", "float64", "complex64", "complex128"}


def _pick(trial: Trial, names: list[str], plain: str) -> str:
    """One of the names, or the plain one where its library is missing.

    A seed draws the same problem with the library and without.
    """
    name = trial.pick(names)
    if name in _NEEDS and importlib.util.find_spec(_NEEDS[name]) is None:
        name = plain
    trial.note(container=name)
    return name


def dense(trial: Trial, values: np.ndarray, *, in_batch: bool = False) -> Any:
    """A dense matrix in some form; lists and tensors make no batch."""
    if trial.backend == "cuda" and trial.chance(0.5) and values.dtype.name in _TORCH:
        trial.note(container="cupy")
        return _on_device(values)
    names = ["C"] * 6 + list(DENSE)
    is_listed = values.size and values.size <= 2**16 and values.dtype.itemsize == 8
    if in_batch or not is_listed or values.dtype.kind == "u":
        names.remove("list")
    if values.dtype.name not in _TORCH or in_batch:
        names.remove("tensor")
    if values.dtype == np.longdouble:
        names = [name for name in names if name not in ("swapped", "frame", "misaligned")]
    if values.ndim != 2:
        names = [name for name in names if name not in ("frame", "matrix")]
    if values.size > 2**18 or values.shape[1] == 0:  # without columns, it has no dtype
        names = [name for name in names if name != "frame"]
    return DENSE[_pick(trial, names, "C")](values)


# -- sparse ----------------------------------------------------------------------------------------


def _csr(rows: Any, cols: Any, values: Any, shape: tuple[int, int]) -> Any:
    """CSR of pairs that are sorted by rows, without a sum or a loss of zeros."""
    indptr = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=indptr[1:])
    return sparse.csr_array((values, cols.astype(np.int32), indptr.astype(np.int32)), shape=shape)


def _unsorted(trial: Trial, matrix: Any) -> Any:
    """The same rows, each with its entries in another order."""
    owners = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((trial.rng.random(owners.size), owners))
    return sparse.csr_array(
        (matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape
    )


def _shuffled(trial: Trial, rows: Any, cols: Any, values: Any, shape: tuple[int, int]) -> Any:
    order = trial.rng.permutation(rows.size)
    return sparse.coo_array((values[order], (rows[order], cols[order])), shape=shape)


def _repeated(trial: Trial, rows: Any, cols: Any, values: Any, shape: tuple[int, int]) -> Any:
    """COO in which integers are sums of two entries of the same dtype, which may wrap."""
    part = np.where(trial.rng.random(values.size) < 0.5, values // 2, 0).astype(values.dtype)
    both = np.concatenate([part, values - part]).astype(values.dtype)
    return sparse.coo_array((both, (np.tile(rows, 2), np.tile(cols, 2))), shape=shape)


def sparse_form(
    trial: Trial,
    rows: np.ndarray,
    cols: np.ndarray,
    values: np.ndarray,
    shape: tuple[int, int],
    *,
    only: tuple[str, ...] = (),
) -> Any:
    """A sparse matrix in some form, of sorted pairs without repetition."""
    if values.dtype == np.float16:
        values = values.astype(np.float64)
    if trial.backend == "cuda" and trial.chance(0.5) and values.dtype.name in _CUPYX:
        from cupyx.scipy.sparse import csr_matrix

        trial.note(container="cupyx")
        return csr_matrix(sparse.csr_matrix(_csr(rows, cols, values, shape)))
    names = list(only) or [
        *("csr", "csr", "csr", "csc", "coo", "tuple", "tuple64", "unsorted", "csr_matrix"),
        *("lil", "dok", "bsr", "repeated", "int64", "tensor"),
    ]
    is_long = rows.size > 2**14
    if is_long or values.size == 0 or not (values != 0).all():
        names = [name for name in names if name not in ("lil", "dok", "bsr")]
    if values.dtype.kind not in "iu":
        names = [name for name in names if name != "repeated"]
    if values.dtype.name not in _TORCH:
        names = [name for name in names if name != "tensor"]
    name = _pick(trial, names, "csr")
    if name == "coo":
        return _shuffled(trial, rows, cols, values, shape)
    if name == "repeated":
        return _repeated(trial, rows, cols, values, shape)
    matrix = _csr(rows, cols, values, shape)
    if name == "csr":
        return matrix
    if name == "csr_matrix":
        return sparse.csr_matrix(matrix)
    if name == "unsorted":
        return _unsorted(trial, matrix)
    if name == "int64":
        matrix.indptr, matrix.indices = (
            part.astype(np.int64) for part in (matrix.indptr, matrix.indices)
        )
        return matrix
    if name.startswith("tuple"):
        kind = np.int64 if name == "tuple64" else np.int32
        return (
            matrix.indptr.astype(kind), matrix.indices.astype(kind), matrix.data, matrix.shape,
        )  # fmt: skip
    if name == "tensor":
        import torch

        parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(*parts, size=matrix.shape)
    if name == "bsr":
        return matrix.tobsr((1, 1))
    return getattr(matrix, f"to{name}")()


def pattern_form(trial: Trial, rows: Any, cols: Any, shape: tuple[int, int]) -> Any:
    """A pattern in some form that `BipartiteGraph` takes."""
    if trial.chance(0.15) and shape[0] * shape[1] <= 2**18:
        matrix = np.zeros(shape, bool)
        matrix[rows, cols] = True
        return dense(trial, matrix)
    values = np.ones(rows.size, trial.pick((np.float64, np.int8, np.bool_)))
    only = ("csr", "csr", "csc", "coo", "unsorted", "csr_matrix", "int64")
    return sparse_form(trial, rows, cols, values, shape, only=only)


def on_host(values: Any) -> np.ndarray:
    """The array in NumPy, wherever it is."""
    if hasattr(values, "get") and hasattr(values, "__cuda_array_interface__"):
        return values.get()
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    return np.asarray(values)
