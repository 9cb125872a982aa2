"""The examples of the pages, made ready to be run.

A block of TOML is the manifest; of an op of the repository's manifest it says only what differs, and nothing where a
pipeline names one. A block of PTX is
``kernel.ptx``: a module, or a part of the body of a kernel ``k(x, n)``; one of Rust is ``op.rs``. A block of a console
has the commands; without one, the group of the page says which command finds it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from teenycli.explain import Page
from tests.commands.teeny import manifest, samples

#: What stands around the part of a body: ``%at`` is the address of element ``%i`` of x, the thread's.
_BODY = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n)
{
.reg .b64 %x, %at, %d<4>;
.reg .b32 %i, %n, %r<8>;
.reg .pred %p<4>;
ld.param.u64 %x, [x];
ld.param.u32 %n, [n];
mov.u32 %i, %tid.x;
mad.wide.u32 %at, %i, 4, %x;
st.global.u32 [%at], %i;
"""

LAUNCH = "teeny run --ptx kernel.ptx --grid 1 --block 64 -a x=f32[64] -a n=i32:64 --device cpu"


def blocks(page: Page, language: str) -> list[str]:
    """The blocks of code of the page's example in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.example, re.DOTALL | re.MULTILINE)


def is_run(page: Page) -> bool:
    """Whether the example is one that can be run here: others are a sketch in plain text."""
    return not blocks(page, "text")


def prepare(page: Page, folder: Path) -> list[str]:
    """Write the files of the example; returns the shell commands of which the last one finds it."""
    for text in blocks(page, "ptx"):
        module = text if text.startswith(".version") else f"{_BODY}{text}ret;\n}}\n"
        (folder / "kernel.ptx").write_text(module, "utf-8")
    for text in blocks(page, "rust"):
        (folder / "op.rs").write_text(text, "utf-8")
    for text in blocks(page, "toml"):
        _write_manifest(text, folder)
    console = [line.removeprefix("$ ") for text in blocks(page, "console") for line in text.splitlines()]
    if console:
        return console
    if blocks(page, "toml"):
        return ["teeny check"]
    return [LAUNCH] if page.group == "fault" else ["teeny entries -v kernel.ptx"]


def _write_manifest(text: str, folder: Path) -> None:
    known = samples()
    try:
        whole = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        whole = {}
    ops: dict[str, dict[str, Any]] = {name: {} for each in whole.get("pipeline", {}).values() for name in each["ops"]}
    ops |= whole.get("op", {})
    if ops and ops.keys() <= known.keys():
        path = manifest(folder, **{name: {**known[name], **op} for name, op in ops.items()})
        if "pipeline" in whole:
            path.write_text(path.read_text("utf-8") + text[text.index("[pipeline.") :], "utf-8")
    else:
        (folder / "ops.toml").write_text(text, "utf-8")
