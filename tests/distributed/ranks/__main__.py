"""What the tests run on several ranks: `mpiexec -n 4 python -m tests.distributed.ranks GROUP ...`.

A group is a function of the communicator, in the module that says what is tested. It yields the
name of each case before it runs it, and fails by AssertionError. Rank 0 prints the number of cases
as JSON. A rank that fails prints why, and aborts all.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Iterator

from mpi4py import MPI

MODULES = (
    *("endings", "messages", "records", "errors", "files", "matchings", "assignments", "papers"),
    *("cores", "emulated", "devices"),
)
"""Those that import few others come first: a group's own is looked for in this order."""


def group_of(name: str) -> Callable[[MPI.Comm], Iterator[str]]:
    for module in MODULES:
        groups = importlib.import_module(f"tests.distributed.ranks.{module}").GROUPS
        for group in groups:
            if group.__name__ == name:
                return group
    raise ValueError(f"there is no group {name}")


def main() -> None:
    comm = MPI.COMM_WORLD
    begun: list[str] = []
    try:
        for group in sys.argv[1:]:
            for case in group_of(group)(comm):
                begun.append(case)  # its name is wanted when it fails
    except BaseException:
        print(f"rank {comm.rank}, case {begun[-1:]}:\n{traceback.format_exc()}", flush=True)
        comm.Abort(1)
    if comm.rank == 0:
        print(json.dumps({"cases": len(begun)}))


if __name__ == "__main__":
    main()
