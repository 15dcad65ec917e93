"""`stado storage fsck`: every promise of the protocol that a bucket at rest can be asked for.

A bucket in use may be checked too: what looks wrong is looked at again two seconds later, and what was only under way
is not reported. `--repair` does what a tick or a worker would do, and may run beside them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from stado_cli.context import Context
from stado_cli.output import column
from stado_like.ambient import REAL
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Exit
from stado_like.fsck.check import Checked, check
from stado_like.fsck.finding import Finding

SETTLE_S = 2.0
SHOWN_EVERY_S = 0.2


@click.command()
@click.option("--repair", is_flag=True, help="Carry on with what was cut short; safe beside everything else.")
@click.option("--audit", is_flag=True, help="Read every record, too: slow.")
@click.pass_obj
def command(context: Context, repair: bool, audit: bool) -> int:
    """Check the store: one line for each thing that is wrong, and what --repair does about it.

    Exit code 0 when it is clean, or all of it was repaired; 1 when findings are left.
    """
    line = _Line()
    began_s = REAL.boot_s()
    try:
        done = check(Bucket(context.store), audit=audit, repair=repair, settle_s=SETTLE_S, progress=line.show)
    finally:
        line.clear()
    took_s = round(REAL.boot_s() - began_s, 3)
    rows = [*_rows(done.repaired, repaired=True), *_rows(done.findings, repaired=False)]
    if context.settings.json:
        counted = {**done.counts, "seconds": took_s, "audit": audit}
        context.output.value({"findings": rows, "checked": counted})
    else:
        columns = [column("CODE", "code"), column("KEY", "key"), column("WHAT WAS FOUND", "sentence")]
        columns.append(column("REPAIRED BY" if repair else "--REPAIR WOULD", "remedy"))
        context.output.table(columns, rows)
        context.output.note(_summary(context.store.url, done, took_s))
    return Exit.FAILED if done.findings else Exit.DONE


def _rows(findings: list[Finding], *, repaired: bool) -> list[dict[str, Any]]:
    return [
        {
            "code": one.code,
            "key": _printable(one.key),
            "sentence": one.sentence,
            "remedy": one.remedy,
            "repaired": repaired,
        }
        for one in findings
    ]


def _printable(key: str) -> str:
    """A foreign key may hold what a terminal acts on."""
    return key if key.isprintable() else ascii(key)


def _summary(url: str, done: Checked, took_s: float) -> str:
    counts = done.counts
    looked = f"{counts['objects']} objects, {counts['jobs']} jobs, in {took_s:.1f} s"
    if not done.findings and not done.repaired:
        return f"{url} is clean: {looked}."
    said = [f"{len(done.repaired)} repaired"] if done.repaired else []
    left = len(done.findings)
    can = sum(one.can_be_repaired for one in done.findings)
    if left:
        said.append(f"{left} left" + (f", of which --repair mends {can}" if can else ""))
    return f"{url}: {'; '.join(said)} ({looked})."


class _Line:
    """One line on a terminal's standard error that is written over and over."""

    def __init__(self) -> None:
        self._watched = sys.stderr.isatty()
        self._shown_s = REAL.boot_s()
        self._width = 0
        self._write: Callable[[str], int] = sys.stderr.write

    def show(self, what: str, n: int) -> None:
        now_s = REAL.boot_s()
        if not self._watched or now_s - self._shown_s < SHOWN_EVERY_S:
            return
        self._shown_s = now_s
        text = f"checking: {n} {what}"
        self._write("\r" + text.ljust(self._width))
        self._width = len(text)
        sys.stderr.flush()

    def clear(self) -> None:
        if self._width:
            self._write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
