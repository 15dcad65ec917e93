"""The form of a command that takes a job: whether its words stand after `--`, and a help in sections.

Everything before `--` that is a file may be a script; after it, it is a command, word for word. click drops the `--`,
so it is noticed here. And some fifty options are only found by a reader who can skip most of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from stado_like.asking import choices, moments
from stado_like.job.spec import units

AFTER_DASHES = "stado.after_dashes"
"""Where the context's `meta` says that the job's words were given after `--`."""

FORMS: Mapping[str, str] = {
    "Durations (D)": units.DURATION_FORMS,
    "Sizes": units.SIZE_FORMS,
    "Arrays": units.ARRAY_FORMS,
    "Deadlines": moments.FORMS,
    "GPUs": choices.GPU_FORMS,
    "--signal": choices.SIGNAL_FORMS,
    "--after": choices.AFTER_FORMS,
}
"""Printed below the options: the very texts that errors name, beside the code that reads them."""


class SubmitCommand(click.Command):
    def __init__(self, *words: Any, sections: Mapping[str, Sequence[str]], **more: Any) -> None:
        super().__init__(*words, **more)
        self._sections = sections

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        words = ctx.params.get("words") or ()
        before = len(given) - len(words) - 1
        ctx.meta[AFTER_DASHES] = bool(words) and before >= 0 and given[before] == "--"
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        left = {one.name: one for one in self.get_params(ctx) if isinstance(one, click.Option)}
        for title, names in (*self._sections.items(), ("Options", ())):
            shown = [left.pop(name) for name in names if name in left] or (list(left.values()) if not names else [])
            rows = [row for row in (one.get_help_record(ctx) for one in shown) if row is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        with formatter.section("Forms"):
            formatter.write_dl(list(FORMS.items()))
