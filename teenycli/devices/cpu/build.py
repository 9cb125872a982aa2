"""From LLVM text to machine code: the target, the pass pipeline, object code, and loading it.

May import ``value``, ``errors``, ``exits``. Imports llvmlite inside functions only.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from teenycli.devices.cpu.value import Unit
from teenycli.errors import TeenyError
from teenycli.exits import Exit

if TYPE_CHECKING:
    import llvmlite.binding as llvm

#: Lines of LLVM text up to which each pipeline is worth its time.
FULL_LINES, MEDIUM_LINES = 1_500, 30_000


class Machine(Struct, frozen=True):
    """The processor: LLVM's name and features, lanes of 32 bits in a native vector, stores under a mask."""

    cpu: str
    features: str
    group: int
    masked: bool
    description: str


@lru_cache(maxsize=1)
def machine() -> Machine:
    """This machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM cannot tell on this system
        features = llvm.FeatureMap()
    has = {name for name, on in features.items() if on}
    masked = {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= has
    group, words = (16, "AVX-512") if masked else (8, "AVX2") if "avx2" in has else (4, "128-bit vectors")
    return Machine(llvm.get_host_cpu_name(), features.flatten(), group, masked, words)


@lru_cache(maxsize=3)
def target_machine(opt: int) -> llvm.TargetMachine:
    import llvmlite.binding as llvm

    here = machine()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=here.cpu, features=here.features, opt=opt, reloc="pic", codemodel="small")


def compile_text(unit: Unit, functions: str, lines: int) -> bytes:
    """Object code of a unit and its functions."""
    import llvmlite.binding as llvm

    context = llvm.create_context()
    module = llvm.parse_assembly(module_text(unit, functions), context)
    module.verify()
    level = 2 if lines <= FULL_LINES else 1 if lines <= MEDIUM_LINES else 0
    machine_here = target_machine(level)
    options = llvm.create_pipeline_tuning_options(speed_level=max(level, 1))
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine_here, options)
    if level == 2:
        passes = builder.getModulePassManager()
    else:
        # Registers are in frames here: little is left for the passes between these and code generation.
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_sroa_pass()
        if level:
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    code = bytes(machine_here.emit_object(module))
    passes.close()
    builder.close()
    module.close()
    return code


def module_text(unit: Unit, functions: str) -> str:
    """The whole LLVM module as text."""
    import llvmlite.binding as llvm

    bits = 32 * machine().group
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}'
    return "\n".join(
        [
            f'target triple = "{llvm.get_default_triple()}"',
            unit.text(),
            functions,
            attributes,
            '!0 = !{!"branch_weights", i32 2000, i32 1}',
            '!1 = !{!"branch_weights", i32 1, i32 2000}',
            "!2 = !{}",
            "",
        ]
    )


@lru_cache(maxsize=1)
def _jit() -> llvm.LLJIT:
    """The linker. JITLink puts an object's sections side by side; the older one maps each where there is room, and ends
    the process when two lie more than 2 GiB apart. For Windows' object files there is only the older one."""
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler(target_machine(2), use_jit_link=sys.platform != "win32")


_loaded = 0


def load_object(code: bytes) -> tuple[int, Any]:
    """Load object code; the address of ``teeny_run``, and what keeps the code alive.

    Raises TeenyError ``processor-too-old`` (exit UNSUPPORTED) when the code calls for a function that stands in for an
    instruction which the processor lacks (conversions of f16 on x86 before F16C).
    """
    import llvmlite.binding as llvm

    global _loaded
    _loaded += 1
    builder = llvm.JITLibraryBuilder()
    builder.add_object_img(code)
    builder.add_current_process()
    builder.export_symbol("teeny_run")
    try:
        tracker = builder.link(_jit(), f"kernel{_loaded}")
    except RuntimeError as error:
        raise TeenyError(
            "processor-too-old",
            f"this processor ({machine().cpu}) lacks an instruction that the kernel needs: {error}",
            exit=Exit.UNSUPPORTED,
        ) from error
    return int(tracker["teeny_run"]), tracker
