"""The driver of a launch as generated code: hands out CTAs, runs their warps, says when none can come on.

Two shapes. Where no warp ever waits, a loop over CTAs and warps. Else passes over the warps of a CTA: each runs until
it ends or waits; then barriers that have all their lanes release them (``barriers``). A pass in which no warp could
run and no barrier was complete is for ``hall`` to judge: the CTA waits for others of its cluster, or for ever.

May import ``barriers``, ``layout``, ``native``, ``value``.
"""

from __future__ import annotations

from teenycli.devices.cpu.barriers import Verdict, release, reset
from teenycli.devices.cpu.layout import (
    FAULTED,
    STALLED,
    Launch,
    Outcome,
    Progress,
    WarpState,
    offset,
)
from teenycli.devices.cpu.native import FAULT, context_at
from teenycli.devices.cpu.value import Unit


def launch_at(field: str, index: int = 0) -> int:
    return offset(Launch, field, index)


def driver(unit: Unit, *, suspends: bool, clusters: bool, frame_size: int) -> str:
    """``i32 @teeny_run(ptr launch, ptr ctx)``: what each thread of the pool calls; gives an ``Outcome``.

    ``suspends`` and ``clusters`` say whether a warp may wait at all, and whether for the cluster.
    """
    frame_of = f"""
  %frames = load ptr, ptr %framesp
  %w64 = zext i32 %w to i64
  %skip = mul i64 %w64, {frame_size}
  %frame = getelementptr i8, ptr %frames, i64 {"%skip" if suspends else "0"}
  %t0 = mul i32 %w, {unit.width}
  store i32 %t0, ptr %warpp
"""
    body = _passes(frame_of) if suspends else _straight(frame_of)
    unit.helpers.setdefault("fault", FAULT)
    names = {"BODY": body, "BEGIN": _BEGIN, "CURRENT": "%pc", "LAST": "%pend"}
    if not suspends:
        names |= {"BEGIN": "  br label %hand", "CURRENT": "%c", "LAST": "%last"}
    run = _RUN
    for name, text in names.items():
        run = run.replace(name, text)
    parts = [run]
    if suspends:
        parts += [reset(frame_size), release(unit.width, frame_size, clusters=clusters)]
    return "\n".join(parts)


#: A CTA that is under way, or has been given, comes first; after it none is left of its chunk.
_BEGIN = f"""
  %busyp = getelementptr i8, ptr %ctx, i64 {context_at("busy")}
  %patiencep = getelementptr i8, ptr %launch, i64 {launch_at("patience")}
  %patience = load i32, ptr %patiencep
  %busy = load i32, ptr %busyp
  switch i32 %busy, label %hand [ i32 {int(Progress.UNDER_WAY)}, label %resume i32 {int(Progress.GIVEN)}, label %begin ]
begin:
  br label %reset
resume:
  br label %pass"""

_RUN = f"""
define i32 @teeny_run(ptr %launch, ptr %ctx) #0 {{
entry:
  %nextp = getelementptr i8, ptr %launch, i64 {launch_at("next")}
  %totalp = getelementptr i8, ptr %launch, i64 {launch_at("total")}
  %chunkp = getelementptr i8, ptr %launch, i64 {launch_at("chunk")}
  %gridp = getelementptr i8, ptr %launch, i64 {launch_at("grid")}
  %gridyp = getelementptr i8, ptr %launch, i64 {launch_at("grid", 1)}
  %warpsp = getelementptr i8, ptr %launch, i64 {launch_at("warps")}
  %stopp = getelementptr i8, ptr %launch, i64 {launch_at("stop")}
  %ctap = getelementptr i8, ptr %ctx, i64 {context_at("cta")}
  %ctayp = getelementptr i8, ptr %ctx, i64 {context_at("cta", 1)}
  %ctazp = getelementptr i8, ptr %ctx, i64 {context_at("cta", 2)}
  %warpp = getelementptr i8, ptr %ctx, i64 {context_at("warp")}
  %framesp = getelementptr i8, ptr %ctx, i64 {context_at("frames")}
  %total = load i64, ptr %totalp
  %chunk = load i64, ptr %chunkp
  %gx32 = load i32, ptr %gridp
  %gy32 = load i32, ptr %gridyp
  %gx = zext i32 %gx32 to i64
  %gy = zext i32 %gy32 to i64
  %warps = load i32, ptr %warpsp
BEGIN
hand:
  %first = atomicrmw add ptr %nextp, i64 %chunk monotonic
  %have = icmp slt i64 %first, %total
  br i1 %have, label %got, label %finished
got:
  %end0 = add i64 %first, %chunk
  %end = call i64 @llvm.smin.i64(i64 %end0, i64 %total)
  br label %cta
cta:
  %c = phi i64 [ %first, %got ], [ %cnext, %ctadone ]
  %last = phi i64 [ %end, %got ], [ LAST, %ctadone ]
  %stop = load atomic i32, ptr %stopp monotonic, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %out, label %place
place:
  %row = udiv i64 %c, %gx
  %xw = mul i64 %row, %gx
  %x = sub i64 %c, %xw
  %z = udiv i64 %row, %gy
  %yw = mul i64 %z, %gy
  %y = sub i64 %row, %yw
  %x32 = trunc i64 %x to i32
  %y32 = trunc i64 %y to i32
  %z32 = trunc i64 %z to i32
  store i32 %x32, ptr %ctap
  store i32 %y32, ptr %ctayp
  store i32 %z32, ptr %ctazp
BODY
ctadone:
  %cnext = add i64 CURRENT, 1
  %more = icmp slt i64 %cnext, LAST
  br i1 %more, label %cta, label %hand
finished:
  ret i32 {int(Outcome.FINISHED)}
out:
  ret i32 {int(Outcome.STOPPED)}
}}
declare i64 @llvm.smin.i64(i64, i64)
"""


def _straight(frame_of: str) -> str:
    return f"""
  br label %warp
warp:
  %w = phi i32 [ 0, %place ], [ %wnext, %warpdone ]
{frame_of}
  %status = call i32 @warp(ptr %ctx, ptr %launch, i32 %w, ptr %frame)
  %dead = icmp eq i32 %status, {FAULTED}
  br i1 %dead, label %out, label %warpdone
warpdone:
  %wnext = add i32 %w, 1
  %wmore = icmp slt i32 %wnext, %warps
  br i1 %wmore, label %warp, label %ctadone"""


def _passes(frame_of: str) -> str:
    return f"""
  br label %reset
reset:
  %rc = phi i64 [ %c, %place ], [ 0, %begin ]
  %rend = phi i64 [ %last, %place ], [ 0, %begin ]
  call void @teeny.reset(ptr %ctx, i32 %warps)
  br label %pass
pass:
  %pc = phi i64 [ %rc, %reset ], [ 0, %resume ], [ %pc, %next ]
  %pend = phi i64 [ %rend, %reset ], [ 0, %resume ], [ %pend, %next ]
  %passes = phi i32 [ 0, %reset ], [ 0, %resume ], [ %morepasses, %next ]
  br label %warp
warp:
  %w = phi i32 [ 0, %pass ], [ %wnext, %warpdone ]
  %ran = phi i32 [ 0, %pass ], [ %rannext, %warpdone ]
{frame_of}
  %state = load i32, ptr %frame
  %runs = icmp ule i32 %state, {int(WarpState.READY)}
  br i1 %runs, label %run, label %warpdone
run:
  %status = call i32 @warp(ptr %ctx, ptr %launch, i32 %w, ptr %frame)
  %dead = icmp eq i32 %status, {FAULTED}
  %moved = icmp ne i32 %status, {STALLED}
  %ran1 = select i1 %moved, i32 1, i32 %ran
  br i1 %dead, label %out, label %warpdone
warpdone:
  %rannext = phi i32 [ %ran, %warp ], [ %ran1, %run ]
  %wnext = add i32 %w, 1
  %wmore = icmp slt i32 %wnext, %warps
  br i1 %wmore, label %warp, label %passed
passed:
  %left = call i32 @teeny.release(ptr %ctx, i32 %warps, i32 %rannext)
  switch i32 %left, label %stuck [ i32 {int(Verdict.OVER)}, label %over i32 {int(Verdict.MOVED)}, label %again ]
again:
  %stop2 = load atomic i32, ptr %stopp monotonic, align 4
  %stopped2 = icmp ne i32 %stop2, 0
  br i1 %stopped2, label %out, label %next
next:
  %morepasses = add i32 %passes, 1
  %tired = icmp eq i32 %morepasses, %patience
  br i1 %tired, label %pause, label %pass
pause:
  store i32 {int(Progress.UNDER_WAY)}, ptr %busyp
  ret i32 {int(Outcome.PAUSED)}
stuck:
  store i32 {int(Progress.UNDER_WAY)}, ptr %busyp
  %idle = icmp eq i32 %passes, 0
  %how = select i1 %idle, i32 {int(Outcome.STALLED)}, i32 {int(Outcome.WAITING)}
  ret i32 %how
over:
  store i32 {int(Progress.IDLE)}, ptr %busyp
  br label %ctadone"""
