"""Room held for an urgent job, and the eviction that makes it: who may take what is held, and whom a tick may stop.

    holds = <nonce>.u | <nonce>.    (.old: renewed by nobody for ten minutes)    echo = <nonce>
    open/<a>  running/<a>  order/<a>  end/<a> = <how>.<failures spent>    verdict

One machine with room for one task, where v1 runs. u, the head, and t, small and later than u, lie open; a retry of v
is behind both. The worker claims by itself, one step after the other. While it knows of no holds it reads none before a
claim: the bell or its sweep has it look (at any time here), and then it says in its broadcast what it saw: the echo.
Once it knows of some it reads them before each claim. Nothing is decided by a hold, so what breaks here is an order of
starts, never a task.
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
    choose,
    create,
    drop,
    get,
    has,
    put,
    rows,
)

HEAD = "u1"
ATTEMPTS = 3
NOTHING = "0."
"""What is held in the beginning: an older record, which the worker has echoed."""

TAKEN = "took the room of a task that was stopped for the head"
SAID = "took held room after the worker had said that it keeps it"
IN_VAIN = "was ordered to stop for a job that was over"
BLOCKED = "a hold of a tick that is no more keeps the machine idle"
NEVER = "the head never starts"
TWO_TICKS = "two ticks"
A_CANCEL = "a cancel"
ASLEEP = "a tick that sleeps"


class Holds(Model):
    name = "holds"
    question = "room held for the head, and evictions for it"
    rules = (
        Rule(
            "holds read before claims",
            "a worker claims by the holds that it echoed, or by newer ones, never by what it saw before",
            f"{TAKEN} | {SAID}",
            "holds read before claims",
            TWO_TICKS,
        ),
        Rule("holds obeyed", "what is not the head's leaves held room alone", f"{TAKEN} | {SAID}", "holds obeyed"),
        Rule("the head passes", "its own hold keeps nobody's job out but others'", NEVER, setting=TWO_TICKS),
        Rule("echo before evicting", "nobody is stopped before the worker has said that it obeys", TAKEN),
        Rule("the echo names the hold", "an echo of another record than the one that stands is none", TAKEN),
        Rule(
            "given up with its job",
            "before an order the tick looks whether the head was cancelled",
            IN_VAIN,
            setting=A_CANCEL,
        ),
        Rule("an order names its attempt", "an old one stops no later attempt", "another's order", setting=ASLEEP),
        Rule("a preemption is free", "it is followed by a retry and spends no failure", "was charged"),
        Rule("holds fade", "what no tick renewed for ten minutes holds nothing", BLOCKED, setting=TWO_TICKS),
    )
    small = (
        Setting(TWO_TICKS, "tick a 2, tick b 1, agent 2 0., holder 1"),
        Setting(A_CANCEL, "tick a 2, agent 2 0., holder 1, canceller"),
        Setting(ASLEEP, "tick a 2, agent 2 0., holder 2, time"),
    )
    large = (
        Setting("two ticks twice", "tick a 2, tick b 2, agent 3 0., holder 2"),
        Setting("two ticks, a cancel", "tick a 2, tick b 1, agent 2 0., holder 2, canceller"),
        Setting("late orders", "tick a 3, agent 3 0., holder 3, time", Late(1, 0, ("order/",))),
    )

    def start(self) -> dict[str, str]:
        return {"holds": NOTHING, "echo": _nonce(NOTHING), "running/v1": "", "open/u1": "", "open/t1": ""}

    def mendings(self) -> tuple[Mending, ...]:
        # No tick comes back: what it held must not matter for ever.
        alone = (("agent", 1, ""), ("holder", 1), ("time",))
        # Ticks do; and what runs of v is done only when it is told to stop.
        ticks = (("tick", "m", 1), ("agent", 1, ""), ("holder", 1, False))
        return (
            Mending(alone, lambda bucket: "end/t1" in bucket, BLOCKED),
            Mending(ticks, lambda bucket: f"end/{HEAD}" in bucket, NEVER, when=lambda bucket: "verdict" not in bucket),
        )

    def names_head(self, holds: str) -> bool:
        """Whether this record keeps room for the head now."""
        _, job, *old = holds.split(".")
        return job == "u" and not (old and self.keeps("holds fade"))

    # ---- the tick

    def tick(self, name: str, passes: int) -> Program:
        if not passes:
            return None
        then = ("tick", name, passes - 1)
        waits = yield rows(f"open/{HEAD}")
        holds = yield get("holds")
        if not waits:
            if self.names_head(holds):
                yield put("holds", f"{name}{passes}.")
            return then
        if holds.endswith(".u.old"):  # it only stands longer
            holds = holds.removesuffix(".old")
            yield put("holds", holds)
        elif not self.names_head(holds):
            holds = f"{name}{passes}.u"
            yield put("holds", holds)
            if self.keeps("echo before evicting"):
                return then
        echo = yield get("echo")
        running = yield rows("running/v")
        obeyed = echo == _nonce(holds) or not self.keeps("the echo names the hold")
        if running and (obeyed or not self.keeps("echo before evicting")):
            return "evict", running[0].removeprefix("running/"), then
        return then

    def evict(self, a: str, then: tuple[object, ...]) -> Program:
        ended, late = yield has(f"end/{a}", sees="~cancelled")
        if ended or (self.keeps("given up with its job") and (yield has("verdict"))):
            return then
        yield create(f"order/{a}", also=("ordered", a, late))
        return then

    def ordered(self, _: Bucket, after: Bucket, won: bool, a: str, late: bool) -> tuple[Bucket, str | None]:
        return after, f"{a} {IN_VAIN}" if won and late else None

    # ---- the worker

    def agent(self, passes: int, seen: str) -> Program:
        """`seen`: the holds that its next claim goes by; a fresh one has seen none and reads them."""
        if not passes:
            return None
        if (yield choose("look", "claim")) == "look":
            found = yield get("holds")
            yield put("echo", _nonce(found))
            return "agent", passes - 1, found if self.keeps("holds read before claims") else seen
        entry = yield Request("pick", keys=("open/",), also=("has_room",))
        if not seen.endswith("."):
            seen = yield get("holds")
        a, then = entry.removeprefix("open/"), ("agent", passes - 1, seen)
        passes_by = a == HEAD and self.keeps("the head passes")
        if self.names_head(seen) and not passes_by and self.keeps("holds obeyed"):
            return then
        if not (yield create(f"running/{a}", also=("claimed", a, seen))):
            return then
        if (yield has(f"end/{a}")):
            return "settle", a, then
        if a == HEAD and (yield has("verdict")):
            yield create(f"end/{a}", "cancelled.0")
            return "settle", a, then
        yield drop(entry)
        return then

    def has_room(self, before: Bucket, _: Bucket, __: str) -> tuple[Bucket, str | None] | None:
        """It lists for a claim only while nothing runs on its machine."""
        return None if before.under("running/") else (before, None)

    def claimed(self, before: Bucket, after: Bucket, won: bool, a: str, seen: str) -> tuple[Bucket, str | None]:
        if not won or a == HEAD:
            return after.drop("~freed"), None
        holds = before.held["holds"]
        if f"open/{HEAD}" not in before or "verdict" in before or not self.names_head(holds):
            return after, None
        if seen.endswith(".old"):  # it was anybody's room when it looked
            return after, None
        if "~freed" in before:
            return after, f"{a} {TAKEN}"
        return after, f"{a} {SAID}" if before.get("echo") == _nonce(holds) else None

    # ---- what runs, and its end

    def holder(self, passes: int, by_itself: bool = True) -> Program:
        """The supervisor of whatever runs. `by_itself`: whether a process of v is ever over without being stopped."""
        if not passes:
            return None
        found = yield Request("pick", keys=("running/",))
        a, then = found.removeprefix("running/"), ("holder", passes - 1, by_itself)
        if (yield has(f"end/{a}")):
            return "settle", a, then
        if a[0] != "v":
            return "end", a, "done", "", then
        how = yield choose("done", "failed", "stopped") if by_itself else choose("stopped")
        if how != "stopped":
            return "end", a, how, "", then
        orders = yield rows(f"order/{a}" if self.keeps("an order names its attempt") else "order/")
        if orders:
            return "end", a, "preempted", orders[0], then
        return ("end", a, "done", "", then) if by_itself else then

    def end(self, a: str, how: str, order: str, then: tuple[object, ...]) -> Program:
        n, spent = int(a[1:]), 0
        if n > 1:
            spent = int((yield get(f"end/{a[0]}{n - 1}"))[-1])
        if how == "failed" or (how == "preempted" and not self.keeps("a preemption is free")):
            spent += 1
        yield create(f"end/{a}", f"{how}.{spent}", also=("ended", a, how, spent, order))
        return "settle", a, then

    def ended(
        self, before: Bucket, after: Bucket, won: bool, a: str, how: str, spent: int, order: str
    ) -> tuple[Bucket, str | None]:
        if not won or how != "preempted":
            return after, None
        if order != f"order/{a}":
            return after, f"{a} was stopped by another's order: {order}"
        failed = sum((before.get(f"end/v{n}") or "").startswith("failed") for n in range(1, int(a[1:])))
        return after.put("~freed"), f"a preemption of {a} was charged" if spent != failed else None

    def settle(self, a: str, then: tuple[object, ...]) -> Program:
        how = (yield get(f"end/{a}"))[:-2]
        n = int(a[1:])
        retries = how == "preempted" or (how == "failed" and n == 1)
        if retries and n < ATTEMPTS and not (yield has(f"end/v{n + 1}")):
            yield create(f"open/v{n + 1}")
        yield drop(f"open/{a}", f"order/{a}")
        yield drop(f"running/{a}")
        return then

    # ---- the cancel, the clock

    def canceller(self) -> Program:
        yield create("verdict", also=("acknowledged",))
        if not (yield has(f"running/{HEAD}")):
            yield create(f"end/{HEAD}", "cancelled.0")
        yield drop(f"open/{HEAD}")
        return None

    def acknowledged(self, _: Bucket, after: Bucket, __: bool) -> tuple[Bucket, str | None]:
        return after.put("~cancelled"), None

    def time(self) -> Program:
        """Ten minutes in which no tick renewed anything, if that is so."""
        holds = yield get("holds")
        if holds.endswith(".u"):
            yield put("holds", f"{holds}.old", also=("faded", holds))
        return None

    def faded(self, before: Bucket, after: Bucket, _: None, holds: str) -> tuple[Bucket, str | None] | None:
        return (after, None) if before.get("holds") == holds else None


def _nonce(holds: str) -> str:
    return holds.split(".")[0]
