"""The ``teeny`` command. Commands are imported when they are called, and every end of the process goes through here."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import NoReturn

import click

from teenycli import __version__
from teenycli.errors import Finding, TeenyError, clipped, did_you_mean
from teenycli.exits import Exit, leaves_at_once

#: Commands in the order in which the help lists them.
COMMANDS = ("entries", "init", "check", "run", "explain", "isa")


class Commands(click.Group):
    """A group that imports ``teenycli.commands.NAME`` for the command NAME."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            hint = did_you_mean(cmd_name, COMMANDS) or f"commands: {', '.join(COMMANDS)}"
            raise click.UsageError(f"there is no command '{cmd_name}'; {hint}", ctx)
        command = getattr(import_module(f"teenycli.commands.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="teeny", message="%(prog)s %(version)s")
def cli() -> None:
    """What is in this PTX, does my launch fit it, and what does it compute?

    teeny reads PTX text, checks a kernel launch against it, and runs it: on an NVIDIA GPU where there is one, else on
    its own CPU device, which checks every memory access.
    """


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line ``args`` (the process's own when None); returns the exit code."""
    given = list(sys.argv[1:] if args is None else args)
    tell = partial(_tell, given)
    try:
        code = cli.main(given or ["--help"], prog_name="teeny", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        tell(_usage(error))
        return Exit.UNUSABLE
    except TeenyError as error:
        tell(error.finding)
        return error.exit
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        from teenycli.report.console import silence

        silence(sys.stdout)  # what reads our output has gone
        return Exit.OK
    except OSError as error:  # click's own output; what commands write and read has errors of its own
        tell(Finding("unwritable-path", f"cannot write the output: {error.strerror or error}"))
        return Exit.UNUSABLE
    except MemoryError as error:
        tell(Finding("out-of-memory", f"this takes more memory than there is: {error or 'an allocation failed'}"))
        return Exit.UNUSABLE
    return int(code or 0)


def _usage(error: click.ClickException) -> Finding:
    context = getattr(error, "ctx", None)
    hint = f"'{context.command_path} --help' lists the options" if context is not None else None
    return Finding("usage", clipped(error.format_message()), hint=hint)


def _colour(args: Sequence[str], choices: Sequence[str]) -> str:
    """What ``--color`` says: errors are shown here, where no command has read its options."""
    for option, value in zip(args, [*args[1:], ""], strict=False):
        choice = option.removeprefix("--color=") if option.startswith("--color=") else value
        if option.startswith("--color") and choice in choices:
            return choice
    return "auto"


def _tell(args: Sequence[str], finding: Finding) -> None:
    from teenycli.report.console import COLOUR_CHOICES, Console
    from teenycli.report.problems import closing, problem

    with suppress(TeenyError):  # standard error takes nothing: the exit code has to say it all
        console = Console.of_process(_colour(args, COLOUR_CHOICES))
        console.tell(*problem(finding), *(closing([finding]) if console.err.tty else ()))


def _fill_streams() -> None:
    """Have a stream that was closed by whoever started the process lead nowhere, or what is opened next takes its
    place and gets what is printed."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def main() -> NoReturn:
    """Entry point of the process."""
    gc.set_threshold(100_000)  # what a command makes lives as long as it; looking for cycles takes a twentieth
    _fill_streams()
    code = run()
    if leaves_at_once():
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
