"""``gpumatch algorithms``, ``info`` and ``warmup``: what there is, and what it runs on."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any

from gpumatch.cli.running import aligned


def add_to(commands: Any) -> None:
    for name, command, text in (
        ("algorithms", _algorithms, "list the algorithms"),
        (
            "info",
            _info,
            "show versions, devices, threads, why CUDA is off, and where compiled code is kept",
        ),
    ):
        listing = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        listing.add_argument("--json", action="store_true", help="print JSON")
        listing.set_defaults(command=command)
    text = "compile what later calls need, so that none of them waits"
    warmup = commands.add_parser(
        "warmup", help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
    )
    add = warmup.add_argument
    add("--backend", default="auto", help="auto, cpu or cuda (default: all there are)")
    add("--cuda", dest="backend", action="store_const", const="cuda", help="--backend cuda")
    add("--json", action="store_true", help="print JSON")
    warmup.set_defaults(command=_warmup)


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
    return aligned([header, *rows])


def _warmup(options: argparse.Namespace) -> int:
    if "cupy" not in sys.modules:  # which reads it when it is imported
        os.environ.setdefault("CUPY_NVRTC_USE_PCH", "1")
    from gpumatch import warmup

    def tell(name: str, taken: float) -> None:
        if not options.json:
            print(f"{taken:8.2f} s  {name}", flush=True)

    seconds = warmup(backend=options.backend, tell=tell)
    total = sum(seconds.values())
    print(json.dumps({"seconds": seconds}, indent=2) if options.json else f"{total:8.2f} s in all")
    return 0


def _info(options: argparse.Namespace) -> int:
    from gpumatch.cpu.numba_tools.compiled import cache_folder
    from gpumatch.cuda.kernels import machine_code

    folder = cache_folder()
    found = {
        **environment(),
        "compiled_code": None if folder is None else str(folder),
        "machine_code": machine_code.archives(),
    }
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
        "compiled code": f"kept below {found['compiled_code']}"
        if found["compiled_code"]
        else "not kept, because no folder can be written to: set NUMBA_CACHE_DIR to one that can",
        "machine code": ", ".join(found["machine_code"]) or "none: kernels are compiled here",
    }
    return aligned(lines.items())


def environment() -> dict[str, Any]:
    """Versions, threads and devices: what benchmarks record, too."""
    from gpumatch import __version__
    from gpumatch.dispatch.arguments import checked_threads
    from gpumatch.dispatch.devices import why_no_cuda

    cuda_off = why_no_cuda()
    return {
        "versions": {
            "gpumatch": __version__,
            **{name: _version(name) for name in ("numpy", "scipy", "numba")},
            **_cuda_versions(),
        },
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": checked_threads(None),
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
    except (ImportError, OSError):
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
