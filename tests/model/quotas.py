"""Quotas: what a workspace runs while its quota is set and lifted, with entries in both indexes and two ticks.

    quota = <tasks at once>    open/<a>  held/<a>  order/<a>  running/<a>  end/<a>    lock    now = <minute>

Two tasks of one workspace, of which its quota lets one run. While it has one, its entries belong in `held`, where only
a tick's order starts them; without, in `open`, where the worker claims by itself. The worker reads the workspace's
record when what it knows is of an earlier minute. The order of a tick's listings is part of the model: a task goes from
its entry to an order, and from there to a claim, so whoever looks the other way round can miss it twice. Not part of it
is the slow sweep of all jobs, which writes an entry anew where none is left: here that must not be needed.
"""

from __future__ import annotations

from tests.model.language import (
    Bucket,
    Mending,
    Model,
    Program,
    Request,
    Rule,
    Setting,
    create,
    drop,
    get,
    has,
    put,
    rows,
)

AT_ONCE = 1
TOO_MANY = "is given beside another though the quota is one"
BY_ITSELF = "was claimed by a worker itself a minute after its workspace got a quota"
FOR_EVER = "waits for ever"
SET, LIFTED, BOTH = "a quota is set", "a quota is lifted", "set and lifted"


class Quotas(Model):
    name = "quotas"
    question = "what a workspace runs at once, while its quota is set or lifted"
    rules = (
        Rule(
            "one tick at a time",
            "the lock: of two that saw the quota set and lifted each may take the other's new entry for the old one",
            FOR_EVER,
            setting=BOTH,
        ),
        Rule("what runs counts", "a claim holds its share of the quota until it ended", TOO_MANY),
        Rule("what is promised counts", "an order holds its share before it is claimed", TOO_MANY),
        Rule(
            "no order is missed",
            "of what was given and is neither among the orders nor among the claims, the claim is looked for",
            TOO_MANY,
            "no order is missed",
        ),
        Rule(
            "read once a minute", "a worker knows a workspace's record as it was a minute ago at the latest", BY_ITSELF
        ),
        Rule(
            "passed over",
            "a worker that knows of the quota claims nothing of its workspace by itself",
            BY_ITSELF,
            "quotas are kept by ticks",
        ),
        Rule("moved to held", "a tick moves what lies in open under a quota", FOR_EVER, setting=SET),
        Rule("moved to open", "and back, where there is none any more", FOR_EVER, setting=LIFTED),
        Rule("new before old", "the new entry is there before the old one goes", FOR_EVER, "new before old"),
    )
    small = (
        Setting(SET, "admin 1, tick a 2, worker 2 0 free, time"),
        Setting(LIFTED, "admin 1, tick a 2, tick b 1, worker 2 0 1, holder 1", options=(("quota", True),)),
    )
    large = (Setting(BOTH, "admin 2, tick a 2, tick b 1, worker 2 0 1, holder 1, time", options=(("quota", True),)),)

    def start(self) -> dict[str, str]:
        found = {"now": "0"}
        if self.options.get("quota"):
            return {**found, "quota": str(AT_ONCE), "held/p1": "", "held/p2": "", "~since": "0"}
        return {**found, "open/p1": "", "open/p2": ""}

    def mendings(self) -> tuple[Mending, ...]:
        later = (("tick", "m", 1), ("worker", 1, "later", ""), ("holder", 1))
        return (Mending(later, lambda bucket: "end/p1" in bucket and "end/p2" in bucket, FOR_EVER),)

    # ---- a person

    def admin(self, times: int) -> Program:
        if not times:
            return None
        if (yield has("quota")):
            yield drop("quota", also=("lifted",))
        else:
            yield put("quota", str(AT_ONCE), also=("set",))
        return "admin", times - 1

    def set(self, before: Bucket, after: Bucket, _: None) -> tuple[Bucket, str | None]:
        return after.put("~since", before.held["now"]), None

    def lifted(self, _: Bucket, after: Bucket, __: None) -> tuple[Bucket, str | None]:
        return after.drop("~since"), None

    def time(self) -> Program:
        yield put("now", "1")
        return None

    # ---- the tick

    def tick(self, name: str, passes: int) -> Program:
        """`m`: one that comes when whoever held the lock is long dead."""
        if not passes:
            return None
        then: tuple[object, ...] = ("tick", name, passes - 1)
        if name != "m" and self.keeps("one tick at a time"):
            if not (yield create("lock", name)):
                return then
            then = ("leave", then)
        running = [key.removeprefix("running/") for key in (yield rows("running/"))]
        held = [key.removeprefix("held/") for key in (yield rows("held/"))]
        opened = [key.removeprefix("open/") for key in (yield rows("open/"))]
        ordered = [key.removeprefix("order/") for key in (yield rows("order/"))]
        if (yield get("quota")):
            if opened and self.keeps("moved to held"):
                return "move", opened[0], "open/", "held/", then
            return "give", tuple(running), tuple(held), tuple(ordered), then
        if held and self.keeps("moved to open"):
            return "move", held[0], "held/", "open/", then
        return then

    def leave(self, then: tuple[object, ...]) -> Program:
        yield drop("lock")
        return then

    def move(self, a: str, of: str, to: str, then: tuple[object, ...]) -> Program:
        if (yield has(f"running/{a}")):
            yield drop(f"{of}{a}")
            return then
        if self.keeps("new before old"):
            yield create(f"{to}{a}")
            yield drop(f"{of}{a}")
        else:
            yield drop(f"{of}{a}")
            yield create(f"{to}{a}")
        return then

    def give(
        self, running: tuple[str, ...], held: tuple[str, ...], ordered: tuple[str, ...], then: tuple[object, ...]
    ) -> Program:
        counted = set(running) if self.keeps("what runs counts") else set()
        if self.keeps("what is promised counts"):
            counted |= set(ordered)
        for a in ("p1", "p2") if self.keeps("no order is missed") else ():
            if a not in (*held, *running, *ordered) and (yield has(f"running/{a}")):
                counted.add(a)
        free = [a for a in held if a not in running and a not in ordered]
        if free and len(counted) < AT_ONCE:
            yield create(f"order/{free[0]}", also=("given", free[0]))
        return then

    def given(self, before: Bucket, after: Bucket, won: bool, a: str) -> tuple[Bucket, str | None]:
        """Beside what holds a share: orders, and what was claimed by one. (What a worker claimed by itself within the
        minute in which the quota came is beyond it, and nobody promised otherwise.)"""
        if not won or f"end/{a}" in before or f"running/{a}" in before:
            return after, None
        held = {key.split("/")[1] for key in before.under("order/", "~placed/")} - {a}
        held = {one for one in held if f"end/{one}" not in before}
        return after, f"{a} {TOO_MANY}" if held and "~since" in before else None

    # ---- the worker

    def worker(self, passes: int, minute: str, known: str) -> Program:
        """`known`: the quota as of `minute`; empty: none."""
        if not passes:
            return None
        known = "" if known == "free" else str(known)
        found = yield Request("pick", keys=("open/", "order/"))
        now = yield get("now")
        if str(minute) != now and self.keeps("read once a minute"):
            known = (yield get("quota")) or ""
        index, a = found.split("/")
        then = ("worker", passes - 1, now, known or "free")
        if index == "open" and known and self.keeps("passed over"):
            return then
        if (yield create(f"running/{a}", also=("claimed", a, index, now, known))):
            if (yield has(f"end/{a}")):
                yield drop(f"running/{a}", f"open/{a}", f"held/{a}", f"order/{a}")
                return then
            yield drop(f"open/{a}", f"held/{a}")
            yield drop(f"order/{a}")
        return then

    def claimed(
        self, before: Bucket, after: Bucket, won: bool, a: str, index: str, now: str, known: str
    ) -> tuple[Bucket, str | None]:
        if not won or f"end/{a}" in before:
            return after, None
        if index == "order":
            return after.put(f"~placed/{a}"), None
        since = before.get("~since")
        late = since is not None and (now > since or bool(known))
        return after, f"{a} {BY_ITSELF}" if late else None

    # ---- what runs

    def holder(self, passes: int) -> Program:
        if not passes:
            return None
        found = yield Request("pick", keys=("running/",))
        a = found.removeprefix("running/")
        yield create(f"end/{a}")
        yield drop(f"open/{a}", f"held/{a}", f"order/{a}")
        yield drop(f"running/{a}")
        return "holder", passes - 1
