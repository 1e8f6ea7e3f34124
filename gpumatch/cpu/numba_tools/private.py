"""Everything that gpumatch uses of Numba beyond its documented interface.

Numba may change or drop any of it in a later version. So no other file imports it, and each part is
an object here that has its names, or None if this Numba lacks one of them.

    part       who uses it                          what takes its place
    events     `compiled`: when Numba compiles      compile time is not counted apart
    caching    `cache`: files of compiled code      Numba's own `cache=True`
    compiler   `parts`: kernels within kernels      plain `njit`
    passes     `parts`: what LLVM does to kernels   Numba's own passes, as in 0.61
    arrays     `atomics`, `prefetch`, `views`       `plain`, and plain `njit` for all kernels
    boxes      `short_calls`                        the general front door

A name that is there may have another meaning. So whoever compiles with a part asks `works` first,
with a trial: a function that compiles a small kernel of the part, runs it, and checks what it did.
The trial is made once in each process, but not with the versions of Numba and the processors that
`.ci/run` has seen: there it would add a tenth to the first call of a fresh installation.

Documented, and imported elsewhere: `numba` itself, `numba.extending`, and LLVM's interface in
`llvmlite`.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numba

__all__ = ["SEEN", "arrays", "boxes", "caching", "compiler", "events", "is_seen", "passes", "works"]

SEEN = (0, 61), (0, 68)
"""The lowest and the highest version that `.ci/run` runs; pyproject.toml admits no other."""
_SEEN_MACHINES = ("x86_64", "AMD64")


def is_seen() -> bool:
    """True if the tests have run with this version of Numba on such a processor."""
    lowest, highest = SEEN
    version = tuple(map(int, numba.__version__.split(".")[:2]))
    return lowest <= version <= highest and platform.machine() in _SEEN_MACHINES


def works(part: Any, trial: Callable[[], bool]) -> bool:
    """True if a part is there and, unless this Numba is seen, its trial succeeds."""
    if part is None:
        return False
    try:
        return is_seen() or trial()
    except Exception:  # then the part is not as expected
        return False


def _need(owner: Any, *names: str) -> None:
    """Raise an AttributeError unless the owner has all of these."""
    for name in names:
        getattr(owner, name)


def _events() -> Any:
    from numba.core import event

    _need(event, "Listener", "register")
    return event


def _caching() -> Any:
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.runtime import rtsys

    _need(
        FunctionCache,
        "_guard_against_spurious_io_errors",
        "_load_overload",
        "load_overload",
        "save_overload",
    )
    _need(IndexDataCacheFile, "load", "save")
    _need(rtsys, "initialize")
    return SimpleNamespace(
        FunctionCache=FunctionCache, IndexDataCacheFile=IndexDataCacheFile, rtsys=rtsys
    )


def _compiler() -> Any:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, CompileResult
    from numba.core.compiler_machinery import PassManager
    from numba.core.cpu import CPUContext
    from numba.core.registry import CPUDispatcher
    from numba.core.typed_passes import IRLegalization, NopythonRewrites
    from numba.core.typing import Context
    from numba.core.untyped_passes import InlineClosureLikes

    _need(
        JITCodeLibrary,
        "_finalize_dynamic_globals",
        "_finalize_final_module",
        "_optimize_final_module",
        "_optimize_functions",
        "add_ir_module",
        "codegen",
        "enable_object_caching",
        "get_pointer_to_function",
    )
    _need(Compiler, "define_pipelines")
    _need(CompileResult, "_find_referenced_environments")
    _need(PassManager("kernel"), "finalize", "passes")
    _need(CPUContext, "get_abi_sizeof", "refresh", "subtarget")
    _need(CPUDispatcher, "_numba_type_", "add_overload", "get_call_template")
    _need(Context, "resolve_function_type")
    return SimpleNamespace(
        Compiler=Compiler,
        Context=Context,
        CPUContext=CPUContext,
        CPUDispatcher=CPUDispatcher,
        JITCodeLibrary=JITCodeLibrary,
        needless=(InlineClosureLikes, NopythonRewrites, IRLegalization),
    )


def _passes() -> Any:
    import llvmlite.binding as llvm
    from numba.core.codegen import JITCPUCodegen

    _need(JITCPUCodegen, "_module_pass_manager", "_pass_builder")
    _need(llvm, "create_pass_builder", "create_pipeline_tuning_options")
    _need(llvm.PipelineTuningOptions, "loop_unrolling", "loop_vectorization", "speed_level")
    return llvm


def _arrays() -> Any:
    from numba.core import cgutils
    from numba.core.cpu import CPUContext

    _need(
        cgutils,
        "alloca_once",
        "alloca_once_value",
        "for_range_slice",
        "get_item_pointer",
        "get_or_insert_function",
        "intp_t",
        "unpack_tuple",
    )
    _need(
        CPUContext,
        "cast",
        "get_abi_sizeof",
        "get_data_type",
        "get_dummy_value",
        "make_array",
        "populate_array",
    )
    return cgutils


def _boxes() -> Any:
    from numba.core import cgutils
    from numba.core.cpu import CPUContext
    from numba.core.datamodel import default_manager
    from numba.core.pythonapi import PythonAPI
    from numba.core.registry import cpu_target
    from numba.np.numpy_support import as_dtype

    _need(
        cgutils,
        "alloca_once",
        "alloca_once_value",
        "for_range",
        "gep_inbounds",
        "get_item_pointer",
        "get_or_insert_function",
        "intp_t",
        "is_not_null",
        "is_null",
        "raw_memcpy",
        "unpack_tuple",
        "voidptr_t",
    )
    _need(
        CPUContext,
        "get_abi_sizeof",
        "get_data_type",
        "get_dummy_value",
        "get_python_api",
        "get_value_type",
        "make_array",
        "populate_array",
    )
    _need(
        PythonAPI,
        "decref",
        "err_set_string",
        "get_null_object",
        "list_new",
        "list_setitem",
        "long_from_ssize_t",
        "make_none",
        "restore_thread",
        "save_thread",
        "tuple_new",
        "tuple_setitem",
    )
    _need(default_manager, "lookup")
    return SimpleNamespace(
        as_dtype=as_dtype, cgutils=cgutils, cpu_target=cpu_target, default_manager=default_manager
    )


def _part(names: Callable[[], Any]) -> Any:
    """What has the names of a part; None if one of them is missing."""
    try:
        return names()
    except Exception:  # a call with other arguments than Numba wants is as bad as a missing name
        return None


events, caching, compiler = _part(_events), _part(_caching), _part(_compiler)
passes, arrays, boxes = _part(_passes), _part(_arrays), _part(_boxes)
