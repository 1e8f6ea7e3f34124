"""Kernels whose inner functions are compiled as parts of them, which saves a fifth of the time.

Numba compiles each function that a kernel calls as if it stood alone. It optimises it, turns it
into machine code, and makes wrappers for calls from Python and from C. Then it links the function
into the kernel, where all is optimised again. Only that last copy is ever called.

Here a function has two compilers. For a call from Python it is compiled as usual, but without the
wrapper for C. For a kernel that calls it, it is only translated, and handed to the kernel. Such a
part has no file of its own: that of the kernel contains it.

What operations return is remembered (`operations`), and how large a type is: Numba asks LLVM each
time, by a module that is written as text and read for that. And while Numba compiles a function, it
does not look for others that were registered since it began. It would do so hundreds of times,
whenever it finds no definition at once. Nor does it import all that it can compile once more: it
would, for each function of ours that is made for some types.

A kernel that only borrows arrays makes none, and no lists or functions. So it skips the passes that
look for these, and the one that finds where each variable is used last, to give its memory back.
That takes an eighth less time. The machine code of 240 of 243 kernels is the same, and that of the
others a few instructions shorter.

The wrapper for calls from Python unpacks up to twenty arrays, and may be as long as the kernel.
That of a kernel that releases the GIL is not optimised. So a compilation takes a twentieth less
time, and a call with fifteen arguments 0.5 µs instead of 0.4.

LLVM leaves loops as they are once it has made vectors of them: Numba would have it write out each
loop that is left several times, those after vectors above all. The machine code is then half as
long, which takes a fifth of the time of a compilation, and kernels are as fast.

A function that is forced inline is optimised before it is handed over, too. LLVM then finds more
vector instructions: in the search of small problems, this is worth a tenth of the time.

This depends on private parts of Numba (`private.compiler`): how a library of code is finalized,
what a dispatcher tells type inference, and which contexts and passes a compiler works with. Where
one of them is missing, this module cannot be imported, and `compiled` takes plain `njit`. Where
`private.passes` is, LLVM's passes are Numba's.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from numba import config, types

from gpumatch.cpu.numba_tools.cache import keep
from gpumatch.cpu.numba_tools.operations import Operations
from gpumatch.cpu.numba_tools.private import compiler, passes

__all__ = ["Kernel", "has_parts"]

_settings: Any = config  # NUMBA_OPT and others, which checkers of types do not find
NEEDLESS = compiler.needless
"""Passes for functions within functions, operations on whole arrays, and last uses of variables."""


def _inlining(codegen: Any) -> tuple[Any, Any]:
    """The first passes, which are Numba's: they inline, and turn loops around."""
    return codegen._module_pass_manager(
        loop_vectorize=codegen._loopvect, slp_vectorize=False, opt=codegen._opt_level, cost="cheap"
    )


def _optimizing(codegen: Any) -> tuple[Any, Any]:
    """All other passes, which leave loops rolled up."""
    options = passes.create_pipeline_tuning_options()
    options.speed_level = int(_settings.OPT)
    options.loop_vectorization = bool(_settings.LOOP_VECTORIZE)
    options.loop_unrolling = False
    builder = passes.create_pass_builder(codegen._tm, options)
    return builder.getModulePassManager(), builder


class _KernelLibrary(compiler.JITCodeLibrary):
    """Code of which the wrapper for Python is optimised only once, with all else."""

    def _optimize_functions(self, ll_module: Any) -> None:
        if ll_module.name != "wrapper":
            super()._optimize_functions(ll_module)

    def _optimize_final_module(self) -> None:
        if passes is None:
            super()._optimize_final_module()
            return
        for manager, builder in _inlining(self._codegen), _optimizing(self._codegen):
            manager.run(self._final_module, builder)


class _LongKernelLibrary(_KernelLibrary):
    """Code of which that wrapper is not optimised at all."""

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions if ir_module.name == "wrapper" else ():
            if not function.is_declaration:
                function.attributes.add("optnone")
                function.attributes.add("noinline")  # LLVM asks for both
        super().add_ir_module(ir_module)


class _FusedLibrary(_KernelLibrary):
    """Code without an address, which waits to be linked into that of a kernel."""

    codegen = SimpleNamespace(set_env=lambda name, env: None)  # the kernel's is set later

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _PartLibrary(_FusedLibrary):
    """The same, not optimised."""

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel's."""


_operations = functools.cache(Operations)


@functools.cache
def _sizes(context: Any) -> Callable[[Any], int]:
    """What says how large a type is, and asks LLVM once."""
    return functools.cache(context.get_abi_sizeof)


_LOADING = "load_additional_registries"


def _nothing_to_load() -> None:
    """Stand in for the method of a context that imports all that Numba can compile."""


class _KernelCompiler(compiler.Compiler):
    """Numba's compiler, which asks nothing twice, and looks for new functions once.

    It does not look for what a kernel without owners of memory has not.
    """

    def library_for(self, flags: Any) -> type[Any]:
        """The kind of code that is made."""
        return _LongKernelLibrary if flags.release_gil else _KernelLibrary

    def define_pipelines(self) -> Any:
        state = self.state
        for context in state.typingctx, state.targetctx:
            setattr(context, _LOADING, _nothing_to_load)  # it was loaded for this compiler
        library = self.library_for(state.flags)
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.typingctx = _operations(state.typingctx)
        state.targetctx = state.targetctx.subtarget(
            refresh=lambda: None, get_abi_sizeof=_sizes(state.targetctx)
        )
        pipelines = super().define_pipelines()
        if not state.flags.nrt:
            for pipeline in pipelines:
                pipeline.passes = [one for one in pipeline.passes if one[0] not in NEEDLESS]
                pipeline.finalize()
        return pipelines


class _PartCompiler(_KernelCompiler):
    """The same for a part."""

    def library_for(self, flags: Any) -> type[Any]:
        return _PartLibrary


class _FusedCompiler(_KernelCompiler):
    """The same for a part that is forced inline."""

    def library_for(self, flags: Any) -> type[Any]:
        return _FusedLibrary


class _Part(compiler.CPUDispatcher):
    """A function that kernels call: compiled once for a type, whatever numbers are written there.

    Inference takes a variable that begins as 0 for that number, before it sees what is added. Numba
    would compile each function that is given the variable for the number, and then for integers.
    """

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a call with these types is; Numba calls this."""
        args = tuple(map(types.unliteral, args))
        return super().get_call_template(args, {key: types.unliteral(kws[key]) for key in kws})


class Kernel(compiler.CPUDispatcher):
    """A function that Python calls, and that is a part of the kernels that call it.

    What it needs to be compiled is made when it is: a process that finds all in files makes many
    kernels, and compiles none.

    Parameters
    ----------
    function : function
    flags : dict
        Numba's.
    is_kept : bool
        True if what is compiled is kept in files (`cache`).
    """

    def __init__(self, function: Any, flags: dict[str, Any], *, is_kept: bool = False) -> None:
        self._flags = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **flags}
        super().__init__(function, targetoptions=self._flags, pipeline_class=_KernelCompiler)
        self._needs_files = is_kept

    @functools.cached_property
    def _part(self) -> _Part:
        # A part of a part that is forced inline is, too, but it need not be optimised before.
        pipeline = _FusedCompiler if self._flags.get("forceinline") else _PartCompiler
        flags = {**self._flags, "no_cpython_wrapper": True}
        return _Part(self.py_func, targetoptions=flags, pipeline_class=pipeline)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self._part)

    def compile(self, sig: Any) -> Any:
        """Compile for some types, or find that in a file; Numba calls this."""
        if self._needs_files:  # several threads may find them at once
            keep(self)
            self._needs_files = False
        try:
            return super().compile(sig)
        finally:
            for context in self.typingctx, self.targetctx:
                with contextlib.suppress(AttributeError):  # another thread was first
                    delattr(context, _LOADING)

    def add_overload(self, cres: Any) -> None:
        """Keep a compiled kernel, and give its parts their environments; Numba calls this."""
        super().add_overload(cres)
        is_new = cres.metadata is not None  # one from a file has them
        for env in cres._find_referenced_environments() if is_new else ():
            cres.library.codegen.set_env(env.env_name, env)


def has_parts() -> bool:
    """True if a kernel works that calls a part; the trial of `private.compiler`."""
    global _half
    _half = Kernel(_half_of, {"_nrt": False, "forceinline": True})
    whole = Kernel(_twice_half, {"nogil": True, "_nrt": False}, is_kept=True)
    return whole(7) == 6 and not _half.signatures


def _half_of(number):
    return number // 2


_half: Any = None  # made for the trial alone


def _twice_half(number):
    return 2 * _half(number)
