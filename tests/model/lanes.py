"""Lanes of an array: which rank may be released when, with `max_parallel` = K and without it.

    queued/<r>.<n>  running/<r>.<n>  end/<r>.<n> = done | failed | lost | cancelled | retry    stop/<r>  cancels/<r>
    verdict  cancels/job  open

Programs look at the *direct* predecessor r - K only, as the shipped code does. The invariant is the protocol's sentence
about *every* earlier rank of the lane, judged in every state: so the model decides whether the induction holds, under
entries, claims and deletions that arrive again, stops of ranks that are not released yet, verdicts, and claimers that
die between their claim and their release.
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

FINAL = ("done", "failed", "lost", "cancelled")

LOST = "a rank is lost"
EARLY = "released too early"
UNDER_VERDICT = "under a verdict"

ONE_PUT = Late(1, 0, ("queued/", "running/"))
LATE_KEYS = (("queued/", "running/"), ("running/", "queued/"))
LATE = Late(1, 1, *LATE_KEYS)
CAPPED = (("ranks", 3), ("K", 1), ("attempts", 1), ("capped", True))
UNCAPPED = (("ranks", 3), ("K", 1), ("attempts", 1), ("capped", False))
RETRIES = (("ranks", 2), ("K", 1), ("attempts", 2), ("capped", True))
LONG = (("ranks", 4), ("K", 1), ("attempts", 1), ("capped", True))
WIDE = (("ranks", 4), ("K", 2), ("attempts", 1), ("capped", True))


class Lanes(Model):
    name = "lanes"
    question = "arrays: which rank is released when, and none lost"
    rules = (
        Rule(
            "capped lanes wait for the end",
            "with max_parallel a rank is released by an end, not by a claim",
            EARLY,
            "lane rule",
            "capped, a stop",
        ),
        Rule("a retry releases nothing", "... and only by a final one", EARLY, "lane rule", "capped, a retry"),
        Rule("stop of an unreleased rank", "it writes the stop and no end", EARLY, setting="capped, a stop"),
        Rule(
            "verdict before release",
            "an end releases nothing when a verdict stands",
            f"released {UNDER_VERDICT}",
            "verdict before release",
            "capped, a verdict",
        ),
        Rule(
            "gate looks for the verdict",
            "a rank released by one who looked just before the verdict is not started",
            f"started {UNDER_VERDICT}",
            "gate looks for the verdict",
            "capped, a verdict",
        ),
        Rule(
            "a dead claimer's release is mended",
            "a mender's settle and the tick's walk release again",
            LOST,
            setting="uncapped, a stop",
        ),
    )
    small = (
        Setting("capped, a stop", "worker 2, worker 1, stopper", Late(), CAPPED),
        Setting("capped, a verdict", "worker 2, worker 1, judge", ONE_PUT, CAPPED),
        Setting("capped, a retry", "worker 2, worker 1, tick 1", ONE_PUT, RETRIES),
        Setting("capped, late entries and deletions", "worker 2, worker 1", LATE, CAPPED),
        Setting("uncapped, a stop", "worker 2, worker 1, stopper", Late(), UNCAPPED),
        Setting("uncapped, late entries", "worker 2, worker 1", ONE_PUT, UNCAPPED),
    )
    large = (
        Setting("capped, two ticks", "worker 2, tick 1, tick 1", LATE, CAPPED),
        Setting("uncapped, a tick", "worker 2, worker 1, tick 1", ONE_PUT, UNCAPPED),
        Setting("capped, a stop, late requests", "worker 2, worker 1, stopper", LATE, CAPPED),
        Setting("capped, a stop and a tick", "worker 2, worker 1, tick 1, stopper", Late(), CAPPED),
        Setting("capped, a stop and a verdict", "worker 2, worker 1, stopper, judge", Late(), CAPPED),
        Setting("capped, retries and a stop", "worker 2, worker 1, tick 1, stopper", Late(), RETRIES),
        Setting("uncapped, a stop, late requests", "worker 2, worker 1, stopper", LATE, UNCAPPED),
        Setting("uncapped, a stop and a verdict", "worker 2, worker 1, stopper, judge", Late(), UNCAPPED),
        Setting("capped, more late requests", "worker 2, worker 2, tick 1", Late(2, 2, *LATE_KEYS), CAPPED),
        Setting("uncapped, more late requests", "worker 2, worker 2", Late(2, 2, *LATE_KEYS), UNCAPPED),
        Setting("a lane of four", "worker 3, worker 1, stopper", ONE_PUT, LONG),
        Setting("two lanes, two workers", "worker 2, worker 2", LATE, WIDE),
    )

    def start(self) -> dict[str, str]:
        return {"open": "", **{f"queued/{rank}.1": "" for rank in range(self.options["K"])}}

    @property
    def ranks(self) -> range:
        return range(self.options["ranks"])

    # ---- what must hold

    def mendings(self) -> tuple[Mending, ...]:
        return (Mending((("tick", 1), ("worker", 1)), self.is_over, LOST),)

    def is_over(self, bucket: Bucket) -> bool:
        if bucket.under("queued/", "running/"):
            return False
        return all(self.is_final(bucket, r) or ("verdict" in bucket and f"end/{r}.1" not in bucket) for r in self.ranks)

    def is_final(self, bucket: Bucket, rank: int) -> bool:
        return any(bucket.get(f"end/{rank}.{n}") in FINAL for n in range(1, self.options["attempts"] + 1))

    def broken(self, bucket: Bucket) -> str | None:
        for rank in self.ranks:
            if any(f"{kind}/{rank}.1" in bucket for kind in ("queued", "running", "end", "~run")):
                for earlier in range(rank - self.options["K"], -1, -self.options["K"]):
                    if not self.lets_go_on(bucket, earlier):
                        return f"rank {rank} was {EARLY}: rank {earlier} of its lane is not that far"
        if self.options["capped"]:
            held = {key[5:6] for key in bucket.under("~run/") if f"end/{key[5:]}" not in bucket}
            if len(held) > self.options["K"]:
                return f"{len(held)} ranks hold machines, {self.options['K']} may"
        return None

    def lets_go_on(self, bucket: Bucket, rank: int) -> bool:
        """The rule's words, for one earlier rank. A claim is remembered by its ghost: it may be gone again."""
        if self.options["capped"]:
            return self.is_final(bucket, rank)
        return f"~claimed/{rank}.1" in bucket or f"end/{rank}.1" in bucket

    # ---- the worker

    def worker(self, passes: int) -> Program:
        if not passes:
            return None
        entry = yield pick("queued/")
        a = entry.removeprefix("queued/")
        then = ("worker", passes - 1)
        won, judged = yield create(f"running/{a}", sees="verdict", also=("claimed", a))
        if not won:
            if (yield has(f"running/{a}")):
                yield drop(entry)
            return then
        how = yield get(f"end/{a}")
        if how is not None:
            return "settle", a, how, "mender", then
        if self.keeps("gate looks for the verdict") and (yield has("verdict")):
            return "end", a, "cancelled", "claimer", then
        if (yield has(f"stop/{a[0]}")):
            return "end", a, "cancelled", "claimer", then
        following = self.successor(a)
        if following and (not self.options["capped"] or not self.keeps("capped lanes wait for the end")):
            yield create(f"queued/{following}")
        yield tell("begin", a, judged)
        yield drop(entry)
        how = yield choose("done", "failed")
        return "end", a, how, "supervisor", then

    def claimed(self, _: Bucket, after: Bucket, won: bool, a: str) -> tuple[Bucket, str | None]:
        return (after.put(f"~claimed/{a}") if won else after), None

    def begin(self, before: Bucket, _: Bucket, __: None, a: str, judged: bool) -> tuple[Bucket, str | None]:
        return before.put(f"~run/{a}"), f"rank {a[0]} was started {UNDER_VERDICT}" if judged else None

    def successor(self, a: str) -> str | None:
        following = int(a[0]) + self.options["K"]
        return f"{following}.1" if a.endswith(".1") and following in self.ranks else None

    # ---- the end and what follows

    def end(self, a: str, how: str, by: str, then: Then) -> Program:
        rank, n = int(a[0]), int(a[2])
        if how in ("failed", "lost") and n < self.options["attempts"]:
            over = (yield has("verdict")) or (yield has(f"stop/{rank}"))
            how = "cancelled" if over else "retry"
        won, judged = yield create(f"end/{a}", how, sees="verdict")
        if won:
            return "settle", a, how, f"{by}, late" if judged else by, then
        if by == "supervisor":
            return then
        return "settle", a, (yield get(f"end/{a}")), "mender", then

    def settle(self, a: str, how: str, by: str, then: Then) -> Program:
        """`by` ends in "late" when a verdict stood before the end did."""
        rank, n = int(a[0]), int(a[2])
        judged = self.keeps("verdict before release") and (yield has("verdict"))
        if how == "retry":
            if not judged:
                yield create(f"queued/{rank}.{n + 1}")
            elif not (yield has(f"running/{rank}.{n + 1}")):
                yield create(f"end/{rank}.{n + 1}", "cancelled")
        following = self.follower(rank, how, by, n)
        if following and not judged:
            seen = by != "supervisor" and (yield from self.trace(following))
            if not seen:
                yield create(f"queued/{following}", also=("released", by))
        yield drop(f"queued/{a}")
        yield drop(f"running/{a}")
        return then

    def follower(self, rank: int, how: str, by: str, n: int) -> str | None:
        """Which rank this end releases, by its direct predecessor alone."""
        following = self.successor(f"{rank}.1")
        if self.options["capped"]:
            return following if how in FINAL or not self.keeps("a retry releases nothing") else None
        mends = by != "supervisor" and self.keeps("a dead claimer's release is mended")
        return following if mends and (how in FINAL or n == 1) else None

    def released(self, _: Bucket, after: Bucket, won: bool, by: str) -> tuple[Bucket, str | None]:
        return after, f"a rank was released {UNDER_VERDICT} that stood before the end" if by.endswith("late") else None

    def trace(self, a: str) -> Answer:
        """Whether a rank was ever released: asked in the order in which it passes."""
        for kind in ("queued", "running", "end"):
            if (yield has(f"{kind}/{a}")):
                return True
        return False

    # ---- stops and verdicts

    def stopper(self) -> Program:
        rank = yield choose(*self.ranks)
        yield create(f"stop/{rank}")
        yield create(f"cancels/{rank}")
        return "carry_out_stop", rank, None

    def carry_out_stop(self, rank: int, then: Then) -> Program:
        for n in range(1, self.options["attempts"] + 1):
            how = yield get(f"end/{rank}.{n}")
            if how is None:
                break
            if how in FINAL:
                yield drop(f"cancels/{rank}")
                return then
        a = f"{rank}.{n}"
        if rank >= self.options["K"] and n == 1 and self.keeps("stop of an unreleased rank"):
            traced = yield from self.trace(a)
            if not traced:
                return then
        if (yield has(f"running/{a}")):
            return then
        return "end", a, "cancelled", "canceller", then

    def judge(self) -> Program:
        yield create("verdict")
        yield create("cancels/job")
        return "carry_out", 0, None

    def carry_out(self, rank: int, then: Then) -> Program:
        """Under a verdict: every released rank that nobody holds is ended; what lies beyond the first untraced rank of
        a lane never was released.
        """
        if rank not in self.ranks:
            return then
        onward = ("carry_out", rank + 1, then)
        for n in range(1, self.options["attempts"] + 1):
            how = yield get(f"end/{rank}.{n}")
            if how is None:
                break
            if how in FINAL:
                return onward
        a = f"{rank}.{n}"
        if rank >= self.options["K"] and n == 1:
            traced = yield from self.trace(a)
            if not traced:
                return onward
        if (yield has(f"running/{a}")):
            return onward
        return "end", a, "cancelled", "canceller", onward

    # ---- the tick

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        found = yield pick("running/", "queued/", "cancels/", "open")
        then = ("tick", passes - 1)
        if found == "open":
            return "walk", self.options["K"], then
        if found == "cancels/job":
            return "carry_out", 0, then
        kind, a = found.split("/")
        if kind == "cancels":
            return "carry_out_stop", int(a), then
        how = yield get(f"end/{a}")
        if how is not None:
            return "settle", a, how, "mender", then
        if kind == "running":
            return "end", a, "lost", "tick", then
        if (yield has(f"running/{a}")):
            yield drop(found)
        return then

    def walk(self, rank: int, then: Then) -> Program:
        """Along the ranks: the first without a trace whose predecessor is far enough is released, unless a verdict
        stands.
        """
        if rank not in self.ranks or not self.keeps("a dead claimer's release is mended"):
            return then
        traced = yield from self.trace(f"{rank}.1")
        if traced:
            return ("walk", rank + 1, then) if self.keeps("the walk ends nowhere") else then
        if (yield from self.is_far_enough(rank - self.options["K"])) and not (yield has("verdict")):
            yield create(f"queued/{rank}.1")
        return "walk", rank + 1, then

    def is_far_enough(self, rank: int) -> Answer:
        if not self.options["capped"]:
            claimed: bool = (yield has(f"running/{rank}.1")) or (yield has(f"end/{rank}.1"))
            return claimed
        for n in range(1, self.options["attempts"] + 1):
            how = yield get(f"end/{rank}.{n}")
            if how in FINAL:
                return True
            if how is None:
                break
        return False
