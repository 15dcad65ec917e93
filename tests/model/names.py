"""Delete and the reuse of a name: tombstones, incarnations, requests that are repeated, and everything that may still
arrive for what was deleted.

    jobs/<k> = request  deleted/<k> = request  open/<k>  queued/<k>  running/<k>  end/<k> = done | lost

All keys are of one name; k is its incarnation.

A job here is one task with one attempt. `several` jobs have an `open/` entry from submit to their end; all have one
while they are deleted. An end whose value is "late" was written by a zombie or a late request after its job was
deleted: it is litter that means nothing, and the only such litter allowed.
"""

from __future__ import annotations

from tests.model.language import (
    Bucket,
    Late,
    Mending,
    Model,
    Program,
    Rule,
    Setting,
    Then,
    choose,
    create,
    drop,
    get,
    has,
    pick,
    rows,
    tell,
)

INCARNATIONS = 3

LOST = "a submitted job is lost"
UNFINISHED = "a deletion is never finished"
LIVING = "incarnations of one name live"
STARTED = "a deleted or finished job was started"
TWICE = "was carried out twice"

LATE_PUT = Late(1, 0, ("jobs/", "queued/", "running/", "end/"))
LATE_ATTEMPT = Late(1, 0, ("queued/", "running/", "end/"))
ONE: tuple[tuple[str, object], ...] = (("several", False), ("tombstones swept", False), ("tombstone last", False))
SEVERAL: tuple[tuple[str, object], ...] = (("several", True), ("tombstones swept", True), ("tombstone last", False))
LAST: tuple[tuple[str, object], ...] = (("several", False), ("tombstones swept", False), ("tombstone last", True))
RETIRED = (*ONE, ("start", (("deleted/1", "A"), ("deleted/2", "B"), ("jobs/3", "C"), ("end/3", "done"))))
REUSED = (
    *LAST,
    (
        "start",
        (("deleted/1", "X"), ("jobs/2", "A"), ("end/2", "done"), ("~made/A", "2"), ("~job/2", "A"), ("~ended/2", "")),
    ),
)
AT_ONCE = "two submit, one deletes"
REPEATED = "a request is repeated while its job is deleted"
AGAIN = "a request is repeated after the name's second life"
DELETED = "a deletion, entries and claims come again"
SWEPT = "a deletion whose open/ is deleted again"
COMES_BACK = "a deletion, its name taken again"
RETIRES = "an old tombstone is retired"


class Names(Model):
    name = "names"
    question = "delete, name reuse, repeated requests"
    rules = (
        Rule("tombstone after create", "who won looks for it", "incarnation", "tombstone after create", AT_ONCE),
        Rule(
            "tombstone before jobs/",
            "the tombstone stands before jobs/ goes",
            "one incarnation for two requests",
            "delete order",
            AT_ONCE,
        ),
        Rule("jobs/ before status", "jobs/ goes before the end records", STARTED, setting=DELETED),
        Rule(
            "job read after the looks",
            "the gate reads the job after it looked for end and tombstone",
            STARTED,
            setting=DELETED,
        ),
        Rule(
            "tombstone looked for last",
            "a status may be gone: the tombstone is looked for after the end, not beside it",
            STARTED,
            setting=COMES_BACK,
        ),
        Rule(
            "gate looks for the job",
            "no job, or a tombstone: an orphan",
            f"{STARTED} | {UNFINISHED}",
            "gate looks for the job",
            DELETED,
        ),
        Rule("an orphan gets no end", "its entry and claim are dropped, no more", UNFINISHED, setting=DELETED),
        Rule("open/ before the tombstone", "announced, then decided", UNFINISHED, "delete order", AT_ONCE),
        Rule("open/ last", "... and struck off when all is gone", UNFINISHED, "delete order", AT_ONCE),
        Rule(
            "open/ is left to the deletion",
            "a submitter that met a tombstone leaves open/ alone",
            UNFINISHED,
            setting=AT_ONCE,
        ),
        Rule(
            "tombstones are swept",
            "before a tombstone is retired its deletion is carried out once more",
            UNFINISHED,
            setting=SWEPT,
        ),
        Rule("jobs/ is swept", "the tick finds a job without any trace and queues it", LOST, setting=AT_ONCE),
        Rule(
            "the sweep minds tombstones",
            "a job that came back under its tombstone is dropped",
            UNFINISHED,
            setting="a deletion, the job's PUT comes again",
        ),
        Rule(
            "a repeated request is its job",
            "the same request id finds the job that it made",
            LIVING,
            setting="a request is sent twice",
        ),
        Rule("met in a deletion under way", "... also one whose deletion is under way", TWICE, setting=REPEATED),
        Rule("met in a later tombstone", "... also a tombstone that is not its name's first", TWICE, setting=AGAIN),
        Rule("the first tombstone is kept", "as long as any later incarnation is known", LIVING, setting=RETIRES),
    )
    small = (
        Setting(AT_ONCE, "submitter A, submitter B, worker 1, deleter, tick 1", options=ONE),
        Setting("a request is sent twice", "submitter A, submitter A, worker 1, tick 1", LATE_PUT, options=ONE),
        Setting(REPEATED, "submitter A, worker 1, deleter, submitter A", LATE_PUT, ONE),
        Setting(DELETED, "submitter A, worker 1, worker 1, deleter, tick 1", LATE_ATTEMPT, ONE),
        Setting(COMES_BACK, "submitter A, worker 1, worker 1, deleter, submitter B", Late(), LAST),
        Setting("a deletion, the job's PUT comes again", "submitter A, worker 1, worker 1, deleter", LATE_PUT, LAST),
        Setting(SWEPT, "submitter A, submitter B, worker 1, deleter", Late(1, 1, ("queued/",), ("open/",)), SEVERAL),
        Setting(RETIRES, "retirer, submitter D, deleter", options=RETIRED),
        Setting(AGAIN, "deleter, submitter A, submitter B, worker 1", options=REUSED),
    )
    large = (
        Setting(
            "two submit, two work, one deletes, a tick",
            "submitter A, submitter B, worker 1, worker 1, deleter, tick 1",
            options=LAST,
        ),
        Setting(
            "two submit, two deletions, late requests",
            "submitter A, submitter B, worker 2, deleter, deleter",
            LATE_PUT,
            LAST,
        ),
        Setting(
            "repeated, deleted, a tick, late requests",
            "submitter A, submitter A, worker 1, deleter, tick 1",
            LATE_PUT,
            LAST,
        ),
        Setting(
            "several tasks, a tick, open/ deleted again",
            "submitter A, submitter B, worker 1, deleter, tick 1",
            Late(0, 1, (), ("open/",)),
            SEVERAL,
        ),
    )

    def start(self) -> dict[str, str]:
        return dict(self.options.get("start", ()))

    def late_value(self, key: str, value: str) -> str:
        return "late" if key.startswith("end/") else value

    # ---- what must hold

    def mendings(self) -> tuple[Mending, ...]:
        programs = (("tick", 1), ("worker", 1))
        return (Mending(programs, _all_jobs_end, LOST), Mending(programs, _all_deletions_finished, UNFINISHED))

    def broken(self, bucket: Bucket) -> str | None:
        living = [k for k in _incarnations() if f"jobs/{k}" in bucket and f"deleted/{k}" not in bucket]
        if len(living) > 1:
            return f"two {LIVING}: {living}"
        if any(f"~deleted/{k}" in bucket for k in living):
            return f"deleted {LIVING} again: {living}"
        return None

    # ---- submit

    def submitter(self, request: str) -> Program:
        return "take", request, (yield choose(1))

    def take(self, request: str, k: int) -> Program:
        if k > INCARNATIONS:
            return None
        if self.options["several"]:
            yield create(f"open/{k}")
        if not self.keeps("tombstone after create") and (yield has(f"deleted/{k}")):
            return "next_incarnation", request, k
        if not (yield create(f"jobs/{k}", request)):
            return "refused", request, k
        if self.keeps("tombstone after create"):
            buried = yield get(f"deleted/{k}")
            if buried is not None:
                yield drop(f"jobs/{k}")
                if not self.keeps("open/ is left to the deletion"):
                    yield drop(f"open/{k}")
                return None if buried == request else ("next_incarnation", request, k)
        yield create(f"queued/{k}")
        yield tell("acknowledge", request, k)
        return None

    def refused(self, request: str, k: int) -> Program:
        standing = yield get(f"jobs/{k}")
        buried = yield get(f"deleted/{k}")
        if buried is not None:
            if buried == request and self.keeps("met in a deletion under way"):
                return None
            return "next_incarnation", request, k
        if standing is None:
            return "take", request, k
        if standing != request:
            return None
        if not self.keeps("a repeated request is its job"):
            return "take", request, k + 1
        yield create(f"queued/{k}")
        yield tell("acknowledge", request, k)
        return None

    def next_incarnation(self, request: str, after: int) -> Program:
        """From two listings: one above the newest that is known, or the newest, when it has no tombstone."""
        newest = max([after, *(int(key[-1]) for key in (yield rows("jobs/")))])
        stones = yield rows("deleted/")
        if self.keeps("met in a later tombstone"):
            for stone in stones:
                if int(stone[-1]) > after and (yield get(stone)) == request:
                    return None
        buried = max([0, *(int(stone[-1]) for stone in stones)])
        return "take", request, newest if newest > max(after, buried) else max(newest, buried) + 1

    def acknowledge(self, before: Bucket, _: Bucket, __: None, request: str, k: int) -> tuple[Bucket, str | None]:
        error = None
        if before.get(f"~made/{request}") not in (None, str(k)):
            error = f"the request {request} {TWICE}: as {before.get(f'~made/{request}')} and as {k}"
        elif before.get(f"~job/{k}") not in (None, request):
            error = f"one incarnation for two requests: {k}"
        return before.put(f"~made/{request}", str(k)).put(f"~job/{k}", request), error

    # ---- the worker

    def worker(self, passes: int) -> Program:
        if not passes:
            return None
        entry = yield pick("queued/")
        k, then = int(entry[-1]), ("worker", passes - 1)
        won, late = yield create(f"running/{k}", sees=f"~ended/{k}")
        if not won:
            if (yield has(f"running/{k}")):
                yield drop(entry)
            return then
        early = None if self.keeps("job read after the looks") else (yield get(f"jobs/{k}"))
        last = self.options["tombstone last"] and self.keeps("tombstone looked for last")
        first = "end" if last else (yield choose("end", "deleted"))  # side by side: either answer may be the older one
        ended = (yield has(f"end/{k}")) if first == "end" else False
        buried = False if last else (yield has(f"deleted/{k}"))
        if first == "deleted":
            ended = yield has(f"end/{k}")
        job = (yield get(f"jobs/{k}")) if self.keeps("job read after the looks") else early
        if last:
            buried = yield has(f"deleted/{k}")
        if (buried or job is None) and self.keeps("gate looks for the job"):
            if not self.keeps("an orphan gets no end"):
                yield create(f"end/{k}", "lost")
            yield drop(entry)
            yield drop(f"running/{k}")
            return then
        if not ended:
            yield tell("begin", k, late)
            yield drop(entry)
            if not (yield create(f"end/{k}", "done", also=("ended", k))):
                return then
        return "settle", k, then

    def begin(self, before: Bucket, _: Bucket, __: None, k: int, late: bool) -> tuple[Bucket, str | None]:
        return before, f"{STARTED}: {k}" if late else None

    def ended(self, before: Bucket, after: Bucket, won: bool, k: int) -> tuple[Bucket, str | None]:
        if won and f"~ended/{k}" in before:  # a zombie, whose job was ended by another and deleted since
            return after.put(f"end/{k}", "late"), None
        return (after.put(f"~ended/{k}") if won else after), None

    def settle(self, k: int, then: Then) -> Program:
        yield drop(f"queued/{k}")
        if self.options["several"]:
            yield drop(f"open/{k}")
        yield drop(f"running/{k}")
        return then

    # ---- delete

    def deleter(self) -> Program:
        found = yield pick("jobs/")
        k = int(found[-1])
        request = yield get(found)
        if request is None or not (yield has(f"end/{k}")):
            return None
        if self.keeps("open/ before the tombstone"):
            yield create(f"open/{k}")
        if not self.keeps("tombstone before jobs/"):
            yield drop(f"jobs/{k}")
        yield create(f"deleted/{k}", request, also=("buried", k))
        return "finish_deletion", k, None

    def buried(self, _: Bucket, after: Bucket, __: bool, k: int) -> tuple[Bucket, str | None]:
        return after.put(f"~deleted/{k}"), None

    def finish_deletion(self, k: int, then: Then) -> Program:
        if not self.keeps("open/ last"):
            yield drop(f"open/{k}")
        if not self.keeps("jobs/ before status"):
            yield drop(f"end/{k}")
        yield drop(f"jobs/{k}")
        yield drop(f"queued/{k}", f"running/{k}")
        yield drop(f"end/{k}")
        yield drop(f"open/{k}")
        return then

    def retirer(self) -> Program:
        """A tombstone goes after 30 days, which outlive every request and every paused client; the newest of a name
        stays longer.
        """
        found = yield pick("deleted/")
        stones = yield rows("deleted/")
        if found == stones[-1] or (found == "deleted/1" and self.keeps("the first tombstone is kept")):
            return None
        yield drop(found)
        return None

    # ---- the tick

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        found = yield pick("open/", "jobs/", "running/", "deleted/")
        kind, rest = found.split("/")
        k, then = int(rest), ("tick", passes - 1)
        if kind == "deleted":
            swept = self.options["tombstones swept"] and self.keeps("tombstones are swept")
            return ("finish_deletion", k, then) if swept else then
        if (yield has(f"deleted/{k}")):
            if kind == "open":
                return "finish_deletion", k, then
            if kind == "jobs" and self.keeps("the sweep minds tombstones"):
                yield drop(found)
            elif kind == "running":
                yield drop(f"queued/{k}", found)
            return then
        if kind == "running":
            return "mend", k, then
        return ("sweep", k, then) if self.keeps("jobs/ is swept") or kind == "open" else then

    def mend(self, k: int, then: Then) -> Program:
        if not (yield has(f"end/{k}")):
            if not (yield has(f"jobs/{k}")):
                yield drop(f"queued/{k}", f"running/{k}")
                return then
            yield create(f"end/{k}", "lost", also=("ended", k))
        return "settle", k, then

    def sweep(self, k: int, then: Then) -> Program:
        if not (yield has(f"jobs/{k}")):
            return then
        for kind in ("queued", "running", "end"):
            if (yield has(f"{kind}/{k}")):
                return then
        yield create(f"queued/{k}")
        return then


def _incarnations() -> range:
    return range(1, INCARNATIONS + 2)


def _all_jobs_end(bucket: Bucket) -> bool:
    return all(f"end/{k}" in bucket for k in _incarnations() if f"jobs/{k}" in bucket and f"deleted/{k}" not in bucket)


def _all_deletions_finished(bucket: Bucket) -> bool:
    """Nothing of a buried incarnation is left, but what came late."""
    for k in _incarnations():
        if f"deleted/{k}" in bucket and any(f"{kind}/{k}" in bucket for kind in ("jobs", "open", "queued", "running")):
            return False
        if f"deleted/{k}" in bucket and bucket.get(f"end/{k}") not in (None, "late"):
            return False
    return True
