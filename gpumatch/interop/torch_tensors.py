"""Torch tensors as arrays that share their memory, and arrays as tensors; torch is not imported.

`tensors` says what the names are that JAX's arrays have too. Besides, there are:

tensor_of(array)      the way back; sparse_tensor_of(matrix) that of a sparse matrix
check_costs(tensor)   a TypeError unless it is dense and holds real numbers
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpumatch.interop.streams import on_stream
from gpumatch.numeric.arrays import any_true, array_module, from_dlpack, is_instance

__all__ = [
    "TorchHome",
    "check_costs",
    "device_of",
    "home_of",
    "is_own",
    "on_its_stream",
    "source_of",
    "sparse_tensor_of",
    "tensor_of",
]

_REAL = re.compile(r"bool|u?int(8|16|32|64)|b?float.*")
"""Names of torch's types of real numbers."""


def is_own(source: Any) -> bool:
    """True if `source` is a torch tensor."""
    return is_instance(source, "torch", "Tensor")


def source_of(tensor: Any) -> Any:
    """An array with the tensor's memory, or ``(indptr, indices, data, shape)`` if it is sparse.

    A tensor that requires a gradient is taken by its values. bfloat16 and shorter floats, which
    arrays do not have, become float32. A sparse tensor of another layout than CSR is converted
    where it is. Its repeated entries are repeated in the result.

    Raises
    ------
    TypeError
        If the tensor is neither on the CPU nor on CUDA, or has blocks or no memory.
    ValueError
        If the indices of a sparse tensor do not fit its shape.
    """
    torch = sys.modules["torch"]
    if tensor.device.type not in ("cpu", "cuda"):
        raise TypeError(
            f"tensors of the CPU and of CUDA are taken; got one on {tensor.device.type}"
        )
    tensor = tensor.detach()
    if tensor.layout == torch.strided:
        return _array(tensor)
    if tensor.layout not in (torch.sparse_csr, torch.sparse_coo, torch.sparse_csc):
        raise TypeError(
            f"a sparse tensor must be CSR, CSC or COO; got {tensor.layout}: try its to_sparse_csr()"
        )
    if tensor.ndim != 2:
        raise ValueError(f"the sparse tensor must have 2 dimensions; got {tensor.ndim}")
    shape = tuple(tensor.shape)
    if tensor.layout == torch.sparse_csr:
        parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
        return (*map(_array, parts), shape)
    if tensor.layout == torch.sparse_csc:
        parts = tensor.ccol_indices(), tensor.row_indices(), tensor.values()
        offsets, rows, values = map(_array, parts)
        return (*_in_rows(rows, _columns_of(offsets, rows.size, shape[1]), values, shape[0]), shape)
    if tensor.sparse_dim() != 2:
        raise TypeError(
            f"both dimensions of a sparse tensor must be sparse; {tensor.dense_dim()} is dense"
        )
    rows, cols = _array(tensor._indices())
    return (*_in_rows(rows, cols, _array(tensor._values()), shape[0]), shape)


def _columns_of(offsets: Any, count: int, ncols: int) -> Any:
    """The column of each entry in CSC; torch does not check the offsets."""
    xp = array_module(offsets)
    lengths = xp.diff(offsets)
    is_right = offsets.size == ncols + 1 and not any_true(lengths < 0)
    if not is_right or int(offsets[0]) != 0 or int(offsets[-1]) != count:
        raise ValueError(
            f"the offsets of the sparse tensor must go from 0 to {count} in {ncols + 1} steps that "
            "do not decrease"
        )
    return xp.searchsorted(offsets, xp.arange(count), side="right") - 1


def _in_rows(rows: Any, cols: Any, values: Any, nrows: int) -> tuple[Any, Any, Any]:
    """CSR of entries in any order, in which repeated ones keep theirs; columns are not checked.

    torch's own way adds up repeated entries in their type, and does not check their rows.
    """
    xp = array_module(rows)
    rows = rows.copy()
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < nrows:
        stray = int(rows.min()) if int(rows.min()) < 0 else int(rows.max())
        raise ValueError(f"rows: {stray} lies outside [0, {nrows})")
    order = xp.argsort(rows, kind="stable")
    indptr = xp.searchsorted(rows[order], xp.arange(nrows + 1))
    return indptr, cols[order], values[order]


def _array(tensor: Any) -> Any:
    kind = str(tensor.dtype).removeprefix("torch.")
    if "float" in kind and kind not in ("float16", "float32", "float64"):
        tensor = tensor.float()
    if tensor.is_cuda:
        return from_dlpack(tensor.contiguous())
    return tensor.resolve_conj().resolve_neg().numpy()


def check_costs(tensor: Any) -> None:
    """Raise TypeError unless this is a dense tensor of real numbers."""
    if not is_own(tensor):
        raise TypeError(f"the costs must be a torch tensor; got {type(tensor).__name__}")
    if tensor.layout != sys.modules["torch"].strided:
        raise TypeError(f"the costs must be a dense tensor; got one of layout {tensor.layout}")
    if not _REAL.fullmatch(str(tensor.dtype).removeprefix("torch.")):
        raise TypeError(f"the costs must be real numbers; got dtype {tensor.dtype}")


@contextlib.contextmanager
def on_its_stream(tensor: Any) -> Iterator[None]:
    """Let CuPy work on the device of a tensor, and on torch's current stream there."""
    if not tensor.is_cuda:
        yield
        return
    stream = sys.modules["torch"].cuda.current_stream(tensor.device)
    with on_stream(stream.cuda_stream, tensor.device.index):
        yield


def device_of(tensor: Any) -> str:
    return str(tensor.device)


def home_of(_: Any) -> TorchHome:
    return TorchHome()


@dataclass(frozen=True)
class TorchHome:
    """Tensors share the memory of arrays, and so are on their device."""

    def array(self, array: Any) -> Any:
        return tensor_of(array)

    def indices(self, array: Any) -> Any:
        return tensor_of(array)

    def sparse(self, matrix: Any) -> Any:
        return sparse_tensor_of(matrix)


def tensor_of(array: Any) -> Any:
    """A tensor of the array, on its device; indices as int64."""
    torch = sys.modules["torch"]
    tensor = (
        torch.from_dlpack(array)
        if hasattr(array, "__cuda_array_interface__")
        else (torch.from_numpy(array))
    )
    return tensor.long() if tensor.dtype == torch.int32 else tensor


def sparse_tensor_of(matrix: Any) -> Any:
    """A sparse CSR tensor of a matrix of SciPy or cupyx in CSR, on its device."""
    torch = sys.modules["torch"]
    offsets, indices, values = (
        tensor_of(part) for part in (matrix.indptr, matrix.indices, matrix.data)
    )
    with warnings.catch_warnings():  # torch says of each that its kind is new
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(
            offsets, indices, values, size=matrix.shape, check_invariants=False
        )
