"""What happens between the passes over a CTA's warps, as generated code: barriers complete, lanes wake, or none can.

May import ``layout`` and ``native``.
"""

from __future__ import annotations

from ctypes import sizeof
from enum import IntEnum

from teenycli.devices.cpu.layout import (
    CLUSTER_BARRIER,
    LANES_DIFFER,
    MEETING_PC,
    WAITING_PC,
    Barrier,
    FrameHead,
    Launch,
    WarpState,
    offset,
)
from teenycli.devices.cpu.native import context_at


class Verdict(IntEnum):
    """What ``teeny.release`` returns: every warp is done, some may run, none may."""

    OVER = 0
    MOVED = 1
    STUCK = 2


def _frame(warp: str, frame_size: int) -> str:
    """Text for ``%frame``, that of one of the CTA's warps."""
    return f"""
  %warp64 = zext i32 {warp} to i64
  %skip = mul i64 %warp64, {frame_size}
  %frame = getelementptr i8, ptr %frames, i64 %skip""".lstrip("\n")


def reset(frame_size: int) -> str:
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
{_frame("%w", frame_size)}
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


def release(width: int, frame_size: int, *, clusters: bool) -> str:
    """``teeny.release``: after a pass, let the lanes of complete barriers go on; a ``Verdict``.

    A barrier with no count wants all lanes of the CTA that live; a count is in whole warps. ``ran`` says whether any
    warp has come on in the pass.
    """
    cluster = "call i32 @teeny.release.cluster(ptr %ctx, i32 %warps, i32 %ran)" if clusters else "or i32 %ran, 0"
    text = f"""
define internal i32 @teeny.release(ptr %ctx, i32 %warps, i32 %ran) noinline #0 {{
entry:
  %fp = getelementptr i8, ptr %ctx, i64 {context_at("frames")}
  %frames = load ptr, ptr %fp
  %alive = call i32 @teeny.alive(ptr %frames, i32 %warps)
  %ap = getelementptr i8, ptr %ctx, i64 {context_at("alive")}
  store i32 %alive, ptr %ap
  %bars = getelementptr i8, ptr %ctx, i64 {context_at("barriers")}
  %none = icmp eq i32 %alive, 0
  br i1 %none, label %over, label %begin
over:
  ret i32 {int(Verdict.OVER)}
begin:
  %first = {cluster}
  br label %barrier
barrier:
  %b = phi i32 [ 0, %begin ], [ %bnext, %next ]
  %did = phi i32 [ %first, %begin ], [ %didnext, %next ]
  %b64 = zext i32 %b to i64
  %place = mul i64 %b64, {sizeof(Barrier)}
  %bar = getelementptr i8, ptr %bars, i64 %place
  %arrived = load i32, ptr %bar
  %ep = getelementptr i8, ptr %bar, i64 {Barrier.expected.offset}
  %given = load i32, ptr %ep
  %all = icmp eq i32 %given, 0
  %want = select i1 %all, i32 %alive, i32 %given
  %some = icmp ne i32 %arrived, 0
  %enough = icmp uge i32 %arrived, %want
  %complete = and i1 %some, %enough
  br i1 %complete, label %open, label %next
open:
  %cp = getelementptr i8, ptr %bar, i64 {Barrier.count.offset}
  %rp = getelementptr i8, ptr %bar, i64 {Barrier.result_count.offset}
  %both = load <2 x i32>, ptr %cp, align 4
  store <2 x i32> %both, ptr %rp, align 4
  store i32 0, ptr %bar
  store i32 0, ptr %ep
  store <2 x i32> zeroinitializer, ptr %cp, align 4
  %woken = call i32 @teeny.wake(ptr %frames, i32 %warps, i32 %b)
  br label %next
next:
  %didnext = phi i32 [ %did, %barrier ], [ 1, %open ]
  %bnext = add i32 %b, 1
  %more = icmp slt i32 %bnext, {CLUSTER_BARRIER}
  br i1 %more, label %barrier, label %done
done:
  %moved = icmp ne i32 %didnext, 0
  %verdict = select i1 %moved, i32 {int(Verdict.MOVED)}, i32 {int(Verdict.STUCK)}
  ret i32 %verdict
}}
"""
    parts = [text, _alive(frame_size), _wake(width, frame_size)]
    return "\n".join([*parts, _release_cluster(frame_size)] if clusters else parts)


def _alive(frame_size: int) -> str:
    """``teeny.alive``: how many lanes the warps that are not done have."""
    return f"""
define internal i32 @teeny.alive(ptr %frames, i32 %warps) noinline #0 {{
entry:
  br label %warp
warp:
  %w = phi i32 [ 0, %entry ], [ %wnext, %next ]
  %sum = phi i32 [ 0, %entry ], [ %sumnext, %next ]
{_frame("%w", frame_size)}
  %state = load i32, ptr %frame
  %isdone = icmp eq i32 %state, {int(WarpState.DONE)}
  br i1 %isdone, label %next, label %living
living:
  %np = getelementptr i8, ptr %frame, i64 {offset(FrameHead, "alive")}
  %n = load i32, ptr %np
  %sum2 = add i32 %sum, %n
  br label %next
next:
  %sumnext = phi i32 [ %sum, %warp ], [ %sum2, %living ]
  %wnext = add i32 %w, 1
  %more = icmp slt i32 %wnext, %warps
  br i1 %more, label %warp, label %out
out:
  ret i32 %sumnext
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
{_frame("%k", frame_size)}
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
define internal i32 @teeny.release.cluster(ptr %ctx, i32 %warps, i32 %ran) noinline #0 {{
entry:
  %lp = getelementptr i8, ptr %ctx, i64 {context_at("launch")}
  %launch = load ptr, ptr %lp
  %csp = getelementptr i8, ptr %launch, i64 {offset(Launch, "cluster_size")}
  %cs = load i32, ptr %csp
  %single = icmp eq i32 %cs, 1
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
{_frame("%k", frame_size)}
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
