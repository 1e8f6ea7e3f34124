"""The benchmarks' command line.

python -m bench deveci2013 --out results.json     measure, or go on where an earlier run was cut
python -m bench cpu --out cpu.json                the whole call on the CPU against SciPy and igraph
python -m bench dense --out dense.json            SciPy's name for dense assignment on the CPU
python -m bench large-dense --out large.json      large dense costs, against lapx and POT on the CPU
python -m bench matching --out matching.json      the GPU's engine against everything else
python -m bench tiny --out tiny.json              a call with little to match
python -m bench assignment --out assignment.json  the GPU's engine for assignment, on all costs
python -m bench first-calls --out calls.json   what a first call compiles, and a new process loads
python -m bench frontier --out frontier.json      GPU calls on the frontier, to compare two trees
python -m bench sparse-assignment --out sparse.json  sparse costs on the CPU against its rivals
python -m bench linear-solvers --out solvers.json  what linear solvers ask for, against their rivals
python -m bench networkx-backend --out nx.json    networkx's functions on the backend
python -m bench general --out general.json        weighted matchings of any graph
python -m bench general-matching --out any.json   maximum matchings of any graph
python -m bench general-perfect --out pairs.json  perfect matchings of points
python -m bench batches --out batches.json        many dense problems at once
python -m bench points --out points.json          clouds of points against matrices and Sinkhorn
python -m bench transport --out transport.json    supplies and demands against POT and OR-tools
python -m bench live --out live.json              one row changes: sessions beside solving afresh
python -m bench host-batches --out host.json      batches and single frames on the CPU
python -m bench frames --out frames.json          frames of a tracker behind a gate
python -m bench date2016 --out date.json          the Hungarian variants, RAFT, SciPy, lapx
python -m bench roverso2010 --out roverso.json    the forms of Deep Greedy Switching
python -m bench vasconcelos2009 --out auction.json  auctions between frames of moving points
python -m bench adversary --minutes 30 --out worst.json  look for costs that hurt
python -m bench report results.json --plots DIR   tables as Markdown, figures as PNG
python -m bench report --out benchmarks.html      all of bench/results as one page
python -m bench overview --plot overview.png      the table of speed-ups and its picture
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import os
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bench import adversary, harness, machine
from bench.instances import Folder, Instance
from bench.peers import EclMm, Peer
from bench.report import analysis, overview, page
from bench.solvers import Raft, SolverPeer
from bench.suites import (
    adversarial,
    assignment,
    batches,
    cpu,
    date2016,
    dense,
    deveci2013,
    first_calls,
    frames,
    frontier,
    general,
    general_matching,
    general_perfect,
    host_batches,
    large_dense,
    linear_solvers,
    live,
    matching,
    networkx_backend,
    points,
    ranks,
    ranks_gpu,
    roverso2010,
    sparse_assignment,
    tiny,
    transport,
    vasconcelos2009,
)
from gpumatch.dispatch.devices import why_no_cuda

SUITES = {
    suite.__name__.removeprefix("bench.suites.").replace("_", "-"): suite
    for suite in (
        *(deveci2013, cpu, dense, large_dense, matching, tiny, assignment, sparse_assignment),
        *(adversarial, points, transport, general, general_matching, general_perfect),
        *(linear_solvers, networkx_backend, first_calls, frontier, batches, host_batches),
        *(live, frames),
        *(date2016, roverso2010, vasconcelos2009),
    )
}
REPORTS = {name: suite.report for name, suite in SUITES.items() if name != "deveci2013"}
REPORTS["deveci2013"] = analysis.report
REPORTS["ranks"] = ranks.report  # measured by mpiexec: see there
REPORTS["ranks-gpu"] = ranks_gpu.report
PEERS = (Peer, EclMm, SolverPeer, Raft)
RESULTS = Path(__file__).parent / "results"
DONE, BAD_USAGE, CUT = 0, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0 done, 2 bad usage, 3 cut by ``--minutes``."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except (ValueError, OSError) as exc:
        print(f"python -m bench: error: {exc}", file=sys.stderr)
        return BAD_USAGE


# -- arguments -----------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in SUITES:
        _add_suite(commands, name)
    hunt = commands.add_parser("adversary", help="look for costs that hurt")
    hunt.add_argument("--minutes", type=float, default=1.0)
    hunt.add_argument("--seed", type=int, default=0, help="another seed looks at other problems")
    hunt.add_argument("--dense", action="store_true", help="dense costs, by processor time")
    hunt.add_argument("--size", type=int, default=4000, help="the most rows of a problem")
    hunt.add_argument("--out", type=Path, metavar="FILE", help="the worst problems, as JSON")
    hunt.set_defaults(command=_adversary)
    report = commands.add_parser("report", help="print tables and draw figures of results")
    report.add_argument("results", type=Path, nargs="*", help="default: all of bench/results")
    report.add_argument("--out", type=Path, metavar="FILE.html", help="one page of all results")
    report.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the figures there")
    report.add_argument("--threshold", type=float, help="instead of the one in the results")
    report.set_defaults(command=_report)
    summary = commands.add_parser("overview", help="print the table of speed-ups")
    summary.add_argument("--plot", type=Path, metavar="FILE.png", help="draw its picture there")
    summary.set_defaults(command=_overview)
    return parser


def _add_suite(commands: Any, name: str) -> None:
    suite = SUITES[name]
    text = (suite.__doc__ or "").partition("\n")[0]
    add = (command := commands.add_parser(name, help=text, description=text)).add_argument
    add("--out", type=Path, required=True, metavar="FILE", help="results; a run goes on in it")
    add("--graphs", nargs="+", default=["*"], metavar="NAME", help="only these; * and ? match any")
    add("--contenders", nargs="+", default=["*"], metavar="NAME", help="only these, as --graphs")
    add("--data", default=os.environ.get("GPUMATCH_DATA"), metavar="FOLDER", help="real matrices")
    add("--cache", type=Path, default=Path("build", "graphs"), metavar="FOLDER", help="made graphs")
    add("--device", choices=("cpu", "cuda", "reference"), help="default: cuda if there is one")
    add("--threads", type=int, default=suite.THREADS, help="of multicore algorithms")
    add("--threshold", type=float, default=suite.THRESHOLD, help="seconds that make a graph count")
    add("--minutes", type=float, default=math.inf, help="begin nothing new after that")
    add("--limit-seconds", type=float, default=20.0, help="cap of one run of a contender")
    add("--repeats", type=int, default=5, help="runs that count, after a warm-up")
    add("--budget", type=float, default=2.0, help="seconds after which no run is repeated")
    add("--quick", action="store_true", help="tiny graphs, to see that all of it works")
    command.set_defaults(command=_measure, suite=name)


# -- commands ------------------------------------------------------------------------------------


def _measure(options: argparse.Namespace) -> int:
    deadline = time.monotonic() + 60.0 * options.minutes
    suite = SUITES[options.suite]
    device = options.device or ("cuda" if why_no_cuda() is None else "cpu")
    limits = harness.Limits(options.repeats, options.budget, options.limit_seconds)
    settings = {
        "quick": options.quick,
        "threads": options.threads,
        "threshold": options.threshold,
        **dataclasses.asdict(limits),
    }
    instances = _chosen(suite.instances(options.quick, options.data), options.graphs)
    contenders = _running(suite.contenders(device, options.threads), options.contenders)
    make = functools.partial(suite.problem, device=device)
    own = [contender for contender in contenders if not isinstance(contender, PEERS)]
    processes = 1 if options.quick else os.cpu_count() or 1  # tiny graphs take less than a start
    folder = Folder(options.cache, processes)
    first_call = harness.warm_up(own, make, suite.warming(options.quick), folder)
    run = {**machine.describe(), "first_call": first_call}
    done = harness.run(
        harness.Store(options.out, options.suite, settings, run),
        instances,
        contenders,
        limits,
        folder=folder,
        problem=make,
        deadline=deadline,
    )
    return DONE if done else CUT


def _adversary(options: argparse.Namespace) -> int:
    adversary.main(options.minutes, options.seed, options.size, options.dense, options.out)
    return DONE


def _chosen(instances: Sequence[Instance], patterns: Sequence[str]) -> list[Instance]:
    """The graphs whose name, or whose original's name, one of the patterns matches."""
    chosen = [
        instance
        for instance in instances
        if any(fnmatch(instance.name, p) or fnmatch(instance.base, p) for p in patterns)
    ]
    if not chosen:
        raise ValueError(f"no graph is called {' or '.join(patterns)}")
    return chosen


def _running(contenders: Sequence[harness.Contender], patterns: Sequence[str]) -> list[Any]:
    """The contenders whose name one of the patterns matches."""
    chosen = [code for code in contenders if any(fnmatch(code.name, p) for p in patterns)]
    if not chosen:
        raise ValueError(f"no contender is called {' or '.join(patterns)}")
    return chosen


def _report(options: argparse.Namespace) -> int:
    if options.out:
        files = options.results or sorted(RESULTS.glob("*.json"))
        home = "index.html" if (options.out.parent / "index.html").exists() else None
        options.out.write_text(page.page(files, REPORTS, home), encoding="utf-8")
        print(options.out)
        return DONE
    if len(options.results) != 1:
        raise ValueError("report prints one file of results; --out makes a page of several")
    data = harness.read(options.results[0])
    threshold = data["settings"]["threshold"] if options.threshold is None else options.threshold
    print(REPORTS[data["suite"]](data, threshold))
    if options.plots:
        from bench.report import plots

        for file in plots.draw(data, threshold, options.plots):
            print(f"\n{file}")
    return DONE


def _overview(options: argparse.Namespace) -> int:
    print(overview.table(RESULTS))
    if options.plot:
        from bench.report import plots

        plots.save(overview.figure(RESULTS), options.plot)
    return DONE


if __name__ == "__main__":
    sys.exit(main())
