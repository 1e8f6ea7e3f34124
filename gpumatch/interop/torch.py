"""Assignment of batches for torch: tensors in, tensors out, on their device and current stream.

A problem without an assignment, because it is infeasible or holds NaN, raises an error on the CPU.
On a GPU it is marked by -1, because an error would have to wait for the device. ``"raise"`` and
``"mark"`` as `on_error` do as they say on both. Costs that are no real numbers are a TypeError.

Nothing waits for the device unless errors are to be raised, and nothing is copied through the host
if the costs are on a device. Assignments have no gradient. Each call is one custom operator, so
`torch.compile` keeps its graph.

A CUDA graph can hold `batch_linear_assignment` of problems of up to 1,024 rows and columns, whose
costs are floats or integers of 32 bits. Make one call of the same shape and type before, as torch
asks of all that is captured, because a kernel cannot be loaded meanwhile. What a graph cannot hold
is a `CaptureError`, and does not spoil the graph.

What is done with several rows of a search at once has no order, so where several assignments are
optimal, another one may be found than SciPy finds. With ``ties="scipy"`` it is SciPy's own. This
takes one row after the other, and is for tensors of the CPU. SciPy rounds large integers to floats.
Where this makes its assignment worse than an optimal one, that is given, with ``"scipy"`` too.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch

from gpumatch.assignment import assign
from gpumatch.costs import SideBySide
from gpumatch.dispatch.arguments import check_one_of, checked_threads
from gpumatch.dispatch.registry import SCIPYS_ORDER, load
from gpumatch.interop.torch_tensors import check_costs, on_its_stream, source_of
from gpumatch.problems.device_batches import SHORT, assign_even
from gpumatch.results.tensors import checked_on_error

__all__ = ["CaptureError", "batch_linear_assignment", "linear_sum_assignment"]


TIES = ("any", "scipy")
FLOAT_INTEGERS = 2**53
"""float64 holds every integer up to this."""

OnError = Literal["raise", "mark"] | None


class CaptureError(RuntimeError):
    """A CUDA graph that is being captured cannot hold a call."""


def batch_linear_assignment(
    cost: torch.Tensor, ties: str = "any", on_error: OnError = None
) -> torch.Tensor:
    """The column of each row of many problems, as torch-linear-assignment's function gives it.

    A problem without an assignment raises an error on the CPU, and has -1 for all rows on a GPU.

    Parameters
    ----------
    cost : tensor of shape (B, n, m)
        The costs, to be minimised; on the CPU or a GPU. ``inf`` forbids a pair.
    ties : {"any", "scipy"}
        Which of several optimal assignments is given: any, or on the CPU the one that
        `scipy.optimize.linear_sum_assignment` gives. If SciPy's is not optimal, because it rounds
        large integers to float64, any is given.
    on_error : {None, "raise", "mark"}
        What becomes of a problem that has no full assignment, or costs that are not valid, such as
        NaN: raise its error, which names its number, or mark it by -1. None raises on the CPU and
        marks on a GPU, where raising waits for the device.

    Returns
    -------
    int64 tensor of shape (B, n), on the same device
        -1 for rows without a column, and for all rows of a problem that is marked.

    Raises
    ------
    TypeError
        If the costs are no dense tensor of real numbers.
    ValueError
        If an argument is wrong, or a problem's error is raised. `gpumatch.InfeasibleError` is one.
    CaptureError
        A RuntimeError: torch captures a CUDA graph, and that cannot hold the call, because a
        problem has more than 1,024 rows or columns, the costs are integers of 64 bits, or errors
        are to be raised.

    Examples
    --------
    >>> import torch
    >>> from gpumatch.interop.torch import batch_linear_assignment
    >>> batch_linear_assignment(torch.tensor([[[8, 4, 7], [5, 2, 3], [9, 6, 7], [9, 4, 8]]]))
    tensor([[ 0,  2, -1,  1]])
    """
    check_costs(cost)
    if cost.ndim != 3:
        raise ValueError(f"the costs must have 3 dimensions; got {cost.ndim}")
    _check_ties(ties, cost)
    what = checked_on_error(on_error, cost)
    return torch.ops.gpumatch.batch_linear_assignment(cost.detach(), ties, what)


def linear_sum_assignment(
    C: torch.Tensor, sizes: Sequence[int], ties: str = "any", on_error: OnError = None
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The pairs of many problems that stand side by side, as matchers of DETR have them.

    A problem without an assignment raises an error on the CPU, and has pairs of -1 on a GPU, which
    as an index is the last query and the last target: look for them before they are used.

    Parameters
    ----------
    C : tensor of shape (B, n, sum(sizes))
        Problem k is ``C.split(sizes, -1)[k][k]``: the queries of image k, and its targets.
    sizes : sequence of B ints
        The targets of each.
    ties, on_error
        As for `batch_linear_assignment`.

    Returns
    -------
    list of B pairs of int64 tensors
        Rows in ascending order and their columns, on the device of C. There are min(n, sizes[k])
        of each, whatever the costs are; all are -1 if problem k is marked.

    Raises
    ------
    TypeError, ValueError
        As for `batch_linear_assignment`.
    CaptureError
        A RuntimeError: torch captures a CUDA graph.

    Examples
    --------
    >>> import torch
    >>> from gpumatch.interop.torch import linear_sum_assignment
    >>> C = torch.tensor([[[3, 1, 9], [2, 4, 9]], [[9, 9, 5], [9, 9, 4]]])
    >>> linear_sum_assignment(C, [2, 1])
    [(tensor([0, 1]), tensor([1, 0])), (tensor([1]), tensor([0]))]
    """
    check_costs(C)
    sizes = [_checked_size(size) for size in sizes]
    if C.ndim != 3 or C.shape[0] != len(sizes) or C.shape[2] != sum(sizes):
        raise ValueError(
            f"C must have the shape ({len(sizes)}, n, {sum(sizes)}) for these sizes; "
            f"got {tuple(C.shape)}"
        )
    _check_ties(ties, C)
    what = checked_on_error(on_error, C)
    if not sizes:
        return []
    count, most = C.shape[1], max(sizes)
    pairs = torch.ops.gpumatch.pairs_side_by_side(C.detach(), sizes, ties, what)
    # The pairs of each problem, and then what its row has besides.
    lengths = [length for size in sizes for length in (min(count, size), most - min(count, size))]
    rows, cols = (side.flatten().split(lengths)[::2] for side in pairs)
    return list(zip(rows, cols))


def _check_ties(ties: str, costs: torch.Tensor) -> None:
    check_one_of("ties", ties, TIES)
    if ties == "scipy" and costs.is_cuda:
        raise ValueError("ties='scipy' takes one row after the other, and is not for a GPU")


def _checked_size(size: Any) -> int:
    try:
        number = operator.index(size)
    except TypeError:
        raise TypeError(f"sizes must be integers; got {size!r}") from None
    if number < 0:
        raise ValueError(f"sizes must not be negative; got {number}")
    return number


def _in_scipys_order(parts: Any, count: int, on_error: str) -> torch.Tensor:
    """The columns of up to `count` rows of each problem, on the CPU."""
    columns = load(SCIPYS_ORDER)(list(parts), count, checked_threads(None))
    _make_exact(parts, columns)
    if on_error == "raise":
        bad = [k for k, part in enumerate(parts) if part.size and (columns[k] < 0).all()]
        if bad:
            assign(parts)  # which raises the error
            raise ValueError(f"problem {bad[0]}: its numbers are too large to be added")
    return torch.from_numpy(columns)


def _make_exact(parts: Any, columns: np.ndarray) -> None:
    """Put optimal assignments where float64 has rounded integers, and what it gave costs more."""
    doubtful = [k for k, part in enumerate(parts) if _is_rounded(part)]
    if not doubtful:
        return
    exact = assign([parts[k] for k in doubtful], on_error="mark")
    for k, best in zip(doubtful, exact):
        rows = (columns[k] >= 0).nonzero()[0]
        paid = sum(parts[k][rows, columns[k, rows]].tolist())
        if not best.proven or paid != best.objective:
            columns[k] = best.row_to_col


def _is_rounded(costs: np.ndarray) -> bool:
    """True if float64 may round what the integers of a problem add up to on paths."""
    if costs.dtype.kind not in "iu" or costs.dtype.itemsize < 8 or costs.size == 0:
        return False
    largest = max(int(costs.max()), -int(costs.min()))
    return 4 * (min(costs.shape) + 1) * largest > FLOAT_INTEGERS


def _columns_of_rows(cost: torch.Tensor, ties: str, on_error: Any) -> torch.Tensor:
    if ties == "scipy":
        return _in_scipys_order(source_of(cost), cost.shape[1], on_error)
    if _is_captured(cost):
        return _columns_in_a_graph(cost, on_error)
    with on_its_stream(cost):
        batch = assign(source_of(cost), on_error=on_error)
        return torch.from_dlpack(batch.row_to_col).long()


def _is_captured(cost: torch.Tensor) -> bool:
    return cost.is_cuda and torch.cuda.is_current_stream_capturing()


def _columns_in_a_graph(cost: torch.Tensor, on_error: str) -> torch.Tensor:
    """The columns by launches alone, in memory of torch's, which the graph keeps."""
    if on_error == "raise":
        raise CaptureError("on_error='raise' waits for the device, which a CUDA graph cannot")
    if cost.numel() == 0:
        return torch.full_like(_empty_columns(cost, "any", on_error), -1)
    if cost.dtype in (torch.bool, torch.uint8, torch.int8, torch.int16):
        cost = cost.int()
    with on_its_stream(cost), _torchs_memory(cost.device):
        batch = assign_even(source_of(cost), False, "full", None, on_error)
        if batch is None:
            raise CaptureError(
                f"a CUDA graph can hold problems of up to {SHORT} rows and columns whose costs are "
                f"floats or integers of 32 bits; got {tuple(cost.shape[1:])} of {cost.dtype}"
            )
        return torch.from_dlpack(batch.row_to_col).long()


@contextlib.contextmanager
def _torchs_memory(device: torch.device) -> Iterator[None]:
    """Let CuPy allocate its arrays from torch, as bytes of tensors that they keep."""
    import cupy

    def allocate(nbytes: int) -> Any:
        tensor = torch.empty(max(nbytes, 1), dtype=torch.uint8, device=device)
        memory = cupy.cuda.UnownedMemory(tensor.data_ptr(), nbytes, tensor, device.index)
        return cupy.cuda.MemoryPointer(memory, 0)

    with cupy.cuda.using_allocator(allocate):
        yield


def _empty_columns(cost: torch.Tensor, ties: str, on_error: str) -> torch.Tensor:
    return cost.new_empty(cost.shape[:2], dtype=torch.int64)


def _pairs_side_by_side(
    C: torch.Tensor, sizes: list[int], ties: str, on_error: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns of the pairs of each problem, in as many columns as the widest has."""
    if _is_captured(C):
        raise CaptureError("a CUDA graph cannot hold linear_sum_assignment: its sizes are copied")
    with on_its_stream(C):
        parts, count = _parts(source_of(C), sizes), C.shape[1]
        if ties == "scipy":
            by_row = _in_scipys_order(parts, count, on_error)
            by_col = torch.full((len(sizes), max(sizes)), -1)
            problems, matched = (by_row >= 0).nonzero(as_tuple=True)
            by_col[problems, by_row[problems, matched]] = matched
        else:
            batch = assign(parts, on_error=on_error)
            by_row = torch.from_dlpack(batch.row_to_col).long()
            by_col = torch.from_dlpack(batch.col_to_row).long()
    # Of problems with no more columns than rows: the columns by their rows. Unused ones come last.
    found, order = torch.where(by_col < 0, count, by_col).sort(dim=1)
    is_found = found < count
    rows = torch.where(is_found, found, -1)
    cols = torch.where(is_found, order, -1)
    if max(sizes) > count:
        # Of the others: all rows.
        is_wide = _like(torch.tensor(sizes) > count, C)[:, None]
        most = by_col.shape[1]
        every = torch.arange(most, device=C.device).expand(len(sizes), most)
        wide = torch.nn.functional.pad(by_row, (0, most - count), value=-1)
        rows = torch.where(is_wide, torch.where(wide < 0, -1, every), rows)
        cols = torch.where(is_wide, wide, cols)
    return rows, cols


def _empty_pairs(
    C: torch.Tensor, sizes: list[int], ties: str, on_error: str
) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (C.shape[0], max(sizes))
    return C.new_empty(shape, dtype=torch.int64), C.new_empty(shape, dtype=torch.int64)


def _parts(costs: Any, sizes: list[int]) -> Any:
    """The problems that stand side by side, as `assign` takes them."""
    if not isinstance(costs, np.ndarray):
        return SideBySide(costs, sizes)
    ends = itertools.accumulate(sizes)
    return [costs[k, :, end - size : end] for k, (end, size) in enumerate(zip(ends, sizes))]


def _like(small: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """A small tensor of the host where another one is, without waiting for its stream."""
    if not tensor.is_cuda:
        return small
    return small.pin_memory().to(tensor.device, non_blocking=True)


# Operators of `torch.library.custom_op` take longer to call.
_OPERATORS = torch.library.Library("gpumatch", "FRAGMENT")
for _schema, _solve, _empty in (
    (
        "batch_linear_assignment(Tensor cost, str ties, str on_error) -> Tensor",
        _columns_of_rows,
        _empty_columns,
    ),
    (
        "pairs_side_by_side(Tensor C, int[] sizes, str ties, str on_error) -> (Tensor, Tensor)",
        _pairs_side_by_side,
        _empty_pairs,
    ),
):
    _name = _OPERATORS.define(_schema)
    for _device in ("CPU", "CUDA"):
        _OPERATORS.impl(_name, _solve, _device)
    torch.library.register_fake(f"gpumatch::{_name}", _empty, lib=_OPERATORS)
