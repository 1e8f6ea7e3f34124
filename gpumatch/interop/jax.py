"""Assignment in JAX: under ``jit``, ``vmap`` and ``grad``, on the CPU and on NVIDIA GPUs.

Costs are dense, with any leading dimensions, each a dimension of problems. The search is one
callback of XLA on the buffers of the device. It works on XLA's stream, and copies nothing through
the host. Its device is the one that the costs are on, so that ``jax.shard_map`` divides a batch
among devices.

The objective has a gradient: 1 at each matched pair, and 0 elsewhere. That is exact where one
assignment is optimal, and a subgradient where several are. Pairs have no gradient.

A compiled program cannot raise errors. So a problem without an assignment, because it is infeasible
or holds NaN, is marked: all its rows and columns have -1, and its objective is nan, or 0 for
integers. `gpumatch.assign` takes arrays of JAX outside of compiled programs, and raises errors.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.buffer_callback import buffer_callback

from gpumatch.assignment import assign as solve
from gpumatch.dispatch.arguments import checked_flag
from gpumatch.interop.streams import on_stream
from gpumatch.problems.device_batches import solve_even

__all__ = [
    "Assigned",
    "assign",
    "batch_linear_assignment",
    "hungarian_algorithm",
    "linear_sum_assignment",
]

_HOST = 1  # DLPack's number of the host


class Assigned(NamedTuple):
    """Assignments of problems with the leading dimensions ``...``, a pytree.

    Attributes
    ----------
    row_to_col : int32 array of shape (..., n)
        The column of each row; -1 if the row is unmatched.
    col_to_row : int32 array of shape (..., m)
        The row of each column; -1 if the column is unmatched.
    objective : array of shape (...)
        The sum of the costs of all pairs, in the type of the costs. It is differentiable.
    row_dual, col_dual : arrays of shapes (..., n) and (..., m)
        Duals that prove the assignment, as of `gpumatch.assign`, rounded to the floating type of
        JAX's default, or of the costs if it is wider.
    """

    row_to_col: jax.Array
    col_to_row: jax.Array
    objective: jax.Array
    row_dual: jax.Array
    col_dual: jax.Array


def assign(
    cost: Any, *, maximize: bool = False, cardinality: str = "full", cost_limit: float | None = None
) -> Assigned:
    """Find assignments of least total cost.

    Parameters
    ----------
    cost : array of shape (..., n, m)
        Real costs; ``inf`` forbids a pair, or ``-inf`` if they are to be maximised. float16 and
        bfloat16 are taken as float32.
    maximize, cardinality, cost_limit
        As for `gpumatch.assign`: Python values, not traced ones.

    Returns
    -------
    Assigned

    Raises
    ------
    TypeError, ValueError
        If the costs are not real numbers or have fewer than two dimensions, or an option is wrong.

    Notes
    -----
    Each problem takes O(n m min(n, m)) time at most. All problems of a call are solved as a batch,
    those that ``vmap`` adds included.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from gpumatch.interop.jax import assign
    >>> cost = jnp.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    >>> a = jax.jit(assign)(cost)
    >>> a.row_to_col.tolist(), float(a.objective)
    ([1, 0, 2], 5.0)
    >>> jax.grad(lambda cost: assign(cost).objective)(cost).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    cost = _checked(cost)
    options = _Options(checked_flag(maximize, "maximize"), cardinality, cost_limit)
    options.check()
    return _solve(cost, options)


def batch_linear_assignment(cost: Any) -> jax.Array:
    """The column of each row of many problems, as torch-linear-assignment's function gives it.

    Parameters
    ----------
    cost : array of shape (B, n, m)
        The costs, to be minimised. ``inf`` forbids a pair.

    Returns
    -------
    int32 array of shape (B, n)
        -1 for rows without a column, and for all rows of a problem without an assignment.

    Raises
    ------
    TypeError, ValueError
        If the costs are not real numbers or do not have three dimensions.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from gpumatch.interop.jax import batch_linear_assignment
    >>> batch_linear_assignment(jnp.array([[[8, 4, 7], [5, 2, 3], [9, 6, 7], [9, 4, 8]]])).tolist()
    [[0, 2, -1, 1]]
    """
    cost = _checked(cost)
    if cost.ndim != 3:
        raise ValueError(f"cost must have 3 dimensions; got {cost.ndim}")
    return _found(cost, _Options(), "row_to_col")[0]


def linear_sum_assignment(cost: Any, maximize: bool = False) -> tuple[jax.Array, jax.Array]:
    """The pairs of one problem, as `scipy.optimize.linear_sum_assignment` gives them.

    Parameters
    ----------
    cost : array of shape (n, m)
        The costs; ``inf`` forbids a pair, or ``-inf`` if they are to be maximised.
    maximize : bool
        Maximise the total instead.

    Returns
    -------
    row_ind, col_ind : int32 arrays of length min(n, m)
        The rows in ascending order and their columns; all are -1 if there is no assignment.

    Raises
    ------
    TypeError, ValueError
        If the costs are not real numbers or do not have two dimensions.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from gpumatch.interop.jax import linear_sum_assignment
    >>> cost = jnp.array([[8, 4, 7], [5, 2, 3], [9, 6, 7], [9, 4, 8]])
    >>> rows, cols = jax.jit(linear_sum_assignment)(cost)
    >>> rows.tolist(), cols.tolist(), int(cost[rows, cols].sum())
    ([0, 1, 3], [0, 2, 1], 15)
    """
    cost = _checked(cost)
    if cost.ndim != 2:
        raise ValueError(f"cost must have 2 dimensions; got {cost.ndim}")
    options = _Options(checked_flag(maximize, "maximize"))
    nrows, ncols = cost.shape
    if nrows <= ncols:
        (cols,) = _found(cost, options, "row_to_col")
        return jnp.where(cols < 0, -1, jnp.arange(nrows, dtype=jnp.int32)), cols
    (rows,) = _found(cost, options, "col_to_row")
    order = jnp.argsort(rows).astype(jnp.int32)
    return rows[order], jnp.where(rows[order] < 0, -1, order)


def hungarian_algorithm(cost_matrix: Any) -> tuple[jax.Array, jax.Array]:
    """Solve one problem, with the signature of optax's ``hungarian_algorithm``.

    Parameters
    ----------
    cost_matrix : array of shape (n, m)
        The costs, to be minimised.

    Returns
    -------
    i, j : int32 arrays of length min(n, m)
        The pairs, as of `linear_sum_assignment`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from gpumatch.interop.jax import hungarian_algorithm
    >>> cost = jnp.array([[8, 4, 7], [5, 2, 3], [9, 6, 7], [9, 4, 8]])
    >>> i, j = hungarian_algorithm(cost)
    >>> int(cost[i, j].sum())
    15
    """
    return linear_sum_assignment(cost_matrix)


class _Options(NamedTuple):
    """What `gpumatch.assign` is told; all of it is known when a program is compiled."""

    maximize: bool = False
    cardinality: str = "full"
    cost_limit: float | None = None

    def check(self) -> None:
        """Raise the error of options that are wrong, which a callback could not raise."""
        if isinstance(self.cost_limit, jax.core.Tracer):
            raise TypeError("cost_limit must be a Python number; got a traced value")
        solve(np.zeros((1, 1)), **self._asdict())


def _checked(cost: Any) -> jax.Array:
    """The costs as an array of a type that `gpumatch.assign` has."""
    cost = jnp.asarray(cost)
    is_real = jnp.issubdtype(cost.dtype, jnp.floating) or jnp.issubdtype(cost.dtype, jnp.integer)
    if not (is_real or cost.dtype == bool):
        raise TypeError(f"cost must be real numbers; got dtype {cost.dtype}")
    if cost.ndim < 2:
        raise ValueError(f"cost must have at least 2 dimensions; got {cost.ndim}")
    if cost.dtype == bool:
        return cost.astype(jnp.int32)
    is_short = jnp.issubdtype(cost.dtype, jnp.floating) and cost.dtype.itemsize < 4
    return cost.astype(jnp.float32) if is_short else cost


def _solve(cost: jax.Array, options: _Options) -> Assigned:
    """The assignments of all problems; the gradient goes through the pairs' costs alone."""
    row_to_col, *others, is_proven = _found(
        cost, options, "row_to_col", "col_to_row", "row_dual", "col_dual", "proven"
    )
    chosen = jnp.where(row_to_col >= 0, _at_columns(cost, row_to_col), jnp.zeros((), cost.dtype))
    objective = chosen.sum(-1, cost.dtype)
    if jnp.issubdtype(cost.dtype, jnp.floating):
        is_marked = ~is_proven & (row_to_col < 0).all(-1)
        objective = jnp.where(is_marked, jnp.nan, objective)
    col_to_row, row_dual, col_dual = others
    return Assigned(row_to_col, col_to_row, objective, row_dual, col_dual)


def _at_columns(cost: jax.Array, row_to_col: jax.Array) -> jax.Array:
    """The cost of each row's pair; any cost of an unmatched row, or 0 if there are none."""
    if cost.shape[-1] == 0:
        return jnp.zeros(cost.shape[:-1], cost.dtype)
    return jnp.take_along_axis(cost, jnp.maximum(row_to_col, 0)[..., None], axis=-1)[..., 0]


def _found(cost: jax.Array, options: _Options, *names: str) -> list[jax.Array]:
    """These attributes of the batch of all problems, each with the leading dimensions."""
    *lead, nrows, ncols = cost.shape
    both, dual = nrows + ncols, jnp.promote_types(cost.dtype, jnp.zeros(0).dtype)
    forms: dict[str, tuple[tuple[int, ...], Any, Any]] = {
        "mates": ((*lead, both), jnp.int32, -1),
        "duals": ((*lead, both), dual, 0),
        "proven": (tuple(lead), bool, True),
    }
    rows, cols = slice(nrows), slice(nrows, None)
    parts: dict[str, tuple[str, Any]] = {
        "row_to_col": ("mates", rows),
        "col_to_row": ("mates", cols),
        "row_dual": ("duals", rows),
        "col_dual": ("duals", cols),
        "proven": ("proven", None),
    }
    wanted = [*dict.fromkeys(parts[name][0] for name in names)]
    if math.prod(cost.shape) == 0:
        whole = [
            jnp.full(shape, none, kind) for shape, kind, none in map(forms.__getitem__, wanted)
        ]
    else:
        search = buffer_callback(
            functools.partial(_search, options, wanted),
            [jax.ShapeDtypeStruct(*forms[name][:2]) for name in wanted],
            vmap_method="broadcast_all",
        )
        whole = search(jax.lax.stop_gradient(cost))
    found = dict(zip(wanted, whole))
    chosen = (parts[name] for name in names)
    return [found[name] if part is None else found[name][..., part] for name, part in chosen]


def _search(options: _Options, names: Any, context: Any, out: Any, cost: Any) -> None:
    """Solve the batch, and write its arrays of these names into buffers, all on one device."""
    kind, number = cost.__dlpack_device__()
    if kind == _HOST:
        problems = np.asarray(cost)
        _write(_solved(problems, options), names, [*map(np.asarray, out)])
        return
    import cupy

    with on_stream(context.stream, number):
        given = {name: _address(buffer) for name, buffer in zip(names, out) if name != "duals"}
        shape = math.prod(cost.shape[:-2]), *cost.shape[-2:]
        room = solve_even(_address(cost), shape, np.dtype(cost.dtype), *options, given)
        if room is None:
            batch = _solved(cupy.asarray(cost), options)
            _write(batch, names, [*map(cupy.asarray, out)])
        elif "duals" in names:
            duals = cupy.asarray(out[names.index("duals")])
            duals[...] = room.array("numbers")[:, : duals.shape[-1]].reshape(duals.shape)


def _address(buffer: Any) -> int:
    return buffer.__cuda_array_interface__["data"][0]


def _solved(costs: Any, options: _Options) -> Any:
    problems = costs.reshape(-1, *costs.shape[-2:])
    return solve(problems, on_error="mark", **options._asdict())


def _write(batch: Any, names: Any, out: list[Any]) -> None:
    """Write the arrays of a batch, with those of the columns behind those of the rows."""
    sides = {"mates": ("row_to_col", "col_to_row"), "duals": ("row_dual", "col_dual")}
    for name, target in zip(names, out):
        if name in sides:
            rows, cols = (getattr(batch, side) for side in sides[name])
            nrows = rows.shape[1]
            target[..., :nrows] = rows.reshape(*target.shape[:-1], nrows)
            target[..., nrows:] = cols.reshape(*target.shape[:-1], cols.shape[1])
        else:
            target[...] = batch.proven.reshape(target.shape)
