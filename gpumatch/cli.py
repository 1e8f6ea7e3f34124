"""The command line: ``gpumatch match FILE``, ``gpumatch algorithms``, ``gpumatch info``.

Exit codes: 0 the matching is proven maximum, 2 bad input or usage, 3 not proven in time, 130 on
Ctrl-C (after writing the best matching so far where ``--output`` asks for it).

``--json`` prints one object. Of ``match``:

    source, rows, columns, entries   the graph
    size                             matched edges
    structural_rank                  the same once proven, else null
    rows_left, columns_left          unmatched
    proven                           whether the matching is maximum
    certificate                      {size, bound, edges} as checked, or null
    algorithm, backend, init         what ran
    phases, levels, start_size       as in `Matching.stats`
    seconds                          by part: read, graph, transfer, start, search, certificate
    output                           the file written, or null

Of ``algorithms``: a list of {name, problem, backends, exact, reference, options}. Of ``info``:
{versions, python, platform, threads, devices: [{name, memory_bytes, free_bytes}], cuda_off}, where
``cuda_off`` says why no GPU can be used, or is null.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from gpumatch.control import Control
    from gpumatch.matching import Matching

PROVEN, BAD_INPUT, NOT_PROVEN, INTERRUPTED = 0, 2, 3, 130
_OWN_OPTIONS = ("launch", "frontier")  # of some algorithms


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as exc:  # argparse has said why
        return int(exc.code or 0)
    try:
        return options.command(options)
    except KeyboardInterrupt:
        print("gpumatch: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, TypeError, RuntimeError, MemoryError, ImportError, OSError) as exc:
        print(f"gpumatch: error: {_one_line(exc)}", file=sys.stderr)
        return BAD_INPUT


def _one_line(exc: Exception) -> str:
    if isinstance(exc, OSError) and exc.strerror and exc.filename:
        return f"{exc.filename}: {exc.strerror}"
    return " ".join(str(exc).split()) or type(exc).__name__


# -- arguments -----------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpumatch",
        description="Maximum matching of sparse matrices, with a proof.",
        epilog="Exit codes: 0 proven, 2 bad input, 3 not proven in time, 130 interrupted.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_match(commands)
    for name, command, text in (
        ("algorithms", _algorithms, "list the algorithms"),
        ("info", _info, "show versions, devices, threads, and why CUDA is off"),
    ):
        listing = commands.add_parser(name, help=text, description=text.capitalize() + ".")
        listing.add_argument("--json", action="store_true", help="print JSON")
        listing.set_defaults(command=command)
    return parser


def _add_match(commands: Any) -> None:
    text = "match the rows of a sparse matrix to its columns"
    match = commands.add_parser("match", help=text, description=text.capitalize() + ".")
    add = match.add_argument
    add("source", metavar="FILE|Group/Name", help="a matrix file, or a SuiteSparse matrix")
    add("--algorithm", default="auto", help="a name of `gpumatch algorithms` (default: auto)")
    add("--init", default="auto", help="auto, cheap, karp-sipser or none: the start")
    add("--backend", default="auto", help="auto, cpu, cuda or reference")
    add("--threads", type=int, help="CPU threads (default: all)")
    add("--seed", type=int, default=0, help="fixes free choices (default: 0)")
    add("--launch", help="ct or mt: threads of the APsB and APFB kernels")
    add("--frontier", help="scan or queue: frontier of the GPUBFS-WR kernels")
    add("--initial", metavar="FILE", help="a matching to begin from, .npy or .mtx")
    text = "write the matching: columns by row (.npy) or edges (.mtx)"
    add("--output", metavar="FILE", type=_output, help=text)
    add("--json", action="store_true", help="print JSON")
    add("--progress", action="store_true", help="show a progress bar on stderr")
    add("--time-limit", type=float, metavar="SECONDS", help="stop with the best so far")
    match.set_defaults(command=_match)


def _output(path: str) -> str:
    """A path that a matching can be written to: wrong ones are told before the work, not after."""
    if not path.lower().endswith((".npy", ".mtx")):
        raise argparse.ArgumentTypeError(f"{path} must end in .npy or .mtx")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder}")
    return path


class _Version(argparse.Action):
    """Prints the version; reads it only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from gpumatch import __version__

        print(f"gpumatch {__version__}")
        parser.exit()


# -- match ---------------------------------------------------------------------------------------


def _match(options: argparse.Namespace) -> int:
    from gpumatch.control import Control

    clock = Control()
    with clock.part("read"):
        matrix = _read(options.source)
    matching = _matching(matrix, options)
    report = _report(options, matrix, matching, clock)
    print(json.dumps(report, indent=2) if options.json else _match_text(report))
    return PROVEN if matching.proven else NOT_PROVEN


def _read(source: str) -> csr_array:
    """The matrix in a file, or else of that name in the SuiteSparse collection."""
    from gpumatch import io

    is_name = source.count("/") == 1 and not os.path.splitext(source)[1]
    return io.suitesparse(source) if is_name and not os.path.exists(source) else io.read(source)


def _matching(matrix: csr_array, options: argparse.Namespace) -> Matching:
    """The matching, written where asked for, also when Ctrl-C cuts the search."""
    from gpumatch import io, maximum_matching

    def write(matching: Matching) -> None:
        if options.output:
            io.write_matching(options.output, matching.row_to_col, matrix.shape)

    own = {name: value for name in _OWN_OPTIONS if (value := getattr(options, name)) is not None}
    initial = options.initial and io.read_matching(options.initial, matrix.shape)
    try:
        matching = maximum_matching(
            matrix,
            options.algorithm,
            init=options.init,
            backend=options.backend,
            initial=initial,
            seed=options.seed,
            threads=options.threads,
            time_limit=options.time_limit,
            progress=options.progress,
            **own,
        )
    except KeyboardInterrupt as exc:
        if options.output and hasattr(exc, "result"):
            write(exc.result)
            print(f"gpumatch: wrote {exc.result.size} edges so far", file=sys.stderr)
        raise
    write(matching)
    return matching


def _report(
    options: argparse.Namespace, matrix: csr_array, matching: Matching, clock: Control
) -> dict[str, Any]:
    """What ``--json`` prints."""
    from gpumatch import verify

    certificate = None
    if matching.proven:
        with clock.part("certificate"):
            proof = verify(matrix, matching)
        certificate = {"size": proof.size, "bound": proof.bound, "edges": proof.edges}
    rows, columns = matrix.shape
    stats = matching.stats
    seconds = {"read": clock.seconds.pop("read"), **stats["seconds"], **clock.seconds}
    return {
        "source": options.source,
        "rows": rows,
        "columns": columns,
        "entries": matrix.nnz,
        "size": matching.size,
        "structural_rank": matching.size if matching.proven else None,
        "rows_left": rows - matching.size,
        "columns_left": columns - matching.size,
        "proven": matching.proven,
        "certificate": certificate,
        **{key: stats[key] for key in ("algorithm", "backend", "init")},
        **{key: stats[key] for key in ("phases", "levels", "start_size")},
        "seconds": seconds,
        "output": options.output,
    }


def _match_text(report: dict[str, Any]) -> str:
    proven, size = report["proven"], report["size"]
    lines = {
        "source": report["source"],
        "graph": "{rows} rows, {columns} columns, {entries} entries".format_map(report),
        "matching": f"{size} edges, {'maximum' if proven else 'not proven maximum'}",
        "structural rank": size if proven else f"at least {size}",
        "left": "{rows_left} rows, {columns_left} columns".format_map(report),
        "algorithm": "{algorithm} on {backend}, start {init}".format_map(report),
        "certificate": "a cover of {bound} vertices, checked on {edges} edges".format_map(
            report["certificate"]
        )
        if proven
        else "none",
        "time": f"{sum(report['seconds'].values()):.3f} s",
        **{f"  {part}": f"{taken:.3f} s" for part, taken in report["seconds"].items()},
    }
    if report["output"]:
        lines["written"] = report["output"]
    return _aligned(lines.items())


# -- algorithms and info -------------------------------------------------------------------------


def _algorithms(options: argparse.Namespace) -> int:
    from gpumatch import algorithms

    known = [
        {
            "name": algorithm.name,
            "problem": algorithm.problem,
            "backends": list(algorithm.backends),
            "exact": algorithm.exact,
            "reference": algorithm.reference,
            "options": {name: list(values) for name, values in algorithm.options.items()},
        }
        for algorithm in algorithms()
    ]
    print(json.dumps(known, indent=2) if options.json else _algorithms_text(known))
    return 0


def _algorithms_text(known: list[dict[str, Any]]) -> str:
    header = ("name", "problem", "backends", "result", "options", "reference")
    rows = [
        (
            algorithm["name"],
            algorithm["problem"],
            ", ".join(algorithm["backends"]),
            "exact" if algorithm["exact"] else "heuristic",
            " ".join(f"{name}={'|'.join(v)}" for name, v in algorithm["options"].items()),
            algorithm["reference"],
        )
        for algorithm in known
    ]
    return _aligned([header, *rows])


def _info(options: argparse.Namespace) -> int:
    found = environment()
    print(json.dumps(found, indent=2) if options.json else _info_text(found))
    return 0


def _info_text(found: dict[str, Any]) -> str:
    lines = {
        **{name: version or "not installed" for name, version in found["versions"].items()},
        "python": found["python"],
        "platform": found["platform"],
        "threads": found["threads"],
        **{
            f"device {number}": f"{device['name']}, {device['memory_bytes'] / 2**30:.1f} GiB, "
            f"{device['free_bytes'] / 2**30:.1f} GiB free"
            for number, device in enumerate(found["devices"])
        },
        "CUDA": f"off: {found['cuda_off']}" if found["cuda_off"] else "on",
    }
    return _aligned(lines.items())


def environment() -> dict[str, Any]:
    """Versions, threads and devices, as ``gpumatch info --json`` prints them."""
    from gpumatch import __version__
    from gpumatch.backends import why_no_cuda
    from gpumatch.matching import _checked_threads

    cuda_off = why_no_cuda()
    return {
        "versions": {
            "gpumatch": __version__,
            **{name: _version(name) for name in ("numpy", "scipy", "numba")},
            **_cuda_versions(),
        },
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": _checked_threads(None),
        "devices": [] if cuda_off else _devices(),
        "cuda_off": cuda_off,
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cuda_versions() -> dict[str, str | None]:
    """CuPy's version, and those of CUDA that its wheel and the driver have."""
    try:
        import cupy
    except ImportError:
        return {"cupy": None}
    runtime = cupy.cuda.runtime
    versions = {"cupy": cupy.__version__, "cuda": _dotted(runtime.runtimeGetVersion())}
    driver = runtime.driverGetVersion()
    return {**versions, "cuda driver": _dotted(driver) if driver else None}


def _dotted(version: int) -> str:
    """CUDA's 13020 is 13.2."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _devices() -> list[dict[str, Any]]:
    import cupy

    found = []
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(number):
            free, total = cupy.cuda.runtime.memGetInfo()
        name = cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()
        found.append({"name": name, "memory_bytes": total, "free_bytes": free})
    return found


# -- text ----------------------------------------------------------------------------------------


def _aligned(rows: Iterable[Sequence[Any]]) -> str:
    """Rows of cells as lines, each column but the last padded to its longest cell."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells
    )


if __name__ == "__main__":
    sys.exit(main())
