"""`checkpoint` and `outputs`: what a task leaves for its next attempt, and for people.

Only a directory is named: what the program writes there is kept, and laid out again before the next attempt starts, on
whatever machine that is.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Text, Whole
from stado_like.job.spec.metadata import PART
from stado_like.job.spec.paths import JobPath

_STEP = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


class Checkpoint(BaseModel):
    """A directory that is kept from one attempt to the next."""

    model_config = PART

    dir: JobPath = Field(
        description="Where the program saves. STADO_CHECKPOINT_DIR says the directory, which is each attempt's own: a "
        "relative one lies in the working directory where no other task works there, an absolute one is the parent of "
        "one folder per attempt.",
    )
    interval_seconds: Annotated[int, Whole(limits.CHECKPOINT_INTERVAL_S, "seconds")] = Field(
        default=limits.DEFAULT_CHECKPOINT_INTERVAL_S,
        description="How often it is uploaded while the task runs; also at a stop.",
    )
    keep: Annotated[int, Whole(limits.CHECKPOINTS_KEPT)] = Field(
        default=limits.DEFAULT_CHECKPOINTS_KEPT,
        description="How many complete checkpoints stay; older ones are removed.",
    )
    final_seconds: Annotated[int, Whole(limits.CHECKPOINT_FINAL_S, "seconds")] = Field(
        default=limits.DEFAULT_CHECKPOINT_FINAL_S,
        description="How long the end of a task waits, after its process is gone, for what it left to be uploaded.",
    )
    prefix: (
        Annotated[
            str,
            Text(
                max_bytes=255,
                pattern=rf"{_STEP}(?:/{_STEP})*",
                rule="folders joined by /, each of letters, digits, _ . and -, beginning with a letter, digit or _",
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="A folder of the attempt's own place in the bucket that the files go below.",
    )


class Outputs(BaseModel):
    """What a task reports when it ends: `key=value` lines in the file STADO_OUTPUTS."""

    model_config = PART

    answer_path: JobPath | None = Field(
        default=None,
        description="A file whose text is the task's answer: its first 8 KiB are told with the at most 64 pairs, of "
        "4 KiB in all.",
    )
