"""Random programs on a GPU, on the CPU device and on the oracle: where the three leave other bytes.

``python -m tests.cuda.differential FORMS PROGRAMS SEED`` tries so many draws of every form of the instruction table
that random programs are made of, and so many programs, and prints a line of JSON for each difference.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cpu import CpuDevice
from teenycli.devices.cuda.device import CudaDevice
from teenycli.devices.cuda.gpu import Gpu
from teenycli.errors import TeenyError
from teenycli.ptx import Module, code_of, outline
from teenycli.ptx.isa import Form
from teenycli.ptx.model import Source
from teenycli.releases import Version, dotted, newest_ptx
from tests.cuda.kernels import launch, pointer
from tests.devices.cpu.test_differential import OUT, Bytes, inputs_of, supports
from tests.oracle import programs
from tests.oracle.machine import Grid, run
from tests.oracle.memory import Memory

THREADS = 64
#: The newest PTX that is tried; drivers of CUDA 13.0 take it.
_NEWEST = (9, 0)
#: GPUs have had no scalar video instructions since Maxwell, and what ptxas writes for them is not what the ISA says:
#: it merges the upper half of a result into ``.h1``, for one.
_EMULATED = re.compile("v(add|sub|absdiff|min|max|shl|shr|set|mad)")
#: What ptxas 13.0 and an H200 do otherwise than the ISA says or the CPU device does, and why that stays.
KNOWN = {
    "carried out though the guard does not hold": r"@!?%p\d (testp|setp?)\.",
    "the most negative count": r"fns\.b32",
    "made a move, which keeps a NaN's bits": r"(min|max)\.\S+ %\w+, (%\w+), \2;",
    "its warp's own number": r"%warpid",
    "threads that have not come together again": r"activemask",
    "a constant cut off to 16 bits": r"sh[lr]\.\w16 %\w+, %\w+, \d{6,}",
    "subnormal singles are not flushed on their way to a half": r"cvt\.r[mp]\.ftz(\.\w+)*\.f16\.f32",
    "a NaN to tf32 by software": r"cvt\.rna\.satfinite\.tf32",
    "unsigned halves taken for signed after a set": r"(?s)set\.\S*bf16\.\S+ .*sad\.u16",
    "a double converted where its low bits are to be stored": r"(?s)cvt\S*\.f64\.\w+ %d.*st\S*\.v[24]\.u32",
}


def is_known(found: Difference) -> bool:
    return any(re.search(pattern, found.text) for pattern in KNOWN.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """One register of one thread (or a byte of its room), with what each of the three left there; None: given up."""

    text: str
    place: str
    inputs: str
    gpu: str
    cpu: str
    oracle: str | None


@dataclass(frozen=True, slots=True)
class Refused:
    """A program that the GPU's driver does not take."""

    refused: str
    why: str


def newest(cuda: Version) -> Version:
    """The PTX that is tried with a driver of this CUDA."""
    return min(_NEWEST, newest_ptx(cuda) or _NEWEST)


def head(sm: int, cuda: Version) -> str:
    return f".version {dotted(newest(cuda))}\n.target sm_{sm}{'a' if sm >= 90 else ''}\n.address_size 64\n"


def on_gpu(device: CudaDevice, module: Module, table: Bytes, out: Bytes, ctas: int) -> Bytes:
    kernel = device.load(module, "kernel")
    return _launch(device, kernel, table, out, ctas)


def on_cpu(module: Module, table: Bytes, out: Bytes, ctas: int) -> Bytes:
    with CpuDevice(threads=2, cache=False) as device:
        return _launch(device, device.load(module, "kernel"), table, out, ctas)


def _launch(device: CudaDevice | CpuDevice, kernel: object, table: Bytes, out: Bytes, ctas: int) -> Bytes:
    buffers: dict[str, DeviceBuffer] = {"in": device.upload("in", table), "out": device.upload("out", out)}
    once = launch([pointer("in"), pointer("out")], (ctas, 1, 1), (THREADS, 1, 1))
    device.prepare(kernel, once, buffers)(20)  # type: ignore[arg-type]
    return device.download(buffers["out"])


def differences(device: CudaDevice, texts: Sequence[str], seed: int) -> Iterator[Difference]:
    """Run a module of programs, a CTA each. Raises TeenyError when the GPU's driver refuses it."""
    text = programs.module(texts, head=head(device.gpu.sm, device.gpu.cuda), clean=True)
    module = outline(Source("random.ptx", text))
    table = inputs_of(seed)
    out = np.frombuffer(random.Random(seed + 1).randbytes(len(texts) * THREADS * OUT), np.uint8).copy()
    gpu = on_gpu(device, module, table, out, len(texts))
    cpu = on_cpu(module, table, out, len(texts))
    memory = Memory()
    given = [memory.add(data.tolist()).to_bytes(8, "little") for data in (table, out)]
    given_up = run(code_of(module, module.entries[0]), memory, Grid(len(texts), THREADS, given), {})
    oracle = memory.regions[int.from_bytes(given[1], "little") >> 32]
    for cta, program in enumerate(texts):
        if cta in given_up:
            continue
        span = slice(cta * THREADS * OUT, (cta + 1) * THREADS * OUT)
        yield from _of_program(program, table, gpu[span], cpu[span], oracle[span])


def _of_program(text: str, table: Bytes, gpu: Bytes, cpu: Bytes, oracle: Sequence[int | None]) -> Iterator[Difference]:
    """The first difference of each register of a program, over its threads."""
    seen = set()
    for at in np.flatnonzero(gpu != cpu):
        row, offset = divmod(int(at), OUT)
        name, start, size = _register_at(offset)
        if name in seen or any(oracle[row * OUT + start + k] is None for k in range(size)):
            continue
        seen.add(name)
        where = slice(row * OUT + start, row * OUT + start + size)
        mine = oracle[where]
        row_in = table[row * programs.ROW : (row + 1) * programs.ROW]
        held = {
            f"%{letter}{k}": row_in[base + k * programs.SIZES[type] :][: programs.SIZES[type]][::-1].tobytes().hex()
            for letter, (type, count, base) in programs.FILE.items()
            for k in range(count)
            if f"%{letter}{k}" in text
        }
        yield Difference(
            text, f"thread {row} {name}", json.dumps(held), gpu[where][::-1].tobytes().hex(),
            cpu[where][::-1].tobytes().hex(), "".join(f"{b or 0:02x}" for b in reversed(mine)),
        )  # fmt: skip


def _register_at(offset: int) -> tuple[str, int, int]:
    for letter, (type, count, base) in programs.FILE.items():
        size = programs.SIZES[type]
        if base <= offset < base + size * count:
            k = (offset - base) // size
            return f"%{letter}{k}", base + k * size, size
    return f"room+{offset - programs.ROW}", offset, 1


def fits(form: Form, gpu: Gpu) -> bool:
    """Whether a GPU has a form at all, and it is to be compared."""
    if _EMULATED.fullmatch(form.opcode):
        return False
    sm = gpu.sm
    return form.sm <= sm and form.ptx <= newest(gpu.cuda) and form.until is None and (not form.suffix or form.sm == sm)


def supported_by(gpu: Gpu) -> programs.Supports:
    """Whether the CPU device and a GPU have an instruction."""
    return lambda form, mods: fits(form, gpu) and supports(form, mods)


def draws(gpu: Gpu, count: int, seed: int) -> list[str]:
    """Instructions of every form that a GPU and the oracle have."""
    rng = random.Random(seed)
    lines = []
    for opcode in sorted(set(programs.OPCODES)):
        for form in programs.choices(opcode):
            drawn = [programs.instruction(rng, form, supported_by(gpu)) for _ in range(count)]
            lines += [line for line in drawn if line is not None]
    return lines


def tried(device: CudaDevice, texts: list[str], seed: int) -> Iterator[Difference | Refused]:
    """The differences of a list of programs; a module that is refused is split till the refused program is found."""
    try:
        yield from differences(device, texts, seed)
    except TeenyError as error:
        if len(texts) == 1:
            yield Refused(texts[0], f"{error.finding.message} {error.finding.note or ''}"[:2000])
            return
        half = len(texts) // 2
        yield from tried(device, texts[:half], seed)
        yield from tried(device, texts[half:], seed)


def written(gpu: Gpu, seeds: Sequence[int]) -> str:
    return programs.program("P0", seeds, warps=True, supports=supported_by(gpu))


def shrunk(device: CudaDevice, seeds: list[int], table: int) -> Difference | Refused | None:
    """The first difference of the least of a program's statements that still make one; None where there is none.

    The refusal of a program that the driver does not take.
    """

    def first(some: Sequence[int]) -> Difference | Refused | None:
        return next(iter(tried(device, [written(device.gpu, some)], table)), None)

    least = first(seeds)
    at = len(seeds)
    while isinstance(least, Difference) and at > 0:
        at -= 1
        fewer = seeds[:at] + seeds[at + 1 :]
        found = first(fewer)
        if isinstance(found, Difference):
            seeds, least = fewer, found
    return least


def main(forms: int, count: int, seed: int) -> None:
    rng = random.Random(seed)
    with CudaDevice(0) as device:
        lines = draws(device.gpu, forms, seed)
        for at in range(0, len(lines), 16):
            module = [programs.complete(f"P{k}", [line]) for k, line in enumerate(lines[at : at + 16])]
            for found in tried(device, module, seed + at):
                print(json.dumps(asdict(found)), flush=True)
        for _ in range(count):
            least = shrunk(device, [rng.getrandbits(40) for _ in range(rng.randrange(1, 24))], rng.getrandbits(30))
            if least is not None:
                print(json.dumps(asdict(least)), flush=True)
        print(json.dumps({"forms": len(lines), "programs": count}), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
