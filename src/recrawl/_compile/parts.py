"""Kernels that are called by kernels: lowered once, then optimised and emitted only as parts of their callers.

Numba compiles every function that a kernel calls as a library of its own: it is optimised in full and turned into
machine code, although each caller takes in its code and optimises it again. Here a call from a kernel compiles the
callee as a part: its code is lowered and simplified, and no more. The same holds for functions of Numba that a kernel
uses. Only kernels that Python calls are optimised and emitted, each with all parts that it reaches, linked once.

A kernel that is called in both ways is compiled in both. Parts are kept in the process, not on disk.

This rests on Numba's private parts. With a version that it was not tried with, kernels are compiled as Numba does it:
the same results, later.
"""

import gc
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import codegen, compiler, sigutils, types, typing
from numba.core import event as events
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher

from recrawl._compile.references import by_reference

_codegen: Any = codegen
_library: Any = _codegen.JITCodeLibrary
_dispatcher: Any = CPUDispatcher
_numba_flags: Any = compiler.Flags
_trigger: Any = events.trigger_event
_signatures: Any = sigutils
_compiler: Any = compiler
_types: Any = types
_typing: Any = typing
_lookup: Any = lookup_environment
_version: Any = numba.version_info

TRIED = ((0, 68),)  # versions of Numba
_SHARED = "linkonce_odr"  # may be defined by several linked modules, and is left out where nothing refers to it
_ENVIRONMENT = "_ZN08NumbaEnv"


def is_tried() -> bool:
    """Whether kernels can be parts with the Numba that is installed."""
    return tuple(_version[:2]) in TRIED


class PartLibrary(_library):  # type: ignore[misc]
    """The code of one part: neither linked with what it calls, nor optimised as a whole, nor emitted."""

    def finalize(self) -> None:
        """Let it be linked into several modules: the library of the kernel does the rest."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == _codegen.ll.Linkage.external:
                function.linkage = _SHARED
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No part has an address."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """What sets the environments of emitted functions: there are none."""
        return _NoEnvironments

    def own_module(self) -> Any:
        """The code of this part alone."""
        self._ensure_finalized()
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """With all that it calls, for a library of Numba's own kind: a function of another package that calls it."""
        whole = self.own_module().clone()
        for library in _reached(self._linking_libraries):
            whole.link_in(_module_of(library), preserve=True)
        return whole


class _NoEnvironments:
    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """Nothing."""


class KernelLibrary(_library):  # type: ignore[misc]
    """The code of a kernel that Python calls, with all parts that it reaches."""

    is_counted = True  # whether there are reference counts

    def finalize(self) -> None:
        """Link every part that is reached, optimise and emit all, and set the environments of the parts."""
        for library in _reached(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(_module_of(library), preserve=True)
        self._linking_libraries: list[Any] = []
        super().finalize()
        for variable in self._final_module.global_variables:
            environment = _lookup(variable.name) if variable.name.startswith(_ENVIRONMENT) else None
            if environment is not None:
                self._codegen.set_env(variable.name, environment)

    def _optimize_final_module(self) -> None:
        """In full once: Numba's first round of the same length serves to remove reference counts."""
        passes = self._codegen._module_pass_manager()
        if not isinstance(passes, tuple):  # in early versions of Numba
            super()._optimize_final_module()
            return
        if self.is_counted:
            first, builder = self._codegen._module_pass_manager(opt=1, loop_vectorize=False, slp_vectorize=False)
            first.run(self._final_module, builder)
        passes[0].run(self._final_module, passes[1])


def _module_of(library: Any) -> Any:
    return library.own_module() if isinstance(library, PartLibrary) else library._get_module_for_linking()


def _reached(libraries: list[Any]) -> list[Any]:
    """These libraries and all parts behind them, callers before callees: what nothing refers to yet is not linked."""
    left: dict[Any, None] = {}
    seen = set()

    def walk(library: Any) -> None:
        if library not in seen:
            seen.add(library)
            for callee in library._linking_libraries if isinstance(library, PartLibrary) else ():
                walk(callee)
            left[library] = None

    for library in libraries:
        walk(library)
    return list(reversed(left))


class KernelDispatcher(_dispatcher):  # type: ignore[misc]
    """A kernel with two tables of compiled code: what Python calls, and parts of other kernels."""

    instead: Any = None  # (kernel, arguments) → what to call instead of compiling it, or None (`first_use`)

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._parts: dict[Any, Any] = {}
        self._compiler._compile_core = self._compile_whole

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The types of a call from another function, for which this kernel is compiled as a part."""
        parameters, given = self._compiler.fold_argument_types(args, kws)
        given = tuple(map(_general, given))
        with global_compiler_lock, self._compiling_counter:
            if given not in self._parts:
                self._parts[given] = self._compile_part(given)
        name = self.py_func.__name__
        known = [part.signature for part in self._parts.values()]
        template = _typing.make_concrete_template(f"CallTemplate({name})", key=name, signatures=known)
        return template, parameters, given, {}

    def get_overload(self, sig: Any) -> Any:
        """What a part is called by among all functions that code can be generated for."""
        return self._parts[tuple(_signatures.normalize_signature(sig)[0])].entry_point

    def load(self, args: Any) -> bool:
        """Whether compiled code for arguments from Python is on disk; then it is loaded."""
        kinds = tuple(map(self.typeof_pyval, args))
        with global_compiler_lock, self._compiling_counter:
            found = self._cache.load_overload(kinds, self.targetctx)
            if found is None:
                return False
            self.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
            self.add_overload(found)
        return True

    def _compile_for_args(self, *args: Any, **named: Any) -> Any:
        """What Numba calls for arguments that no compiled code fits; it calls what this returns."""
        other = None if self.instead is None else KernelDispatcher.instead(self, args)
        return super()._compile_for_args(*args, **named) if other is None else other

    def _compile_part(self, args: Any) -> Any:
        with _trigger("numba:compile", data={"dispatcher": self, "args": args, "return_type": None}):
            found = self._compile(args, None, PartLibrary)
        if self.targetoptions.get("fastmath") and not self.targetoptions.get("forceinline"):
            # sums that may be reordered stay functions of their own: in each caller they would be reordered otherwise
            found.library.own_module().get_function(found.fndesc.llvm_func_name).add_function_attribute("noinline")
        found = found._replace(entry_point=f"part {found.fndesc.unique_name}")
        found.target_context.insert_user_function(found.entry_point, found.fndesc, [found.library])
        return found

    def _compile_whole(self, args: Any, return_type: Any) -> Any:
        with _no_collection():
            found = self._compile(tuple(map(by_reference, args)), return_type, KernelLibrary)
        return found._replace(signature=_typing.signature(found.signature.return_type, *args))

    def _compile(self, args: Any, return_type: Any, kind: Any) -> Any:
        flags = self._flags(is_part=kind is PartLibrary)
        library = kind(self.targetctx.codegen(), self.py_func.__qualname__)
        library.is_counted = flags.nrt
        library.enable_object_caching()
        with _all_as_parts(self.targetctx.codegen()):
            return _compiler.compile_extra(
                self.typingctx,
                self.targetctx,
                self.py_func,
                args=args,
                return_type=return_type,
                flags=flags,
                locals=self.locals,
                library=library,
                pipeline_class=_ShortPipeline if _is_simple(self.py_func) else _compiler.Compiler,
            )

    def _flags(self, *, is_part: bool) -> Any:
        flags = _Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_cfunc_wrapper = True
        flags.no_compile = flags.no_cpython_wrapper = is_part
        return _known_flags.setdefault(flags, flags)


class _ShortPipeline(_compiler.CompilerBase):  # type: ignore[misc]
    """Numba's passes without those that only look for what no kernel has."""

    def define_pipelines(self) -> list[Any]:
        """The passes from bytecode to code."""
        passes = _compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [each for each in passes.passes if each[0].__name__ not in _NOT_NEEDED]
        passes.finalize()
        return [passes]


_NOT_NEEDED = {
    "DumpParforDiagnostics",
    "FindLiterallyCalls",
    "InlineClosureLikes",
    "InlineInlinables",
    "InlineOverloads",
    "LiteralPropagationSubPipelinePass",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "NopythonRewrites",  # it makes one loop of several operations on arrays
    "WithLifting",
}


def _is_simple(function: Any) -> bool:
    """Whether no function is defined within it."""
    return not any(inspect.iscode(constant) for constant in function.__code__.co_consts)


class _Flags(_numba_flags):  # type: ignore[misc]
    """Flags that are not changed any more: Numba looks up what it knows by them, and computes their hash each time."""

    __slots__ = ("_hash",)

    def __hash__(self) -> int:
        if not hasattr(self, "_hash"):
            self._hash: int = super().__hash__()
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or bool(super().__eq__(other))


_known_flags: dict[Any, Any] = {}


def _general(kind: Any) -> Any:
    """The type that a part takes an argument as: one for all constants, one for all whole numbers with a sign."""
    kind = _types.unliteral(kind)
    return types.int64 if kind in (types.int8, types.int16, types.int32) else by_reference(kind)


@contextmanager
def _no_collection() -> Iterator[None]:
    """The compiler makes many objects that stay: to look for garbage among them takes a tenth of its time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def _all_as_parts(target: Any) -> Iterator[None]:
    """Let functions of Numba itself that a kernel uses be parts too; the compiler's lock is held."""
    before, target._library_class = target._library_class, PartLibrary
    try:
        yield
    finally:
        target._library_class = before
