"""Stops made by the machinery: moves off a draining machine and requeues by a person. They spend nothing, lose nothing,
and stop only what they were meant for.

    queued/<n>  later/<n>  running/<n>  end/<n> = <how>.<failures spent>    verdict  drain  order/<n>.<k> = fresh | old

A stop order names its attempt, is numbered, and says when it was decided. "old" is an order that landed more than two
minutes after that: its sender slept, or the network delivered it again. `drain` is a person's wish, which another
person may withdraw. Nobody dies here by being reaped (the core model does that), so an attempt that runs has a live
holder.
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

ATTEMPTS = 3
FAILURES_ALLOWED = 1
FINAL = ("done", "failed", "cancelled")

LOST = "the task is lost"
TAKEN_AWAY = "an order that was given is taken away, and its attempt runs on"
STUCK = "a drain that stands never empties the machine"
A_DRAIN = "a drain that is withdrawn"
A_REQUEUE = "a requeue"
A_CANCEL = "a drain and a cancel"
LATE = Late(1, 0, ("order/", "queued/", "later/"))


class Moves(Model):
    name = "moves"
    question = "stop orders: moves and requeues"
    rules = (
        Rule(
            "stale orders are ignored",
            "an order that landed two minutes after it was decided stops nothing",
            "nobody wants",
            "order in time",
            A_DRAIN,
        ),
        Rule("orders are numbered", "a burnt order does not stand in the way of the next", STUCK, setting=A_DRAIN),
        Rule(
            "orders name the attempt",
            "an order stops the attempt that it was decided for",
            "another attempt",
            setting=A_DRAIN,
        ),
        Rule(
            "the holder ends what is moved",
            "whoever orders a stop does not end the attempt",
            "two attempts run",
            setting=A_DRAIN,
        ),
        Rule(
            "a move spends nothing",
            "moved and requeued attempts leave the failure budget as it was",
            "charged",
            setting=A_DRAIN,
        ),
        Rule(
            "verdict outranks a move",
            "verdict and stop are looked for again before the end of a moved attempt",
            "after the cancel",
            setting=A_CANCEL,
        ),
        Rule(
            "requeue: new before old",
            "the open entry is created, then the waiting one deleted",
            LOST,
            "new before old",
            A_REQUEUE,
        ),
        Rule(
            "order seen, then its claim",
            "a tick drops an order when nobody holds its attempt *after* the order was seen",
            TAKEN_AWAY,
            setting=A_REQUEUE,
        ),
        Rule(
            "moved is followed",
            "the end of a moved attempt queues the next before the claim goes",
            LOST,
            "settle before delete",
            A_DRAIN,
        ),
    )
    small = (
        Setting(A_DRAIN, "worker 2, worker 1, mover 2, person", LATE),
        Setting(A_REQUEUE, "worker 2, requeuer 2, tick 1", Late(1, 0, ("order/",))),
        Setting(A_CANCEL, "worker 2, mover 2, canceller", Late(1, 0, ("order/",))),
    )
    large = (
        Setting("two workers, a drain, a requeue", "worker 2, worker 1, mover 1, requeuer 1, person", Late()),
        Setting("two workers, a drain, a cancel, a tick", "worker 2, worker 1, mover 1, canceller, tick 1", LATE),
    )

    def start(self) -> dict[str, str]:
        return {"queued/1": "", "drain": ""}

    def mendings(self) -> tuple[Mending, ...]:
        return (
            Mending((("tick", 1), ("worker", 1), ("holder", True)), _over_and_tidy, LOST),
            Mending(
                (("tick", 1), ("mover", 1), ("holder", False)), _emptied, STUCK, when=lambda bucket: "drain" in bucket
            ),
        )

    def broken(self, bucket: Bucket) -> str | None:
        for asked in bucket.under("~asked/"):
            n = asked[-1]
            holds = any(bucket.get(order) == "fresh" for order in bucket.under(f"order/{n}."))
            if not holds and f"running/{n}" in bucket and f"end/{n}" not in bucket:
                return TAKEN_AWAY
        return None

    # ---- the worker

    def worker(self, passes: int) -> Program:
        if not passes:
            return None
        entry = yield pick("queued/", "later/")
        n, then = int(entry[-1]), ("worker", passes - 1)
        if n > ATTEMPTS:
            return None
        if entry.startswith("later/"):
            return "move", n, then
        won, late = yield create(f"running/{n}", sees="~acknowledged")
        if not won:
            if (yield has(f"running/{n}")):
                yield drop(entry)
            return then
        how = yield get(f"end/{n}")
        if how is not None:
            return "settle", n, how, then
        if (yield has("verdict")):
            return "end", n, "cancelled", then
        yield tell("begin", n, late)
        yield drop(entry)
        return "work", n, then

    def begin(self, before: Bucket, _: Bucket, __: None, n: int, late: bool) -> tuple[Bucket, str | None]:
        error = None
        if before.under("~run/"):
            error = f"two attempts run at once: {before.under('~run/')[0][5:]} and {n}"
        elif late:
            error = "a claim won after the cancel was acknowledged has started"
        return before.put(f"~run/{n}"), error

    def holder(self, finishes: bool) -> Program:
        """For mending: the supervisor of whatever runs. It lives; whether its process is ever done by itself is another
        question.
        """
        found = yield pick("running/")
        return ("end", int(found[-1]), "done", None) if finishes else ("obey", int(found[-1]), None)

    def work(self, n: int, then: Then) -> Program:
        """Until the process is over or an order stops it. A look at the orders may come at any time, so one look
        decides it.
        """
        over = yield choose("done", "failed", "")
        return ("end", n, over, then) if over else ("obey", n, then)

    def obey(self, n: int, then: Then) -> Program:
        if (yield has("verdict")):
            return "end", n, "cancelled", then
        for order in (yield rows(f"order/{n}." if self.keeps("orders name the attempt") else "order/")):
            fresh = (yield get(order)) == "fresh"
            if fresh or not self.keeps("stale orders are ignored"):
                yield tell("stopped", n, order, fresh)
                return "end", n, "moved", then
        return ("end", n, "done", then) if then is not None else None

    def stopped(
        self, before: Bucket, _: Bucket, __: None, n: int, order: str, fresh: bool
    ) -> tuple[Bucket, str | None]:
        if not order.startswith(f"order/{n}."):
            return before, f"{order} stopped another attempt than its own: {n}"
        if not fresh and "drain" not in before:
            return before, "an attempt was stopped by an order that nobody wants any more"
        return before, None

    # ---- the end and what follows

    def end(self, n: int, how: str, then: Then) -> Program:
        spent = 0
        if n > 1:
            spent = _spent((yield get(f"end/{n - 1}")))
        late = False
        if how == "moved" and not self.keeps("a move spends nothing"):
            spent += 1
        if how == "failed":
            spent += 1
            how = "retry" if spent <= FAILURES_ALLOWED else "failed"
        if how == "retry" or (how == "moved" and self.keeps("verdict outranks a move")):
            over, late = yield has("verdict", sees="~acknowledged")
            if over:
                how, spent = "cancelled", spent - (how == "retry")
        elif how == "moved":
            _, late = yield has("drain", sees="~acknowledged")
        held = then is None or then[0] == "worker"
        won = yield create(f"end/{n}", f"{how}.{spent}", also=("ended", n, how, spent, late, held))
        if not won:
            return then
        return "settle", n, f"{how}.{spent}", then

    def ended(
        self, before: Bucket, after: Bucket, won: bool, n: int, how: str, spent: int, late: bool, held: bool
    ) -> tuple[Bucket, str | None]:
        if not won:
            return after, None
        failed = sum((before.get(f"end/{m}") or "").startswith("retry") for m in range(1, n)) + (
            how in ("retry", "failed")
        )
        error = None
        if spent != failed:
            error = f"{spent} failures are charged after {failed}"
        elif late and how in ("retry", "moved"):
            error = "another attempt was decided after the cancel was acknowledged"
        return (after.drop(f"~run/{n}") if held else after), error

    def settle(self, n: int, how: str, then: Then) -> Program:
        early = not self.keeps("moved is followed")
        if early:
            yield drop(f"running/{n}")
        if how.startswith(("retry", "moved")):
            if not (yield has("verdict")):
                yield create(f"later/{n + 1}" if how.startswith("retry") else f"queued/{n + 1}")
            elif not (yield has(f"running/{n + 1}")):
                yield create(f"end/{n + 1}", f"cancelled.{_spent(how)}")
        yield drop(f"queued/{n}", f"later/{n}")
        for order in (yield rows(f"order/{n}.")):
            yield drop(order)
        if not early:
            yield drop(f"running/{n}")
        return then

    def move(self, n: int, then: Then) -> Program:
        if self.keeps("requeue: new before old"):
            yield create(f"queued/{n}")
            yield drop(f"later/{n}")
        else:
            yield drop(f"later/{n}")
            yield create(f"queued/{n}")
        return then

    # ---- who orders

    def mover(self, passes: int) -> Program:
        """A tick that sees the drain and orders what runs there to stop."""
        if not passes:
            return None
        found = yield pick("running/")
        if not (yield has("drain")):
            return None
        return "order", int(found[-1]), ("mover", passes - 1)

    def order(self, n: int, then: Then) -> Program:
        if (yield has(f"end/{n}")):
            return then
        number = 1
        for standing in (yield rows(f"order/{n}.")):
            if (yield get(standing)) == "fresh":
                return then
            number = int(standing[-1]) + 1
        if not self.keeps("the holder ends what is moved"):
            return "end", n, "moved", then
        # How long it sleeps before it writes is seen in the object: last_modified against decided_at.
        slept = yield choose("fresh", "old")
        key = f"order/{n}.{number if self.keeps('orders are numbered') else 1}"
        yield create(key, slept, also=("ordered", n, slept))
        return then

    def ordered(self, _: Bucket, after: Bucket, won: bool, n: int, slept: str) -> tuple[Bucket, str | None]:
        return (after.put(f"~asked/{n}") if won and slept == "fresh" else after), None

    def person(self) -> Program:
        yield drop("drain")
        return None

    def requeuer(self, passes: int) -> Program:
        """A person's requeue: what waits goes at once, what runs is ordered to stop, what is queued stays."""
        if not passes:
            return None
        found = yield pick("running/", "later/")
        n, then = int(found[-1]), ("requeuer", passes - 1)
        return ("move", n, then) if found.startswith("later/") else ("order", n, then)

    def canceller(self) -> Program:
        yield create("verdict")
        yield tell("acknowledge")
        return None

    def acknowledge(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        return before.put("~acknowledged"), None

    # ---- the tick: here it mends, and drops orders for what nobody holds

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        before = () if self.keeps("order seen, then its claim") else (yield rows("running/"))
        found = yield pick("running/", "queued/", "later/", "order/")
        kind, rest = found.split("/")
        n, then = int(rest[0]), ("tick", passes - 1)
        how = yield get(f"end/{n}")
        if how is not None:
            return "settle", n, how, then
        if kind == "later":
            return "move", n, then
        if kind in ("queued", "order"):
            fresh = kind == "queued" or self.keeps("order seen, then its claim")
            held = (yield has(f"running/{n}")) if fresh else f"running/{n}" in before
            if held == (kind == "queued"):
                yield drop(found)
        return then


def _spent(end: str | None) -> int:
    return int(end.split(".")[1]) if end else 0


def _over_and_tidy(bucket: Bucket) -> bool:
    if any(f"end/{n}" in bucket for n in (ATTEMPTS, ATTEMPTS + 1)):
        return True  # as far as this world reaches
    over = any((bucket.get(f"end/{n}") or "").startswith(FINAL) for n in range(1, ATTEMPTS + 1))
    return over and not bucket.under("queued/", "later/", "running/", "order/")


def _emptied(bucket: Bucket) -> bool:
    return not any(f"end/{running[-1]}" not in bucket for running in bucket.under("running/"))
