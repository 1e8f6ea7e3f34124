"""Calls with tensors, of torch or JAX, and results whose arrays are their library's."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpumatch.costs import PointCosts
from gpumatch.dispatch.arguments import check_one_of
from gpumatch.interop import torch_tensors
from gpumatch.interop.tensors import (
    Home,
    are_of_one_library,
    device_of,
    home_of,
    is_tensor,
    matrix_of,
    on_its_stream,
    source_of,
)
from gpumatch.numeric.arrays import array_module, array_of
from gpumatch.running.control import converted_result

__all__ = ["are_tensors", "checked_on_error", "like_sides", "solve_tensors", "with_tensors"]

_ARRAYS = (
    *("row_to_col", "col_to_row", "row_ind", "col_ind", "unmatched_rows", "unmatched_cols"),
    *("row_dual", "col_dual", "pair_costs"),
    *("row_degree", "col_degree", "row_capacity", "col_capacity"),
)
_INDICES = {
    *("row_to_col", "col_to_row", "row_ind", "col_ind", "unmatched_rows", "unmatched_cols"),
    *(
        "row_perm",
        "col_perm",
        "row_block",
        "col_block",
        "row_degree",
        "col_degree",
        "size",
        "counts",
    ),
}
"""Arrays of indices and counts; others hold costs, duals, masses or truth values."""
_OF_A_BATCH = ("objective", "gap", "size", "proven")
_CALLS = (  # all give indices, or truth values
    "edges",
    "cover_ind",
    "vertex_cover",
    "threshold_cover",
    "independent_set",
    "row_permutation",
    "col_permutation",
    "witness",
    "symmetric_log_scale",
    "symmetric_pivots",
)
_AS_THEY_ARE = ("to_dict", "to_matrix")


def are_tensors(source: Any) -> bool:
    """True for a tensor, for points that were tensors, and for a batch: a list of these."""
    if isinstance(source, list):
        return bool(source) and are_of_one_library(map(_tensor_in, source))
    return is_tensor(_tensor_in(source))


def _tensor_in(source: Any) -> Any:
    """The source itself, or the tensor that points were; None if these were arrays."""
    return source.tensor if isinstance(source, PointCosts) else source


def checked_on_error(on_error: Any, tensor: Any) -> str:
    """The checked argument `on_error`: ``"raise"`` or ``"mark"``.

    The default on the CPU is ``"raise"``. On a GPU it is ``"mark"``, because raising an error waits
    for the device.
    """
    if on_error is None:
        return "mark" if tensor.is_cuda else "raise"
    check_one_of("on_error", on_error, ("raise", "mark"))
    return on_error


def solve_tensors(solve: Callable[..., Any], source: Any, **arguments: Any) -> Any:
    """The result of ``solve(source, **arguments)``, in tensors on the device of the source.

    Tensors among the arguments become arrays, and so do results that hold tensors.

    Raises
    ------
    ValueError
        If a list has tensors on several devices.
    """
    sources = source if isinstance(source, list) else [source]
    tensors = [*map(_tensor_in, sources)]
    if len({device_of(tensor) for tensor in tensors}) > 1:
        raise ValueError("the tensors of a list must be on one device")
    with on_its_stream(tensors[0]):
        arguments = {
            name: source_of(value) if is_tensor(value) else getattr(value, "_in_arrays", value)
            for name, value in arguments.items()
        }
        given = _in_arrays(source)
        convert = functools.partial(_with_gradients, source, home_of(tensors[0]))
        return converted_result(lambda: solve(given, **arguments), convert)


def with_tensors(run: Callable[..., Any], A: Any, **arguments: Any) -> Any:
    """What ``run(A, **arguments)`` returns for a tensor: arrays in it become tensors on its device.

    Tensors among the arguments become arrays. Integers of results are indices.
    """
    with on_its_stream(A):
        arguments = {
            name: source_of(value) if is_tensor(value) else value
            for name, value in arguments.items()
        }
        return _converted(run(source_of(A), **arguments), home_of(A))


def _converted(given: Any, home: Home) -> Any:
    if isinstance(given, tuple):
        parts = [_converted(part, home) for part in given]
        return type(given)(*parts) if hasattr(given, "_fields") else tuple(parts)
    if hasattr(given, "row_to_col"):
        return _as_tensors(given, home)
    is_array = hasattr(given, "dtype")
    return _in_tensors(given, home, is_array and given.dtype.kind == "i")


def like_sides(x: np.ndarray, b: Any) -> Any:
    """The solutions of a system in an array, or a tensor, like its right-hand sides."""
    if not is_tensor(b):
        on_device = hasattr(b, "__cuda_array_interface__")
        return array_of(array_module(b), x) if on_device else x
    with on_its_stream(b):
        return home_of(b).array(array_of(array_module(source_of(b)), x))


def _in_arrays(source: Any) -> Any:
    """The source without tensors."""
    if isinstance(source, list):
        return [*map(_of_list, source)]
    return source if isinstance(source, PointCosts) else source_of(source)


def _of_list(tensor: Any) -> Any:
    """An array or a sparse matrix of a tensor, as a batch takes them."""
    return tensor if isinstance(tensor, PointCosts) else matrix_of(tensor)


def _as_tensors(result: Any, home: Home) -> Any:
    given: Any = type(result)
    kind: Any = _class_of(given)
    made = object.__new__(kind)
    made.__dict__.update(vars(result), _in_arrays=result, _home=home)
    return made


def _with_gradients(source: Any, home: Home, result: Any) -> Any:
    """The result in tensors, with objectives that have gradients if the source asks for these.

    They are made now, because the caller may change points afterwards.
    """
    made = _as_tensors(result, home)
    if is_tensor(source) and _is_of_flows(result):
        return made  # `gradients.add_cost_of_flow` takes care of these
    if not any(map(_asks_for_gradient, source if isinstance(source, list) else [source])):
        return made
    if isinstance(source, list):
        made.take_objectives([_objective_of(part, one) for part, one in zip(source, made)])
    elif is_tensor(source) and source.ndim == 3:
        from gpumatch.results.gradients import totals_of_batch, with_value

        totals = totals_of_batch(source, made.row_to_col)
        made.take_objectives(with_value(totals, made.objective))
    elif hasattr(made, "objective"):
        objective = _objective_of(source, made)
        made.objective = made.objective if objective is None else objective
    return made


def _is_of_flows(result: Any) -> bool:
    return hasattr(result, "flow_units") or hasattr(result, "row_flow")


def _asks_for_gradient(costs: Any) -> bool:
    if isinstance(costs, PointCosts):
        return any(map(_requires_grad, costs.tensors))
    return _requires_grad(costs) and sys.modules["torch"].is_grad_enabled()


def _requires_grad(tensor: Any) -> bool:
    return torch_tensors.is_own(tensor) and bool(tensor.requires_grad)


def _objective_of(costs: Any, result: Any) -> Any:
    """The objective with its gradient; None if it has none."""
    if not _asks_for_gradient(costs) or result.objective is None:
        return None
    from gpumatch.results.gradients import costs_at, costs_of_pairs, with_value

    total: Any = None
    if isinstance(costs, PointCosts):
        total = costs_of_pairs(costs, result.row_ind, result.col_ind)
    elif not hasattr(result, "flow_units"):
        total = costs_at(costs, result.row_ind, result.col_ind, result.pair_costs)
    if total is None:
        return None
    if hasattr(result, "flow_units"):
        return with_value((total * result.flow).sum(), result.objective)
    if hasattr(result, "gap"):
        return with_value(total.sum(), result.objective)
    return with_value(total.min() if result.maximize else total.max(), result.objective)


class _InTensors:
    """A result with tensors in place of arrays.

    `_in_arrays` is the result that it is made of, and `_home` makes the tensors.
    """

    _in_arrays: Any
    _home: Home

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_tensors, (self._in_arrays, self._home)

    def __getitem__(self, k: Any) -> Any:
        found = self._in_arrays[k]
        return self._likewise(found) if isinstance(k, slice) else _as_tensors(found, self._home)

    def split(self) -> list[Any]:
        return self._likewise(self._in_arrays.split())

    def _likewise(self, results: Any) -> list[Any]:
        return [_as_tensors(one, self._home) for one in results]


class _BatchInTensors(_InTensors):
    objective: Any
    _objectives: Any = None
    """If any problem's objective has a gradient: one tensor, or of each problem one or None."""
    _objective: Any = None
    """All objectives, if any has a gradient."""

    def take_objectives(self, objectives: Any) -> None:
        """Take those that have gradients."""
        if not isinstance(objectives, list):
            self._objectives = self._objective = objectives
            return
        if all(one is None for one in objectives):
            return
        self._objectives, self._objective = objectives, self.objective.clone()
        for k, one in enumerate(objectives):
            if one is not None:
                self._objective[k] = one

    def __getitem__(self, k: Any) -> Any:
        made = super().__getitem__(k)
        has_own = self._objectives is not None and not isinstance(k, slice)
        if has_own and self._objectives[k] is not None:
            made.objective = self._objectives[k]
        return made

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self._in_arrays)))


@functools.cache
def _class_of(kind: Any) -> type:
    """A class of results like `kind`, in tensors."""
    is_batch = hasattr(kind, "__getitem__")
    names = getattr(kind, "_TENSORS", _ARRAYS)
    names = (*names, *_OF_A_BATCH) if is_batch else names
    own: dict[str, Any] = {name: property(functools.partial(_array, name)) for name in names}
    if is_batch:
        own["objective"] = property(_objectives_of)
    if hasattr(kind, "__len__"):
        own["__len__"] = lambda result: len(result._in_arrays)
    own |= {name: _call(name) for name in _CALLS if hasattr(kind, name)}
    own |= {name: _same_call(name) for name in _AS_THEY_ARE}
    bases = (_BatchInTensors if is_batch else _InTensors, kind)
    return type(
        kind.__name__, bases, {**own, "__doc__": kind.__doc__, "__module__": kind.__module__}
    )


def _array(name: str, result: Any) -> Any:
    return _in_tensors(getattr(result._in_arrays, name), result._home, name in _INDICES)


def _objectives_of(batch: Any) -> Any:
    if batch._objective is not None:
        return batch._objective
    return _array("objective", batch)


def _call(name: str) -> Callable[..., Any]:
    same = _same_call(name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _in_tensors(same(self, *args, **kwargs), self._home, are_indices=True)

    return call


def _same_call(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._in_arrays, name)(*args, **kwargs)

    return call


def _in_tensors(given: Any, home: Home, are_indices: bool) -> Any:
    if isinstance(given, tuple):
        return tuple(_in_tensors(part, home, are_indices) for part in given)
    if hasattr(given, "indptr"):
        return home.sparse(given)
    if not hasattr(given, "dtype"):
        return given
    return home.indices(given) if are_indices else home.array(given)
