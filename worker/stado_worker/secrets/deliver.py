"""Everything a task is given beside its arguments, in the one order that is safe: values, masks, files.

The masks are known to the log's way out, and kept for whoever carries it on, before the command can print anything; and
files come last, because they must be removed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from stado_worker.secrets import private
from stado_worker.secrets.fetch import Ref, Secrets, fetch
from stado_worker.secrets.placing import place, remove_left_behind
from stado_worker.secrets.table import Table
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.preparing import GivenUp, Pause, Say


@dataclass(frozen=True, slots=True, repr=False)
class Delivered:
    """`env` overrides the job's own; `notes` are for the end record, and hold no value."""

    env: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def deliver(
    folder: AttemptDir,
    secret_refs: Sequence[Mapping[str, Any]],
    configs: Sequence[Mapping[str, Any]],
    cwd: str,
    shipping: LogShipping,
    say: Say,
    pause: Pause,
    table: Table | None = None,
) -> Delivered:
    """Blocks until every credential is there. Raises `GivenUp`, `CouldNotPrepare`, and OSError for the machine's own
    trouble; then nothing is left of it on the machine."""
    try:
        secrets = Secrets()
        if secret_refs:
            secrets = fetch([Ref.of(one) for one in secret_refs], table or Table.of_this_machine(), say, pause)
            private.keep_masks(folder.path, secrets.masks)
            shipping.masks = secrets.masks
        _go_on(pause)
        place(folder, cwd, secrets.files, configs)
        _go_on(pause)  # a stop may have come meanwhile, and whoever ends the attempt been here before us
    except BaseException:
        with suppress(OSError):  # the end of the attempt removes it, too. Without a command there is nothing to mask
            remove_left_behind(folder.path)
        raise
    return Delivered(secrets.env, secrets.notes)


def _go_on(pause: Pause) -> None:
    if pause(0):
        raise GivenUp("the credentials and files are no longer wanted")
