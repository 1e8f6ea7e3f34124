"""Every CUDA kernel compiles, on a machine without a GPU: NVRTC needs none.

Most are compiled with few optimisations, which takes a tenth of the time. What the compiler says
of a source, and the layout of its structs, are the same. Kernels of a source for other types are
compiled in one program, which reads the source once.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

import gpumatch.cuda
from gpumatch.cuda import kernels as module
from gpumatch.cuda.kernels import Source

nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy is not installed")

from tests.cuda.sources import every_instance, sources  # noqa: E402  it imports cupy

FOLDER = Path(gpumatch.cuda.__file__).parent
INSTANCES: dict[Source, list[dict[str, str]]] = {}
"""The arguments of each source, in every combination."""
for _source, _arguments in every_instance():
    INSTANCES.setdefault(_source, []).append(_arguments)


def _depends_on_architecture(source) -> bool:
    """Whether its text is other code for some architectures: those that have clusters."""
    return "__CUDA_ARCH__" in source.text()


def _targets():
    """Arguments that are compiled in one program, for what, how, and whether in the long tests.

    The first arguments of each source are compiled to the end, for the architecture that has most
    code of its own, and all others to assembly. In the long tests all are compiled to the end, also
    for newer architectures if that is other code, and the first with all optimisations.
    """
    for source, every in INSTANCES.items():
        first, others, depends = every[:1], every[1:], _depends_on_architecture(source)
        main, *rest = (90, 80, 100) if depends else (80, 100)
        yield source, first, f"sm_{main}", "quickly", False
        yield source, first, f"sm_{main}", "fully", True
        for number in rest:
            yield source, first, f"sm_{number}", "quickly", True
        if others:
            yield source, others, "compute_80", "quickly", False
            for number in (80, 90) if depends else (80,):
                yield source, others, f"sm_{number}", "quickly", True


TARGETS = [
    pytest.param(
        *target,
        id=f"{target[0].file}-{'-'.join(target[1][0].values())}-{target[2]}-{target[3]}",
        marks=[pytest.mark.long] if is_long else [],
    )
    for *target, is_long in _targets()
]

ATOMICS = {
    "assignment/hungarian/classical.cu": [b"cas"],
    "assignment/hungarian/tree.cu": [b"min", b"max"],
    "matching/cheap.cu": [b"cas"],
    "matching/engine.cu": [b"cas"],
    "matching/gpubfs_queue.cu": [b"cas"],
    "matching/min_degree.cu": [b"cas"],
}
"""What threads claim vertices and settle distances by.

Threads of the emulator run on between two calls, so a load and a store do as well there.
"""

_OFFSET = re.compile(r"__builtin_offsetof\((.+), (\w+)\)")


@functools.cache
def _quickly() -> tuple[str, ...]:
    """The option for few optimisations, if this NVRTC has it."""
    option = ("--Ofast-compile=max",)
    program = nvrtc.createProgram("__global__ void nothing() {}", "nothing.cu", (), ())
    try:
        nvrtc.compileProgram(program, option)
    except nvrtc.NVRTCError:
        return ()
    finally:
        nvrtc.destroyProgram(program)
    return option


def compiled(
    text: str, names: tuple[str, ...], architecture: str, *more: str
) -> tuple[list[str], bytes]:
    """Compile a source with NVRTC; the lowered names of its kernels, and the assembly."""
    text = _OFFSET.sub(r"__INTADDR__(&((\1*)0)->\2)", text)  # 13.0 does not know the other
    program = nvrtc.createProgram(text, "kernels.cu", (), ())
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        options = (*module.COMPILE_OPTIONS, *more, f"--gpu-architecture={architecture}")
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as exc:
            pytest.fail(f"{exc}\n{nvrtc.getProgramLog(program)}")
        if architecture.startswith("sm_"):
            assert len(nvrtc.getCUBIN(program)) > 1000
        assembly = nvrtc.getPTX(program)
        assert len(assembly) > 1000
        return [nvrtc.getLoweredName(program, name) for name in names], assembly
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize(("source", "arguments", "architecture", "how"), TARGETS)
def test_every_kernel_compiles(source, arguments, architecture, how):
    """And the host's mirrors of its structs have the compiler's sizes and offsets."""
    names = tuple(dict.fromkeys(name for each in arguments for name in source.names(each)))
    text = "\n".join([source.text(), *map(source.layout_assertions, arguments)])
    more = _quickly() if how == "quickly" else ()
    lowered, assembly = compiled(text, names, architecture, *more)
    assert len(set(lowered)) == len(names)
    for instruction in ATOMICS.get(source.file, ()):
        assert re.search(rb"atom\S*\." + instruction, assembly)


COOPERATIVE = [source for source in sources() if source.cooperative]


@pytest.mark.parametrize("source", COOPERATIVE, ids=lambda source: source.file)
def test_barriers_that_some_leave_late_compile(source):
    names = source.names(next(source.instances()))
    compiled(source.text(), names, "compute_90", "-DGPUMATCH_STAGGER", *_quickly())


def test_headers_are_put_in_once():
    text = next(s for s in sources() if s.file == "matching/gpubfs_queue.cu").text()
    assert '#include "' not in text
    assert text.count("struct Queue {") == 1


def test_every_cu_file_is_a_source_of_the_module_that_launches_it():
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.cu")}
    assert sorted(source.file for source in sources()) == sorted(files)


def test_headers_that_all_share_know_no_algorithm():
    for path in FOLDER.glob("*.cu*"):
        assert '#include "matching' not in path.read_text()
        assert '#include "assignment' not in path.read_text()


@pytest.mark.parametrize("wrong", ["an order", "a type", "a length"])
def test_a_mirror_that_does_not_fit_is_seen(wrong):
    """The assertions for one struct, behind another of the same name."""
    members = {
        "an order": "int sizes[3]; int found[3]; int level; ",
        "a type": "int sizes[3]; long long level; int found[3]; ",
        "a length": "int sizes[2]; int level; int found[3]; ",
    }[wrong]
    source = next(s for s in sources() if s.file == "matching/vertex_cover.cu")
    assertions = "\n".join(source.struct("SearchState").layout_assertions())
    with pytest.raises(pytest.fail.Exception, match="static assertion failed"):
        compiled(f"struct SearchState {{ {members} }};\n{assertions}", (), "sm_90")
