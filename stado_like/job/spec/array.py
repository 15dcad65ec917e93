"""`spec.array`: one template, run many times, each copy told which one it is.

`size` copies are numbered from 0. `indices` gives them numbers of their own (what `1-10:2` means), `entries` a text
each (a line of a file); the size then follows from the list and may be left out. One document holds them all, so an
array of ten thousand is one object and a few requests.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Text, Whole
from stado_like.job.spec.metadata import PART

Entry = Annotated[str, Text(max_bytes=limits.ONE_STRING_MAX_BYTES, empty=True)]


class Array(BaseModel):
    """Run the template `size` times as independent copies."""

    model_config = PART

    size: Annotated[int, Whole(limits.ARRAY_SIZE)] | None = Field(
        default=None,
        description="How many tasks; each has the template's whole ask. Required, unless indices or entries give it.",
    )
    max_parallel: Annotated[int, Whole((0, limits.ARRAY_SIZE[1]))] = Field(
        default=0, description="At most this many hold machines at once, at most the size; 0 is no cap."
    )
    block: Annotated[int, Whole(limits.ARRAY_BLOCK)] | None = Field(
        default=None,
        description="How many tasks one claim may carry while they are short: a worker runs them one after the other "
        "for half a second, and gives back what is left. 1 is none. The default follows from the size where nothing "
        "else is asked for that a block cannot keep.",
    )
    indices: list[Annotated[int, Whole(limits.ARRAY_INDEX)]] | None = Field(
        default=None,
        min_length=1,
        max_length=limits.ARRAY_SIZE[1],
        description="The number of each task, ascending, in STADO_ARRAY_TASK_ID. Without it they count from 0.",
    )
    entries: list[Entry] | None = Field(
        default=None,
        min_length=1,
        max_length=limits.ARRAY_SIZE[1],
        description="A text for each task, in STADO_ENTRY; an argument that is exactly {} is replaced by it. Together "
        "at most 1 MiB.",
    )
