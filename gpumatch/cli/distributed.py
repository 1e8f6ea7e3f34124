"""``--distributed``: the same commands on the ranks that mpiexec has started.

Each rank keeps its rows: a .npy file of costs is mapped into memory, a Matrix Market file read a
piece at a time, and any other file read whole by every rank. Rank 0 gets the pairs of all, writes
them and prints the report.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gpumatch.cli import running

if TYPE_CHECKING:
    from gpumatch.distributed.communicator import Communicator
    from gpumatch.results.pairs import Pairs
    from gpumatch.running.control import Control

__all__ = ["add_to", "how", "is_silent", "read", "run"]

_DEFAULTS = {"threads": None, "seed": 0, "initial": None, "init": "auto", "objective": "sum"}
_GATHERED = ("row_to_col", "row_dual", "pair_costs")


def add_to(command: argparse.ArgumentParser) -> None:
    """The option that asks for it."""
    text = "use all ranks that mpiexec has started, each with some of the rows"
    command.add_argument("--distributed", action="store_true", help=text)


def how(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of the functions for ranks that say how they run."""
    backend = "cpu" if options.backend == "auto" else options.backend
    return {"backend": backend, "time_limit": options.time_limit, "progress": options.progress}


def is_silent() -> bool:
    """True if this is a rank that leaves messages to rank 0."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and mpi.COMM_WORLD.rank > 0


def read(
    options: argparse.Namespace,
    own: Iterable[str],
    load: Callable[[], Any],
    load_rows: Callable[[Callable[[int], slice]], Any] | None = None,
) -> tuple[Any, tuple[int, int], int]:
    """This rank's rows of what `load` gives, the shape of the whole, and its entries.

    `load_rows` loads no others, if it is there.

    If any rank cannot read, all raise its error.
    """
    from gpumatch.distributed.blocks import Split
    from gpumatch.distributed.communicator import Communicator

    with Communicator() as world:
        _refuse(options, own)
        if load_rows is not None:
            block = load_rows(lambda nrows: Split.even(nrows, world).slice)
        else:
            block = _rows_of_file(options, load, world)
        count = block.nnz if hasattr(block, "nnz") else block.size
        nrows, entries = (world.total(int(number)) for number in (block.shape[0], count))
    return world.outcome((block, (nrows, block.shape[1]), entries))


def _rows_of_file(options: argparse.Namespace, load: Callable[[], Any], world: Communicator) -> Any:
    """This rank's rows of a matrix."""
    from gpumatch.distributed.blocks import Split, taken
    from gpumatch.interop.sparse import labels_of
    from gpumatch.io.slices import has_coordinates

    is_in_parts = has_coordinates(options.source)
    if is_in_parts or options.source.lower().endswith(".npy"):
        running.refuse_how(options, "--distributed")
    if is_in_parts:
        return taken(options.source, world)
    whole = load()
    if labels_of(whole) != (None, None):
        raise ValueError("labels of rows and columns are not for --distributed")
    return whole[Split.even(whole.shape[0], world).slice]


def _refuse(options: argparse.Namespace, own: Iterable[str]) -> None:
    """Raise ValueError for an option that has no meaning here."""
    given = [name for name in own if getattr(options, name) is not None]
    given += [
        name for name, default in _DEFAULTS.items() if getattr(options, name, default) != default
    ]
    if options.source == running.STANDARD_INPUT:
        raise ValueError("standard input is not for --distributed: only rank 0 has it")
    if given:
        raise ValueError(f"{running.option_of(given[0])} is not for --distributed")


def run(
    solve: Callable[[], Any],
    block: Any,
    options: argparse.Namespace,
    clock: Control,
) -> tuple[Any, dict[str, float] | None, bool]:
    """The pairs of all ranks on rank 0, which has written them, None elsewhere; what proves them.

    If Ctrl-C ends the search, what there is is written, too.
    """
    from gpumatch import distributed

    try:
        share = solve()
    except KeyboardInterrupt as exc:
        if exc.result is not None:  # type: ignore[attr-defined]  # as `assign` documents it
            _written(exc.result, options)  # type: ignore[attr-defined]
        raise
    certificate = None
    if share.proven:
        with clock.part("certificate"):
            proof = distributed.verify(block, share)
        certificate = {"size": proof.size, "bound": proof.bound, "edges": proof.edges}
    return _written(share, options), certificate, share.proven


def _written(share: Any, options: argparse.Namespace) -> Any:
    """The pairs of all ranks, on rank 0, which writes them if that is asked for."""
    import numpy as np

    from gpumatch.distributed.communicator import Communicator

    with Communicator() as world:
        names = [name for name in (*_GATHERED, "col_to_row") if hasattr(share, name)]
        whole = None
        parts = {name: world.gather(getattr(share, name)) for name in names}
        if world.rank == 0:
            whole = _whole(
                share, {name: np.concatenate(part or []) for name, part in parts.items()}
            )
            running.write(options, whole, share.shape)
        world.settle()
    return world.outcome(whole)


def _whole(share: Any, arrays: dict[str, Any]) -> Pairs:
    """A result like that of one rank alone."""
    from gpumatch.results.pairs import Pairs

    arrays["col_to_row"] = arrays["col_to_row"][: share.shape[1]]  # if each rank has all columns
    whole = Pairs(arrays["row_to_col"], arrays["col_to_row"])
    stats = {**share.stats, "backend": f"{share.stats['backend']}, {share.stats['ranks']} ranks"}
    kept = {name: value for name, value in vars(share).items() if name not in ("rows", "cols")}
    vars(whole).update({**kept, **arrays, "stats": stats})
    return whole
