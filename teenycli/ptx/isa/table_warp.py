"""Barriers, fences, atomics, votes, shuffles and warp-wide operations (PTX ISA 9.7.13)."""

from __future__ import annotations

from teenycli.ptx.isa import POLICY, SHARED, TABLE

row, form = TABLE.row, TABLE.form

_PARALLEL = "Parallel Synchronization and Communication Instructions: "

# --- barriers ----------------------------------------------------------------------------------------------------

for opcode, aligned, ptx, sm, tier in (("bar", "", (1, 0), 0, 1), ("barrier", "{.aligned}", (6, 0), 30, 2)):
    row(opcode, tier=tier, doc=f"{_PARALLEL}{opcode}")
    form(f"{opcode}{{:cta}}.sync{aligned} a:u32{{, b:u32}}", ptx=ptx, sm=sm)
    form(f"{opcode}{{:cta}}:arrive{aligned} a:u32, b:u32", ptx=max(ptx, (2, 0)), sm=max(sm, 20), tier=2)
    for count in ("", "b:u32, "):
        form(f"{opcode}{{:cta}}:red.op{aligned}.type d, a:u32, {count}!c", op="popc", type="u32",
             ptx=max(ptx, (2, 0)), sm=max(sm, 20), tier=2)  # fmt: skip
        form(f"{opcode}{{:cta}}:red.op{aligned}.type p, a:u32, {count}!c", op="and or", type="pred",
             ptx=max(ptx, (2, 0)), sm=max(sm, 20), tier=2)  # fmt: skip

row("bar", tier=1, doc=f"{_PARALLEL}bar.warp.sync")
form("bar:warp.sync a:u32", ptx=(6, 0), sm=30, tier=2)

row("barrier", tier=2, doc=f"{_PARALLEL}barrier.cluster")
form("barrier:cluster:arrive{.sem}{.aligned}", sem="release relaxed", ptx=(7, 8), sm=90)
form("barrier:cluster:wait{.sem}{.aligned}", sem="acquire", ptx=(7, 8), sm=90)

# --- fences ------------------------------------------------------------------------------------------------------

row("membar", tier=2, doc=f"{_PARALLEL}membar, fence")
form("membar.scope", scope="cta gl sys")
form("membar:proxy.kind", kind="alias", ptx=(7, 5), sm=60)

row("fence", tier=2, doc=f"{_PARALLEL}membar, fence")
form("fence{.sem}.scope", sem="sc acq_rel", ptx=(6, 0), sm=70)
form("fence.sem.scope", sem="acquire release", ptx=(8, 6), sm=70)
form("fence.sem.restrict.scope", sem="acquire", restrict="sync_restrict::shared::cluster", scope="cluster",
     ptx=(8, 6), sm=90)  # fmt: skip
form("fence.sem.restrict.scope", sem="release", restrict="sync_restrict::shared::cta", scope="cluster",
     ptx=(8, 6), sm=90)  # fmt: skip
form("fence.mbarrier_init.sem.scope", sem="release", scope="cluster", ptx=(8, 0), sm=90)
form("fence:proxy.kind", kind="alias", ptx=(7, 5), sm=70)
form("fence:proxy.kind{.space}", kind="async", space="global shared::cta shared::cluster", ptx=(8, 0), sm=90)
form("fence:proxy.kind.sem.scope", kind="tensormap::generic", sem="release", ptx=(8, 3), sm=90, tier=3)
form("fence:proxy.kind.sem.scope [a], #size:b32", kind="tensormap::generic", sem="acquire", ptx=(8, 3), sm=90, tier=3)
form("fence:proxy.kind.sem.restrict.scope", kind="async::generic", sem="acquire",
     restrict="sync_restrict::shared::cluster", scope="cluster", ptx=(8, 6), sm=90)  # fmt: skip
form("fence:proxy.kind.sem.restrict.scope", kind="async::generic", sem="release",
     restrict="sync_restrict::shared::cta", scope="cluster", ptx=(8, 6), sm=90)  # fmt: skip

# --- atom, red ---------------------------------------------------------------------------------------------------

#: What atom and red do to one scalar: (operations, further modifiers, types, PTX version, sm).
_SCALAR = (
    ("add", "", "u32 s32", (1, 1), 11),
    ("add", "", "u64", (1, 2), 12),
    ("add", "", "f32", (2, 0), 20),
    ("add", "", "f64", (5, 0), 60),
    ("add", ".noftz", "f16x2", (6, 2), 60),
    ("add", ".noftz", "f16", (6, 3), 70),
    ("add", ".noftz", "bf16 bf16x2", (7, 8), 90),
    ("inc dec", "", "u32", (1, 1), 11),
    ("min max", "", "u32 s32", (1, 1), 11),
    ("min max", "", "u64 s64", (3, 1), 32),
    ("and or xor", "", "b32", (1, 1), 11),
    ("and or xor", "", "b64", (3, 1), 32),
)
#: What they do to a vector in global memory.
_VECTOR = (
    ("add", "", "v2 v4", "f32"),
    ("add min max", ".noftz", "v2 v4 v8", "f16 bf16"),
    ("add min max", ".noftz", "v2 v4", "f16x2 bf16x2"),
)


def _places(opcode: str, modifiers: str, dest: str, sem: str, op: str, types: str, ptx: tuple[int, int],
            sm: int) -> None:  # fmt: skip
    """Two forms of an operation on one location: in global memory, with a cache policy; in shared memory."""
    slots = {"sem": sem, "op": op, "type": types}
    form(f"{opcode}{{.sem}}{{.scope}}{{.space}}.op{modifiers}{{.cachehint}}.type {dest}[a], b, {POLICY}",
         slots, space="global", ptx=ptx, sm=sm)  # fmt: skip
    form(f"{opcode}{{.sem}}{{.scope}}.space.op{modifiers}.type {dest}[a], b", slots, space=SHARED, ptx=ptx, sm=sm)


def _atomics(opcode: str, sem: str, dest: str) -> None:
    """The forms that ``atom`` and ``red`` share; ``dest`` is ``d^, `` or nothing."""
    for op, extra, types, ptx, sm in _SCALAR:
        _places(opcode, extra, dest, sem, op, types, ptx, sm)
    for op, extra, vec, types in _VECTOR:
        form(f"{opcode}{{.sem}}{{.scope}}{{.space}}.op{extra}{{.cachehint}}.vec.type {dest.replace('d', 'd.vec')}[a], "
             f"b.vec, {POLICY}", sem=sem, space="global", op=op, vec=vec, type=types,
             ptx=(8, 1), sm=90)  # fmt: skip


row("atom", tier=2, doc=f"{_PARALLEL}atom")
_ATOM_SEM = "relaxed acquire release acq_rel"
_atomics("atom", _ATOM_SEM, "d^, ")
for types, ptx, sm in (("b32", (1, 1), 11), ("b64", (1, 2), 12), ("b128", (8, 3), 90)):
    _places("atom", "", "d^, ", _ATOM_SEM, "exch", types, ptx, sm)
for types, ptx, sm in (("b16", (6, 3), 70), ("b32", (1, 1), 11), ("b64", (1, 2), 12), ("b128", (8, 3), 90)):
    form("atom{.sem}{.scope}{.space}.op.type d^, [a], b, c", sem=_ATOM_SEM, space=f"global {SHARED}", op="cas",
         type=types, ptx=ptx, sm=sm)  # fmt: skip

row("red", tier=2, doc=f"{_PARALLEL}red")
_atomics("red", "relaxed release", "")

# --- the warp ----------------------------------------------------------------------------------------------------

row("shfl", tier=2, doc=f"{_PARALLEL}shfl.sync")
form("shfl.sync.mode.type d{|p}^, a, b:b32, c:b32, mask:u32", mode="up down bfly idx", type="b32", ptx=(6, 0), sm=30)
form("shfl.mode.type d{|p}^, a, b:b32, c:b32", mode="up down bfly idx", type="b32", ptx=(3, 0), sm=30,
     until=(6, 3), gone_sm=70)  # fmt: skip

row("vote", tier=2, doc=f"{_PARALLEL}vote.sync")
form("vote.sync.op.type p, !a, mask:u32", op="all any uni", type="pred", ptx=(6, 0), sm=30)
form("vote.sync.op.type d, !a, mask:u32", op="ballot", type="b32", ptx=(6, 0), sm=30)
form("vote.op.type p, !a", op="all any uni", type="pred", ptx=(1, 2), sm=12, until=(6, 3), gone_sm=70)
form("vote.op.type d, !a", op="ballot", type="b32", ptx=(2, 0), sm=20, until=(6, 3), gone_sm=70)

row("match", tier=2, doc=f"{_PARALLEL}match.sync")
form("match.op.sync.type d:u32, a, mask:u32", op="any", type="b32 b64", ptx=(6, 0), sm=70)
form("match.op.sync.type d^{|p}^:u32, a, mask:u32", op="all", type="b32 b64", ptx=(6, 0), sm=70)

row("activemask", tier=2, doc=f"{_PARALLEL}activemask")
form("activemask.type d", type="b32", ptx=(6, 2), sm=30)

row("redux", tier=2, doc=f"{_PARALLEL}redux.sync")
form("redux.sync.op.type d, a, mask:u32", op="add min max", type="u32 s32", ptx=(7, 0), sm=80)
form("redux.sync.op.type d:u32, a:u32, mask:u32", op="and or xor", type="b32", ptx=(7, 0), sm=80)
form("redux.sync.op{.abs}{.nan}.type d, a, mask:u32", op="min max", type="f32", ptx=(8, 6), sm=100, suffix="f")

row("elect", tier=2, doc=f"{_PARALLEL}elect.sync")
form("elect.sync d^|p:u32, mask:u32", ptx=(8, 0), sm=90)

row("griddepcontrol", tier=2, doc=f"{_PARALLEL}griddepcontrol")
form("griddepcontrol.mode", mode="launch_dependents wait", ptx=(7, 8), sm=90)

row("setmaxnreg", tier=2, doc="Miscellaneous Instructions: setmaxnreg")
form("setmaxnreg:mode.sync.aligned.type #n", mode="inc dec", type="u32", ptx=(8, 0), sm=90, suffix="a")
