"""Every CUDA kernel compiles, on a machine without a GPU: NVRTC needs none.

Most are compiled with few optimisations, which takes a tenth of the time. What the compiler says
of a source, and the layout of its structs, are the same. One of each source is compiled as drivers
have it compiled.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

import gpumatch.cuda
from gpumatch.cuda import kernels as module

nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy is not installed")

from tests.cuda.sources import every_instance, sources  # noqa: E402  it imports cupy

FOLDER = Path(gpumatch.cuda.__file__).parent
INSTANCES = list(every_instance())
FIRST = dict(reversed(INSTANCES))  # of each source


def _depends_on_architecture(source) -> bool:
    """Whether its text is other code for some architectures: those that have clusters."""
    return "__CUDA_ARCH__" in source.text()


def _targets():
    """All for the oldest architecture; one of what has other code for clusters, with these, too.

    In the long tests one of each source is compiled with all optimisations, too. The rest, and the
    newer architectures, are compiled to the end there.
    """
    for source, arguments in INSTANCES:
        is_first, depends = FIRST[source] is arguments, _depends_on_architecture(source)
        numbers = [80, *([90] if is_first or depends else []), *([100] if is_first else [])]
        for number in numbers:
            is_main = is_first and number == (90 if depends else 80)
            if is_main:
                yield source, arguments, f"sm_{number}", "fully", True
            yield source, arguments, f"sm_{number}", "quickly", not is_main
            if not is_main and (number == 80 or depends):
                yield source, arguments, f"compute_{number}", "quickly", False


TARGETS = [
    pytest.param(
        *target,
        id=f"{target[0].file}-{'-'.join(target[1].values())}-{target[2]}-{target[3]}",
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
    names = source.names(arguments)
    text = f"{source.text()}\n{source.layout_assertions(arguments)}"
    more = _quickly() if how == "quickly" else ()
    lowered, assembly = compiled(text, names, architecture, *more)
    assert len(set(lowered)) == len(names)
    for instruction in ATOMICS.get(source.file, ()):
        assert re.search(rb"atom\S*\." + instruction, assembly)


COOPERATIVE = [source for source in sources() if source.cooperative]


@pytest.mark.parametrize("source", COOPERATIVE, ids=lambda source: source.file)
def test_barriers_that_some_leave_late_compile(source):
    names = source.names(next(source.instances()))
    compiled(source.text(), names, "sm_90", "-DGPUMATCH_STAGGER", *_quickly())


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
