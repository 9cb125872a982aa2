"""PTX for tests, built around a few lines."""

from __future__ import annotations

from teenycli.ptx import Module, Source, code_of, outline
from teenycli.ptx.code import Code

HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
REGISTERS = """
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.reg .f32 %f<9>;
.reg .f64 %fd<9>;
.reg .u32 %u<9>;
"""


def module_of(text: str, name: str = "k.ptx") -> Module:
    """The outline of ``text`` after the usual head."""
    return outline(Source(name, HEAD + text))


def code(body: str, params: str = ".param .u64 p, .param .u32 n", head: str = "") -> Code:
    """The code of an entry ``k`` with the usual registers declared and ``body`` before its ``ret``."""
    module = module_of(f"{head}\n.visible .entry k({params})\n{{{REGISTERS}{body}\nret;\n}}\n")
    return code_of(module, module.entries[0])
