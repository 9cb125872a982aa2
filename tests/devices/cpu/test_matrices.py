"""Matrices of a warp: ldmatrix, stmatrix, movmatrix and mma, against numpy and the fragments that the ISA draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from teenycli.devices.cpu import registry
from teenycli.errors import TeenyError
from teenycli.ptx.isa import forms_of
from tests.devices.cpu.kit import Array, Rig

pytestmark = pytest.mark.unit

LANES = np.arange(32)
GROUP, THREAD = LANES >> 2, LANES % 4

# --- fragments of mma (PTX ISA 9.7.14.5) -----------------------------------------------------------------------------

#: By shape and bits of an element: whether element i of a lane is in row "groupID" of A, else in groupID + 8; and its
#: column, with t for "threadID_in_group".
_A: dict[tuple[str, int], tuple[Callable[[int], bool], Callable[[int, Array], Array]]] = {
    ("m16n8k8", 16): (lambda i: i < 2, lambda i, t: t * 2 + (i & 1)),
    ("m16n8k16", 16): (lambda i: i < 2 or 4 <= i < 6, lambda i, t: t * 2 + (i & 1) + (8 if i >= 4 else 0)),
    ("m16n8k4", 32): (lambda i: i == 0, lambda _, t: t),
    ("m16n8k8", 32): (lambda i: i in (0, 2), lambda i, t: t + (4 if i >= 2 else 0)),
    ("m8n8k4", 64): (lambda _: True, lambda _, t: t),
    ("m16n8k4", 64): (lambda i: i == 0, lambda _, t: t),
    ("m16n8k8", 64): (lambda i: i in (0, 2), lambda i, t: t + (4 if i >= 2 else 0)),
    ("m16n8k16", 64): (lambda i: i % 2 == 0, lambda i, t: (i * 2 if i % 2 == 0 else i * 2 - 2) + t),
    ("m8n8k16", 8): (lambda _: True, lambda i, t: t * 4 + i),
    ("m16n8k16", 8): (lambda i: i < 4, lambda i, t: t * 4 + (i & 3)),
    ("m16n8k32", 8): (lambda i: i < 4 or 8 <= i < 12, lambda i, t: t * 4 + (i & 3) + (16 if i >= 8 else 0)),
    ("m8n8k32", 4): (lambda _: True, lambda i, t: t * 8 + i),
    ("m16n8k32", 4): (lambda i: i < 8, lambda i, t: t * 8 + (i & 7)),
    ("m16n8k64", 4): (lambda i: i < 8 or 16 <= i < 24, lambda i, t: t * 8 + (i & 7) + (32 if i >= 16 else 0)),
    ("m8n8k128", 1): (lambda _: True, lambda i, t: t * 32 + i),
    ("m16n8k128", 1): (lambda i: i < 32, lambda i, t: t * 32 + (i & 31)),
    ("m16n8k256", 1): (lambda i: i < 32 or 64 <= i < 96, lambda i, t: t * 32 + (i & 31) + (128 if i >= 64 else 0)),
}
#: Row of B, whose column is groupID.
_B: dict[tuple[str, int], Callable[[int, Array], Array]] = {
    ("m16n8k8", 16): lambda i, t: t * 2 + i,
    ("m16n8k16", 16): lambda i, t: t * 2 + (i & 1) + (8 if i >= 2 else 0),
    ("m16n8k4", 32): lambda _, t: t,
    ("m16n8k8", 32): lambda i, t: t + 4 * i,
    ("m8n8k4", 64): lambda _, t: t,
    ("m16n8k4", 64): lambda _, t: t,
    ("m16n8k8", 64): lambda i, t: t + 4 * i,
    ("m16n8k16", 64): lambda i, t: t + 4 * i,
    ("m8n8k16", 8): lambda i, t: t * 4 + i,
    ("m16n8k16", 8): lambda i, t: t * 4 + i,
    ("m16n8k32", 8): lambda i, t: t * 4 + (i & 3) + (16 if i >= 4 else 0),
    ("m8n8k32", 4): lambda i, t: t * 8 + i,
    ("m16n8k32", 4): lambda i, t: t * 8 + i,
    ("m16n8k64", 4): lambda i, t: t * 8 + (i & 7) + (32 if i >= 8 else 0),
    ("m8n8k128", 1): lambda i, t: t * 32 + i,
    ("m16n8k128", 1): lambda i, t: t * 32 + i,
    ("m16n8k256", 1): lambda i, t: t * 32 + (i & 31) + (128 if i >= 32 else 0),
}
_BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f64": 64,
    "e4m3": 8,
    "e5m2": 8,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "b1": 1,
}
_FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32,
                           "f64": np.float64, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip


def bits_of(values: Array, type: str) -> Array:
    """The bits of elements, as unsigned integers of 64 bits."""
    if type in _FLOATS:
        made = np.ascontiguousarray(values.astype(_FLOATS[type]))
        return made.view(f"u{made.itemsize}").astype(np.uint64)
    return values.astype(np.int64).astype(np.uint64) & np.uint64((1 << _BITS[type]) - 1)


def packed(elements: Sequence[Array], bits: int) -> Array:
    """Registers by lane: of 32 bits, or of one element of 64."""
    if bits == 64:
        return np.stack(elements, axis=1)
    per = 32 // bits
    words = np.zeros((32, len(elements) // per), np.uint64)
    for i, element in enumerate(elements):
        words[:, i // per] |= element << np.uint64(bits * (i % per))
    return words.astype(np.uint32)


def registers_of_a(a: Array, shape: str, type: str) -> Array:
    bits = _BITS[type]
    is_upper, column = _A[shape, bits]
    count = a.size // 32
    places = [(GROUP + (0 if is_upper(i) else 8), column(i, THREAD)) for i in range(count)]
    return packed([bits_of(a[rows, columns], type) for rows, columns in places], bits)


def registers_of_b(b: Array, shape: str, type: str) -> Array:
    bits = _BITS[type]
    rows = [_B[shape, bits](i, THREAD) for i in range(b.size // 32)]
    return packed([bits_of(b[each, GROUP], type) for each in rows], bits)


def place_of_c(i: int) -> tuple[Array, Array]:
    return GROUP + (0 if i < 2 else 8), THREAD * 2 + (i & 1)


def registers_of_c(c: Array, type: str) -> Array:
    elements = [c[place_of_c(i)] for i in range(c.size // 32)]
    if type == "f16":
        return packed([bits_of(e, "f16") for e in elements], 16)
    return np.stack([e.astype({"f32": np.float32, "f64": np.float64, "s32": np.int32}[type]) for e in elements], axis=1)


def elements_of_d(registers: Array, rows: int, type: str) -> Array:
    d = np.zeros((rows, 8), np.float64)
    if type == "f16":
        registers = registers.view(np.float16)
    for i in range(rows * 8 // 32):
        d[place_of_c(i)] = registers[:, i]
    return d


def run(name: str, given: Sequence[Array], result: Array, *, guard: str = "") -> Array:
    """One warp of ``name``: registers of D, A, B and C by lane, each as many as a row of the arrays has."""
    letters, loads, operands = {2: "h", 4: "r", 8: "d"}, [], []
    declared = "".join(f".reg .b{8 * size} %{letter}<80>;" for size, letter in letters.items())
    count = dict.fromkeys(letters, 0)
    params = ", ".join(f".param .u64 p{k}" for k in range(len(given) + 1))
    for k, array in enumerate((result, *given)):
        size = array.itemsize
        first = count[size]
        count[size] += array.shape[1]
        names = [f"%{letters[size]}{first + j}" for j in range(array.shape[1])]
        operands.append(f"{{{', '.join(names)}}}")
        loads.append(f"ld.param.u64 %at{k}, [p{k}]; mad.wide.u32 %at{k}, %lane, {size * array.shape[1]}, %at{k};")
        if k:
            loads += [f"ld.global.b{8 * size} {each}, [%at{k}+{size * j}];" for j, each in enumerate(names)]
    size = result.itemsize
    stores = [f"st.global.b{8 * size} [%at0+{size * j}], %{letters[size]}{j};" for j in range(result.shape[1])]
    rig = Rig(
        f"""
        .visible .entry product({params}) {{
        {declared} .reg .b32 %lane; .reg .b64 %at<5>; .reg .pred %few;
        mov.u32 %lane, %tid.x; setp.lt.u32 %few, %lane, 20;
        {" ".join(loads)}
        {guard} {name} {", ".join(operands)};
        {" ".join(stores)} ret; }}
        """
    )
    rig.run([result, *given])
    rig.device.close()
    return result


def dense() -> list[tuple[str, str, str, str, str]]:
    """Shape, types of A and B, of D and further modifiers of every dense mma that the device has."""
    found = set()
    for form in forms_of("mma"):
        slots = {slot.name: slot.choices for slot in form.modifiers}
        for atype in slots["atype"]:
            for btype in slots["btype"]:
                chosen = {slot.name: slot.choices[0] for slot in form.modifiers if slot.required}
                chosen |= {"atype": atype, "btype": btype}
                if registry.supports_mods("mma", chosen) and "kind" not in slots:
                    found |= {(chosen["shape"], atype, btype, chosen["dtype"], op) for op in slots.get("op", ("",))}
    return sorted(found)


def values_of(rng: np.random.Generator, type: str, shape: tuple[int, int]) -> Array:
    """Whole numbers small enough for sums to be exact."""
    if type == "b1":
        return rng.integers(0, 2, shape)
    low, high = {"u8": (0, 256), "s8": (-128, 128), "u4": (0, 16), "s4": (-8, 8)}.get(type, (-4, 5))
    return rng.integers(low, high, shape)


@pytest.mark.parametrize(("shape", "atype", "btype", "dtype", "op"), dense(), ids="-".join)
def test_products_of_whole_numbers_are_exact(shape: str, atype: str, btype: str, dtype: str, op: str) -> None:
    rows, columns, depth = map(int, re.findall(r"\d+", shape))
    rng = np.random.default_rng(0)
    a, b = values_of(rng, atype, (rows, depth)), values_of(rng, btype, (depth, columns))
    c = rng.integers(-9, 10, (rows, columns))
    result = np.zeros_like(registers_of_c(c, dtype))
    extra = f".{op}.popc" if op else ""
    name = f"mma.sync.aligned.{shape}.row.col{extra}.{dtype}.{atype}.{btype}.{dtype}"
    given = [registers_of_a(a, shape, atype), registers_of_b(b, shape, btype), registers_of_c(c, dtype)]
    run(name, given, result)
    want = ((a[:, :, None] ^ b[None]).sum(1) if op == "xor" else a @ b) + c
    np.testing.assert_array_equal(elements_of_d(result, rows, dtype), want)


def test_the_dense_products_that_are_missing_are_volta_s_and_those_of_padded_elements() -> None:
    missing = [
        form for form in forms_of("mma") if not form.text.startswith("mma.sp") and not registry.supports_form(form)
    ]
    slots = [{slot.name: slot.choices for slot in form.modifiers} for form in missing]
    assert {each["shape"] for each in slots if "kind" not in each} == {("m8n8k4",)}


@pytest.mark.parametrize("atype", ["f16", "bf16", "tf32"])
def test_floating_point_sums_are_as_exact_as_singles(atype: str) -> None:
    shape = "m16n8k8" if atype == "tf32" else "m16n8k16"
    rows, columns, depth = map(int, re.findall(r"\d+", shape))
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(each).astype(_FLOATS[atype]) for each in ((rows, depth), (depth, columns)))
    if atype == "tf32":
        a, b = ((each.view(np.uint32) & 0xFFFFE000).view(np.float32) for each in (a, b))
    c = rng.standard_normal((rows, columns)).astype(np.float32)
    result = np.zeros((32, 4), np.float32)
    name = f"mma.sync.aligned.{shape}.row.col.f32.{atype}.{atype}.f32"
    run(name, [registers_of_a(a, shape, atype), registers_of_b(b, shape, atype), registers_of_c(c, "f32")], result)
    want = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_allclose(elements_of_d(result, rows, "f32"), want, rtol=0, atol=4e-6)


def test_bits_below_a_tf32_are_left_out() -> None:
    ones = np.full((16, 4), np.uint32(0x3F801FFF).view(np.float32))
    result = np.zeros((32, 4), np.float32)
    given = [registers_of_a(ones, "m16n8k4", "tf32"), registers_of_b(np.ones((4, 8)), "m16n8k4", "tf32")]
    run("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", [*given, np.zeros((32, 4), np.float32)], result)
    assert (result == 4).all()


def test_what_is_no_number_is_canonical() -> None:
    a = np.full((16, 16), np.inf)
    result = np.zeros((32, 4), np.float32)
    given = [registers_of_a(a, "m16n8k16", "f16"), registers_of_b(np.zeros((16, 8)), "m16n8k16", "f16")]
    run("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", [*given, np.zeros((32, 4), np.float32)], result)
    assert (result.view(np.uint32) == 0x7FFFFFFF).all()


@pytest.mark.parametrize(("extra", "want"), [(".satfinite", 2**31 - 1), ("", -(2**31) + 32 * 100 * 100 - 1)])
def test_sums_of_integers_wrap_or_are_held(extra: str, want: int) -> None:
    a, b = np.full((16, 32), 100), np.full((32, 8), 100)
    c = np.full((32, 4), 2**31 - 1, np.int32)
    result = np.zeros((32, 4), np.int32)
    given = [registers_of_a(a, "m16n8k32", "s8"), registers_of_b(b, "m16n8k32", "s8"), c]
    run(f"mma.sync.aligned.m16n8k32.row.col{extra}.s32.s8.s8.s32", given, result)
    assert (result == want).all()


@pytest.mark.parametrize("rnd", ["rz", "rp", "rm"])
def test_doubles_are_rounded_as_asked(rnd: str) -> None:
    a, b, c = np.full((8, 4), 0.1), np.full((4, 8), 0.1), np.zeros((32, 2))
    result = np.zeros((32, 2))
    given = [registers_of_a(a, "m8n8k4", "f64").view(np.float64), registers_of_b(b, "m8n8k4", "f64").view(np.float64)]
    run(f"mma.sync.aligned.m8n8k4.row.col.{rnd}.f64.f64.f64.f64", [*given, c], result)
    exact = 4 * 0.1 * 0.1
    assert (result >= exact).all() if rnd == "rp" else (result <= exact).all()


# --- moving matrices -------------------------------------------------------------------------------------------------


def moved(lines: str, tile: Array, words: int, *, block: int = 32) -> tuple[Array, Array]:
    """``lines`` with the tile of 1 KiB in shared memory at %tile, the row of each lane at %row: registers %r0 … of each
    lane, and the tile as it is after."""
    stores = " ".join(f"st.global.b32 [%out+{4 * k}], %r{k};" for k in range(words))
    rig = Rig(
        f"""
        .visible .entry move(.param .u64 p0, .param .u64 p1) {{
        .shared .align 16 .b8 pool[1024];
        .reg .b32 %r<4>, %lane, %tile, %row, %at, %w; .reg .b64 %out, %io, %x; .reg .pred %p;
        mov.u32 %lane, %tid.x; mov.u32 %tile, pool; mad.lo.u32 %row, %lane, 16, %tile;
        ld.param.u64 %io, [p1];
        mad.wide.u32 %io, %lane, {1024 // block}, %io; mad.lo.u32 %at, %lane, {1024 // block}, %tile;
        {" ".join(f"ld.global.b32 %w, [%io+{k}]; st.shared.b32 [%at+{k}], %w;" for k in range(0, 1024 // block, 4))}
        mov.u32 %r0, %lane; add.u32 %r1, %lane, 100; add.u32 %r2, %lane, 200; add.u32 %r3, %lane, 300;
        bar.sync 0; {lines} bar.sync 0;
        ld.param.u64 %out, [p0]; mad.wide.u32 %out, %lane, {4 * words}, %out; {stores}
        {" ".join(f"ld.shared.b32 %w, [%at+{k}]; st.global.b32 [%io+{k}], %w;" for k in range(0, 1024 // block, 4))}
        ret; }}
        """
    )
    out, after = np.zeros((block, words), np.uint32), tile.copy()
    rig.run([out, after], block=(block,))
    rig.device.close()
    return out, after


#: Rows of 8 elements that tell where they were: 64 of them, eight matrices.
TILE = np.arange(512, dtype=np.uint16).reshape(64, 8)


def fragment(matrix: Array) -> Array:
    """The word of each lane: row lane / 4, columns 2 * (lane % 4) and the next (PTX ISA, "ldmatrix")."""
    return np.ascontiguousarray(matrix).astype(np.uint16).reshape(-1).view(np.uint32)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("space", ["", ".shared", ".shared::cta"])
def test_ldmatrix(count: int, trans: str, space: str) -> None:
    registers = ", ".join(f"%r{k}" for k in range(count))
    # Lane k gives row 63 - k; those beyond 8 * count give none that may be read.
    generic = "" if space else "cvt.u64.u32 %x, %row; cvta.shared.u64 %x, %x;"
    lines = f"""
        mov.u32 %at, %row; sub.u32 %row, 63, %lane; mad.lo.u32 %row, %row, 16, %tile;
        setp.ge.u32 %p, %lane, {8 * count}; @%p mov.u32 %row, 1;
        {generic} ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {{{registers}}}, [{"%row" if space else "%x"}];
        mad.lo.u32 %at, %lane, 32, %tile;
        """
    out, _ = moved(lines, TILE, count)
    for m in range(count):
        matrix = TILE[63 - 8 * m - np.arange(8)]
        np.testing.assert_array_equal(out[:, m], fragment(matrix.T if trans else matrix))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix(count: int, trans: str) -> None:
    registers = ", ".join(f"%r{k}" for k in range(count))
    lines = f"""
        sub.u32 %row, 63, %lane; mad.lo.u32 %row, %row, 16, %tile;
        stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%row], {{{registers}}};
        """
    _, after = moved(lines, TILE, 1)
    want = TILE.copy()
    for m in range(count):
        matrix = (np.arange(32, dtype=np.uint32) + 100 * m).view(np.uint16).reshape(8, 8)
        want[63 - 8 * m - np.arange(8)] = matrix.T if trans else matrix
    np.testing.assert_array_equal(after, want)


def test_lanes_that_share_an_address_still_get_words_of_their_own() -> None:
    out, _ = moved("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%tile];", TILE, 1)
    np.testing.assert_array_equal(out[:, 0], fragment(np.tile(TILE[0], (8, 1))))


def test_movmatrix() -> None:
    out, _ = moved("mul.lo.u32 %r1, %r0, 65537; movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;", TILE, 2)
    np.testing.assert_array_equal(out[:, 0], fragment(out[:, 1].copy().view(np.uint16).reshape(8, 8).T))


@pytest.mark.parametrize(("row", "id"), [("@%p add.u32 %row, %row, 4096;", "out-of-bounds"),
                                         ("@%p add.u32 %row, %row, 4;", "misaligned")])  # fmt: skip
@pytest.mark.parametrize("name", ["ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%row];",
                                  "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%row], {%r0, %r1};"])  # fmt: skip
def test_a_row_that_is_not_there_is_pinned_to_its_lane(row: str, id: str, name: str) -> None:
    with pytest.raises(TeenyError) as caught:
        moved(f"setp.eq.u32 %p, %lane, 13; {row} {name}", TILE, 2)
    assert caught.value.finding.id == id
    assert "thread (13, 0, 0)" in str(caught.value) + (caught.value.finding.note or "")


# --- wmma ------------------------------------------------------------------------------------------------------------


def opaque() -> list[tuple[str, str, str, str, str, str, str]]:
    """Shape, layouts of A and B, types of A, of C and D, and further modifiers of every wmma that the device has."""
    found = set()
    for form in forms_of("wmma"):
        slots = {slot.name: slot.choices for slot in form.modifiers}
        if "mma" not in slots or "aligned" not in slots or not registry.supports_form(form):
            continue
        for shape in slots["shape"]:
            for arrangement in zip(slots["alayout"], reversed(slots["blayout"]), strict=True):
                for atype in slots.get("atype", ("f16",)):
                    for op in slots.get("op", ("",)):
                        found.add((shape, *arrangement, atype, slots["ctype"][0], slots["dtype"][0], op))
    return sorted(found)


def in_memory(values: Array, type: str, layout: str) -> Array:
    """A matrix as it lies in memory, with a leading dimension of 64 more than it has, as bytes."""
    lines = values if layout == "row" else values.T
    wide = np.zeros((lines.shape[0], lines.shape[1] + 64), lines.dtype)
    wide[:, : lines.shape[1]] = lines
    if type in ("s4", "u4"):
        codes = wide.astype(np.uint8) & 15
        return (codes[:, ::2] | codes[:, 1::2] << 4).reshape(-1)
    if type == "b1":
        return np.packbits(wide.astype(np.uint8), axis=1, bitorder="little").reshape(-1)
    dtype = _FLOATS.get(type) or {"s8": np.int8, "u8": np.uint8, "s32": np.int32}[type]
    return wide.astype(dtype).reshape(-1).view(np.uint8)


@pytest.mark.parametrize(
    ("shape", "alayout", "blayout", "atype", "ctype", "dtype", "op"), opaque(), ids=lambda each: each or "-"
)
def test_fragments_that_are_left_open(
    shape: str, alayout: str, blayout: str, atype: str, ctype: str, dtype: str, op: str
) -> None:
    m, n, k = map(int, re.findall(r"\d+", shape))
    rng = np.random.default_rng(2)
    a, b = values_of(rng, atype, (m, k)), values_of(rng, atype, (k, n))
    c = rng.integers(-9, 10, (m, n))
    layouts = {"a": alayout, "b": blayout, "c": blayout, "d": alayout}
    counts = {
        letter: len(spec_of(f"wmma.load.{letter}", shape, type))
        for letter, type in (("a", atype), ("b", atype), ("c", ctype))
    }
    counts["d"] = len(spec_of("wmma.store.d", shape, dtype))
    registers = {letter: ", ".join(f"%{letter}{j}" for j in range(count)) for letter, count in counts.items()}
    bits = dict.fromkeys("abcd", 64 if atype == "f64" else 32)
    types = {"a": atype, "b": atype, "c": ctype, "d": dtype}
    sizes = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}
    strides = {letter: sizes[letter][layouts[letter] == "row"] + 64 for letter in "abcd"}
    declared = " ".join(f".reg .b{bits[letter]} %{letter}<9>;" for letter in "abcd")
    loads = " ".join(
        f"wmma.load.{letter}.sync.aligned.{layouts[letter]}.{shape}.global.{types[letter]} "
        f"{{{registers[letter]}}}, [%p{letter}], {strides[letter]};"
        for letter in "abc"
    )
    named = f"{dtype}.{ctype}" if atype == "f16" else f"{dtype}.{atype}.{atype}.{ctype}"
    extra = f".{op}.popc" if op else ""
    rig = Rig(
        f"""
        .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{
        {declared} .reg .b64 %pa, %pb, %pc, %pd;
        ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c]; ld.param.u64 %pd, [d];
        {loads}
        wmma.mma{extra}.sync.aligned.{alayout}.{blayout}.{shape}.{named}
            {{{registers["d"]}}}, {{{registers["a"]}}}, {{{registers["b"]}}}, {{{registers["c"]}}};
        wmma.store.d.sync.aligned.{layouts["d"]}.{shape}.global.{dtype} [%pd], {{{registers["d"]}}}, {strides["d"]};
        ret; }}
        """
    )
    given = [in_memory(each, types[letter], layouts[letter]) for letter, each in zip("abc", (a, b, c), strict=True)]
    want = ((a[:, :, None] ^ b[None]).sum(1) if op == "xor" else a @ b) + c
    expected = in_memory(want, dtype, layouts["d"])
    out = np.zeros_like(expected)
    rig.run([*given, out])
    rig.device.close()
    np.testing.assert_array_equal(out, expected)


def spec_of(name: str, shape: str, type: str) -> range:
    """As many as the registers of a fragment."""
    _, which, letter = name.split(".")
    for form in forms_of("wmma"):
        slots = {slot.name: slot.choices for slot in form.modifiers}
        if which in slots and letter in slots and shape in slots["shape"] and type in slots["type"]:
            operand = next(spec for spec in form.operands if spec.vector == "braces")
            return range(form.count_of(operand, {"shape": shape, "type": type}) or 0)
    raise AssertionError((name, shape, type))
