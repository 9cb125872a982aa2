"""The bytes of a file that a user names.

Imports ``errors``, and no pathlib, which would cost every start of the command 4 ms.
"""

from __future__ import annotations

import os
import stat

from teenycli.errors import Place, TeenyError, did_you_mean


def read_bytes(path: str, limit: int, ending: str) -> bytes:
    """What is in the file ``path``, at most ``limit`` bytes; ``ending`` (``.ptx``) is how its like are called.

    Raises TeenyError: ``file-not-found``, ``not-a-file``, ``unreadable``, ``file-too-large``.
    """
    where = Place(path)
    try:
        kind = os.stat(path).st_mode  # noqa: PTH116
        piped = path.startswith(("/dev/fd/", "/proc/self/fd/", "/dev/stdin"))  # as a shell passes <(command)
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or piped):
            hint = "to read from a pipe, give - for standard input" if ending == ".ptx" else None
            raise TeenyError("not-a-file", "this is a device or a pipe, not a file", where=where, hint=hint)
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read(limit + 1)
    except FileNotFoundError:
        hint = _neighbour(path, ending)
        raise TeenyError("file-not-found", "there is no such file", where=where, hint=hint) from None
    except IsADirectoryError:
        hint = f"name its files: {path.rstrip('/')}/*{ending}"
        raise TeenyError("not-a-file", "this is a directory, not a file", where=where, hint=hint) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TeenyError("unreadable", f"cannot read the file: {reason}", where=where) from None
    return within(data, limit, where)


def within(data: bytes, limit: int, where: Place) -> bytes:
    """``data``, which was read up to a byte beyond ``limit``. Raises TeenyError ``file-too-large``."""
    if len(data) > limit:
        raise TeenyError("file-too-large", f"the text is longer than {limit:,} bytes", where=where)
    return data


def _neighbour(path: str, ending: str) -> str | None:
    """A file beside it with a name like it."""
    folder, name = os.path.split(path)
    try:
        return did_you_mean(name, [other for other in os.listdir(folder or ".") if other.endswith(ending)])  # noqa: PTH208
    except (OSError, ValueError):
        return None
