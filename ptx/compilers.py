"""Makes PTX with nvcc and Triton that is the same on every machine.

Shared by ptx/regenerate.py, tests/corpus/regenerate.py and tests/unseen/regenerate.py. Compilers run with the
repository's root as their working directory and get source paths relative to it, so that `.file` and the DWARF sections
name no machine. What still does (nvcc makes every path absolute, Triton names its own installation) is rewritten, and a
text that names this machine after that is refused.

A C, CUDA or OpenCL source says how it is compiled in comment lines: `// targets: sm_80 sm_90` (default: sm_80) and
`// flags: …`. The first target's PTX is NAME.ptx, any other's NAME.TARGET.ptx.

A Triton sample file holds kernels and a list SAMPLES of dicts:

    kernel      name of the function
    signature   every argument in order: a Triton type, or "constexpr"
    constexprs  value of each constexpr argument
    options     compile options: num_warps, num_ctas, num_stages, maxnreg, ...
    name        stem of the files made                      (default: the kernel's name)
    sm          target architecture                         (default: 80)
    unaligned   pointers not promised to be 16-byte aligned (default: none of them)
    multiples   integers promised to be multiples of 16     (default: none of them)
    versions    releases of Triton that compile it          (default: TRITON_RELEASE alone)

A Numba sample file holds functions and a list SAMPLES of (name of the file made, function, signature, compile options).

Imports the standard library; Triton and Numba only through importlib, when a sample of theirs is compiled.
"""

import contextlib
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

NVCC_RELEASE = "13.0"
CLANG_RELEASE = "19"
TRITON_RELEASE = "3.9"  # the release that a sample without `versions` is compiled by

PTXAS_VERSION = (9, 0)  # the newest `.version` that ptxas of CUDA 13.0 reads
PTX_VERSION = (8, 7)  # newest `.version` that committed PTX for a target that it knows may ask for
NEUTRAL_FOLDER = "sources/of/this/repository/padded......"  # in DWARF, in place of a folder of the same length

_VERSION_LINE = re.compile(r"^(\.version\s+)(\d+)\.(\d+)", re.MULTILINE)
_FILE_LINE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"]*)(".*)$', re.MULTILINE)
_INTERNAL_NAME = re.compile(r"_INTERNAL_([0-9a-f]{8})_\d+_")
_BYTE_LINE = re.compile(r"\s*\.b8 (\d+(?:,\d+)*)")


class RegenerationError(Exception):
    """A compiler is missing, refused its input, or wrote something that must not be committed."""


@dataclass(frozen=True)
class TritonSample:
    """One compiled Triton kernel: the stem of its files, the PTX, and its metadata as JSON text."""

    name: str
    ptx: str
    metadata: str


def require_tool(name: str, what_for: str) -> str:
    """The path of an executable; raises RegenerationError when it is not on PATH."""
    path = shutil.which(name)
    if path is None:
        raise RegenerationError(f"{name} is not on PATH: {what_for}")
    return path


def require_triton() -> Any:
    """The imported triton package; raises RegenerationError when this Python has none."""
    try:
        triton = importlib.import_module("triton")
    except ImportError:
        triton = None
    if not hasattr(triton, "compile"):  # a folder named triton on the path imports too, as an empty namespace
        raise RegenerationError(
            f"{sys.executable} has no Triton: install Triton {TRITON_RELEASE} into a virtual environment "
            "and run this script with its Python; neither PyTorch nor a GPU driver is needed"
        )
    return triton


def nvcc_ptx(source: Path, target: str, flags: Iterable[str] = (), *, version: tuple[int, int] | None = None) -> str:
    """PTX of a CUDA source for a target such as "sm_80", with its `.version` lowered to `version` if that is older."""
    nvcc = require_tool("nvcc", f"install the CUDA toolkit {NVCC_RELEASE}")
    flags = list(flags)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.ptx"
        cwd, given = ROOT, str(source.relative_to(ROOT))
        if "-G" in flags:  # DWARF holds the source's folder byte by byte, so its length must not vary
            cwd = Path(folder) / ("x" * (len(NEUTRAL_FOLDER) - len(folder) - 1))
            cwd.mkdir()
            given = source.name
            for name in (given, *re.findall(r'^#include "([\w.]+)"', source.read_text(), re.MULTILINE)):
                shutil.copy(source.with_name(name), cwd / name)
        arch = target.replace("sm_", "compute_")
        _call([nvcc, "-ptx", "-std=c++17", f"-arch={arch}", *flags, given, "-o", str(out)], cwd)
        text = out.read_text()
        if "-G" in flags:
            text = _replace_bytes(text, str(cwd), NEUTRAL_FOLDER).replace(str(cwd), NEUTRAL_FOLDER)
    for path_hash in set(_INTERNAL_NAME.findall(text)):  # of the source's whole path
        text = text.replace(path_hash, "0" * len(path_hash))
    if version is not None:
        text = lower_version(text, version)
    return neutral(text)


def clang_ptx(source: Path, target: str, flags: Iterable[str] = ()) -> str:
    """PTX of a source in CUDA, OpenCL C or plain C, made by clang without the CUDA toolkit."""
    clang = require_tool(f"clang-{CLANG_RELEASE}", "install the package of that name of Debian or of LLVM")
    if source.suffix == ".cu":
        mode = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", f"--cuda-gpu-arch={target}"]
        mode += ["--cuda-feature=+ptx75"]
    else:
        # A toolkit that is found would raise the PTX version to its own.
        mode = ["--target=nvptx64-nvidia-cuda", "-nogpulib", "--cuda-path=/nowhere", f"-march={target}"]
        mode += ["-Xclang", "-target-feature", "-Xclang", "+ptx75"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.ptx"
        given = str(source.relative_to(ROOT))
        _call([clang, *mode, "-S", "-O2", *flags, given, "-o", str(out)], ROOT)
        return neutral(out.read_text())


def numba_samples(source: Path) -> Iterator[tuple[str, str]]:
    """The name and PTX of each sample of one file, with its `.version` lowered to what ptxas reads."""
    try:
        cuda = importlib.import_module("numba.cuda")
    except ImportError as error:
        raise RegenerationError(f"{sys.executable} has no numba-cuda: {error}") from error
    sys.path.insert(0, str(source.parent))
    for name, function, signature, options in importlib.import_module(source.stem).SAMPLES:
        text, _ = cuda.compile_ptx(function, signature, cc=(8, 0), **options)
        yield name, neutral(lower_version(text, PTXAS_VERSION))


def compilations(folder: Path) -> Iterator[tuple[Path, str, list[str], Path]]:
    """Every (source, target, flags, output) of a folder of C, CUDA and OpenCL sources."""
    for source in sorted(path for path in folder.iterdir() if path.suffix in (".c", ".cl", ".cu")):
        flags = _directive(source, "flags", "")
        for i, target in enumerate(_directive(source, "targets", "sm_80")):
            yield source, target, flags, source.with_suffix(f".{target}.ptx" if i else ".ptx")


def _directive(source: Path, key: str, default: str) -> list[str]:
    match = re.search(rf"^// {key}: (.*)$", source.read_text(), re.MULTILINE)
    return (match[1] if match else default).split()


def triton_samples(source: Path) -> Iterator[TritonSample]:
    """Compiles the samples of one file that are meant for the running release of Triton."""
    triton = require_triton()
    release = ".".join(triton.__version__.split(".")[:2])
    given = source.relative_to(ROOT).as_posix()
    # co_filename must be relative: Triton takes the path in `.file` and in DWARF from it.
    module: dict[str, Any] = {"__name__": source.stem, "__file__": given}
    with contextlib.chdir(ROOT):
        exec(compile(source.read_text(), given, "exec"), module)
        for sample in module["SAMPLES"]:
            if release not in sample.get("versions", [TRITON_RELEASE]):
                continue
            name = sample.get("name", sample["kernel"])
            if release != TRITON_RELEASE:
                name += f".triton-{release}"
            try:
                ptx, metadata = _compile_triton(triton, module[sample["kernel"]], sample)
            except Exception as error:
                raise RegenerationError(f"{given}: {name}: {error}") from error
            yield TritonSample(name, neutral(ptx), metadata)


def _compile_triton(triton: Any, kernel: Any, sample: Mapping[str, Any]) -> tuple[str, str]:
    compiler = importlib.import_module("triton.compiler")
    backends = importlib.import_module("triton.backends.compiler")
    signature = dict(sample["signature"])
    constexprs = dict(sample.get("constexprs", {}))
    pointers = {name for name, type_ in signature.items() if type_[0] == "*"}
    promised = pointers.difference(sample.get("unaligned", ())).union(sample.get("multiples", ()))
    aligned = [i for i, name in enumerate(signature) if name in promised]
    newest = 86
    if "constexprs" in inspect.signature(compiler.ASTSource.__init__).parameters:
        attrs: Any = {(i,): [["tt.divisibility", 16]] for i in aligned}
        ast = compiler.ASTSource(fn=kernel, signature=signature, constexprs=constexprs, attrs=attrs)
    else:  # up to 3.2
        newest = 84  # its own ptxas reads no newer PTX
        attrs = backends.AttrsDescriptor.from_hints(dict.fromkeys(aligned, 16))
        run_time = {name: type_ for name, type_ in signature.items() if type_ != "constexpr"}
        ast = compiler.ASTSource(fn=kernel, signature=run_time, constants=constexprs, attrs=attrs)
    options = {"ptx_version": newest, "enable_fp_fusion": True, **sample.get("options", {})}
    target = backends.GPUTarget("cuda", sample.get("sm", 80), 32)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        compiled = triton.compile(ast, target=target, options=options)
        written = next(Path(cache).rglob(f"{sample['kernel']}.json")).read_text()
    return compiled.asm["ptx"], _portable_metadata(json.loads(written))


def _portable_metadata(metadata: dict[str, Any]) -> str:
    """The cache's JSON less its hash (it covers the compiler's installation), with library paths cut short."""
    metadata.pop("hash", None)
    libraries = metadata.get("extern_libs", [])
    metadata["extern_libs"] = [[name, _shorten(path)] for name, path in libraries]
    return neutral(json.dumps(metadata, indent=2, sort_keys=True) + "\n")


def lower_version(text: str, version: tuple[int, int]) -> str:
    """The text with its `.version` replaced by `version` where it asks for a newer one."""

    def replace(match: re.Match[str]) -> str:
        if (int(match[2]), int(match[3])) <= version:
            return match[0]
        return f"{match[1]}{version[0]}.{version[1]}"

    return _VERSION_LINE.sub(replace, text, count=1)


def neutral(text: str) -> str:
    """The text with machine paths shortened; raises RegenerationError if it still names this machine."""
    text = _FILE_LINE.sub(lambda match: match[1] + _shorten(match[2]) + match[3], text)
    for path in {str(ROOT), str(Path.home()), sys.prefix, sys.base_prefix, tempfile.gettempdir()}:
        if path in text or path.encode() in bytes(_section_bytes(text)):
            raise RegenerationError(f"the output names a folder of this machine: {path}")
    return text


def _shorten(path: str) -> str:
    """A path relative to the repository, to Triton's or LLVM's package, or to the CUDA toolkit."""
    path = os.path.normpath(path)
    if path.startswith(f"{ROOT}{os.sep}"):
        return path[len(str(ROOT)) + 1 :]
    for marker, prefix in (("/site-packages/", ""), ("/include/", "cuda/include/"), ("/lib/clang/", "clang/")):
        if path.startswith(os.sep) and marker in path:
            return prefix + path.split(marker, 1)[1]
    return path


def _section_bytes(text: str) -> list[int]:
    return [int(number) & 255 for line in _BYTE_LINE.findall(text) for number in line.split(",")]


def _replace_bytes(text: str, old: str, new: str) -> str:
    """Replaces a string, by one of the same length, in runs of `.b8` lines."""
    if len(old) != len(new):
        raise ValueError(f"{old!r} and {new!r} differ in length")
    lines = text.split("\n")
    rows = [(i, match[1].split(",")) for i, line in enumerate(lines) if (match := _BYTE_LINE.fullmatch(line))]
    values = bytes(int(number) & 255 for _, numbers in rows for number in numbers)
    changed = values.replace(old.encode(), new.encode())
    at = 0
    for i, numbers in rows:
        row = changed[at : at + len(numbers)]
        if row != values[at : at + len(numbers)]:
            lines[i] = ".b8 " + ",".join(map(str, row))
        at += len(numbers)
    return "\n".join(lines)


def check_with_ptxas(text: str, target: str, *, relocatable: bool = False) -> None:
    """Raises RegenerationError with ptxas's own words when it refuses the text.

    A relocatable one may call functions and read variables that other files define.
    """
    options = ["--compile-only"] if relocatable else []
    ptxas = require_tool("ptxas", f"install the CUDA toolkit {NVCC_RELEASE}")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in.ptx"
        source.write_text(text)
        _call([ptxas, f"-arch={target}", *options, str(source), "-o", os.devnull], Path(folder))


def target_of(text: str) -> str:
    """The architecture that the text's `.target` names, such as "sm_90a"."""
    match = re.search(r"\.target\s+(\w+)", re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL))
    if match is None:
        raise RegenerationError("the text has no .target")
    return match[1]


def write_if_changed(path: Path, text: str) -> None:
    """Writes a file and says so; leaves one that already holds the text alone."""
    data = text.encode()
    if path.exists() and path.read_bytes() == data:
        return
    path.write_bytes(data)
    print(f"wrote {path.relative_to(ROOT)}")


def run_parts(parts: Mapping[str, Callable[[], None]], names: Sequence[str], folder: str) -> int:
    """Runs the named parts, or all; exit status 0, 1 when one could not be made, 2 for a name that is no part's."""
    unknown = [name for name in names if name not in parts]
    if unknown:
        print(f"unknown part {unknown[0]!r}: there are {', '.join(parts)}", file=sys.stderr)
        return 2
    status = 0
    for name in names or list(parts):
        try:
            parts[name]()
        except RegenerationError as error:
            print(f"{folder}/{name} was not regenerated: {error}", file=sys.stderr)
            status = 1
    return status


def _call(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RegenerationError(f"{' '.join(command)}\n{done.stdout}{done.stderr}".rstrip())
