"""The driver of a launch as generated code: hands out CTAs, runs their warps, completes barriers, finds deadlocks.

Two shapes. Where no warp ever waits, a loop over CTAs and warps. Else passes over the warps of a CTA: each runs until
it ends or waits; then barriers that have all their lanes release them. A pass in which no warp could run and no
barrier was complete is a deadlock.

May import ``layout`` and ``native``.
"""

from __future__ import annotations

from ctypes import sizeof

from teenycli.devices.cpu.layout import (
    CLUSTER_BARRIER,
    FAULTED,
    LANES_DIFFER,
    MEETING_PC,
    STALLED,
    WAITING_PC,
    Barrier,
    FaultKind,
    FrameHead,
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
        parts += [
            _reset(frame_size),
            _release(frame_size, unit.width, clusters=clusters),
            _wake(unit.width, frame_size),
        ]
    if clusters:
        parts.append(_release_cluster(frame_size))
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


#: What ``teeny.release`` returns: every warp is done, go on, a deadlock has been reported, all wait for the cluster.
_DONE, _MOVED, _CLUSTER = 0, 1, 3


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
  switch i32 %left, label %out [ i32 {_DONE}, label %over i32 {_MOVED}, label %again i32 {_CLUSTER}, label %cluster ]
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
cluster:
  store i32 {int(Progress.UNDER_WAY)}, ptr %busyp
  %idle = icmp eq i32 %passes, 0
  %how = select i1 %idle, i32 {int(Outcome.STALLED)}, i32 {int(Outcome.WAITING)}
  ret i32 %how
over:
  store i32 {int(Progress.IDLE)}, ptr %busyp
  br label %ctadone"""


def _reset(frame_size: int) -> str:
    """``teeny.reset``: every warp fresh, every barrier empty."""
    barriers = sizeof(Barrier) * (CLUSTER_BARRIER + 1)
    return f"""
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal void @teeny.reset(ptr %ctx, i32 %warps) #0 {{
entry:
  %b = getelementptr i8, ptr %ctx, i64 {context_at("barriers")}
  call void @llvm.memset.p0.i64(ptr align 4 %b, i8 0, i64 {barriers}, i1 false)
  %fp = getelementptr i8, ptr %ctx, i64 {context_at("frames")}
  %frames = load ptr, ptr %fp
  br label %head
head:
  %w = phi i32 [ 0, %entry ], [ %next, %head ]
  %w64 = zext i32 %w to i64
  %skip = mul i64 %w64, {frame_size}
  %frame = getelementptr i8, ptr %frames, i64 %skip
  store i32 {int(WarpState.FRESH)}, ptr %frame
  %marks = getelementptr i8, ptr %frame, i64 {offset(FrameHead, "cluster")}
  store i32 0, ptr %marks
  %next = add i32 %w, 1
  %more = icmp slt i32 %next, %warps
  br i1 %more, label %head, label %out
out:
  ret void
}}
"""


def _release(frame_size: int, width: int, *, clusters: bool) -> str:
    """``teeny.release``: after a pass, release the lanes of complete barriers.

    A barrier with no count wants all lanes of the CTA that live; a count is in whole warps.
    """
    cluster = (
        "call i32 @teeny.release.cluster(ptr %ctx, i32 %warps, i1 %single, i32 %ran)" if clusters else "or i32 %ran, 0"
    )
    return f"""
define internal i32 @teeny.release(ptr %ctx, i32 %warps, i32 %ran) noinline #0 {{
entry:
  %fp = getelementptr i8, ptr %ctx, i64 {context_at("frames")}
  %frames = load ptr, ptr %fp
  %lp = getelementptr i8, ptr %ctx, i64 {context_at("launch")}
  %launch = load ptr, ptr %lp
  br label %count
count:
  %w = phi i32 [ 0, %entry ], [ %next, %counted ]
  %alive = phi i32 [ 0, %entry ], [ %alivenext, %counted ]
  %site = phi i32 [ 0, %entry ], [ %sitenext, %counted ]
  %thread = phi i32 [ 0, %entry ], [ %threadnext, %counted ]
  %w64 = zext i32 %w to i64
  %skip = mul i64 %w64, {frame_size}
  %frame = getelementptr i8, ptr %frames, i64 %skip
  %state = load i32, ptr %frame
  %isdone = icmp eq i32 %state, {int(WarpState.DONE)}
  br i1 %isdone, label %counted, label %living
living:
  %np = getelementptr i8, ptr %frame, i64 {offset(FrameHead, "alive")}
  %n = load i32, ptr %np
  %sum = add i32 %alive, %n
  %sp = getelementptr i8, ptr %frame, i64 {offset(FrameHead, "site")}
  %s = load i32, ptr %sp
  %t = mul i32 %w, {width}
  br label %counted
counted:
  %alivenext = phi i32 [ %alive, %count ], [ %sum, %living ]
  %sitenext = phi i32 [ %site, %count ], [ %s, %living ]
  %threadnext = phi i32 [ %thread, %count ], [ %t, %living ]
  %next = add i32 %w, 1
  %more = icmp slt i32 %next, %warps
  br i1 %more, label %count, label %tally
tally:
  %ap = getelementptr i8, ptr %ctx, i64 {context_at("alive")}
  store i32 %alivenext, ptr %ap
  %csp = getelementptr i8, ptr %launch, i64 {launch_at("cluster_size")}
  %cs = load i32, ptr %csp
  %single = icmp eq i32 %cs, 1
  %bars = getelementptr i8, ptr %ctx, i64 {context_at("barriers")}
  %none = icmp eq i32 %alivenext, 0
  br i1 %none, label %done, label %begin
done:
  ret i32 0
begin:
  %ran2 = {cluster}
  br label %barrier
barrier:
  %b = phi i32 [ 0, %begin ], [ %bnext, %bdone ]
  %did = phi i32 [ %ran2, %begin ], [ %didnext, %bdone ]
  %b64 = zext i32 %b to i64
  %place = mul i64 %b64, {sizeof(Barrier)}
  %bar = getelementptr i8, ptr %bars, i64 %place
  %arrived = load i32, ptr %bar
  %ep = getelementptr i8, ptr %bar, i64 {Barrier.expected.offset}
  %given = load i32, ptr %ep
  %all = icmp eq i32 %given, 0
  %want = select i1 %all, i32 %alivenext, i32 %given
  %some = icmp ne i32 %arrived, 0
  %enough = icmp uge i32 %arrived, %want
  %complete = and i1 %some, %enough
  br i1 %complete, label %open, label %bdone
open:
  %cp = getelementptr i8, ptr %bar, i64 {Barrier.count.offset}
  %rp = getelementptr i8, ptr %bar, i64 {Barrier.result_count.offset}
  %both = load <2 x i32>, ptr %cp, align 4
  store <2 x i32> %both, ptr %rp, align 4
  store i32 0, ptr %bar
  store i32 0, ptr %ep
  store <2 x i32> zeroinitializer, ptr %cp, align 4
  %woken = call i32 @teeny.wake(ptr %frames, i32 %warps, i32 %b)
  br label %bdone
bdone:
  %didnext = phi i32 [ %did, %barrier ], [ 1, %open ]
  %bnext = add i32 %b, 1
  %bmore = icmp slt i32 %bnext, {CLUSTER_BARRIER}
  br i1 %bmore, label %barrier, label %verdict
verdict:
  %moved = icmp ne i32 %didnext, 0
  br i1 %moved, label %goon, label %still
still:
  br i1 %single, label %stuck, label %cluster
cluster:
  ret i32 {_CLUSTER}
goon:
  ret i32 1
stuck:
  %tp = getelementptr i8, ptr %ctx, i64 {context_at("warp")}
  store i32 0, ptr %tp
  call void @teeny.fault(ptr %ctx, i32 {int(FaultKind.DEADLOCK)}, i32 %sitenext, i64 0, i32 %threadnext)
  ret i32 {FAULTED}
}}
"""


def _wake(width: int, frame_size: int) -> str:
    """``teeny.wake``: lanes that wait at barrier ``b`` may run, at the cluster's but those marked; whether any may."""
    lanes, mask, bits = f"<{width} x i32>", f"<{width} x i1>", f"i{width}"
    return f"""
define internal i32 @teeny.wake(ptr %frames, i32 %warps, i32 %b) noinline #0 {{
entry:
  %atcluster = icmp eq i32 %b, {CLUSTER_BARRIER}
  %one = insertelement {lanes} poison, i32 %b, i32 0
  %ids = shufflevector {lanes} %one, {lanes} poison, {lanes} zeroinitializer
  br label %warp
warp:
  %k = phi i32 [ 0, %entry ], [ %knext, %next ]
  %did = phi i32 [ 0, %entry ], [ %didnext, %next ]
  %k64 = zext i32 %k to i64
  %skip = mul i64 %k64, {frame_size}
  %frame = getelementptr i8, ptr %frames, i64 %skip
  %state = load i32, ptr %frame
  %waits = icmp eq i32 %state, {int(WarpState.WAITING)}
  br i1 %waits, label %check, label %next
check:
  %mp = getelementptr i8, ptr %frame, i64 {offset(FrameHead, "cluster")}
  %marks = load {bits}, ptr %mp, align 4
  %held = select i1 %atcluster, {bits} %marks, {bits} 0
  %rp = getelementptr i8, ptr %frame, i64 {offset(FrameHead, "resume")}
  %resume = load i32, ptr %rp
  %parted = icmp eq i32 %resume, {LANES_DIFFER}
  br i1 %parted, label %each, label %whole
whole:
  %bp = getelementptr i8, ptr %frame, i64 {offset(FrameHead, "barrier")}
  %at = load i32, ptr %bp
  %here = icmp eq i32 %at, %b
  %lp = getelementptr i8, ptr %frame, i64 {offset(FrameHead, "mask")}
  %all = load {bits}, ptr %lp, align 4
  %kept = and {bits} %all, %held
  %free = icmp eq {bits} %kept, 0
  %any1 = and i1 %here, %free
  br label %woken
each:
  %pcp = getelementptr i8, ptr %frame, i64 {sizeof(FrameHead)}
  %pcs = load {lanes}, ptr %pcp, align 4
  %idp = getelementptr i8, ptr %frame, i64 {sizeof(FrameHead) + 4 * width}
  %waitsfor = load {lanes}, ptr %idp, align 4
  %heldv = bitcast {bits} %held to {mask}
  %there = icmp eq {lanes} %waitsfor, %ids
  %early = icmp ult {lanes} %pcs, splat (i32 {MEETING_PC})
  %waiting = icmp uge {lanes} %pcs, splat (i32 {WAITING_PC})
  %m0 = and {mask} %there, %early
  %m1 = and {mask} %m0, %waiting
  %m = select {mask} %heldv, {mask} zeroinitializer, {mask} %m1
  %freed = sub {lanes} %pcs, splat (i32 {WAITING_PC})
  %new = select {mask} %m, {lanes} %freed, {lanes} %pcs
  store {lanes} %new, ptr %pcp, align 4
  %mb = bitcast {mask} %m to {bits}
  %any2 = icmp ne {bits} %mb, 0
  br label %woken
woken:
  %any = phi i1 [ %any1, %whole ], [ %any2, %each ]
  %then = select i1 %any, i32 {int(WarpState.READY)}, i32 {int(WarpState.WAITING)}
  store i32 %then, ptr %frame
  %any32 = zext i1 %any to i32
  %did2 = or i32 %did, %any32
  br label %next
next:
  %didnext = phi i32 [ %did, %warp ], [ %did2, %woken ]
  %knext = add i32 %k, 1
  %more = icmp slt i32 %knext, %warps
  br i1 %more, label %warp, label %out
out:
  ret i32 %didnext
}}
"""


def _release_cluster(frame_size: int) -> str:
    """``teeny.release.cluster``: the cluster's barrier, complete when all CTAs say so, or one alone has all its lanes.

    Lanes that arrived in a phase that is over are no longer marked, and pass. ``ran`` or 1 where any may run.
    """
    return f"""
define internal i32 @teeny.release.cluster(ptr %ctx, i32 %warps, i1 %single, i32 %ran) noinline #0 {{
entry:
  %fp = getelementptr i8, ptr %ctx, i64 {context_at("frames")}
  %frames = load ptr, ptr %fp
  %ap = getelementptr i8, ptr %ctx, i64 {context_at("alive")}
  %alive = load i32, ptr %ap
  %op = getelementptr i8, ptr %ctx, i64 {context_at("cluster_open")}
  %opened = load i32, ptr %op
  store i32 0, ptr %op
  %bars = getelementptr i8, ptr %ctx, i64 {context_at("barriers")}
  %bar = getelementptr i8, ptr %bars, i64 {CLUSTER_BARRIER * sizeof(Barrier)}
  %arrived = load i32, ptr %bar
  %some = icmp ne i32 %arrived, 0
  %enough = icmp uge i32 %arrived, %alive
  %full = and i1 %some, %enough
  %isopen = icmp ne i32 %opened, 0
  %may = or i1 %single, %isopen
  %complete = and i1 %full, %may
  br i1 %complete, label %open, label %wake
open:
  store i32 0, ptr %bar
  br label %unmark
unmark:
  %k = phi i32 [ 0, %open ], [ %knext, %unmark ]
  %k64 = zext i32 %k to i64
  %skip = mul i64 %k64, {frame_size}
  %frame = getelementptr i8, ptr %frames, i64 %skip
  %mp = getelementptr i8, ptr %frame, i64 {offset(FrameHead, "cluster")}
  store i32 0, ptr %mp
  %knext = add i32 %k, 1
  %more = icmp slt i32 %knext, %warps
  br i1 %more, label %unmark, label %wake
wake:
  %woken = call i32 @teeny.wake(ptr %frames, i32 %warps, i32 {CLUSTER_BARRIER})
  %did = or i32 %ran, %woken
  ret i32 %did
}}
"""
