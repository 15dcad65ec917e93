"""A child and its parent: a child is over when its parent is, is ended for no other reason, and is never started after.

    parent/job  parent/verdict  parent/final  parent/gone    job  queued  running  end    verdict

The parent is judged or ends, and may be deleted then, record by record. A claimer of the child reads it after its claim
stands; a tick ends children that are queued, or run. A child's process is never over by itself when mending: only what
is looked for at the child's own keys ends it.
"""

from __future__ import annotations

from tests.model.language import (
    Answer,
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
    tell,
)

AFTER = "after its parent was over"
GOES_ON = "while its parent goes on"
OUTLIVES = "a child outlives its parent"
QUEUED = "a child that is queued"
LATE = Late(1, 0, ("queued", "running"))


class Families(Model):
    name = "families"
    question = "parents and children: who ends a child, and when"
    rules = (
        Rule("parent is over", "a tick ends a child when its parent is over", GOES_ON, "parent is over"),
        Rule(
            "gate looks for the parent",
            "a claimer of a child reads its parent",
            f"started {AFTER}",
            "gate looks for the parent",
            QUEUED,
        ),
        Rule("... after its claim", "and does so after its claim stands, not before", f"started {AFTER}"),
        Rule("a verdict is enough", "a parent is over as soon as it is judged", f"{OUTLIVES} | started {AFTER}"),
        Rule("a deletion is an end", "a parent that is not there any more is over", f"{OUTLIVES} | started {AFTER}"),
        Rule("children are looked after", "a tick looks at them, and the gate alone does not do", OUTLIVES),
        Rule("a family's end is a verdict", "it is obeyed by whoever holds the child", "under its holder"),
    )
    small = (
        Setting(QUEUED, "parent, worker 1, worker 1, tick 1", LATE),
        Setting("a child that is just submitted", "parent, submitter, worker 1, tick 1", options=(("new", True),)),
    )
    large = (
        Setting("two ticks, late requests", "parent, worker 1, worker 1, tick 2, tick 1", LATE),
        Setting("submitted, two ticks", "parent, submitter, worker 2, tick 1, tick 1", LATE, (("new", True),)),
    )

    def start(self) -> dict[str, str]:
        child = {} if self.options.get("new") else {"job": "", "queued": ""}
        return {"parent/job": "", **child}

    def mendings(self) -> tuple[Mending, ...]:
        return (Mending((("tick", 1), ("holder",)), _over, OUTLIVES, when=lambda bucket: "~over" in bucket),)

    # ---- the parent

    def parent(self) -> Program:
        if (yield choose("judged", "ended")) == "judged":
            yield create("parent/verdict", also=("ends",))
            yield create("parent/final")
        else:
            yield create("parent/final", also=("ends",))
        if (yield choose(True, False)):
            yield create("parent/gone")
            yield drop("parent/job")
            yield drop("parent/verdict")
            yield drop("parent/final")
        return None

    def ends(self, before: Bucket, after: Bucket, _: bool) -> tuple[Bucket, str | None]:
        return after.put("~over"), None

    def _parent_is_over(self) -> Answer:
        judged = yield has("parent/verdict")
        if judged and self.keeps("a verdict is enough"):
            return True
        there = yield has("parent/job")
        if not there:
            return self.keeps("a deletion is an end")
        if (yield has("parent/final")):
            return True
        return bool((yield has("parent/gone"))) and self.keeps("a deletion is an end")

    # ---- the child

    def submitter(self) -> Program:
        yield create("job")
        yield create("queued")
        return None

    def worker(self, passes: int) -> Program:
        if not passes:
            return None
        yield pick("queued")
        then = ("worker", passes - 1)
        early = not self.keeps("... after its claim")
        over = (yield from self._parent_is_over()) if early else False
        won, late = yield create("running", sees="~over")
        if not won:
            return then
        if (yield has("end")):
            return "settle", then
        if (yield has("verdict")):
            return "end", "cancelled", "holder", then
        if not early and self.keeps("gate looks for the parent"):
            over = yield from self._parent_is_over()
        if over:
            return "end", "cancelled", "holder", then
        yield tell("begin", late)
        yield drop("queued")
        return "work", then

    def begin(self, before: Bucket, _: Bucket, __: None, late: bool) -> tuple[Bucket, str | None]:
        error = f"a child that was claimed {AFTER} was started {AFTER}" if late else None
        return before.put("~run"), error

    def work(self, then: Then) -> Program:
        """Until its process is over, or it finds that it is stopped. A look may come at any time."""
        over = yield choose(True, False)
        how = "cancelled" if not over and (yield has("verdict")) else "done"
        return "end", how, "holder", then

    def holder(self) -> Program:
        """For mending: the supervisor of what runs, or the tick that reaped it; the process itself goes on and on."""
        yield pick("running")
        if (yield has("verdict")):
            return "end", "cancelled", "holder", None
        return None

    def end(self, how: str, by: str, then: Then) -> Program:
        yield create("end", how, also=("ended", by))
        return "settle", then

    def ended(self, before: Bucket, after: Bucket, won: bool, by: str) -> tuple[Bucket, str | None]:
        if won and by == "tick" and "~run" in before:
            return after, "a running child was ended under its holder"
        return (after.drop("~run") if won else after), None

    def settle(self, then: Then) -> Program:
        yield drop("queued")
        yield drop("running")
        return then

    # ---- the tick

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        then = ("tick", passes - 1)
        if not (yield has("job")):
            return then
        if (yield has("end")):
            return "settle", then
        if (yield has("verdict")):
            return "carry_out", then
        if not self.keeps("children are looked after"):
            return then
        if self.keeps("parent is over") and not (yield from self._parent_is_over()):
            return then
        if not self.keeps("a family's end is a verdict"):
            return "end", "cancelled", "tick", then
        yield create("verdict", "family", also=("judged",))
        return "carry_out", then

    def judged(self, before: Bucket, after: Bucket, won: bool) -> tuple[Bucket, str | None]:
        error = f"a child was ended {GOES_ON}" if won and "~over" not in before else None
        return after, error

    def carry_out(self, then: Then) -> Program:
        if (yield has("running")):
            how = yield get("end")
            return ("settle", then) if how is not None else then
        return "end", "cancelled", "tick", then


def _over(bucket: Bucket) -> bool:
    return "job" not in bucket or ("end" in bucket and not bucket.under("queued", "running"))
