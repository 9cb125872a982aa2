"""Machine code of the kernels in ``code/kernels.ptx``, made by ptxas 13.0: ``ptxas -arch=sm_NN kernels.ptx``."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from teenycli.arch import Target, parse_target, takes_target, target_rule
from teenycli.errors import Place, TeenyError
from teenycli.ptx import Module, Source, outline, read_source
from teenycli.ptx.cubin import read_cubin
from teenycli.ptx.fatbin import choose
from teenycli.ptx.layout import layout
from teenycli.ptx.search import shared_static

pytestmark = pytest.mark.unit

CODE = Path(__file__).parent / "code"
TEXT = (CODE / "kernels.ptx").read_text()
SMS = [80, 90, 100]


def cubin(sm: int) -> bytes:
    return (CODE / f"sm_{sm}.cubin").read_bytes()


def module(path: Path) -> Module:
    return outline(read_source(path, code=True))


def places(of: Module, sm: int) -> dict[str, list[tuple[int, int]]]:
    return {entry.name: [(slot.offset, slot.size) for slot in layout(entry, sm)] for entry in of.entries}


@pytest.mark.parametrize("sm", SMS)
def test_entries_are_those_of_the_ptx_with_parameters_in_their_places(sm: int) -> None:
    ours, expected = module(CODE / f"sm_{sm}.cubin"), outline(Source("kernels.ptx", TEXT))
    assert parse_target(ours.target) == Target(sm, "", True)
    assert places(ours, sm) == places(expected, sm)
    assert ours.source.image == cubin(sm)


@pytest.mark.parametrize("sm", SMS)
def test_what_the_entries_demand(sm: int) -> None:
    ours = module(CODE / f"sm_{sm}.cubin")
    entries = {entry.name: entry for entry in ours.entries}
    assert entries["scale"].directives.reqntid == (128, 1, 1)
    assert entries["mixed"].directives.maxntid == (64, 2, 1)
    assert entries["none"].directives.maxntid is None
    assert {name: shared_static(ours, entry) for name, entry in entries.items()} == {
        "scale": 0, "mixed": 256, "none": 0, "large": 0,
    }  # fmt: skip


def test_the_wide_form_of_a_parameter() -> None:
    """As ptxas writes it for parameters of 16 KiB and more; the highest byte of the size is not the size's."""
    data = bytearray(cubin(90))
    (params,) = (entry.params for entry in read_cubin(bytes(data), Place("c")).entries if entry.name == "large")
    narrow = struct.pack("<BBHIHHI", 4, 0x17, 12, 0, 0, 0, 4000 << 18 | 0x1F000)
    at = data.index(narrow)
    data[at : at + len(narrow)] = struct.pack("<BBHIHHI", 4, 0x45, 12, 0, 0, 0, 20000 | 5 << 24)
    (wide,) = (entry.params for entry in read_cubin(bytes(data), Place("c")).entries if entry.name == "large")
    assert (params[0].size, wide[0].size, wide[1]) == (4000, 20000, params[1])


@pytest.mark.parametrize("size", [6, 60, 64, 500, 5000, 11000])
def test_a_cubin_that_is_cut_off(size: int) -> None:
    with pytest.raises(TeenyError) as caught:
        read_cubin(cubin(90)[:size], Place("c.cubin"))
    assert caught.value.finding.id == "not-ptx"


@pytest.mark.parametrize(
    ("at", "value", "said"), [(18, 62, "no machine code of a GPU"), (4, 1, "no machine code"), (8, 7, "before CUDA 13")]
)
def test_other_elf_files(at: int, value: int, said: str) -> None:
    data = bytearray(cubin(90))
    data[at] = value
    with pytest.raises(TeenyError, match=said):
        read_cubin(bytes(data), Place("c.cubin"))


def test_machine_code_is_read_only_where_it_may_be() -> None:
    with pytest.raises(TeenyError) as caught:
        read_source(CODE / "sm_90.cubin")
    assert caught.value.finding.id == "not-ptx"
    assert "nvcc -ptx" in (caught.value.finding.hint or "")


@pytest.mark.parametrize(("sm", "takes"), [(80, True), (86, True), (89, True), (75, False), (90, False)])
def test_machine_code_runs_on_its_family(sm: int, takes: bool) -> None:
    target = parse_target("code_80")
    assert takes_target(target, sm) is takes
    assert str(target) == "sm_80 (machine code)"
    assert target_rule(target) == "the sm_8x family, from sm_80 on"


# --- fatbins -----------------------------------------------------------------------------------------------------


def part(kind: int, sm: int, data: bytes, packed: int = 0) -> bytes:
    data += b"\0" * (-len(data) % 8)
    return struct.pack("<HHIQIIII", kind, 0x101, 64, len(data), packed, 64, 8, sm).ljust(64, b"\0") + data


def fatbin(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


PTX = TEXT.encode() + b"\0"


@pytest.mark.parametrize(
    ("parts", "is_code"),
    [
        ([part(2, 80, cubin(80)), part(1, 80, PTX)], False),
        ([part(2, 80, cubin(80))], True),
        ([part(2, 80, cubin(80)), part(1, 90, PTX, packed=100)], True),
        ([part(1, 80, b".version 8.0"), part(1, 90, PTX)], False),
    ],
)
def test_a_fatbin_is_its_ptx_or_its_one_machine_code(tmp_path: Path, parts: list[bytes], is_code: bool) -> None:
    path = tmp_path / "k.fatbin"
    path.write_bytes(fatbin(*parts))
    found = module(path)
    assert (found.source.image is not None) is is_code
    assert {entry.name for entry in found.entries} == {"scale", "mixed", "none", "large"}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([part(2, 80, b"x"), part(2, 90, b"y")], "machine code for sm_80; machine code for sm_90"),
        ([part(1, 90, PTX, packed=5)], "PTX for sm_90, compressed"),
        ([], "there is nothing"),
    ],
)
def test_a_fatbin_in_which_nothing_can_be_chosen(parts: list[bytes], said: str) -> None:
    with pytest.raises(TeenyError, match=said) as caught:
        choose(fatbin(*parts), Place("k.fatbin"))
    assert caught.value.finding.id == "not-ptx"
    assert "cuobjdump" in (caught.value.finding.hint or "")


def test_a_fatbin_that_is_cut_off() -> None:
    with pytest.raises(TeenyError, match="cut off"):
        choose(fatbin(part(2, 80, cubin(80)))[:40], Place("k.fatbin"))


@pytest.mark.skipif(shutil.which("fatbinary") is None, reason="there is no fatbinary (CUDA toolkit)")
def test_a_fatbin_of_the_toolkit(tmp_path: Path) -> None:
    path = tmp_path / "k.fatbin"
    image = f"--image3=kind=elf,sm=80,file={CODE / 'sm_80.cubin'}"
    text = f"--image3=kind=ptx,sm=80,file={CODE / 'kernels.ptx'}"
    for images, is_code in (([image, text], False), ([image], True)):
        subprocess.run(["fatbinary", "-64", "--create", path, "--compress=false", *images], check=True)
        found = module(path)
        assert (found.source.image is not None) is is_code
        assert len(found.entries) == 4
