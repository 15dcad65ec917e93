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
from stado_worker.secrets.placing import place, remove_placed
from stado_worker.secrets.table import Table
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.preparing import Pause, Say


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
    trouble; then nothing stays placed."""
    secrets = Secrets()
    if secret_refs:
        secrets = fetch([Ref.of(one) for one in secret_refs], table or Table.of_this_machine(), say, pause)
        private.keep_masks(folder.path, secrets.masks)
        shipping.masks = secrets.masks
    try:
        place(folder, cwd, secrets.files, configs)
    except BaseException:
        with suppress(OSError):  # the end of the attempt removes it, too
            remove_placed(folder.path)
        raise
    return Delivered(secrets.env, secrets.notes)
