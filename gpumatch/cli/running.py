"""What the commands share: the matrix read, options of a run, the file written, the report."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpumatch.dispatch.registry import algorithms, option_names
from gpumatch.running.control import COMPILATION

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from gpumatch.results.assignment import Assignment
    from gpumatch.results.bottleneck import BottleneckAssignment
    from gpumatch.results.matching import Matching
    from gpumatch.results.pairs import Labels
    from gpumatch.running.control import Control

PROVEN, BAD_INPUT, NOT_PROVEN, INTERRUPTED, UNREAD = 0, 2, 3, 130, 141
_STEPS = (
    "read",
    "graph",
    "costs",
    "transfer",
    "compilation",
    "start",
    "search",
    "certificate",
    "plot",
)


SOURCE = "FILE|Group/Name"


def add_matrix(command: argparse.ArgumentParser) -> None:
    """The argument that names a matrix."""
    text = (
        "a matrix (.mtx, .npz, .mat, ...), a list of edges (.txt, .csv), a SuiteSparse matrix, or -"
    )
    add_source(command, text)


def add_source(command: argparse.ArgumentParser, text: str, *, is_needed: bool = True) -> None:
    """The argument that names what is read, and the options that say how."""
    add = command.add_argument
    add("source", metavar=SOURCE, help=text, nargs=None if is_needed else "?")
    text = "auto, list or table: what the lines of a text are (default: auto)"
    add("--format", default="auto", help=text)
    text = "entries of one row and column: error, sum, min, max or last"
    add("--duplicates", help=f"{text} (default: error in lists with values, else sum)")


STANDARD_INPUT = "-"


def read_matrix(options: argparse.Namespace) -> csr_array:
    """The matrix in a file or standard input, or else the one of that name in the collection."""
    from gpumatch import io

    return _read(options, io.read)


def read_costs(options: argparse.Namespace) -> Any:
    """The costs in a file, standard input or the collection: a dense matrix or a sparse one."""
    from gpumatch import io

    return _read(options, io.read_costs)


def costs_of(options: argparse.Namespace) -> Any:
    """The costs in a file or standard input, checked; an error names its first NaN."""
    from gpumatch.costs import as_costs

    given = read_costs(options)
    with naming_nan(options.source, given):
        return as_costs(given)


@contextlib.contextmanager
def naming_nan(source: str, matrix: Any) -> Iterator[None]:
    """If there is a ValueError and the matrix has a NaN, say of which file it is, and where."""
    try:
        yield
    except ValueError as error:
        at = _first_nan(matrix)
        if at is None:
            raise
        raise ValueError(f"{source}: NaN at row {at[0]}, column {at[1]}") from error


def _first_nan(matrix: Any) -> tuple[Any, Any] | None:
    """The row and the column of the first NaN, by their labels if they have some."""
    import numpy as np

    from gpumatch.interop.sparse import labels_of

    if isinstance(matrix, np.ndarray):
        if matrix.ndim != 2:
            return None
        rows, cols = np.nonzero(matrix != matrix)
    else:
        entries = matrix.tocoo()
        is_nan = entries.data != entries.data
        rows, cols = entries.row[is_nan], entries.col[is_nan]
    if not rows.size:
        return None
    ends = zip((rows[0], cols[0]), labels_of(matrix))
    row, col = (int(end) if labels is None else labels[end] for end, labels in ends)
    return row, col


def _read(options: argparse.Namespace, read: Callable[..., Any]) -> Any:
    from gpumatch import io

    source, how = options.source, {name: getattr(options, name) for name in _HOW}
    if not _is_of_the_collection(source):
        return read(sys.stdin.buffer if source == STANDARD_INPUT else source, **how)
    refuse_how(options, "a matrix of the collection")
    try:
        return io.suitesparse(source)
    except ValueError as exc:
        if "/" in source:
            raise
        raise ValueError(f"there is no file {source}, and {exc}") from None


def refuse_how(options: argparse.Namespace, what: str) -> None:
    """Raise ValueError for an option that says how a file is read, where none is."""
    for name, default in _HOW.items():
        if getattr(options, name) != default:
            raise ValueError(f"--{name} is not for {what}")


_HOW = {"format": "auto", "duplicates": None}
"""The options that say how a file is read, and what they are by default."""


def file_of(source: str) -> str | os.PathLike[str] | None:
    """The file that is read, None for standard input and what is still to be downloaded."""
    from gpumatch.io import collection

    if source == STANDARD_INPUT:
        return None
    return collection.found(source) if _is_of_the_collection(source) else source


def _is_of_the_collection(source: str) -> bool:
    """True if it is no file and has no ending: Group/Name, or a name that is told its group."""
    is_name = source.count("/") <= 1 and not os.path.splitext(source)[1]
    return source != STANDARD_INPUT and is_name and not os.path.exists(source)


def add_run_options(command: argparse.ArgumentParser, what: str) -> None:
    """The options that every run takes; `what` names its result in the help."""
    add = command.add_argument
    add("--algorithm", default="auto", help="a name of `gpumatch algorithms` (default: auto)")
    add("--backend", default="auto", help="auto, cpu, cuda or reference")
    add("--threads", type=int, help="CPU threads (default: all)")
    add("--seed", type=int, default=0, help="fixes free choices (default: 0)")
    add("--initial", metavar="FILE", help=f"{what} to begin from, as --output writes it")
    text = f"write the {what.split()[-1]}: columns by row (.npy, .npz) or edges (.csv, .mtx)"
    add("--output", metavar="FILE", type=output, help=text)
    add("--pairs", action="store_true", help="print each pair of row and column, too")
    add_forms(command)
    add("--progress", action="store_true", help="show a progress bar on stderr")
    add("--time-limit", type=float, metavar="SECONDS", help="stop with the best so far")


def add_forms(command: argparse.ArgumentParser) -> None:
    """The options that say in which form the report is printed."""
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    text = "print no report; the pairs of --pairs as CSV, with the labels of the source"
    form.add_argument("--quiet", action="store_true", help=text)


def add_proof(command: argparse.ArgumentParser) -> None:
    """The option that names the file of the proof."""
    text = "write the result with its proof (.txt or .npz), for `gpumatch check`"
    command.add_argument("--proof", metavar="FILE", type=proof_file, help=text)


def save_proof(problem: Any, result: Any, options: argparse.Namespace, **of_graph: Any) -> None:
    """Write the proof if a file is named for it; without a proof there is none to write.

    `of_graph` are the arguments of `gpumatch.certificates.save` that a graph needs.
    """
    from gpumatch import certificates

    if options.proof is not None and result.proven:
        certificates.save(options.proof, problem, result, **of_graph)


def option_of(name: str) -> str:
    """How an argument of the library is written in a command."""
    return f"--{name.replace('_', '-')}"


def add_own_options(command: argparse.ArgumentParser, problem: str) -> None:
    """The options that some algorithms for the problem have, each with their names."""
    for name in option_names(problem):
        texts: dict[str, list[str]] = {}
        for algorithm in algorithms(problem):
            if name in algorithm.options:
                texts.setdefault(" or ".join(algorithm.options[name]), []).append(algorithm.name)
        takers = (f"{values}: of {', '.join(names)}" for values, names in texts.items())
        command.add_argument(option_of(name), help="; ".join(takers))


_ENDINGS = (".npy", ".npz", ".csv", ".mtx")


def proof_file(path: str) -> str:
    """A path that a proof can be written to; wrong ones are refused before the work begins."""
    return _checked_path(path, (".txt", ".npz"))


def output(path: str) -> str:
    """A path that a matching can be written to; wrong ones are refused before the work begins."""
    return _checked_path(path, _ENDINGS)


def _checked_path(path: str, endings: tuple[str, ...]) -> str:
    if not path.lower().endswith(endings):
        raise argparse.ArgumentTypeError(f"{path} must end in {', '.join(endings)}")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder}")
    return path


def refuse_to_overwrite(source: str | os.PathLike[str] | None, output: str | None) -> None:
    """Raise ValueError if an output is the file of the input, whatever it is called."""
    if source is None or output is None:
        return
    if not (os.path.exists(source) and os.path.exists(output)):
        return
    if os.path.samefile(source, output):
        raise ValueError(f"{output} would overwrite the input {source}")


_ARRAYS = ("col_to_row", "row_dual", "col_dual", "objective")
"""What a .npz holds beside `row_to_col`, as far as the result has it."""


def run(
    solve: Callable[..., Any],
    options: argparse.Namespace,
    shape: tuple[int, int],
    wish: Mapping[str, Any],
    own_options: Iterable[str],
    labels: Labels = (None, None),
) -> Any:
    """The result, written to the file that is asked for, also if Ctrl-C ends the search.

    `wish` are the arguments that not every run takes, `own_options` the names of options that only
    some algorithms have. `labels` are those of the rows and of the columns, if they have some.
    """
    from gpumatch import io

    own = {name: value for name in own_options if (value := getattr(options, name)) is not None}
    try:
        result = solve(
            algorithm=options.algorithm,
            backend=options.backend,
            initial=options.initial and io.read_matching(options.initial, shape, labels=labels),
            seed=options.seed,
            threads=options.threads,
            time_limit=options.time_limit,
            progress=options.progress,
            **wish,
            **own,
        )
    except KeyboardInterrupt as exc:
        best = getattr(exc, "result", None)
        if options.output and best is not None:
            write(options, best, shape, labels)
            print(f"gpumatch: wrote {best.size} edges so far", file=sys.stderr)
        raise
    write(options, result, shape, labels)
    return result


def write(
    options: argparse.Namespace,
    result: Any,
    shape: tuple[int, int],
    labels: Labels = (None, None),
) -> None:
    """Write the result to the file that is asked for, if any."""
    from gpumatch import io

    if options.output:
        io.write_matching(
            *(options.output, getattr(result, "row_to_col", result), shape),
            values=getattr(result, "pair_costs", None),
            arrays={name: getattr(result, name) for name in _ARRAYS if hasattr(result, name)},
            labels=labels,
        )


def code_of(proven: bool) -> int:
    """The exit code of a run that has ended."""
    return PROVEN if proven else NOT_PROVEN


def certificate(
    source: Any, result: Matching | Assignment | BottleneckAssignment, clock: Control
) -> dict[str, float] | None:
    """What the certificate of a proven result says, checked and timed; else None."""
    import gpumatch

    if not result.proven:
        return None
    with clock.part("certificate"):
        proof = gpumatch.verify(source, result)
    return {"size": proof.size, "bound": proof.bound, "edges": proof.edges}


def seconds_of(stats: Mapping[str, Any], clock: Control) -> dict[str, float]:
    """Seconds of each step: those of the run, between what the command did before and after it."""
    of_run, own = stats["seconds"], clock.seconds
    compiled = of_run[COMPILATION] + own[COMPILATION]
    return {"read": own["read"], **of_run, **own, COMPILATION: compiled}


def tell(report: Mapping[str, Any], lines: Mapping[str, Any], options: argparse.Namespace) -> None:
    """Print the report as JSON, or these lines and its times, or only its pairs as CSV."""
    if options.json:
        print(json.dumps(report, indent=2, allow_nan=False))
        return
    if options.quiet:
        _print_csv(report)
        return
    written = {"written": report["output"]} if report["output"] else {}
    print(aligned({**lines, **_times(report["seconds"]), **written}.items()))
    if report.get("pairs"):
        header = _names_of_pairs(report)[: len(report["pairs"][0])]
        print("", aligned([header, *report["pairs"]]), sep="\n")


def _print_csv(report: Mapping[str, Any]) -> None:
    """Print the pairs in the form that `gpumatch.io.read` reads: labels have a header of theirs."""
    if report.get("pairs") is None:
        return
    pairs = report["pairs"]
    has_labels = bool(pairs) and isinstance(pairs[0][0], str)
    ends = ("source", "target") if has_labels else ("row", "column")
    rest = ("flow", "cost") if "total" in report else ("cost",)
    width = len(pairs[0]) if pairs else 2 + ("objective" in report) + ("total" in report)
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow((*ends, *rest)[:width])
    lines.writerows(pairs)


def _names_of_pairs(report: Mapping[str, Any]) -> tuple[str, ...]:
    if "vertices" in report:
        return "vertex", "vertex"
    return ("row", "column", "flow", "cost") if "total" in report else ("row", "column", "cost")


def pairs(
    result: Matching | Assignment | BottleneckAssignment, options: argparse.Namespace
) -> list[list[Any]] | None:
    """Row and column of each pair, and what it costs, where it costs something; if asked for.

    Rows and columns are in the labels of the file, if it has some.
    """
    if not options.pairs:
        return None
    edges = result.edges()
    found = [list(side) for side in zip(*(edges if isinstance(edges, list) else edges.tolist()))]
    found = found or [[], []]
    if hasattr(result, "pair_costs"):
        found.append(result.pair_costs.tolist())
    return [list(pair) for pair in zip(*found)]


def _times(seconds: Mapping[str, float]) -> dict[str, str]:
    """The sum of the steps, and each step; under the search, its parts."""
    steps = [part for part in _STEPS if part in seconds]
    lines = {"time": sum(seconds[step] for step in steps)}
    for step in steps:
        lines[f"  {step}"] = seconds[step]
        if step == "search":
            lines |= {f"    {part}": seconds[part] for part in seconds if part not in steps}
    return {name: f"{taken:.3f} s" for name, taken in lines.items()}


def aligned(rows: Iterable[Sequence[Any]]) -> str:
    """Rows of cells as lines, each column but the last padded to its longest cell."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells
    )
