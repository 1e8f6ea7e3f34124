"""Each launch passes what its kernel declares: as many arguments, numbers where numbers belong.

Nothing else compares the two without a GPU: a launch is Python, and its kernel C++. An argument
that has the name of one of the kernel's parameters must be that one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpumatch

FOLDER = Path(gpumatch.__file__).parent / "cuda"
NUMBERS = {"int", "unsigned", "long long", "unsigned long long", "float", "double"}


def signatures(text: str) -> dict[str, list[tuple[str, str]]]:
    """Of each kernel, type and name of its parameters."""
    text = re.sub(r"//[^\n]*|__launch_bounds__\([^)]*\)", "", text)
    found = {}
    for name, parameters in re.findall(r"__global__\s+void[^(;]*?(\w+)\s*\(([^)]*)\)\s*\{", text):
        parts = [" ".join(part.split()) for part in parameters.split(",") if part.strip()]
        found[name] = [(p[: -len(p.split()[-1])].strip(), p.split()[-1]) for p in parts]
    return found


def launches(tree: ast.AST) -> Iterator[tuple[str, list[ast.expr]]]:
    """Kernel and arguments of each launch that spells out both."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Subscript) and len(call.args) == 3:
            name, given = call.func.slice, call.args[2]
            arguments = given.elts if isinstance(given, ast.Tuple) else None
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "launch" and call.args:
            name, arguments = call.args[0], call.args[1:]
            if arguments and ast.unparse(arguments[0]).endswith("_grid"):
                del arguments[0]
        elif isinstance(call.func, ast.Call) and getattr(call.func.func, "id", "") == "Cooperative":
            name, arguments = call.func.args[1], call.args
        else:
            continue
        if isinstance(name, ast.Call) and name.args:  # _instance("kernel", ...)
            name = name.args[0]
        flat = None if arguments is None else _flat(arguments)
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and flat is not None:
            yield name.value.partition("<")[0], flat


def _flat(arguments: list[ast.expr]) -> list[ast.expr] | None:
    """Those in starred tuples in their places; None if something else is starred."""
    found: list[ast.expr] = []
    for argument in arguments:
        if not isinstance(argument, ast.Starred):
            found.append(argument)
            continue
        inner = _flat(argument.value.elts) if isinstance(argument.value, ast.Tuple) else None
        if inner is None:
            return None
        found += inner
    return found


def faults(parameters: list[tuple[str, str]], arguments: list[ast.expr]) -> list[str]:
    """What is wrong with the arguments for these types and names."""
    if len(parameters) != len(arguments):
        return [f"{len(parameters)} parameters, {len(arguments)} arguments"]
    names, found = [name for _, name in parameters], []
    for (kind, name), argument in zip(parameters, arguments):
        text = ast.unparse(argument)
        if text.startswith(("np.int", "np.uint", "np.float")) and kind.endswith("*"):
            found.append(f"{name} is a pointer, {text} a number")
        own = text.rpartition(".")[2]
        if own in names and own != name:
            found.append(f"{text} is passed for {name}")
        if text.startswith("np.int32(") and kind in NUMBERS - {"int"}:
            found.append(f"{name} is {kind}, {text} is not")
        if text.startswith("np.int64(") and kind in NUMBERS - {"long long"}:
            found.append(f"{name} is {kind}, {text} is not")
    return found


KERNELS = {
    (path.parent, name): parameters
    for path in sorted([*FOLDER.rglob("*.cu"), *FOLDER.rglob("*.cuh")])
    for name, parameters in signatures(path.read_text(encoding="utf-8")).items()
}


def kernel(folder: Path, name: str) -> list[tuple[str, str]] | None:
    """The parameters of a kernel: that of the driver's own folder, or the only one of this name."""
    if (folder, name) in KERNELS:
        return KERNELS[folder, name]
    others = [parameters for (_, other), parameters in KERNELS.items() if other == name]
    return others[0] if len(others) == 1 else None


LAUNCHES = [
    pytest.param(found, arguments, id=f"{path.relative_to(FOLDER)}-{name}")
    for path in sorted(FOLDER.rglob("*.py"))
    for name, arguments in launches(ast.parse(path.read_text(encoding="utf-8")))
    if (found := kernel(path.parent, name)) is not None
]


@pytest.mark.parametrize(("parameters", "arguments"), LAUNCHES)
def test_a_launch_passes_what_its_kernel_declares(parameters, arguments):
    assert not faults(parameters, arguments)


def test_launches_are_found():
    assert len(LAUNCHES) >= 10


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("kernels['k<{T}>'](g, b, (np.int32(n), rows, self.cols))", []),
        ("self.launch('k', *(np.int32(n), rows), cols)", []),
        ("Cooperative(kernels, 'k')(np.int32(n), cols, rows)", ["cols is passed for rows"]),
        ("kernels['k'](g, b, (np.int32(n), rows))", ["3 parameters, 2 arguments"]),
        ("kernels['k'](g, b, (rows, np.int32(n), x))", ["rows is passed for n"]),
        ("kernels['k'](g, b, (np.int64(n), rows, x))", ["n is int, np.int64(n) is not"]),
    ],
)
def test_faults_are_seen(call, words):
    text = "template <typename T>\n__global__ void k(int n, const T* rows,  // IN\n int* cols) {"
    [(name, arguments)] = launches(ast.parse(call))
    found = faults(signatures(text)[name], arguments)
    assert bool(found) == bool(words)
    assert all(any(line.startswith(word) for line in found) for word in words)
