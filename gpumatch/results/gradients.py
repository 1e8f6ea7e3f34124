"""Gradients of an assignment, or of a flow, whose costs, points or masses are torch tensors.

The optimal pairs stay the same while costs change a little, unless two assignments tie. So the
gradient of the optimum is that of the costs of its pairs (the envelope theorem): 1 at each pair of
a matrix. Where assignments tie, the gradient is that of the one which was found.

Distances are not smooth everywhere. There, a sub-gradient is given:

    euclidean     0 for two equal points
    cityblock     0 in each coordinate in which the points agree
    chebyshev     the mean over the coordinates in which they differ most; 0 for two equal points
"""

from __future__ import annotations

from typing import Any

import torch

from gpumatch.costs import PointCosts
from gpumatch.interop.torch_tensors import tensor_of

__all__ = ["add_cost_of_flow", "costs_at", "costs_of_pairs", "totals_of_batch", "with_value"]

_ORDERS = {"euclidean": 2.0, "cityblock": 1.0, "chebyshev": float("inf")}


def costs_of_pairs(
    costs: PointCosts, rows: torch.Tensor, cols: torch.Tensor
) -> torch.Tensor | None:
    """The costs of some pairs as float64, with gradients to the tensors that ask for one.

    None if no tensor does, or if the metric is a function of the caller.
    """
    given = costs.tensors
    needs_it = any(isinstance(part, torch.Tensor) and part.requires_grad for part in given)
    if not (needs_it and torch.is_grad_enabled()) or callable(costs.metric):
        return None
    device = costs.tensor.device
    held = costs.X, costs.Y, costs.row_offset, costs.col_offset
    X, Y, row_offset, col_offset = map(_as_float64, given, held)
    total = _distances(costs.metric, X[rows].to(device), Y[cols].to(device))
    if row_offset is not None:
        total = total + row_offset[rows].to(device)
    if col_offset is not None:
        total = total + col_offset[cols].to(device)
    return total


def costs_at(
    costs: torch.Tensor, rows: torch.Tensor, cols: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """The costs of some pairs of a matrix as float64, with a gradient to the matrix.

    `values` has the same costs without it. The gradient to a sparse matrix is sparse, and has the
    pairs as its entries.
    """
    if costs.layout == torch.strided:
        return costs[rows, cols].to(torch.float64)
    return _Stored.apply(costs, rows, cols, values)


def totals_of_batch(costs: torch.Tensor, row_to_col: torch.Tensor) -> torch.Tensor:
    """The total cost of the pairs of each problem as float64, with a gradient to all costs."""
    if costs.shape[-1] == 0:
        return costs.sum(dim=(1, 2), dtype=torch.float64)
    of_rows = costs.gather(2, row_to_col.clamp(min=0)[..., None])[..., 0]
    return torch.where(row_to_col >= 0, of_rows, 0).sum(dim=1, dtype=torch.float64)


def add_cost_of_flow(result: Any, costs: Any, supply: Any, demand: Any) -> None:
    """Give the objective of a flow in tensors, or of a batch, its gradients."""
    if not hasattr(result, "sizes"):
        objective = _cost_of_flow(result, costs, supply, demand)
        result.objective = result.objective if objective is None else objective
        return

    def own(mass: Any, k: int, length: int) -> Any:
        if isinstance(mass, torch.Tensor):
            return mass[k][:length] if mass.ndim == 2 and mass.shape[1] > 1 else mass
        return mass[k] if isinstance(mass, list) and isinstance(mass[0], torch.Tensor) else mass

    objectives = []
    for k, one in enumerate(result):
        nrows, ncols = one.shape
        part = costs[k, :nrows, :ncols]
        objectives.append(_cost_of_flow(one, part, own(supply, k, nrows), own(demand, k, ncols)))
    result.take_objectives(objectives)


def _cost_of_flow(result: Any, costs: Any, supply: Any, demand: Any) -> Any:
    """The objective of a flow in tensors, with gradients to the tensors that ask for one.

    Its gradient is the flow for a dense matrix of costs, and the duals for masses. Duals are that
    only of a problem in which all is shipped that the smaller side has, at whatever cost. None if
    no tensor asks for a gradient.
    """
    parts = [(costs, lambda: costs[result.row_ind, result.col_ind], result.flow)]
    if result.cardinality == "full" and result.cost_limit is None:
        parts += [
            (supply, lambda: supply, result.row_dual),
            (demand, lambda: demand, result.col_dual),
        ]
    total = None
    for tensor, numbers, gradient in parts:
        asks = isinstance(tensor, torch.Tensor) and tensor.requires_grad
        if not (asks and torch.is_grad_enabled() and tensor.layout == torch.strided):
            continue
        term = (numbers().to(torch.float64) * gradient.to(tensor.device, torch.float64)).sum()
        total = term if total is None else total + term.to(total.device)
    return None if total is None else with_value(total, result.objective)


def _as_float64(tensor: Any, array: Any) -> Any:
    """The tensor as float64, or else the array as one; None stays None."""
    if isinstance(tensor, torch.Tensor):
        return tensor.to(torch.float64)
    return None if array is None else tensor_of(array)


def with_value(total: torch.Tensor, value: float | torch.Tensor) -> torch.Tensor:
    """A tensor of this value with the gradient of `total`, which may be rounded otherwise."""
    return _Valued.apply(total, value)


class _Stored(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, costs: Any, rows: Any, cols: Any, values: Any) -> Any:
        context.save_for_backward(rows, cols)
        context.like = costs.shape, costs.layout, costs.dtype
        return values.to(torch.float64, copy=True)

    @staticmethod
    def backward(context: Any, *grads: Any) -> Any:
        shape, layout, dtype = context.like
        pairs = torch.stack(context.saved_tensors)
        gradient = torch.sparse_coo_tensor(pairs, grads[0].to(dtype), shape)
        return gradient.to_sparse(layout=layout), None, None, None


class _Valued(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, total: Any, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(total.dtype, copy=True)
        return total.new_tensor(value)

    @staticmethod
    def backward(_: Any, *grads: Any) -> Any:
        return grads[0], None


def _distances(metric: str, X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
    """The distances of the lines of X from those of Y."""
    if metric == "cosine":
        steps = _directions(X) - _directions(Y)
        return 0.5 * (steps * steps).sum(dim=1)
    steps = X - Y
    if metric == "sqeuclidean":
        return (steps * steps).sum(dim=1)
    scaled, size = _scaled(steps)
    return torch.linalg.vector_norm(scaled, _ORDERS[metric], dim=1) * size


def _directions(points: torch.Tensor) -> torch.Tensor:
    scaled, _ = _scaled(points)
    return scaled / torch.linalg.vector_norm(scaled, dim=1, keepdim=True)


def _scaled(lines: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The lines divided by a power of 2 each, so that no square overflows; and these powers."""
    most = lines.detach().abs().amax(dim=1)
    size = torch.pow(2.0, torch.frexp(most).exponent.to(torch.float64) - 1)  # ldexp is of float32
    return lines / size[:, None], size
