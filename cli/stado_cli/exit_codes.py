"""What each exit code means, in the words of `stado help exit-codes`.

The numbers are `stado_like.errors.Exit`, because an error knows its own code; the sentences are here, because only a
command line has an exit status. A test holds the two together.
"""

from __future__ import annotations

from stado_like.errors import Exit

MEANINGS: dict[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "the job, or what was asked, failed",
    Exit.REFUSED: "refused before anything was written: usage, validation, settings",
    Exit.NOT_FOUND: "no such job, task, worker or object",
    Exit.CONFLICT: "it exists already, is in the wrong state, or another tick holds the store",
    Exit.STORE: "the store cannot be reached, refuses the credentials, or cannot be trusted",
    Exit.PARTLY: "done in part: something was set aside or failed, see the report",
    Exit.TIMED_OUT: "timed out",
    Exit.INTERRUPTED: "interrupted; a job that was submitted goes on",
}

NOTE = "`stado run` exits with the job's own exit code when the job ran."
