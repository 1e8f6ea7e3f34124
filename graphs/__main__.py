"""Write a generated graph to a file: ``python -m graphs delaunay 16 --seed 1 -o mesh.npz``."""

from __future__ import annotations

import argparse
import gzip
import inspect
import sys
from pathlib import Path

import scipy.io
import scipy.sparse

from graphs import FAMILIES, Family, make


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = _parser()
    options = parser.parse_intermixed_args(arguments)
    if options.list:
        print(
            _listing() if options.name is None else inspect.getdoc(FAMILIES[options.name].generate)
        )
        return 0
    if options.name is None or options.output is None:
        parser.error("give a family, its parameters and -o FILE, or --list")
    try:
        positional, named = _parameters(options.parameters)
        graph = make(options.name, *positional, seed=options.seed, rcp=options.rcp, **named)
        _write(options.output, graph)
    except (TypeError, ValueError, OSError) as error:
        print(f"python -m graphs: {error}", file=sys.stderr)
        return 2
    print(f"{options.output}: {graph.shape[0]} rows, {graph.shape[1]} columns, {graph.nnz} entries")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m graphs", description=__doc__)
    parser.add_argument("name", nargs="?", choices=FAMILIES, metavar="NAME", help="see --list")
    parser.add_argument("parameters", nargs="*", help="in the family's order, or as name=value")
    parser.add_argument("--seed", type=int, default=0, help="of the graph and its permutation")
    parser.add_argument("--rcp", action="store_true", help="permute rows and columns at random")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=".mtx, .mtx.gz or .npz")
    parser.add_argument("--list", action="store_true", help="list the families, or tell about NAME")
    return parser


def _listing() -> str:
    """Return two lines a family: its call and what it is."""
    return "\n".join(
        f"{_usage(name, family)}\n    {family.summary}" for name, family in FAMILIES.items()
    )


def _usage(name: str, family: Family) -> str:
    """Return the family's name and parameters, as in a call."""
    return " ".join(
        [name]
        + [
            parameter.name
            if parameter.default is parameter.empty
            else f"[{parameter.name}={parameter.default}]"
            for parameter in family.parameters.values()
        ]
    )


def _parameters(words: list[str]) -> tuple[list[float], dict[str, float]]:
    """Split words into positional and named numbers."""
    positional = [_number(word) for word in words if "=" not in word]
    named = [word.split("=", 1) for word in words if "=" in word]
    return positional, {name: _number(value) for name, value in named}


def _number(word: str) -> float:
    try:
        return int(word)
    except ValueError:
        return float(word)


def _write(path: Path, graph: scipy.sparse.csr_array) -> None:
    """Write the graph in the format its file name asks for."""
    if path.suffix == ".npz":
        scipy.sparse.save_npz(path, graph)
    elif path.name.endswith((".mtx", ".mtx.gz")):
        with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as file:
            scipy.io.mmwrite(file, graph, field="pattern", symmetry="general")
    else:
        raise ValueError(f"{path}: the name must end in .mtx, .mtx.gz or .npz")


if __name__ == "__main__":
    sys.exit(main())
