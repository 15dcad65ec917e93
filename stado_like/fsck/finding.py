"""What a check can find in a bucket, and what becomes of each: one catalogue for the rules, the repair and the reader.

A code is a word that programs go by: added to, never renamed. Its remedy says what `--repair` does about it, in the
words of the transition that does it; a remedy that begins with "nothing" is one where no program may choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One broken promise of the protocol. `key`: the object that is wrong, or the one that is missing."""

    code: str
    key: str
    sentence: str
    remedy: str

    @property
    def can_be_repaired(self) -> bool:
        return not self.remedy.startswith(NOTHING)


Findings = Iterator[Finding]
NOTHING = "nothing"
_SETTLE = "settle the attempt: what its end decided is carried out, then its entries and its claim go"
_DROP_ENTRY = "drop the entry"
_DROP_CLAIM = "drop the claim, and the entry that it names"
_MEND = "finish what its submitter or a supervisor left half-way, as a tick does"
_CANCEL = "carry the decision out as a tick does, then drop its index"
_RECORDED = "nothing: what was decided is never rewritten"
_FOREIGN = "nothing: `stado storage rm` removes what does not belong here"
_UNREADABLE = "nothing: `stado storage cat` shows it"
_NEWER = "nothing: upgrade stado on this machine"

REMEDIES: Mapping[str, str] = {
    # ---- tasks
    "attempt-lost": "queue the attempt again",
    "rank-not-released": "queue the first attempt of the rank",
    "lane-ahead": "nothing: the ranks go on side by side",
    "group-ahead": "nothing: the ranks go on side by side",
    "end-gap": _RECORDED,
    "end-after-final": _RECORDED,
    "end-beyond-job": _RECORDED,
    "heartbeat-ahead": "nothing: a hint, which no decision rests on",
    "budget-mismatch": _RECORDED,
    "block-unclear": _RECORDED,
    "end-twice": _RECORDED,
    # ---- the queue
    "entry-without-job": _DROP_ENTRY,
    "entry-beyond-job": _DROP_ENTRY,
    "entry-of-ended": _SETTLE,
    "entry-spent": _DROP_ENTRY,
    "entry-stray": _DROP_ENTRY,
    "entry-of-final-job": _DROP_ENTRY,
    "entry-misnamed": "create the entry under its own name, then drop this one",
    "entry-twice": "finish the move: the entry in queued/later goes",
    "entry-differs": "nothing: whoever claims it reads the job itself",
    # ---- claims and orders
    "claim-without-job": _DROP_CLAIM,
    "claim-of-ended": _SETTLE,
    "claim-stray": _DROP_CLAIM,
    "claim-beyond-job": "nothing: its holder ends it",
    "order-spent": "drop the order",
    # ---- gangs
    "placement-early": _RECORDED,
    "barrier-differs": _RECORDED,
    "started-without-go": _RECORDED,
    # ---- verdicts and stops
    "verdict-without-index": "write its index, then end what is queued",
    "cancel-unfinished": _CANCEL,
    "cancel-without-verdict": "drop the index",
    "cancel-left": _CANCEL,
    "stop-without-index": "write its index, then end the attempt if it is queued",
    "stop-unfinished": _CANCEL,
    # ---- jobs
    "job-not-final": "write the verdict where there is none, then final, then drop the indexes",
    "final-without-verdict": "compute the verdict from the ends and write it",
    "final-with-open-attempt": "nothing: its holder meets the verdict and ends it",
    "final-of-one-task": "nothing: readers of a one-task job look at its ends",
    "final-differs": _RECORDED,
    "open-missing": "put the job back into the index of open jobs, then mend it from there",
    "open-left": "drop the index",
    "open-without-job": "drop the index",
    "deletion-unfinished": "finish the deletion",
    "status-without-job": "nothing: without a tombstone no program may say that the job is over",
    "data-without-job": "nothing: without a tombstone no program may say that the job is over",
    "name-alive-twice": "nothing: a person deletes one of them",
    "checkpoint-incomplete": "nothing: the next attempt takes the checkpoint before it",
    # ---- records and keys
    "job-unreadable": _UNREADABLE,
    "job-newer": _NEWER,
    "job-misnamed": _UNREADABLE,
    "end-unreadable": _UNREADABLE,
    "end-newer": _NEWER,
    "record-unreadable": _UNREADABLE,
    "record-newer": _NEWER,
    "record-elsewhere": _UNREADABLE,
    "record-large": "nothing: it is read all the same",
    "foreign-key": _FOREIGN,
    "folder-is-a-key": _FOREIGN,
    # ---- workers
    "capacity-negative": "nothing: its worker says it anew while it runs",
    "worker-overcommitted": "nothing: its tasks run side by side until they end",
}


def found(code: str, key: str, sentence: str) -> Finding:
    """Raises `KeyError` for a code that is not in the catalogue."""
    return Finding(code, key, sentence, REMEDIES[code])
