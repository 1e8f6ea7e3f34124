"""Keyword arguments of front doors by algorithm, for type checkers: values are as in the registry.

A checker then refuses an option that the named algorithm does not take. `registry.py` is what
counts; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Literal, TypedDict

from gpumatch.dispatch.registry import BackendName, StartName
from gpumatch.running.control import Callback

__all__ = [
    "AnyAssignArguments",
    "AnyMatchingArguments",
    "AssignArguments",
    "AuctionArguments",
    "EngineArguments",
    "MatchingArguments",
    "SwitchingArguments",
    "TreeArguments",
]

Scaling = Literal["epsilon", "none"]
Finish = Literal["exact", "epsilon"]
Convergence = Literal["counter", "reduction"]


class _Running(TypedDict, total=False):
    """Of all algorithms of both problems."""

    backend: BackendName
    initial: Any
    row_nodes: Iterable[Hashable] | None
    seed: int
    threads: int | None
    time_limit: float | None
    progress: bool
    callback: Callback | None


class AssignArguments(_Running, total=False):
    """Of `assign` for the least sum, by an algorithm without options."""

    objective: Literal["sum"]
    maximize: bool
    cardinality: Literal["full", "maximum", "any"]
    cost_limit: Any
    weight: Hashable | None
    sizes: Any
    on_error: Literal["raise", "mark"]


class EngineArguments(AssignArguments, total=False):
    """By ``"engine"``."""

    devices: Literal["one", "all"]


class TreeArguments(AssignArguments, total=False):
    """By ``"hungarian-tree"``."""

    search: Literal["levels", "stack", "paper"]


class AuctionArguments(AssignArguments, total=False):
    """By ``"auction"``."""

    scaling: Scaling
    finish: Finish
    convergence: Convergence
    host_loop: Literal["batch", "round"]


class SwitchingArguments(AssignArguments, total=False):
    """By ``"dgs"``."""

    start: Literal["random", "greedy"]
    evaluation: Literal["auto", "global", "shared", "block", "cpu"]
    switching: Literal["auto", "sequential", "parallel"]


class AnyAssignArguments(
    EngineArguments, TreeArguments, AuctionArguments, SwitchingArguments, total=False
):
    """By ``"auto"``, which is the first exact algorithm that takes the options."""


class MatchingArguments(_Running, total=False):
    """Of `maximum_matching`, by an algorithm without options."""

    init: StartName


class AnyMatchingArguments(MatchingArguments, total=False):
    """By ``"auto"``, and by APsB and APFB."""

    launch: Literal["ct", "mt"]
    host_loop: Literal["batch", "level"]
    frontier: Literal["scan", "queue"]
