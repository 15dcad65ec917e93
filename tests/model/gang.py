"""A gang of two and its barrier: one placement, one verdict at the barrier, all or none, and one restart decided from
all of its ends.

    placement/<g> = <restarts charged>   running/<m>.<g>  ready/<m>.<g>  barrier/<g> = go | abort   stop/<m>.<g>
    verdict  final  open   end/<m>.<g> = ok | failure | machine | gang | barrier | cancelled

g is the generation, and the attempt of each member in it. The budget is one restart for a failure and one for a
machine; what is charged is kept in the next placement, as it can always be computed again from the ends. A member whose
peer is gone waits for it for ever: only a stop ends it.
"""

from __future__ import annotations

from tests.model.language import (
    Bucket,
    Late,
    Mending,
    Model,
    Program,
    Request,
    Rule,
    Setting,
    Then,
    choose,
    create,
    drop,
    get,
    has,
    pick,
    put,
    tell,
)

MEMBERS = ("a", "b")
GENERATIONS = 3
BUDGET = 1
GRAVITY = ("machine", "failure")

NEVER = "the gang never ends"
WAITS = "a member waits for ever for one that has ended"
UNCLAIMED = "an aborted member that nobody holds never ends"
A_SECOND_CLAIM = "two members, one claims twice"
A_DEATH = "two members, a tick"
A_CANCEL = "one member, a cancel"
TWO_TICKS = "one member, two ticks"


class Gang(Model):
    name = "gang"
    question = "a gang of two: placement, barrier, one restart"
    rules = (
        Rule("barrier is a create", "go or abort is created, not put", "the barrier said", "create-if-absent", A_DEATH),
        Rule(
            "abort before an early end",
            "who ends a member before go or abort creates abort first",
            "go though a member had ended",
            setting=A_DEATH,
        ),
        Rule(
            "go needs every member",
            "go is created by who saw every member ready",
            "go though a member is not ready",
            setting=A_DEATH,
        ),
        Rule(
            "start on go", "a member starts on go, not on what it saw itself", "started without a go", setting=A_DEATH
        ),
        Rule(
            "abort ends the unclaimed",
            "after an abort, members that nobody claimed get an end",
            UNCLAIMED,
            setting=A_DEATH,
        ),
        Rule(
            "a bad end stops the rest",
            "the settle of the first end that was not exit 0 orders stops",
            WAITS,
            setting=A_DEATH,
        ),
        Rule(
            "the complete set decides",
            "what follows is decided when every member has ended",
            "before every member had ended",
            setting=A_DEATH,
        ),
        Rule("charged once", "to the gravest cause of the set, not once an end", "charged", setting=A_DEATH),
        Rule(
            "a cancel in the set ends it",
            "no restart when a member was cancelled",
            "though a member was cancelled",
            setting=A_CANCEL,
        ),
        Rule(
            "gate looks for the end",
            "a claimer looks for the attempt's end",
            "started again",
            "gate looks for the end",
            A_SECOND_CLAIM,
        ),
    )
    small = (
        Setting(A_DEATH, "member a 1, member b 1, tick 2", Late(1, 0, ("running/",))),
        Setting(A_CANCEL, "member a 1, canceller, tick 1"),
        Setting(A_SECOND_CLAIM, "member a 2, member b 1"),
        Setting(TWO_TICKS, "member a 1, tick 2, tick 2"),
    )
    large = (
        Setting("two members twice, a tick", "member a 2, member b 2, tick 3"),
        Setting("two members, two ticks", "member a 1, member b 1, tick 2, tick 2", Late(1, 0, ("running/",))),
        Setting("two members, a cancel, a tick", "member a 1, member b 1, canceller, tick 1"),
    )

    def start(self) -> dict[str, str]:
        return {"open": "", "placement/1": "0.0"}

    def mendings(self) -> tuple[Mending, ...]:
        members = tuple((program, m, *more) for m in MEMBERS for program, *more in (("member", 1), ("holder",)))
        return (
            Mending((("tick", 1), *members), _over, NEVER),
            # Nobody has died: then nobody is reaped, and whoever waits for its peer must be told to stop.
            Mending((("mender",), *members), _over, WAITS, when=lambda bucket: not bucket.under("~dead/")),
            # The machines are gone: nobody claims any more.
            Mending((("tick", 1),), _aborted_ended, UNCLAIMED, when=lambda bucket: "open" in bucket),
        )

    def broken(self, bucket: Bucket) -> str | None:
        running = {key[-1] for key in bucket.under("~run/") if f"end/{key[5:]}" not in bucket}
        return f"generations {' and '.join(sorted(running))} run at once" if len(running) > 1 else None

    # ---- a member's worker and supervisor

    def member(self, m: str, passes: int) -> Program:
        if not passes:
            return None
        placed = yield pick("placement/")
        a, then = f"{m}.{placed[-1]}", ("member", m, passes - 1)
        if not (yield create(f"running/{a}")):
            return then
        if self.keeps("gate looks for the end") and (how := (yield get(f"end/{a}"))):
            return "settle", a, how, then
        if (yield has("verdict")):
            return "end", a, "cancelled", "claimer", then
        if (yield get(f"barrier/{a[-1]}")) == "abort":
            return "end", a, "barrier", "claimer", then
        yield create(f"ready/{a}")
        return "wait", a, then

    def wait(self, a: str, then: Then) -> Program:
        g = a[-1]
        barrier = yield get(f"barrier/{g}")
        if barrier is None:
            return "look_around", a, (yield choose(True, False)), then
        if barrier == "abort":
            return "end", a, "barrier", "supervisor", then
        yield tell("begin", a)
        return "work", a, (yield choose("ok", "failure", "dies", "stopped")), then

    def look_around(self, a: str, patient: bool, then: Then) -> Program:
        """At the barrier: everybody ready and none ended makes a go; no more patience makes an abort."""
        g = a[-1]
        if not patient:
            yield self.decide(g, "abort")
            return "wait", a, then
        for other in MEMBERS:
            if self.keeps("go needs every member") and not (yield has(f"ready/{other}.{g}")):
                return "wait", a, then
        for other in MEMBERS:
            if (yield has(f"end/{other}.{g}")):
                return "wait", a, then
        if (yield has("verdict")):
            return "end", a, "cancelled", "supervisor", then
        if not self.keeps("start on go"):
            yield tell("begin", a)
            return "work", a, "ok", then
        yield self.decide(g, "go")
        return "wait", a, then

    def decide(self, g: str, what: str) -> Request:
        write = create if self.keeps("barrier is a create") else put
        return write(f"barrier/{g}", what, also=("decided", g, what))

    def decided(self, before: Bucket, after: Bucket, won: bool | None, g: str, what: str) -> tuple[Bucket, str | None]:
        if won is None and before.get(f"barrier/{g}") not in (None, what):
            return after, f"the barrier said {before.get(f'barrier/{g}')}, and then {what}"
        if what == "go" and won is not False:
            for m in MEMBERS:
                if f"end/{m}.{g}" in before:
                    return after, "go though a member had ended"
                if f"ready/{m}.{g}" not in before:
                    return after, "go though a member is not ready"
        return after, None

    def begin(self, before: Bucket, _: Bucket, __: None, a: str) -> tuple[Bucket, str | None]:
        error = None
        if before.get(f"barrier/{a[-1]}") != "go":
            error = f"{a} was started without a go"
        elif f"~run/{a}" in before:
            error = f"{a} was started again"
        return before.put(f"~run/{a}"), error

    def work(self, a: str, how: str, then: Then) -> Program:
        if how == "dies":
            yield tell("dies", a)
            return None
        if how == "stopped":
            if (yield has("verdict")):
                return "end", a, "cancelled", "supervisor", then
            if not (yield has(f"stop/{a}")):
                return "work", a, "ok", then
            return "end", a, "gang", "supervisor", then
        return "end", a, how, "supervisor", then

    def dies(self, before: Bucket, _: Bucket, __: None, a: str) -> tuple[Bucket, str | None]:
        return before.put(f"~dead/{a}"), None

    def holder(self, m: str) -> Program:
        """For mending: the supervisor of whatever this member runs. It lives, but alone it does not finish."""
        a = (yield pick(f"running/{m}."))[8:]
        barrier = yield get(f"barrier/{a[-1]}")
        if barrier != "go":
            return "end", a, "barrier", "claimer", None
        if (yield has("verdict")):
            return "end", a, "cancelled", "supervisor", None
        if (yield has(f"stop/{a}")):
            return "end", a, "gang", "supervisor", None
        for other in MEMBERS:
            if (yield get(f"end/{other}.{a[-1]}")) not in (None, "ok"):
                return None
        return "end", a, "ok", "supervisor", None

    # ---- the end and what follows

    def end(self, a: str, how: str, by: str, then: Then) -> Program:
        g = a[-1]
        if (yield get(f"barrier/{g}")) is None and self.keeps("abort before an early end"):
            yield self.decide(g, "abort")
        if (yield create(f"end/{a}", how)):
            return "settle", a, how, then
        if by == "supervisor":
            return then
        return "settle", a, (yield get(f"end/{a}")), then

    def settle(self, a: str, how: str, then: Then) -> Program:
        if how not in ("ok", "barrier") and self.keeps("a bad end stops the rest"):
            for other in MEMBERS:
                if other != a[0]:
                    yield create(f"stop/{other}.{a[-1]}")
        yield drop(f"running/{a}")
        return then

    # ---- the tick

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        found = yield pick("running/", "open")
        then = ("tick", passes - 1)
        if found == "open":
            return "follow", then
        a = found[8:]
        how = yield get(f"end/{a}")
        return ("settle", a, how, then) if how is not None else ("end", a, "machine", "tick", then)

    def mender(self) -> Program:
        """For mending: a tick that takes nobody for dead."""
        found = yield pick("running/", "open")
        if found == "open":
            return "follow", None
        how = yield get(f"end/{found[8:]}")
        return ("settle", found[8:], how, None) if how is not None else None

    def follow(self, then: Then) -> Program:
        """The newest generation: what of it is still to end, or what follows from all of its ends."""
        newest = yield pick("placement/")
        g = newest[-1]
        if (yield has(f"placement/{int(g) + 1}")):
            return then
        charged = yield get(newest)
        judged, barrier = (yield has("verdict")), (yield get(f"barrier/{g}"))
        ends: list[str] = []
        for m in MEMBERS:
            how = yield get(f"end/{m}.{g}")
            if how is not None:
                ends.append(how)
                continue
            unclaimed = (judged or barrier == "abort") and not (yield has(f"running/{m}.{g}"))
            if unclaimed and self.keeps("abort ends the unclaimed"):
                return "end", f"{m}.{g}", "cancelled" if judged else "barrier", "tick", ("follow", then)
        if len(ends) < len(MEMBERS) and (self.keeps("the complete set decides") or not set(ends) & set(GRAVITY)):
            return then
        return "conclude", g, charged, tuple(ends), then

    def conclude(self, g: str, charged: str, ends: tuple[str, ...], then: Then) -> Program:
        outcome = self.follows(charged, ends)
        if outcome[0].isdigit():
            yield create(f"placement/{int(g) + 1}", outcome, also=("restarted", g))
            return then
        if not (yield create("verdict", outcome, also=("judged", g, outcome))):
            outcome = yield get("verdict")
        yield create("final", outcome)
        yield drop("open")
        return then

    def follows(self, charged: str, ends: tuple[str, ...]) -> str:
        """A pure function of the set: a verdict, or what the next placement has charged."""
        if "cancelled" in ends and self.keeps("a cancel in the set ends it"):
            return "Cancelled"
        if set(ends) == {"ok"}:
            return "Completed"
        counts = [int(count) for count in charged.split(".")]
        bad = [cause for cause in GRAVITY for end in ends if end == cause]
        for cause in bad[:1] if self.keeps("charged once") else bad:
            counts[GRAVITY.index(cause)] += 1
        return "Failed" if max(counts) > BUDGET else ".".join(str(count) for count in counts)

    def restarted(self, before: Bucket, after: Bucket, won: bool, g: str) -> tuple[Bucket, str | None]:
        return (after, self.wrong(before, g, after.held[f"placement/{int(g) + 1}"])) if won else (after, None)

    def judged(self, before: Bucket, after: Bucket, won: bool, g: str, outcome: str) -> tuple[Bucket, str | None]:
        return after, self.wrong(before, g, outcome) if won else None

    def wrong(self, bucket: Bucket, g: str, outcome: str) -> str | None:
        """What the protocol says, computed once more from everything the bucket holds."""
        ends = [bucket.get(f"end/{m}.{g}") for m in MEMBERS]
        if None in ends:
            return "what follows was decided before every member had ended"
        if "cancelled" in ends:
            return None if outcome == "Cancelled" else f"{outcome} though a member was cancelled"
        if set(ends) == {"ok"}:
            return None if outcome == "Completed" else f"{outcome} though all exited 0"
        counts = [0, 0]
        for one in range(1, int(g) + 1):
            causes = [bucket.get(f"end/{m}.{one}") for m in MEMBERS]
            gravest = next((cause for cause in GRAVITY if cause in causes), None)
            if gravest:
                counts[GRAVITY.index(gravest)] += 1
        right = "Failed" if max(counts) > BUDGET else ".".join(str(count) for count in counts)
        return None if outcome == right else f"{outcome} was charged where it should be {right}"

    # ---- the cancel

    def canceller(self) -> Program:
        if (yield has("final")):
            return None
        yield create("verdict", "Cancelled")
        placed = yield pick("placement/")
        return "carry_out", MEMBERS[0], placed[-1]

    def carry_out(self, m: str, g: str) -> Program:
        after = ("carry_out", "b", g) if m == "a" else None
        if (yield has(f"end/{m}.{g}")) or (yield has(f"running/{m}.{g}")):
            return after
        return "end", f"{m}.{g}", "cancelled", "canceller", after


def _aborted_ended(bucket: Bucket) -> bool:
    aborted = [key[-1] for key in bucket.under("barrier/") if bucket.get(key) == "abort"]
    return all(f"end/{m}.{g}" in bucket for m in MEMBERS for g in aborted)


def _over(bucket: Bucket) -> bool:
    if f"placement/{GENERATIONS}" in bucket:
        return True  # as far as this world reaches
    return "final" in bucket and not bucket.under("running/")
