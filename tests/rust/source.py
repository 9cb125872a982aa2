"""Rust written for tests: impls of ``RuntimeOp`` around the bodies of the methods that pack arguments."""

from __future__ import annotations

from pathlib import Path

from teenycli.rust import Packing, RustFile, read_rust

#: Parameters of the packing methods, without ``&self`` and the visitor.
FORWARD = (
    "inputs: &[(RawPtr, &[usize])], params: &[RawPtr], output: RawPtr, output_shape: &[usize], output_row_stride: i32"
)
BACKWARD = (
    "inputs: &[(RawPtr, &[usize])], params: &[RawPtr], output: RawPtr, output_shape: &[usize], grad_output: RawPtr, "
    "grad_output_row_stride: i32, grad_inputs: &[RawPtr], grad_params: &[RawPtr]"
)


def method(name: str, body: str) -> str:
    """A method that packs arguments; the first line of ``body`` is the one after its own."""
    index = "launch_idx: usize, " if name.endswith("_for_launch") else ""
    parameters = BACKWARD if "backward" in name else FORWARD
    return f"    fn {name}(&self, {index}{parameters}, visitor: &mut dyn ArgVisitor) {{\n{body}\n    }}\n"


def impl(name: str, *methods: str) -> str:
    return f"impl<D: Num + Send + Sync> teeny_core::model::RuntimeOp for {name}<D> {{\n{''.join(methods)}}}\n"


def packing(folder: Path, body: str, *, after: str = "") -> Packing:
    """``pack_args`` with the body, as it is read; ``after`` stands behind the impl."""
    file = read(folder, impl("Op", method("pack_args", body)) + after)
    return file.impls[0].packings[0]


def read(folder: Path, text: str | bytes) -> RustFile:
    path = folder / "op.rs"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return read_rust(str(path))
