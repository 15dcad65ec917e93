"""A task that waited too long to start: the tick takes it as a worker would, by its claim, and only then ends it.

    queued  running = worker | tick    end = done | unschedulable | cancelled | lost    verdict  late

`late` is the world's: from then on the task has waited too long. A tick can tell; a worker only sometimes, for it does
not know since when a later rank of a lane has waited ("worker knows"). A claim of a tick says what it is for, and
whoever finds it carries on. The end makes a verdict due, which stops the job's other tasks.
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
    create,
    drop,
    get,
    has,
    pick,
    tell,
)

STARTED = "ended as Unschedulable though it had started"
JUDGED = "judged Unschedulable though"
CANCELLED = "after the cancel was acknowledged"
LOST = "the task is lost"
RACE = "two ticks, two workers"
A_CANCEL = "a tick, a worker, a cancel"
LATE = Late(1, 1, ("queued", "running"), ("running", "queued"))
KNOWS = (("worker knows", True),)


class Overdue(Model):
    name = "overdue"
    question = "who waited too long: the tick's own claim"
    rules = (
        Rule(
            "claim before Unschedulable",
            "a tick ends only what it holds itself",
            STARTED,
            "claim before Unschedulable",
            RACE,
        ),
        Rule(
            "the end that stands is carried out",
            "it looks for an end before it ends what it won, and after that was refused",
            JUDGED,
            setting=RACE,
        ),
        Rule(
            "gate looks for the verdict",
            "it looks for a verdict, too",
            CANCELLED,
            "gate looks for the verdict",
            A_CANCEL,
        ),
        Rule("a dead tick's claim is carried on", "its claim says what it was for", LOST, setting=RACE),
        Rule(
            "verdict before letting go",
            "the verdict that the end makes due stands before the claim goes",
            LOST,
            "settle before delete",
            RACE,
        ),
    )
    small = (
        Setting(RACE, "clock, tick 1, tick 1, worker 1, worker 1", LATE),
        Setting(A_CANCEL, "clock, tick 1, worker 1, canceller", LATE, KNOWS),
    )
    large = (
        Setting("two ticks, a worker, a cancel", "clock, tick 2, tick 1, worker 1, canceller", LATE),
        Setting("two ticks twice, two workers", "clock, tick 2, tick 2, worker 1, worker 1", LATE, KNOWS),
    )

    def start(self) -> dict[str, str]:
        return {"queued": ""}

    def mendings(self) -> tuple[Mending, ...]:
        return (Mending((("clock",), ("tick", 1), ("reaper",)), _over, LOST),)

    def clock(self) -> Program:
        yield tell("passes")
        return None

    def passes(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        return before.put("late"), None

    # ---- the tick

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        found = yield pick("queued", "running", "end")
        then = ("tick", passes - 1)
        how = yield get("end")
        if found == "running":
            whose = yield get("running")
            if how is not None:
                return "settle", how, then
            if whose == "tick" and self.keeps("a dead tick's claim is carried on"):
                return "gate", False, then
            return then
        if found == "end":
            return then
        if not (yield has("late")):
            return then
        if self.keeps("claim before Unschedulable"):
            won, late = yield create("running", "tick", sees="~acknowledged")
            if not won:
                return then
            return "gate", late, then
        return then if (yield has("running")) else ("gate", False, then)

    def gate(self, late: bool, then: Then) -> Program:
        """`late`: whether a cancel had been acknowledged when the claim was won."""
        if self.keeps("the end that stands is carried out"):
            how = yield get("end")
            if how is not None:
                return "settle", how, then
        if self.keeps("gate looks for the verdict") and (yield has("verdict")):
            return "finish", "cancelled", False, then
        return "finish", "unschedulable", late, then

    def finish(self, how: str, late: bool, then: Then) -> Program:
        won = yield create("end", how, also=("ended", how, late))
        if not won and self.keeps("the end that stands is carried out"):
            how = yield get("end")
        return "settle", how, then

    def ended(self, before: Bucket, after: Bucket, won: bool, how: str, late: bool) -> tuple[Bucket, str | None]:
        if not won or how != "unschedulable":
            return after, None
        if "~started" in before:
            return after, f"the task was {STARTED}"
        return after, f"the task was ended as Unschedulable {CANCELLED}" if late else None

    def settle(self, how: str, then: Then) -> Program:
        if not self.keeps("verdict before letting go"):
            yield drop("running")
        if how == "unschedulable":
            yield create("verdict", how, also=("judged",))
        yield drop("queued")
        yield drop("running")
        return then

    def judged(self, before: Bucket, after: Bucket, won: bool) -> tuple[Bucket, str | None]:
        how = before.get("end")
        return after, f"the job was {JUDGED} its task was {how}" if won and how != "unschedulable" else None

    # ---- workers and a canceller

    def worker(self, passes: int) -> Program:
        if not passes:
            return None
        yield pick("queued")
        then = ("worker", passes - 1)
        if not (yield create("running", "worker")):
            if (yield has("running")):
                yield drop("queued")
            return then
        how = yield get("end")
        if how is not None:
            return "settle", how, then
        if (yield has("verdict")):
            return "finish", "cancelled", False, then
        if self.options.get("worker knows") and (yield has("late")):
            return "finish", "unschedulable", False, then
        yield tell("begin")
        yield drop("queued")
        return "finish", "done", False, then

    def begin(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        # Its own end may have come after its gate: such a zombie is fenced at its first look.
        return before.put("~started") if "end" not in before else before, None

    def reaper(self) -> Program:
        """For mending: the worker that held it is gone."""
        yield pick("running")
        if (yield get("running")) == "worker" and not (yield has("end")):
            return "finish", "lost", False, None
        return None

    def canceller(self) -> Program:
        yield create("verdict", "cancelled")
        yield tell("acknowledge")
        if not (yield has("running")):
            return "finish", "cancelled", False, None
        return None

    def acknowledge(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        return before.put("~acknowledged"), None


def _over(bucket: Bucket) -> bool:
    if "end" not in bucket or bucket.under("queued", "running"):
        return False
    return bucket.get("end") != "unschedulable" or "verdict" in bucket
