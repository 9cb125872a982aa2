from __future__ import annotations

import io
import os
import stat
import struct
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.tensors.convert import Array, numpy_dtype
from teenycli.tensors.files import FileRef, Save, check_saves, keys, load, parse_file, save_all

pytestmark = pytest.mark.unit

F32 = DTYPES["f32"]


def ref(text: str) -> FileRef:
    parsed = parse_file(text)
    assert parsed is not None
    return parsed


def loaded(text: str, folder: Path, shape: tuple[int, ...], name: str = "f32") -> Array:
    return load(ref(text), folder, DTYPES[name], shape)


def refusal(text: str, folder: Path, shape: tuple[int, ...] = (2,), name: str = "f32") -> TeenyError:
    with pytest.raises(TeenyError) as caught:
        loaded(text, folder, shape, name)
    assert caught.value.exit is Exit.UNUSABLE
    return caught.value


def saved(text: str, name: str, array: Array, folder: Path, output: str = "out") -> Path:
    (path,) = save_all([Save(output, ref(text), DTYPES[name], array)], folder)
    return path


class TestNpy:
    @pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<i2", ">u8", "?"])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_what_numpy_saved(self, tmp_path: Path, dtype: str, order: Any) -> None:
        array = np.arange(24).reshape(2, 3, 4).astype(dtype, order=order)
        np.save(tmp_path / "a.npy", array)
        out = loaded("a.npy", tmp_path, (2, 3, 4))
        assert out.dtype == array.dtype
        assert np.array_equal(out, array)

    @pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
    def test_every_version_of_the_format(self, tmp_path: Path, version: tuple[int, int]) -> None:
        with (tmp_path / "a.npy").open("wb") as stream:
            np.lib.format.write_array(stream, np.array([1.5, 2.5]), version=version)
        assert loaded("a.npy", tmp_path, (2,)).tolist() == [1.5, 2.5]

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
    def test_small_shapes(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        np.save(tmp_path / "a.npy", np.ones(shape))
        assert loaded("a.npy", tmp_path, shape).shape == shape

    def test_wrong_shape_has_both_in_the_message(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.ones((3, 4)))
        error = refusal("a.npy", tmp_path, (4, 3))
        assert error.finding.id == "array-shape"
        assert error.finding.message == "a.npy: its shape is [3, 4], not [4, 3]"
        assert "reshape" in str(error.finding.hint)

    def test_pickled_objects_are_refused_unread(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.array([{}, []], object), allow_pickle=True)
        assert refusal("a.npy", tmp_path).finding.id == "element-type"

    def test_records_are_refused(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.zeros(2, [("a", "f4"), ("b", "i4")]))
        assert refusal("a.npy", tmp_path).finding.id == "element-type"

    def test_a_huge_shape_costs_nothing(self, tmp_path: Path) -> None:
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }\n"
        (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        assert "[1000000000000000], not [2]" in refusal("a.npy", tmp_path).finding.message

    def test_data_cut_off(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.ones(2))
        whole = (tmp_path / "a.npy").read_bytes()
        (tmp_path / "a.npy").write_bytes(whole[:-3])
        assert refusal("a.npy", tmp_path).finding.message == "a.npy: its data ends after 13 bytes of 16"

    def test_a_key_is_out_of_place(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.ones(2))
        assert refusal("a.npy:x", tmp_path).finding.id == "file-key"

    def test_a_type_whose_name_numpy_deprecates_is_refused_without_its_warning(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.ones(2, np.float32))
        data = (tmp_path / "a.npy").read_bytes()
        (tmp_path / "a.npy").write_bytes(data.replace(b"'<f4'", b"'|a4'"))
        assert refusal("a.npy", tmp_path, (2,)).finding.id == "element-type"

    @settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(0, 140), st.binary(min_size=1, max_size=6))
    def test_damage_is_an_error_or_harmless(self, tmp_path: Path, at: int, noise: bytes) -> None:
        stream = io.BytesIO()
        np.save(stream, np.ones(2, np.float32))
        data = bytearray(stream.getvalue())
        data[at : at + len(noise)] = noise
        (tmp_path / "a.npy").write_bytes(data)
        with suppress(TeenyError):
            loaded("a.npy", tmp_path, (2,))


class TestNpz:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        np.savez(tmp_path / "two.npz", anchor_x=np.arange(2.0), anchor_y=np.arange(3))
        np.savez_compressed(tmp_path / "one.npz", only=np.arange(2.0))
        return tmp_path

    def test_by_key(self, folder: Path) -> None:
        assert loaded("two.npz:anchor_y", folder, (3,)).tolist() == [0, 1, 2]
        assert keys(ref("two.npz"), folder) == ["anchor_x", "anchor_y"]

    def test_the_only_one_needs_no_key(self, folder: Path) -> None:
        assert loaded("one.npz", folder, (2,)).tolist() == [0, 1]

    def test_several_need_a_key(self, folder: Path) -> None:
        error = refusal("two.npz", folder)
        assert error.finding.message == "two.npz: which array? it holds anchor_x, anchor_y"
        assert error.finding.hint == "write two.npz:anchor_x"

    def test_a_misspelt_key(self, folder: Path) -> None:
        error = refusal("two.npz:anchr_x", folder)
        assert error.finding.id == "file-key"
        assert error.finding.hint == "did you mean 'anchor_x'?"

    def test_a_bomb_is_judged_by_its_header(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", b"\x93NUMPY\x02\x00" + b"\xff\xff\xff\x7f" + bytes(10_000_000))
        assert refusal("a.npz:x", tmp_path).finding.id == "unreadable-file"

    def test_other_compressions_are_refused(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_BZIP2) as archive:
            archive.writestr("x.npy", b"")
        assert "zip method 12" in refusal("a.npz:x", tmp_path).finding.message

    @pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), bytes(100)])
    def test_no_archive(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "a.npz").write_bytes(data)
        assert refusal("a.npz:x", tmp_path).finding.id in {"unreadable-file", "file-key"}

    @settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(0, 400), st.binary(min_size=1, max_size=4))
    def test_damage_is_an_error_or_harmless(self, tmp_path: Path, at: int, noise: bytes) -> None:
        stream = io.BytesIO()
        np.savez_compressed(stream, x=np.ones(2, np.float32))
        data = bytearray(stream.getvalue())
        data[at : at + len(noise)] = noise
        (tmp_path / "a.npz").write_bytes(data)
        with suppress(TeenyError):
            loaded("a.npz:x", tmp_path, (2,))


class TestBin:
    def test_raw_bits_of_the_buffers_type(self, tmp_path: Path) -> None:
        (tmp_path / "a.bin").write_bytes(bytes.fromhex("803f 0040"))
        assert loaded("a.bin", tmp_path, (2,), "bf16").astype(float).tolist() == [1, 2]

    def test_byte_count_has_both_sides(self, tmp_path: Path) -> None:
        (tmp_path / "a.bin").write_bytes(bytes(1023))
        error = refusal("a.bin", tmp_path, (16, 16))
        assert error.finding.id == "byte-count"
        assert error.finding.message == "a.bin: it has 1,023 bytes, f32[16, 16] takes 1,024"


class TestSafetensors:
    def test_every_type_by_key(self, tmp_path: Path) -> None:
        numpy = pytest.importorskip("safetensors.numpy")
        arrays = {
            name: np.arange(6).reshape(2, 3).astype(numpy_dtype(DTYPES[name])) for name in DTYPES if name != "ptr"
        }
        numpy.save_file(arrays, tmp_path / "m.safetensors", metadata={"by": "a test"})
        for name, array in arrays.items():
            out = loaded(f"m.safetensors:{name}", tmp_path, (2, 3))
            assert out.dtype == array.dtype
            assert np.array_equal(out, array)

    def test_key_and_shape_are_checked(self, tmp_path: Path) -> None:
        numpy = pytest.importorskip("safetensors.numpy")
        numpy.save_file({"fc1.weight": np.ones((2, 3))}, tmp_path / "m.safetensors")
        assert refusal("m.safetensors:fc1.weigth", tmp_path).finding.hint == "did you mean 'fc1.weight'?"
        assert refusal("m.safetensors:fc1.weight", tmp_path).finding.id == "array-shape"
        assert keys(ref("m.safetensors"), tmp_path) == ["fc1.weight"]

    @pytest.mark.parametrize(
        "data", [b"", bytes(8), b"\xff" * 50, b"\x02" + bytes(7) + b"{}", b"\x01" + bytes(7) + b"["]
    )
    def test_a_broken_file(self, tmp_path: Path, data: bytes) -> None:
        pytest.importorskip("safetensors")
        (tmp_path / "m.safetensors").write_bytes(data)
        assert refusal("m.safetensors:x", tmp_path).finding.id in {"unreadable-file", "file-key"}

    def test_without_the_extra_the_error_says_what_to_install(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "m.safetensors").write_bytes(b"")
        monkeypatch.setitem(sys.modules, "safetensors", None)
        error = refusal("m.safetensors:x", tmp_path)
        assert error.finding.id == "missing-extra"
        assert error.finding.hint == "pip install 'teenycli[safetensors]'"


class TestPaths:
    def test_missing(self, tmp_path: Path) -> None:
        np.save(tmp_path / "weights.npy", np.ones(2))
        error = refusal("weigths.npy", tmp_path)
        assert error.finding.id == "missing-file"
        assert error.finding.hint == "did you mean 'weights.npy'?"
        assert "folder" in refusal("nowhere/a.npy", tmp_path).finding.message

    def test_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "a.npy").mkdir()
        assert refusal("a.npy", tmp_path).finding.message == "a.npy: not a regular file"

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
    def test_a_fifo_does_not_hang(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a.bin")
        assert refusal("a.bin", tmp_path).finding.id == "unreadable-file"

    def test_a_nul_in_the_name(self, tmp_path: Path) -> None:
        assert refusal("a\0.npy", tmp_path).finding.id == "unreadable-file"


class TestSaving:
    @pytest.mark.parametrize("name", ["f32", "f64", "i8", "u64", "bool", "f16"])
    @pytest.mark.parametrize("suffix", ["npy", "npz", "bin"])
    def test_comes_back_as_it_was(self, tmp_path: Path, name: str, suffix: str) -> None:
        array = np.arange(6).reshape(2, 3).astype(numpy_dtype(DTYPES[name]))
        saved(f"a.{suffix}", name, array, tmp_path)
        out = loaded(f"a.{suffix}", tmp_path, (2, 3), name)
        assert out.dtype == array.dtype
        assert np.array_equal(out, array)

    @pytest.mark.parametrize("name", ["bf16", "e4m3", "e5m2"])
    def test_small_floats_are_float32_for_numpy_and_raw_in_bin(self, tmp_path: Path, name: str) -> None:
        array = np.array([0.5, 1.5, -2]).astype(numpy_dtype(DTYPES[name]))
        for suffix in ("npy", "npz"):
            path = saved(f"a.{suffix}", name, array, tmp_path)
            read = np.load(path) if suffix == "npy" else np.load(path)["out"]
            assert read.dtype == np.float32
            assert read.tolist() == [0.5, 1.5, -2]
        assert saved("a.bin", name, array, tmp_path).read_bytes() == array.tobytes()

    def test_bool_bytes_that_are_poison_are_true_for_numpy_and_raw_in_bin(self, tmp_path: Path) -> None:
        array = np.array([0xFF, 0, 1], np.uint8).view(np.bool_)
        assert np.load(saved("a.npy", "bool", array, tmp_path)).view(np.uint8).tolist() == [1, 0, 1]
        assert saved("a.bin", "bool", array, tmp_path).read_bytes() == b"\xff\0\1"

    def test_one_archive_takes_several_under_their_names_or_keys(self, tmp_path: Path) -> None:
        ones, twos = np.ones(2, np.float32), np.full((2, 2), 2, ml_dtypes.bfloat16)
        # "file" is what np.savez calls its own argument.
        saves = [Save("file", ref("r.npz"), F32, ones), Save("b", ref("r.npz:other"), DTYPES["bf16"], twos)]
        assert save_all(saves, tmp_path) == [tmp_path / "r.npz"]
        with np.load(tmp_path / "r.npz") as archive:
            assert sorted(archive) == ["file", "other"]
            assert archive["other"].tolist() == [[2, 2], [2, 2]]

    def test_a_transposed_array_is_saved_in_c_order(self, tmp_path: Path) -> None:
        array = np.arange(6, dtype=np.float32).reshape(2, 3).T
        assert saved("a.bin", "f32", array, tmp_path).read_bytes() == np.ascontiguousarray(array).tobytes()

    def test_two_in_one_place_are_refused(self, tmp_path: Path) -> None:
        array = np.ones(2, np.float32)
        for text in ("a.npy", "a.npz:k"):
            with pytest.raises(TeenyError, match=f"'x' and 'y' both go to {text}") as caught:
                save_all([Save("x", ref("./" + text), F32, array), Save("y", ref(text), F32, array)], tmp_path)
            assert caught.value.finding.id == "save-conflict"
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("text", ["a.safetensors", "a.txt", "a"])
    def test_a_type_that_cannot_be_written(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(TeenyError) as caught:
            check_saves([Save("x", FileRef(text), F32)], tmp_path)
        assert caught.value.finding.id == "unknown-file-type"

    @pytest.mark.parametrize(
        ("text", "reason"), [("no/a.npy", "there is no folder"), ("dir.npy", "it is a folder"), ("a\0.npy", "null")]
    )
    def test_what_cannot_be_written_is_known_beforehand(self, tmp_path: Path, text: str, reason: str) -> None:
        (tmp_path / "dir.npy").mkdir()
        with pytest.raises(TeenyError, match=reason) as caught:
            check_saves([Save("x", ref(text), F32)], tmp_path)
        assert caught.value.finding.id == "unwritable-path"
        assert caught.value.exit is Exit.UNUSABLE

    def test_a_failure_midway_leaves_the_old_file_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a.npy").write_bytes(b"old")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("teenycli.tensors.files.os.fsync", full)
        with pytest.raises(TeenyError, match=r"cannot write a\.npy: No space left on device"):
            saved("a.npy", "f32", np.ones(2, np.float32), tmp_path)
        assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a.npy", b"old")]

    def test_an_interruption_midway_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(_: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("teenycli.tensors.files.os.fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            saved("a.npy", "f32", np.ones(2, np.float32), tmp_path)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(sys.platform == "win32", reason="links and modes of POSIX")
    def test_a_link_stays_a_link_and_the_mode_stays(self, tmp_path: Path) -> None:
        target = tmp_path / "real.npy"
        target.write_bytes(b"")
        target.chmod(0o640)
        (tmp_path / "link.npy").symlink_to(target)
        saved("link.npy", "f32", np.ones(2, np.float32), tmp_path)
        assert (tmp_path / "link.npy").is_symlink()
        assert np.load(target).tolist() == [1, 1]
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
