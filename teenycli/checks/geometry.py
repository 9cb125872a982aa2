"""Rules on block, grid, cluster and shared memory, against the entry's directives and the architecture's limits.

PTX ISA, "Performance-Tuning Directives" and "Cluster Dimension Directives"; CUDA C++ Programming Guide, "Compute
Capabilities". May import ``checks.subject`` and what it may.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from teenycli.arch import LARGEST_CLUSTER
from teenycli.checks.subject import Subject
from teenycli.errors import Finding, Severity
from teenycli.launch.values import parse_number
from teenycli.ptx.metadata import is_triton
from teenycli.ptx.model import Triple

_AXES = "xyz"


def block_directives(subject: Subject) -> Iterator[Finding]:
    """The block is the one that the entry was compiled for."""
    block, wanted = subject.launch.block, subject.entry.directives.reqntid
    if wanted is not None and block != wanted:
        yield Finding(
            "block-mismatch",
            f"block {_dims(block)}, but the entry was compiled for {_dims(wanted)} (.reqntid)",
            where=subject.key("block"),
            hint=f'block = "ptx" takes it from the PTX; or block = [{", ".join(map(str, wanted))}]',
            note='the driver refuses any other block with a bare "invalid argument"',
        )
    most = subject.entry.directives.maxntid
    if wanted is not None:
        return
    threads, says = _compiled_threads(subject)
    if threads is not None and prod(block) != threads:
        yield Finding(
            "block-mismatch",
            f"block {_dims(block)} has {prod(block):,} threads, but the entry was compiled for {threads:,} ({says})",
            where=subject.key("block"),
            hint=f'block = "ptx" takes it from there; or block = [{threads}]',
            note="with fewer or more, each of which does a part for that many, the result is wrong",
        )
    elif most is not None and prod(block) > prod(most):
        yield Finding(
            "block-too-large",
            f"block {_dims(block)} has {prod(block):,} threads, but the entry was compiled for at most "
            f"{prod(most):,} (.maxntid {_dims(most)})",
            where=subject.key("block"),
            hint=f"launch at most {prod(most):,} threads a block, or compile with other __launch_bounds__",
        )


def _compiled_threads(subject: Subject) -> tuple[int | None, str]:
    """How many threads the compiler made the code for, where no directive demands them, and what says so."""
    warps, most = subject.compiled.metadata.num_warps, subject.entry.directives.maxntid
    if warps is not None:
        return 32 * warps, f"num_warps = {warps} in its metadata"
    if most is not None and is_triton(subject.module, subject.entry):
        return prod(most), f".maxntid {_dims(most)}, which in Triton's code is no bound"
    return None, ""


def compiled_shared(subject: Subject) -> Iterator[Finding]:
    """As much dynamic shared memory as the compiler says that the entry needs."""
    wanted, given = subject.compiled.metadata.shared, subject.launch.shared
    if wanted is not None and given < wanted:
        yield Finding(
            "shared-mismatch",
            f"{given:,} bytes of dynamic shared memory, and the compiler's metadata says {wanted:,}",
            where=subject.key("shared"),
            hint="leave 'shared' out: it is taken from there",
        )


def block_limits(subject: Subject) -> Iterator[Finding]:
    """No dimension is zero, and none is over the architecture's limit."""
    block, limits = subject.launch.block, subject.limits
    yield from _within(subject, "block", block, limits.block)
    if all(block) and prod(block) > limits.threads_per_block:
        yield Finding(
            "block-limit",
            f"block {_dims(block)} has {prod(block):,} threads; a block takes at most {limits.threads_per_block:,}",
            where=subject.key("block"),
            hint="use a smaller block and a larger grid",
        )


def grid_limits(subject: Subject) -> Iterator[Finding]:
    """No dimension is zero, and none is over the architecture's limit."""
    yield from _within(subject, "grid", subject.launch.grid, subject.limits.grid)


def backward_grid(subject: Subject) -> Iterator[Finding]:
    """A backward launches something. The trait's default is a grid of zero, with which the gradients stay zeros."""
    grid = subject.launch.grid
    if not subject.plan.backward or min(grid) > 0:
        return
    missing = subject.kernel.grid is None
    yield Finding(
        "backward-grid",
        f"{'no grid is said' if missing else f'the grid is {_dims(grid)}'}: backward would launch nothing, and every "
        "gradient would stay zero",
        where=subject.key("" if missing else "grid"),
        hint=f"say it with {subject.kernel.origin.name('grid')}, in CTAs",
    )


def _within(subject: Subject, what: str, dims: Triple, most: Triple) -> Iterator[Finding]:
    for axis, dim, limit in zip(_AXES, dims, most, strict=True):
        if dim <= 0 and what == "grid" and subject.plan.backward:
            continue  # see backward_grid
        if dim <= 0:
            yield Finding(
                f"{what}-zero",
                f"{what} {_dims(dims)}: {what}.{axis} is {dim}, so nothing would run",
                where=subject.key(what),
                hint=f"every dimension of the {what} must be at least 1",
            )
        elif dim > limit:
            yield Finding(
                f"{what}-limit",
                f"{what}.{axis} is {dim:,}; sm_{subject.sm} takes at most {limit:,}",
                where=subject.key(what),
                hint="put the larger count in x" if axis != "x" and what == "grid" else None,
            )


def compiled_consts(subject: Subject) -> Iterator[Finding]:
    """Consts that the compiler noted have the values that it noted."""
    for name, text in subject.compiled.metadata.other.items():
        value = subject.plan.consts.get(name)
        if value is not None and parse_number(text) not in (None, value):
            yield Finding(
                "const-mismatch",
                f"the const '{name}' is {value}, and the compiler's notes in the PTX say {text}",
                where=subject.key(f"consts.{name}"),
                hint="nothing sets a const from outside: it is what was compiled in",
            )


def cluster_shape(subject: Subject) -> Iterator[Finding]:
    """The cluster is the entry's, within limits, and divides the grid."""
    cluster, directives = subject.launch.cluster, subject.entry.directives
    wanted = directives.reqnctapercluster
    if wanted is not None and cluster != wanted:
        yield Finding(
            "cluster-mismatch",
            f"cluster {_dims(cluster)}, but the entry was compiled for {_dims(wanted)} (.reqnctapercluster)",
            where=subject.key("cluster"),
            hint=f"cluster = [{', '.join(map(str, wanted))}], or leave it out",
        )
    ctas = subject.compiled.metadata.num_ctas
    if wanted is None and ctas is not None and ctas > 1 and prod(cluster) != ctas:
        yield Finding(
            "cluster-mismatch",
            f"cluster {_dims(cluster)}, but the entry was compiled for {ctas} CTAs (num_ctas in its metadata)",
            where=subject.key("cluster"),
            hint=f"cluster = [{ctas}], or leave it out",
        )
    most = directives.maxclusterrank or subject.limits.cluster
    if most < prod(cluster) <= LARGEST_CLUSTER:
        source = ".maxclusterrank" if directives.maxclusterrank else f"sm_{subject.sm}'s portable limit"
        yield Finding(
            "cluster-limit",
            f"cluster {_dims(cluster)} has {prod(cluster)} CTAs, over the {most} of {source}",
            Severity.ERROR if directives.maxclusterrank or subject.sm < 90 else Severity.WARNING,
            where=subject.key("cluster"),
        )
    if prod(cluster) > LARGEST_CLUSTER:
        yield Finding(
            "cluster-limit",
            f"cluster {_dims(cluster)} has {prod(cluster)} CTAs; no GPU takes more than {LARGEST_CLUSTER}",
            where=subject.key("cluster"),
        )
    for axis, grid, size in zip(_AXES, subject.launch.grid, cluster, strict=True):
        if size > 0 and grid % size:
            yield Finding(
                "cluster-grid",
                f"grid.{axis} is {grid:,}, which clusters of {size} do not divide",
                where=subject.key("grid"),
                hint=f"round the grid up: align({grid}, {size}), and let the surplus CTAs do nothing",
            )


def shared_memory(subject: Subject) -> Iterator[Finding]:
    """Static and dynamic shared memory together fit the architecture; static alone, what needs no opting in."""
    static, dynamic = subject.static_shared, subject.launch.shared
    limits = subject.limits
    if static > limits.shared_default:
        yield Finding(
            "shared-limit",
            f"{static:,} bytes of static shared memory; no compiler takes more than {limits.shared_default:,}",
            where=subject.key("shared"),
            hint="declare it extern, and say how much with 'shared'",
        )
    elif static + dynamic > limits.shared_optin:
        yield Finding(
            "shared-limit",
            f"{dynamic:,} bytes of dynamic and {static:,} of static shared memory; "
            f"sm_{subject.sm} has {limits.shared_optin:,} a block",
            where=subject.key("shared"),
            hint="use smaller tiles or fewer stages",
        )
    elif static + dynamic > limits.shared_default:
        yield Finding(
            "shared-optin",
            f"{static + dynamic:,} bytes of shared memory, over the {limits.shared_default:,} that need no opting in",
            Severity.NOTE,
            where=subject.key("shared"),
            hint="a launch that is not teeny's calls cuFuncSetAttribute first, with "
            f"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = {dynamic}",
        )


def _dims(dims: Triple) -> str:
    """``128`` or ``16 x 8``: trailing ones left out."""
    kept = list(dims)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return " x ".join(str(dim) for dim in kept)
