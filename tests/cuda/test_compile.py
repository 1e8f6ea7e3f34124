"""Every CUDA kernel compiles, on a machine without a GPU: NVRTC needs none."""

from __future__ import annotations

import pytest

from gpumatch.cuda import kernels as module

nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy is not installed")

INSTANCES = list(module.every_instance())


def compiled(text: str, names: tuple[str, ...], architecture: str, *definitions: str) -> list[str]:
    """Compile a source with NVRTC; the lowered names of its kernels."""
    program = nvrtc.createProgram(text, "kernels.cu", (), ())
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        options = (*module.COMPILE_OPTIONS, *definitions, f"--gpu-architecture={architecture}")
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as exc:
            pytest.fail(f"{exc}\n{nvrtc.getProgramLog(program)}")
        assert len(nvrtc.getCUBIN(program)) > 1000
        return [nvrtc.getLoweredName(program, name) for name in names]
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(("source", "offset"), INSTANCES, ids=lambda x: getattr(x, "file", x))
def test_every_kernel_compiles(source, offset, architecture):
    names = source.names(offset)
    lowered = compiled(source.text(), names, architecture)
    assert len(set(lowered)) == len(names)


@pytest.mark.parametrize(
    "source", [s for s in module.SOURCES if s.cooperative], ids=lambda s: s.file
)
def test_barriers_that_some_leave_late_compile(source):
    names = source.names(next(iter(source.types.values())))
    compiled(source.text(), names, "sm_90", "-DGPUMATCH_STAGGER")


def test_headers_are_put_in_once():
    text = module.APSB_APFB.text()
    assert '#include "' not in text
    assert text.count("struct Frontier {") == 1
