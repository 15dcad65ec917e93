"""A job that waits for another (`after`), and the one decision on it: go, or never, whichever tick decides first.

    x/job  x/final = ok | bad  x/gone    the awaited job: there, how it ended, its tombstone
    released = go | never    held/<r>  open/<r>  running/<r>  end/<r>    verdict

The waiter is an array of two; rank 1 is released by the claim of rank 0, so one entry is written long after the
decision. The awaited job ends as was asked or otherwise, and may be deleted then; two ticks read it on either side of
that. No worker looks into `held/`.
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

RANKS = 2

EARLY = "had not come to what was asked"
GIVEN_UP = "was given up though it had been released"
LOST = "the waiter is lost"
A_DELETION = "two ticks around a deletion"
A_CANCEL = "a cancel, late entries"


class Waits(Model):
    name = "waits"
    question = "jobs that wait for jobs: one decision, and the entries"
    rules = (
        Rule("awaited jobs ended", "a waiter is released only when they have", EARLY, "awaited jobs ended"),
        Rule("... as was asked", "an end of another kind releases nobody", EARLY, setting=A_DELETION),
        Rule(
            "one decision on a waiter",
            "go and never are one create; whoever finds the other obeys it",
            GIVEN_UP,
            "one decision on a waiter",
            A_DELETION,
        ),
        Rule(
            "decided before moved",
            "released.json stands before any entry lies where workers look",
            GIVEN_UP,
            setting=A_DELETION,
        ),
        Rule(
            "new before old",
            "the open entry is created, then the held one deleted",
            LOST,
            "new before old",
            A_DELETION,
        ),
        Rule("a release is carried on", "a tick moves what one that died left in held", LOST, setting=A_DELETION),
        Rule("giving up is carried on", "a tick that finds never writes the verdict", LOST, setting=A_DELETION),
    )
    small = (
        Setting(A_DELETION, "awaited, tick 1, tick 1, worker 2"),
        Setting(A_CANCEL, "awaited, tick 1, worker 2, canceller", Late(1, 0, ("held/", "open/"))),
    )
    large = (
        Setting("two ticks twice, two workers", "awaited, tick 2, tick 2, worker 1, worker 1"),
        Setting("two ticks, late entries", "awaited, tick 2, tick 1, worker 2", Late(1, 0, ("held/", "open/"))),
        Setting("two ticks, a cancel", "awaited, tick 1, tick 1, worker 2, canceller"),
    )

    def start(self) -> dict[str, str]:
        return {"x/job": "", "held/0": ""}

    def mendings(self) -> tuple[Mending, ...]:
        return (Mending((("tick", 1), ("worker", 1), ("reaper",)), _over, LOST, when=_is_due),)

    # ---- the awaited job

    def awaited(self) -> Program:
        how = yield choose("ok", "bad")
        yield create("x/final", how, also=("came", how))
        if (yield choose(True, False)):
            yield create("x/gone")
            yield drop("x/job")
            yield drop("x/final")
        return None

    def came(self, before: Bucket, after: Bucket, _: bool, how: str) -> tuple[Bucket, str | None]:
        return (after.put("~came") if how == "ok" else after), None

    # ---- the tick

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        then = ("tick", passes - 1)
        if (yield has("verdict")):
            return "carry_out", 0, then
        decided = yield get("released")
        if decided == "go":
            return ("move", then) if self.keeps("a release is carried on") else then
        if decided == "never":
            return ("give_up", then) if self.keeps("giving up is carried on") else then
        if not self.keeps("awaited jobs ended"):
            return "release", then
        there = yield has("x/job")
        final = (yield get("x/final")) if there else None
        if not there or (yield has("x/gone")):
            return "never", then
        if final == "bad" and self.keeps("... as was asked"):
            return "never", then
        return ("release", then) if final is not None else then

    def release(self, then: Then) -> Program:
        if (yield has("verdict")):
            return then
        if not self.keeps("decided before moved"):
            for held in (yield rows("held/")):
                yield create(f"open/{held[-1]}")
                yield drop(held)
        yield create("released", "go")
        if self.keeps("one decision on a waiter") and (yield get("released")) != "go":
            return then
        return "move", then

    def move(self, then: Then) -> Program:
        for held in (yield rows("held/")):
            if self.keeps("new before old"):
                yield create(f"open/{held[-1]}")
                yield drop(held)
            else:
                yield drop(held)
                yield create(f"open/{held[-1]}")
        return then

    def never(self, then: Then) -> Program:
        if self.keeps("one decision on a waiter"):
            yield create("released", "never")
            if (yield get("released")) != "never":
                return then
        return "give_up", then

    def give_up(self, then: Then) -> Program:
        yield create("verdict", "never", also=("judged",))
        return "carry_out", 0, then

    def judged(self, before: Bucket, after: Bucket, won: bool) -> tuple[Bucket, str | None]:
        gone = before.get("released") == "go" or before.under("~run/")
        return after, f"the waiter {GIVEN_UP}" if won and gone else None

    def carry_out(self, r: int, then: Then) -> Program:
        """A verdict: what nobody holds ends, and its entries go."""
        if r == RANKS:
            return then
        following = ("carry_out", r + 1, then)
        if not (yield has(f"end/{r}")):
            if (yield has(f"running/{r}")):
                return following
            yield create(f"end/{r}", "cancelled")
        yield drop(f"open/{r}", f"held/{r}")
        return following

    # ---- workers

    def worker(self, passes: int) -> Program:
        if not passes:
            return None
        entry = yield pick("open/")
        r, then = int(entry[-1]), ("worker", passes - 1)
        if not (yield create(f"running/{r}")):
            if (yield has(f"running/{r}")):
                yield drop(f"open/{r}")
            return then
        if (yield has(f"end/{r}")):
            return "settle", r, then
        if (yield has("verdict")):
            yield create(f"end/{r}", "cancelled")
            return "settle", r, then
        yield tell("begin", r)
        if not r:
            yield from self._next()
        yield drop(f"open/{r}", f"held/{r}")
        yield create(f"end/{r}", "done")
        return "settle", r, then

    def begin(self, before: Bucket, _: Bucket, __: None, r: int) -> tuple[Bucket, str | None]:
        error = None if "~came" in before else f"a waiter was started, and the job it waits for {EARLY}"
        return before.put(f"~run/{r}"), error

    def _next(self) -> Program:
        """The lane's next rank. Which index it lies in follows from what was decided, whoever writes it."""
        if (yield has("verdict")):
            return None
        yield create("open/1" if (yield get("released")) == "go" else "held/1")
        return None

    def settle(self, r: int, then: Then) -> Program:
        gone_on = bool(r) or (yield has("open/1")) or (yield has("held/1")) or (yield has("running/1"))
        if not gone_on and not (yield has("end/1")):
            yield from self._next()
        yield drop(f"open/{r}", f"held/{r}")
        yield drop(f"running/{r}")
        return then

    def reaper(self) -> Program:
        """For mending: whoever held something is gone."""
        found = yield pick("running/")
        yield create(f"end/{found[-1]}", "lost")
        return "settle", int(found[-1]), None

    def canceller(self) -> Program:
        yield create("verdict", "cancelled")
        return "carry_out", 0, None


def _is_due(bucket: Bucket) -> bool:
    return any(key in bucket for key in ("x/final", "x/gone", "released", "verdict"))


def _over(bucket: Bucket) -> bool:
    ended = [f"end/{r}" in bucket for r in range(RANKS)]
    return all(ended) and not bucket.under("running/")
