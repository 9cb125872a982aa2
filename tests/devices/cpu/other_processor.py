"""Compiles every form for a processor that need not be this one, since LLVM's aborts depend on it; runs nothing.

    python -m tests.devices.cpu.other_processor CPU native|warp

Prints how many forms it compiled.
"""

from __future__ import annotations

import sys
from functools import cache

import llvmlite.binding as llvm

from teenycli.devices.cpu import build, kernel
from teenycli.ptx import outline
from teenycli.ptx.model import Source
from tests.devices.cpu import test_every_form as forms

#: Lanes of 32 bits in a native vector.
GROUPS = {
    "nehalem": 4,
    "ivybridge": 8,
    "haswell": 8,
    "znver3": 8,
    "skylake-avx512": 16,
    "znver4": 16,
    "sapphirerapids": 16,
}


def compile_for(cpu: str, *, warp: bool) -> int:
    """``warp``: with a warp operation in each kernel, so that its vectors are 32 lanes."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    group = GROUPS[cpu]
    here = build.Machine(cpu, "", group, group == 16, cpu)
    target = llvm.Target.from_default_triple()

    @cache
    def target_machine(opt: int) -> llvm.TargetMachine:
        return target.create_target_machine(cpu=cpu, features="", opt=opt, reloc="pic", codemodel="small")

    for name, value in (("machine", lambda: here), ("target_machine", target_machine)):
        setattr(build, name, value)
    setattr(kernel, "machine", lambda: here)  # noqa: B010
    cases = [case for form in forms.supported() for case in forms.cases(form, all_choices=False)]
    for at in range(0, len(cases), forms.TOGETHER):
        text = forms.module(cases[at : at + forms.TOGETHER])
        if warp:
            text = text.replace("mov.u32 %i, %tid.x;", "activemask.b32 %i; mov.u32 %i, %tid.x;", 1)
        module = outline(Source("forms.ptx", text))
        kernel.build(kernel.prepare(module, module.entries[0], 100))
    return len(cases)


if __name__ == "__main__":
    print(compile_for(sys.argv[1], warp=sys.argv[2] == "warp"))
