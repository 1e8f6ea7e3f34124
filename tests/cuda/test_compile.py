"""Every CUDA kernel compiles, on a machine without a GPU: NVRTC needs none."""

from __future__ import annotations

import pytest

from gpumatch.cuda import module

nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy is not installed")

INSTANCES = list(module.every_instance())


def compiled(text: str, names: tuple[str, ...], architecture: str) -> list[str]:
    """Compile a source with NVRTC; the lowered names of its kernels."""
    program = nvrtc.createProgram(text, "kernels.cu", (), ())
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        options = (*module.COMPILE_OPTIONS, f"--gpu-architecture={architecture}")
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


def test_headers_are_put_in_once():
    text = module.APSB_APFB.text()
    assert '#include "' not in text
    assert text.count("struct Frontier {") == 1
