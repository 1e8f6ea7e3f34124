"""What the tests run on several ranks: `mpiexec -n 4 python -m tests.distributed.ranks GROUP ...`.

A group is a function of the communicator, in the module that says what is tested. It yields the
name of each case before it runs it, and fails by AssertionError. Rank 0 prints the number of cases
as JSON. A rank that fails prints why, and aborts all.
"""

from __future__ import annotations

import json
import sys
import traceback

from mpi4py import MPI

from tests.distributed.ranks import (
    assignments,
    cores,
    devices,
    emulated,
    endings,
    errors,
    files,
    matchings,
    messages,
    papers,
    records,
)

MODULES = (
    *(assignments, cores, devices, emulated, endings, errors, files, matchings, messages, papers),
    records,
)
GROUPS = {group.__name__: group for module in MODULES for group in module.GROUPS}


def main() -> None:
    comm = MPI.COMM_WORLD
    begun: list[str] = []
    try:
        for group in sys.argv[1:]:
            for case in GROUPS[group](comm):
                begun.append(case)  # its name is wanted when it fails
    except BaseException:
        print(f"rank {comm.rank}, case {begun[-1:]}:\n{traceback.format_exc()}", flush=True)
        comm.Abort(1)
    if comm.rank == 0:
        print(json.dumps({"cases": len(begun)}))


if __name__ == "__main__":
    main()
