"""One task and its attempts: who may start one, how it ends, how the next one comes, and what a cancel does to all of
it.

    queued/<n>  later/<n>  running/<n>  end/<n> = done | failed | retry | cancelled    verdict  stop  cancels

The whole of the claim, the gate, the end, settle, the retry and the cancel, between workers, ticks, a canceller, and a
network that delivers entries, claims and deletions again. The task has no `open/` index, so whatever loses its entry
and its claim is lost.
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
    put,
    tell,
)

ATTEMPTS = 2
FINAL = ("done", "failed", "cancelled")

STARTED = "was started"
LOST = "the task is lost"
AFTER_CANCEL = "after the cancel was acknowledged"
FORGOTTEN = "an acknowledged cancel was forgotten"

NO_CANCEL = "two workers, one twice, a tick"
LATE_KEYS = (("queued/", "later/", "running/"), ("running/", "queued/"))
LATE = Late(1, 1, *LATE_KEYS)


class Core(Model):
    name = "core"
    question = "one task: claim, gate, end, settle, retry, cancel"
    rules = (
        Rule("claim is a create", "a claim is created, not put", STARTED, "create-if-absent"),
        Rule(
            "gate after the claim",
            "what forbids a start is looked for after the claim was won, not before",
            STARTED,
            setting=NO_CANCEL,
        ),
        Rule("gate looks for the end", "a claimer looks for the attempt's end", STARTED, "gate looks for the end"),
        Rule("gate looks for the verdict", "... for the job's verdict", AFTER_CANCEL, "gate looks for the verdict"),
        Rule(
            "gate looks for the stop", "... for a person's stop of this task", AFTER_CANCEL, "gate looks for the stop"
        ),
        Rule(
            "failed gate settles",
            "a claimer that finds the end settles it before it lets go",
            LOST,
            "failed gate settles",
        ),
        Rule("claim before entry goes", "the entry is deleted by whoever holds the claim, not before", LOST),
        Rule("end is a create", "the end record is created, not put", "overwritten", "create-if-absent"),
        Rule("end before letting go", "the claim stands until the end record does", LOST),
        Rule(
            "end before next",
            "the next entry is created when the end that decided it stands (open rule)",
            "before the one before it",
            setting=NO_CANCEL,
        ),
        Rule(
            "settle before delete",
            "the next entry is created before the claim is deleted",
            LOST,
            "settle before delete",
        ),
        Rule("fenced writes nothing", "a supervisor that finds its attempt ended leaves the claim to others", LOST),
        Rule(
            "new before old",
            "a retry that has become due: its open entry is created, then the waiting one deleted",
            LOST,
            "new before old",
        ),
        Rule(
            "retry obeys verdict",
            "before an end decides retry, verdict and stop are looked for",
            AFTER_CANCEL,
            "retry obeys verdict",
        ),
        Rule(
            "retry under a verdict is ended",
            "settle ends the next attempt when a verdict keeps it from queueing it",
            LOST,
        ),
        Rule(
            "look for the claim first",
            "a canceller ends only what nobody holds",
            "under its holder",
            "look for the claim first",
        ),
        Rule("verdict before index", "the verdict or stop first, then its index", FORGOTTEN, "verdict before index"),
        Rule("index before the answer", "a cancel is acknowledged when its index stands", FORGOTTEN),
    )
    small = (
        Setting("two workers, a tick, a cancel", "worker 1, worker 1, tick 1, canceller", LATE),
        Setting(NO_CANCEL, "worker 2, worker 1, tick 1", LATE),
    )
    large = (
        Setting("two workers, two ticks", "worker 1, worker 1, tick 1, tick 1", LATE),
        Setting("two workers, two ticks, a cancel", "worker 1, worker 1, tick 1, tick 1, canceller"),
        Setting("two workers twice, a tick", "worker 2, worker 2, tick 1", LATE),
        Setting("a worker twice, a tick twice, a cancel", "worker 2, tick 2, canceller", LATE),
        Setting("a worker thrice, a tick twice, more late requests", "worker 3, tick 2", Late(2, 2, *LATE_KEYS)),
    )

    def start(self) -> dict[str, str]:
        return {"queued/1": ""}

    def mendings(self) -> tuple[Mending, ...]:
        tick, worker = ("tick", 1), ("worker", 1)
        return (
            Mending((tick, worker), _over_and_tidy, LOST),
            Mending((tick,), _over_and_tidy, FORGOTTEN, when=lambda bucket: "~acknowledged" in bucket),
        )

    def broken(self, bucket: Bucket) -> str | None:
        return "two final ends" if sum(bucket.get(f"end/{n}") in FINAL for n in _attempts()) > 1 else None

    # ---- the worker and its supervisor

    def worker(self, passes: int) -> Program:
        if not passes:
            return None
        entry = yield pick("queued/", "later/")
        then = ("worker", passes - 1)
        n = int(entry[-1])
        return ("claim", n, then) if entry.startswith("queued/") else ("move", n, then)

    def claim(self, n: int, then: Then) -> Program:
        if not self.keeps("gate after the claim") and (how := (yield get(f"end/{n}"))):
            return "settle", n, how, then
        if not self.keeps("claim before entry goes"):
            yield drop(f"queued/{n}")
        if self.keeps("claim is a create"):
            won, late = yield create(f"running/{n}", sees="~acknowledged")
        else:
            _, late = yield put(f"running/{n}", sees="~acknowledged")
            won = True
        if won:
            return "gate", n, late, then
        if (yield has(f"running/{n}")):
            yield drop(f"queued/{n}")
        return then

    def gate(self, n: int, late: bool, then: Then) -> Program:
        """`late`: whether the cancel had been acknowledged when the claim was won."""
        after = self.keeps("gate after the claim")
        how = (yield get(f"end/{n}")) if after and self.keeps("gate looks for the end") else None
        if how is not None:
            if self.keeps("failed gate settles"):
                return "settle", n, how, then
            yield drop(f"running/{n}")
            return then
        if after and self.keeps("gate looks for the verdict") and (yield has("verdict")):
            return "end", n, "cancelled", "claimer", then
        if after and self.keeps("gate looks for the stop") and (yield has("stop")):
            return "end", n, "cancelled", "claimer", then
        yield tell("begin", n, late)
        yield drop(f"queued/{n}")
        how = yield choose("done", "failed")
        if not self.keeps("end before letting go"):
            yield drop(f"running/{n}")
        return "end", n, how, "supervisor", then

    def begin(self, before: Bucket, _: Bucket, __: None, n: int, late: bool) -> tuple[Bucket, str | None]:
        error = None
        # Its *own* end may have come after its gate: such a zombie is fenced at its first look, and what followed is
        # not its doing.
        if f"end/{n}" not in before and any(before.get(f"end/{other}") in FINAL for other in _attempts()):
            error = "a finished task was started again"
        elif f"~started/{n}" in before:
            error = "one attempt was started twice"
        elif late:
            error = f"a claim won {AFTER_CANCEL} has started"
        elif n > 1 and f"end/{n - 1}" not in before:
            error = "an attempt was started before the one before it had ended"
        return before.put(f"~started/{n}"), error

    # ---- the end and what follows

    def end(self, n: int, how: str, by: str, then: Then) -> Program:
        """`how` failed or down: another attempt follows, while there are any left."""
        late = False
        if how in ("failed", "down"):
            how = "retry" if n < ATTEMPTS else "failed"
        if how == "retry":
            judged, late = yield has("verdict", sees="~acknowledged")
            over = judged or (yield has("stop"))
            if over and self.keeps("retry obeys verdict"):
                how = "cancelled"
            elif not self.keeps("end before next"):
                yield create(f"later/{n + 1}")
        write = create if self.keeps("end is a create") else put
        won = yield write(f"end/{n}", how, also=("ended", n, how, by, late))
        if won is not False:
            return "settle", n, how, then
        if by != "supervisor":
            return "settle", n, (yield get(f"end/{n}")), then
        if not self.keeps("fenced writes nothing"):
            yield drop(f"running/{n}")
        return then

    def ended(
        self, before: Bucket, after: Bucket, won: bool | None, n: int, how: str, by: str, late: bool
    ) -> tuple[Bucket, str | None]:
        if won is None and before.get(f"end/{n}") not in (None, how):
            return after, "an end record was overwritten"
        if won and late and how == "retry":
            return after, f"a retry was decided {AFTER_CANCEL}"
        if won and by == "canceller" and f"~started/{n}" in before:
            return after, "a running attempt was ended under its holder"
        return after, None

    def settle(self, n: int, how: str, then: Then) -> Program:
        early = not self.keeps("settle before delete")
        if early:
            yield drop(f"running/{n}")
        if how == "retry":
            if not (yield has("verdict")):
                yield create(f"later/{n + 1}")
            elif self.keeps("retry under a verdict is ended") and not (yield has(f"running/{n + 1}")):
                yield create(f"end/{n + 1}", "cancelled")
        yield drop(f"queued/{n}", f"later/{n}")
        if not early:
            yield drop(f"running/{n}")
        return then

    def move(self, n: int, then: Then) -> Program:
        if self.keeps("new before old"):
            yield create(f"queued/{n}")
            yield drop(f"later/{n}")
        else:
            yield drop(f"later/{n}")
            yield create(f"queued/{n}")
        return then

    # ---- the cancel

    def canceller(self) -> Program:
        decision = yield choose("verdict", "stop")
        first, second = (decision, "cancels") if self.keeps("verdict before index") else ("cancels", decision)
        yield create(first)
        if not self.keeps("index before the answer"):
            yield tell("acknowledge")
        yield create(second)
        yield tell("acknowledge")
        return ("carry_out", None)

    def acknowledge(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        return before.put("~acknowledged"), None

    def carry_out(self, then: Then) -> Program:
        """A queued attempt is ended here, a held one by its holder. Also a pass of the tick."""
        if not (yield has("verdict")) and not (yield has("stop")):
            yield drop("cancels")
            return then
        for n in _attempts():
            how = yield get(f"end/{n}")
            if how is None:
                break
            if how in FINAL:
                yield drop("cancels")
                return then
        if self.keeps("look for the claim first") and (yield has(f"running/{n}")):
            return then
        return "end", n, "cancelled", "canceller", then

    # ---- the tick

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        found = yield pick("running/", "queued/", "later/", "cancels")
        then = ("tick", passes - 1)
        if found == "cancels":
            return ("carry_out", then)
        n = int(found[-1])
        if found.startswith("later/"):
            return "move", n, then
        how = yield get(f"end/{n}")
        if how is not None:
            return "settle", n, how, then
        if found.startswith("running/"):
            return "end", n, "down", "tick", then
        if (yield has(f"running/{n}")):
            yield drop(found)
        return then


def _attempts() -> range:
    return range(1, ATTEMPTS + 1)


def _over_and_tidy(bucket: Bucket) -> bool:
    over = any(bucket.get(f"end/{n}") in FINAL for n in _attempts())
    return over and not bucket.under("queued/", "later/", "running/", "cancels")
