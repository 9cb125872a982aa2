"""Options that several commands share, each set as one decorator.

May import click and the rooms below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from teenycli.report.console import COLOUR_CHOICES


def amount(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """The callback of an option that takes a number, finite and not negative."""
    if value is not None and not 0 <= value <= 1e9:
        raise click.BadParameter(f"{value} is not between 0 and 1e9", ctx, param)
    return value


Command = TypeVar("Command", bound=Callable[..., Any])


color_option = click.option(
    "--color", type=click.Choice(COLOUR_CHOICES), default="auto", show_default=True,
    help="When to colour. NO_COLOR and FORCE_COLOR are honoured.",
)  # fmt: skip


def output_options(command: Command) -> Command:
    """``--json``, ``-q``, ``-v``, ``--color``: how a command shows what it found."""
    for option in reversed(
        (
            click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
            click.option("-q", "--quiet", is_flag=True, help="Print errors, and no more than asked for."),
            click.option("-v", "--verbose", is_flag=True, help="Print more."),
            color_option,
        )
    ):
        command = option(command)
    return command


def manifest_options(command: Command) -> Command:
    """``-m``, ``--dim``, ``--set``: which manifest, and what to lay over it."""
    for option in reversed(
        (
            click.option(
                "-m", "--manifest", metavar="FILE",
                help="The manifest.  [default: ops.toml here or in a folder above]",
            ),
            click.option("--dim", "dims", multiple=True, metavar="NAME=INT", help="Give a dim another value."),
            click.option("--set", "scalars", multiple=True, metavar="NAME=VALUE", help="Give a scalar another value."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def host_options(command: Command) -> Command:
    """``--for``, ``--driver``: what launches are for, where no device is asked."""
    for option in reversed(
        (
            click.option("--for", "gpu", metavar="SM",
                         help="Check for this GPU architecture, such as sm_90, not the PTX's own."),
            click.option("--driver", metavar="VERSION",
                         help="Check for this driver: its branch, such as 570, or the CUDA version it supports."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def checkpoint_options(command: Command) -> Command:
    """``--checkpoint``, ``--node``: where an op's params come from."""
    for option in reversed(
        (
            click.option(
                "--checkpoint", metavar="FILE", help="Take params from a .safetensors file, keys {node}.{param}."
            ),
            click.option("--node", metavar="NAME", help="The op's node in the checkpoint, such as model.0.conv."),
        )
    ):
        command = option(command)
    return command


def probe_options(command: Command) -> Command:
    """``--probe`` of check, and its ``--seed`` and ``--timeout``."""
    for option in reversed(
        (
            click.option("--probe", is_flag=True,
                         help="Run each op, too, on the CPU device at small dims: accesses out of bounds, elements "
                         "that nothing writes, inputs that change, wrong numbers, arguments in the wrong order."),
            click.option("--seed", type=click.IntRange(min=0), metavar="N",
                         help="With --probe: seed of random inputs.  [default: 0]"),
            click.option("--timeout", type=float, callback=amount, metavar="SECONDS",
                         help="With --probe: end a launch that takes longer; 0 for never.  [default: 10]"),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def rust_options(command: Command) -> Command:
    """``--rust``, ``--ptx``, ``--entry``: launches as Rust states them, and the entries that they are of."""
    for option in reversed(
        (
            click.option("--rust", metavar="FILE", help="Check what each impl of RuntimeOp in a Rust file visits."),
            click.option("--ptx", multiple=True, metavar="FILE",
                         help="With --rust: PTX with the entries.  [default: those of the manifest's ops]"),
            click.option("--entry", "entries", multiple=True, metavar="[IMPL=]NAME",
                         help="With --rust: the entry of an impl, or the only ones to look at."),
        )
    ):  # fmt: skip
        command = option(command)
    return command
