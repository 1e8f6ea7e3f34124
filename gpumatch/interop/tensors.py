"""Torch tensors as arrays that share their memory, and arrays as tensors; torch is not imported.

is_tensor(source)     whether it is one
source_of(tensor)     what the front doors take for it: an array, or CSR as a tuple
on_its_stream(tensor) a context manager: CuPy works where torch does
tensor_of(array)      the way back
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from gpumatch.arrays import from_dlpack, is_instance

__all__ = ["is_tensor", "on_its_stream", "source_of", "tensor_of"]


def is_tensor(source: Any) -> bool:
    """Whether `source` is a torch tensor."""
    return is_instance(source, "torch", "Tensor")


def source_of(tensor: Any) -> Any:
    """An array with the tensor's memory, or ``(indptr, indices, data, shape)`` if it is sparse.

    A tensor that requires a gradient is taken by its values. bfloat16 and shorter floats, which
    arrays do not have, become float32. A sparse tensor of another layout than CSR is converted
    where it is.

    Raises
    ------
    TypeError
        If the tensor is neither on the CPU nor on CUDA, or has blocks or no memory.
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
    if tensor.layout != torch.sparse_csr:
        tensor = (
            tensor.coalesce() if tensor.layout == torch.sparse_coo else tensor
        ).to_sparse_csr()
    parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return (*map(_array, parts), tuple(tensor.shape))


def _array(tensor: Any) -> Any:
    kind = str(tensor.dtype).removeprefix("torch.")
    if "float" in kind and kind not in ("float16", "float32", "float64"):
        tensor = tensor.float()
    if tensor.is_cuda:
        return from_dlpack(tensor.contiguous())
    return tensor.resolve_conj().resolve_neg().numpy()


@contextlib.contextmanager
def on_its_stream(tensor: Any) -> Iterator[None]:
    """Let CuPy work on the device of a tensor, and on torch's current stream there."""
    if not tensor.is_cuda:
        yield
        return
    import cupy

    stream = sys.modules["torch"].cuda.current_stream(tensor.device)
    with (
        cupy.cuda.Device(tensor.device.index),
        cupy.cuda.ExternalStream(stream.cuda_stream, tensor.device.index),
    ):
        yield


def tensor_of(array: Any) -> Any:
    """A tensor of the array, on its device; indices as int64."""
    torch = sys.modules["torch"]
    tensor = (
        torch.from_dlpack(array)
        if hasattr(array, "__cuda_array_interface__")
        else (torch.from_numpy(array))
    )
    return tensor.long() if tensor.dtype == torch.int32 else tensor
