"""What a CUresult means for the launch at hand: the driver's number and what we know, as an error with cause and cure.

Pure. May import ``arch``, ``errors``, ``exits``, ``launch.plan``, ``ptx.model``, ``releases``; of its own house
``gpu``, ``stories`` and ``driver`` (its error).
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from teenycli.arch import Limits, parse_target, takes_target, target_rule
from teenycli.devices.cuda.driver import NEEDS_NEWER_DRIVER, DriverError
from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.stories import CAUSES, REFUSALS, SINCE, complaint
from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.exits import Exit
from teenycli.launch.plan import Launch
from teenycli.ptx.model import Function, Module, Triple
from teenycli.releases import Version, dotted, driver_takes, newest_ptx, too_new

_ONE: Triple = (1, 1, 1)
#: What an unsigned int and an int of the driver's interface hold.
_UINT, _INT = 2**32 - 1, 2**31 - 1

OUT_OF_MEMORY = 2
_INVALID_CLUSTER_SIZE = 912
#: What a fault means for all that was to come.
CONTEXT_GONE = "the GPU's context is gone with it: nothing more can run in this process, which ends"


class Facts(Struct, frozen=True):
    """What is known of a loaded kernel. Sizes in bytes.

    ``max_threads`` is the most threads a CTA of it may have, given its ``registers`` a thread; ``resident`` the most
    CTAs of the launch at hand that the GPU holds at once, None when nobody asked. ``places_cluster``: whether it can
    place the launch's cluster, as far as that is known.
    """

    limits: Limits
    static_shared: int = 0
    max_threads: int | None = None
    registers: int | None = None
    resident: int | None = None
    places_cluster: bool = True


# --- loading -----------------------------------------------------------------------------------------------------


def unknown_entry(module: Module, entry: str) -> TeenyError:
    """``entry`` is none of the module's."""
    names = [function.name for function in module.entries]
    there = ", ".join(names) if names else "none"
    hint = did_you_mean(entry, names)
    message = f"there is no entry '{entry}'; those there: {there}"
    return TeenyError("unknown-entry", message, where=_file(module), hint=hint)


def wrong_target(module: Module, gpu: Gpu) -> TeenyError:
    """The GPU is not of an architecture that the module's ``.target`` takes."""
    id, message, hint = _target_story(module, gpu)
    return TeenyError(id, message, where=_file(module), hint=hint, exit=Exit.UNSUPPORTED)


def load_error(failure: DriverError, module: Module, entry: str, gpu: Gpu) -> TeenyError:
    """The driver could not make ``entry`` ready; exit UNSUPPORTED."""
    id, message, hint = _load_story(failure.code, module, entry, gpu)
    said = complaint(failure.log) if id == "invalid-ptx" else None
    if said is not None:
        message, hint = f"the driver cannot compile this PTX for {gpu}: {said.words}", said.hint
    return _with_driver(id, message, failure, _file(module, _logged_line(failure.log)), hint)


#: Id, message, hint.
_Story = tuple[str, str, str | None]


def _load_story(code: int, module: Module, entry: str, gpu: Gpu) -> _Story:
    match code:
        case 2:
            hint = "free the GPU of other processes (nvidia-smi lists them)"
            return "out-of-memory", f"the memory of {gpu} does not hold the module", hint
        case 209:
            return _target_story(module, gpu)
        case 218 if module.source.image is None and not driver_takes(module.version, gpu.cuda):
            return _version_story(module, gpu)
        case 200 | 218 if module.source.image is not None:
            hint = "a newer toolkit's code takes a newer driver; the PTX is compiled by the driver: nvcc -ptx"
            have = f"the driver of {gpu}, of CUDA {dotted(gpu.cuda)},"
            return "invalid-ptx", f"{have} takes this machine code for no code that it can run", hint
        case 200 | 218 | 300 | 302 | 303:
            hint = "the driver's log names the line; --device cpu reads the text by itself"
            return "invalid-ptx", f"the driver cannot compile this PTX for {gpu}", hint
        case 221:
            hint = "install all of the driver; a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility"
            return "no-jit", "the driver's PTX compiler (libnvidia-ptxjitcompiler) is not installed", hint
        case 222:
            return _version_story(module, gpu)
        case 223:
            hint = "unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT"
            return "no-jit", "compiling PTX is switched off in this environment", hint
        case 500:
            return "unknown-entry", f"the driver finds no entry '{entry}' in the module it compiled", None
        case _:
            story = CAUSES.get(code)
            message = f"the driver failed to load '{entry}' on {gpu}"
            return ("cuda-driver", f"{message}: {story.words}", story.hint) if story else ("cuda-driver", message, None)


def _target_story(module: Module, gpu: Gpu) -> _Story:
    target, is_code = parse_target(module.target), module.source.image is not None
    if not takes_target(target, gpu.sm):
        message = f"this {'file' if is_code else 'PTX'} is for {target}, which runs on {target_rule(target)}; "
        instead = "give the PTX, of which the driver makes code (nvcc -ptx)" if is_code else "run it with --device cpu"
        return "target-architecture", f"{message}{gpu} is not that", f"compile it for sm_{gpu.sm}, or {instead}"
    if is_code:
        message = f"the driver finds no code for {gpu} in this file, which is for {target}"
        return "target-architecture", message, "give the PTX: nvcc -ptx, or cuobjdump -ptx FILE"
    return "target-architecture", f"the driver makes no code of this PTX, which is for {target}, for {gpu}", None


def _version_story(module: Module, gpu: Gpu) -> _Story:
    """The module's ``.version`` is too new for the driver."""
    wanted, have = f"PTX {dotted(module.version)}", f"the driver of {gpu.name} is of CUDA {dotted(gpu.cuda)}"
    newest = newest_ptx(gpu.cuda)
    if newest is None or module.version <= newest:
        return "ptx-version", f"{have} and refuses {wanted}", "update the driver"
    message, hint = too_new(module.version, have, newest)
    return "ptx-version", message, hint


_LOGGED_LINE = re.compile(r"line (\d+); (?:error|fatal)")


def _logged_line(log: str) -> int:
    """The first line of PTX that the JIT complains of, 0 when it names none."""
    match = _LOGGED_LINE.search(log)
    return int(match[1]) if match else 0


# --- launching ---------------------------------------------------------------------------------------------------


def shape(triple: Triple) -> str:
    """``(128, 1, 1)`` as ``128x1x1``."""
    return "x".join(map(str, triple))


def launch_refused(
    launch: Launch, module: Module, entry: Function, facts: Facts, failure: DriverError | None = None
) -> TeenyError:
    """The launch was refused, by us before the call when ``failure`` is None. Names every mismatch that we know of."""
    if failure is not None and failure.code == _INVALID_CLUSTER_SIZE:
        facts = replace(facts, places_cluster=False)
    reasons = mismatches(launch, entry, facts)
    title = f"launch {launch.index} of '{launch.entry}'"
    where = Place(module.source.name, entry.at.line, entry.at.column)
    if reasons:
        message = f"{title} cannot be: {'; '.join(reasons)}"
        hint: str | None = None
    else:
        message = (
            f"the driver refused {title} with grid {shape(launch.grid)}, block {shape(launch.block)}, "
            f"cluster {shape(launch.cluster)}, {launch.shared:,} bytes of dynamic shared memory"
        )
        story = REFUSALS.get(failure.code, REFUSALS[1]) if failure else REFUSALS[1]
        message, hint = f"{message}: {story.words}", story.hint
    if failure is None:
        return TeenyError("launch-refused", message, where=where, hint=hint, exit=Exit.FAILED)
    return _with_driver("launch-refused", message, failure, where, hint, Exit.FAILED)


def representable(launch: Launch, entry: Function) -> bool:
    """Whether the driver's interface has room for the launch's numbers at all, so that it can judge them itself."""
    if any(not 0 <= n <= _UINT for n in (*launch.grid, *launch.block, *launch.cluster)):
        return False
    if not 0 <= launch.shared <= _INT:
        return False
    clusters = zip(launch.grid, launch.cluster, strict=True)
    return not entry.directives.blocksareclusters or all(part and extent % part == 0 for extent, part in clusters)


def mismatches(launch: Launch, entry: Function, facts: Facts) -> list[str]:
    """Every way in which the launch goes against the kernel's directives or the device's limits, both sides named."""
    return [*_block_mismatches(launch, entry, facts), *_grid_mismatches(launch, entry, facts), *_shared(launch, facts)]


def _block_mismatches(launch: Launch, entry: Function, facts: Facts) -> list[str]:
    found = []
    block, threads = shape(launch.block), launch.threads
    limits, rules = facts.limits, entry.directives
    if min(launch.block) < 1:
        found.append(f"block {block} has a dimension below 1")
    if rules.reqntid is not None and launch.block != rules.reqntid:
        found.append(f"block {block}, but the kernel demands {shape(rules.reqntid)} (.reqntid)")
    if rules.maxntid is not None and threads > _product(rules.maxntid):
        found.append(f"block {block} is {threads} threads, but the kernel allows {_product(rules.maxntid)} (.maxntid)")
    if threads > limits.threads_per_block:
        found.append(f"block {block} is {threads} threads, but the device allows {limits.threads_per_block}")
    elif facts.max_threads is not None and threads > facts.max_threads and not found:
        registers = "" if facts.registers is None else f" with {facts.registers} registers a thread"
        found.append(f"block {block} is {threads} threads, but the kernel{registers} has room for {facts.max_threads}")
    if _exceeds(launch.block, limits.block):
        found.append(f"block {block}, but the device allows {shape(limits.block)}")
    return found


def _grid_mismatches(launch: Launch, entry: Function, facts: Facts) -> list[str]:
    found = []
    grid, cluster = shape(launch.grid), shape(launch.cluster)
    limits, rules = facts.limits, entry.directives
    if min(launch.grid) < 1:
        found.append(f"grid {grid} has a dimension below 1")
    if _exceeds(launch.grid, limits.grid):
        found.append(f"grid {grid}, but the device allows {shape(limits.grid)}")
    if min(launch.cluster) < 1:
        return [*found, f"cluster {cluster} has a dimension below 1"]
    if any(extent % part for extent, part in zip(launch.grid, launch.cluster, strict=True)):
        found.append(f"grid {grid} (in CTAs) is no multiple of cluster {cluster}")
    required = rules.reqnctapercluster
    if required is not None and launch.cluster not in (required, _ONE):
        found.append(f"cluster {cluster}, but the kernel demands {shape(required)} (.reqnctapercluster)")
    size = _product(launch.cluster)
    most = rules.maxclusterrank
    if most is not None and size > most:
        found.append(f"cluster {cluster} is {size} CTAs, but the kernel allows {most} (.maxclusterrank)")
    if size > limits.cluster and (limits.cluster == 1 or not facts.places_cluster):
        found.append(f"cluster {cluster} is {size} CTAs, but the device promises no more than {limits.cluster}")
    if launch.cooperative and facts.resident is not None and launch.ctas > facts.resident:
        found.append(f"a cooperative grid of {launch.ctas} CTAs, but the device holds {facts.resident} of them at once")
    return found


def _shared(launch: Launch, facts: Facts) -> list[str]:
    total, most = facts.static_shared + launch.shared, facts.limits.shared_optin
    if launch.shared < 0:
        return [f"{launch.shared} bytes of dynamic shared memory"]
    if total <= most:
        return []
    static = f" less {facts.static_shared:,} static" if facts.static_shared else ""
    return [f"it needs {launch.shared:,} bytes of dynamic shared memory, the device allows {most:,}{static}"]


def _exceeds(extents: Triple, limits: Triple) -> bool:
    return any(extent > limit for extent, limit in zip(extents, limits, strict=True))


def _product(triple: Triple) -> int:
    return triple[0] * triple[1] * triple[2]


# --- while it runs -----------------------------------------------------------------------------------------------


class _Fault(Struct, frozen=True):
    id: str
    words: str
    hint: str | None = None


_FIND_ACCESS = "run it with --device cpu, which names the access: the line, the thread, the buffer"
_FIND_PLACE = "run it with --device cpu, which names the line and the thread"
_HARDWARE = "this is the hardware's fault, not the kernel's; see nvidia-smi and the system's log"

#: CUresults that a running kernel leaves behind: each ends the context (CUDA Driver API, CUresult).
FAULTS = {
    214: _Fault("hardware", "met an uncorrectable memory error (ECC)", _HARDWARE),
    220: _Fault("hardware", "met an uncorrectable NVLink error", _HARDWARE),
    226: _Fault("hardware", "met an error that the GPU has contained", _HARDWARE),
    700: _Fault("out-of-bounds", "accessed memory that is not there (illegal address)", _FIND_ACCESS),
    702: _Fault("launch-timeout", "was stopped by the system's watchdog for GPUs that drive a display",
                "give it less work a launch, or a GPU without a display"),
    710: _Fault("assertion", "failed an assertion, which the driver has printed"),
    714: _Fault("hardware-stack", "overflowed or corrupted its call stack", _FIND_PLACE),
    715: _Fault("illegal-instruction", "executed an illegal instruction, as trap is on some GPUs", _FIND_PLACE),
    716: _Fault("misaligned", "accessed memory at an address that the access's width does not divide", _FIND_ACCESS),
    717: _Fault("address-space", "accessed memory through an address of the wrong state space", _FIND_ACCESS),
    718: _Fault("invalid-pc", "jumped to an address that holds no code", _FIND_PLACE),
    719: _Fault("launch-failed", "failed: a trap, or a fault that the hardware does not name", _FIND_ACCESS),
    721: _Fault("tensor-memory-leak", "ended without giving its tensor memory back (tcgen05.dealloc)", _FIND_PLACE),
    999: _Fault("launch-failed", "failed for a reason that the driver does not name", _FIND_ACCESS),
}  # fmt: skip
#: After these no call is of any use: CONTEXT_IS_DESTROYED and MPS_CLIENT_TERMINATED are no fault of a launch of ours.
ENDS = frozenset({*FAULTS, 709, 810})


def fault(failure: DriverError, launch: Launch, module: Module, entry: Function) -> TeenyError:
    """A fault of the kernel, pinned to the launch that was running. ``failure.code`` is one of FAULTS."""
    row = FAULTS[failure.code]
    where = Place(module.source.name, entry.at.line, entry.at.column)
    message = f"{_running(launch)} {row.words}"
    return _with_driver(row.id, message, failure, where, row.hint, Exit.FAILED, CONTEXT_GONE)


def _running(launch: Launch) -> str:
    return f"launch {launch.index} of '{launch.entry}' (grid {shape(launch.grid)}, block {shape(launch.block)})"


def timed_out(launch: Launch, seconds: float) -> TeenyError:
    """The launch has not ended in time. It cannot be stopped."""
    return TeenyError(
        "timeout",
        f"{_running(launch)} has not ended within {seconds:g} s",
        hint="--timeout SECONDS gives it longer, 0 any time; --device cpu names the block and the line it hangs at",
        note="a kernel on a GPU cannot be stopped: it ends when this process does",
        exit=Exit.FAILED,
    )


def out_of_memory(failure: DriverError, what: str, nbytes: int, memory: tuple[int, int] | None) -> TeenyError:
    """``what`` does not fit; ``memory`` is free and total bytes of the device, None when it does not say."""
    have = "" if memory is None else f"; {memory[0]:,} of the device's {memory[1]:,} are free"
    hint = "use smaller dims, or free the GPU of other processes (nvidia-smi lists them)"
    return _with_driver("out-of-memory", f"{what} needs {nbytes:,} bytes{have}", failure, None, hint)


def failed(failure: DriverError, doing: str, cuda: Version | None = None) -> TeenyError:
    """A failure that no launch explains; exit UNSUPPORTED when the driver, which is of ``cuda``, lacks the function."""
    if failure.code == NEEDS_NEWER_DRIVER:
        message, hint = _too_old(failure.call, doing, cuda)
        return _with_driver("cuda-driver", message, failure, None, hint)
    message = f"the CUDA driver failed while {doing}"
    if failure.code in FAULTS:
        # Nobody waited for a launch here: what met the fault is an earlier one, or the GPU itself.
        met = f"{message}: a kernel, or the GPU, has met a fault"
        return _with_driver("cuda-driver", met, failure, None, FAULTS[failure.code].hint, Exit.FAILED, CONTEXT_GONE)
    story = CAUSES.get(failure.code)
    if story is None:
        return _with_driver("cuda-driver", message, failure, None, None, Exit.FAILED)
    return _with_driver("cuda-driver", f"{message}: {story.words}", failure, None, story.hint, Exit.FAILED)


def _too_old(call: str, doing: str, cuda: Version | None) -> tuple[str, str]:
    """Message and hint for a driver that lacks the function ``call``."""
    since = SINCE.get(call)
    if since is None or cuda is None:
        return f"the CUDA driver is too old for {doing}", "update the driver"
    needs = f"{call} takes a driver of CUDA {dotted(since)} or later, and this one is of CUDA {dotted(cuda)}"
    return f"the CUDA driver is too old for {doing}: {needs}", "update the driver, or run it with --device cpu"


def cannot_open(failure: DriverError, name: str) -> TeenyError:
    """The device ``name`` cannot be opened; exit NO_DEVICE."""
    story = CAUSES.get(failure.code)
    message = f"{name} cannot be opened: {story.words}" if story else f"{name} cannot be opened: {failure}"
    hint = story.hint if story and story.hint else "nvidia-smi shows who uses it, and in what mode"
    return _with_driver("no-device", message, failure, None, hint, Exit.NO_DEVICE)


def _with_driver(
    id: str,
    message: str,
    failure: DriverError,
    where: Place | None,
    hint: str | None,
    exit: Exit = Exit.UNSUPPORTED,
    more: str | None = None,
) -> TeenyError:
    """The error, with the driver's own words beneath, and ``more`` after them."""
    note = f"{failure.call} says {failure.name} ({failure.code})" + (f": {failure.words}" if failure.words else "")
    if more is not None:
        note += f"\n{more}"
    if failure.log:
        note += f"\nthe driver's log:\n{failure.log}"
    return TeenyError(id, message, where=where, hint=hint, note=note, exit=exit)


def _file(module: Module, line: int = 0) -> Place:
    return Place(module.source.name, line)
