"""What CUresults and lines of the JIT's log mean, by number and by pattern: cause and cure, whatever is launched.

Pure data. May import ``releases``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from teenycli.releases import Version


class Story(Struct, frozen=True):
    """``words`` are the cause, as the end of a sentence; ``hint`` is the cure."""

    words: str
    hint: str | None = None


_MPS = "the multi-process service (MPS): see its log, or run outside of it (unset CUDA_MPS_PIPE_DIRECTORY)"

#: Why a device cannot be opened, or a call fails that has nothing to do with the launch (CUDA Driver API, CUresult).
CAUSES: Mapping[int, Story] = {
    2: Story("its memory is full", "free the GPU of other processes (nvidia-smi lists them)"),
    4: Story("the driver is shutting down", "start teeny again"),
    46: Story("another process has the GPU to itself", "its compute mode is exclusive: `nvidia-smi -q -d COMPUTE`"),
    101: Story("the GPU is not there any more", "see nvidia-smi and the system's log"),
    201: Story("no context is current: something else in this process has taken it away", "start teeny again"),
    214: Story("its memory has an error that cannot be corrected (ECC)", "reset the GPU (nvidia-smi -r), or reboot"),
    220: Story("the GPU has met an error on NVLink", "see `nvidia-smi nvlink -e`, and the system's log"),
    224: Story("the driver runs under MPS, which does not allow this", _MPS),
    304: Story("the operating system refused it", "see dmesg, limits (`ulimit -a`), and the rights on /dev/nvidia*"),
    400: Story("a handle is of no use", "this is a fault of teeny: please report it, with the command"),
    709: Story("something else in this process has destroyed the context", "start teeny again"),
    800: Story("it is not permitted here", "a container or a MIG instance may forbid it"),
    801: Story("this GPU, or this driver, cannot do it", "update the driver"),
    802: Story("the system is not ready", "start nvidia-fabricmanager"),
    803: Story("the driver's kernel module is of another version than its library", "reboot, or reload the module"),
    804: Story("this GPU does not support the compatibility library", "remove cuda-compat, or update the driver"),
    805: Story("the multi-process service (MPS) does not answer", _MPS),
    806: Story("the multi-process service (MPS) failed", _MPS),
    807: Story("the multi-process service (MPS) is not ready", _MPS),
    808: Story("the multi-process service (MPS) has no room for a client more", _MPS),
    809: Story("the multi-process service (MPS) has no room for a connection more", _MPS),
    810: Story("the multi-process service (MPS) ended this client, since another one met a fault", "start teeny again"),
}  # fmt: skip

#: Why a launch is refused, where the plan shows no reason.
REFUSALS: Mapping[int, Story] = {
    1: Story("no limit that is known here is exceeded", "run `teeny check` on it, or run it with --device cpu"),
    701: Story("a block takes more registers, or more of another resource, than the GPU has for one",
               "use fewer threads a block, or compile with __launch_bounds__ (.maxntid) or fewer registers (.maxnreg)"),
    720: Story("a cooperative grid must fit the GPU all at once, and this one does not",
               "launch fewer CTAs, or give each less shared memory and fewer registers"),
    801: Story("this GPU cannot do such a launch", "clusters need sm_90; a part of a GPU (MIG) may not do all"),
    912: Story("the GPU cannot place a cluster of so many CTAs with so much shared memory and so many registers",
               "use a smaller cluster, or less shared memory; more than 8 CTAs depend on the GPU"),
    914: Story("a resource of the launch is of the wrong kind",
               "this is a fault of teeny: please report it, with the command"),
}  # fmt: skip

#: The CUDA version whose driver first has a function that not every driver has.
SINCE: Mapping[str, Version] = {
    "cuLaunchKernelEx": (11, 8), "cuTensorMapEncodeTiled": (12, 0), "cuDevicePrimaryCtxRetain": (7, 0),
}  # fmt: skip


class _Complaint(Struct, frozen=True):
    pattern: re.Pattern[str]
    words: str
    hint: str


#: What ptxas says, inside the driver as on the command line; groups by name go into words and hint.
_COMPLAINTS = (
    _Complaint(
        re.compile(r"Entry function '(?P<entry>\S+?)' uses too much shared data \((?P<need>0x[0-9a-f]+) bytes.*?"
                   r"(?P<most>0x[0-9a-f]+) max\)"),
        "'{entry}' has {need:,} bytes of static shared memory, and {most:,} is the most that a kernel may declare",
        "declare it `.extern .shared` (extern __shared__) and give its size with --shared, which may be more",
    ),
    _Complaint(
        re.compile(r"Entry function '(?P<entry>\S+?)' uses too much parameter space "
                   r"\((?P<need>0x[0-9a-f]+) bytes.*?(?P<most>0x[0-9a-f]+) max\)"),
        "'{entry}' has {need:,} bytes of parameters, and {most:,} is the most",
        "pass the struct by address",
    ),
    _Complaint(
        re.compile(r"Unresolved extern function '(?P<name>\S+?)'"),
        "it calls the function '{name}', which it does not define",
        "link what defines it into the PTX (compile without -rdc=true, or from one file); the driver knows printf's "
        "vprintf, malloc, free and __assertfail only",
    ),
    _Complaint(
        re.compile(r"Feature '(?P<feature>[^']+)' requires .target (?P<target>\S+) or higher"),
        "it uses {feature}, which needs .target {target} or higher",
        "compile it for {target}",
    ),
    _Complaint(
        re.compile(r"Feature '(?P<feature>[^']+)' requires PTX ISA .version (?P<version>[0-9.]+) or later"),
        "it uses {feature}, which needs .version {version} or later",
        "compile it with a newer toolkit, or correct its .version",
    ),
)  # fmt: skip


def complaint(log: str) -> Story | None:
    """What the JIT's log says in words that are known here, if it does."""
    for each in _COMPLAINTS:
        match = each.pattern.search(log)
        if match is not None:
            groups = {k: int(v, 16) if v.startswith("0x") else v for k, v in match.groupdict().items()}
            return Story(each.words.format(**groups), each.hint.format(**groups))
    return None
