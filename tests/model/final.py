"""When a job of several tasks is over: the early verdict, the final record, the indexes, and what readers may say
meanwhile.

    queued/<r>  running/<r>  end/<r> = done | failed | lost | cancelled    verdict = Failed | Cancelled | Completed
    cancels  final = <state> of <ranks>  open

One attempt per task; `width` ranks are queued at submit, the rest is released by the final end of rank r - width.
Workers are finishers too, so there are always two of them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tests.model.language import (
    Answer,
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
    tell,
)

NEVER = "the job never becomes final"
BACK = "a reader"

ENTRIES = Late(1, 0, ("queued/", "running/"))
TWO = (("ranks", 2), ("width", 2), ("allowed", 0))
LANE = (("ranks", 2), ("width", 1), ("allowed", 0))
LENIENT = (("ranks", 3), ("width", 3), ("allowed", 1))
A_STOP = "two tasks, a cancel"
A_LANE = "a lane of two, a tick, a cancel"
A_LIMIT = "three tasks, one may fail"
A_READER = "two tasks and a reader"


class FinalRecord(Model):
    name = "final"
    question = "early verdict, final, indexes, readers"
    rules = (
        Rule(
            "end first, then count",
            "failures are counted when the end that adds one stands",
            "no verdict",
            setting=A_LIMIT,
        ),
        Rule(
            "over means every task",
            "a job is over when every task ended; under a verdict also when the rest was never released",
            "while a task",
            setting=A_LANE,
        ),
        Rule(
            "held tasks are waited for",
            "a verdict alone does not make a held task over",
            "while a task runs",
            setting=A_STOP,
        ),
        Rule(
            "verdict, entry, claim, end",
            "absence is decided in this order: a rank that passes meanwhile is met further on",
            "while a task runs",
            setting=A_LANE,
        ),
        Rule("verdict before final", "the verdict is created before the final record", "disagree", setting=A_STOP),
        Rule(
            "final repeats the verdict",
            "the final's state is the verdict that stands, not one's own",
            "disagree",
            setting=A_STOP,
        ),
        Rule(
            "final before index",
            "open/ and cancels/ go when the final record stands",
            NEVER,
            "final before index",
            A_STOP,
        ),
        Rule(
            "only final is terminal",
            "a verdict is not reported as the job's end",
            f"{BACK} said over",
            setting=A_READER,
        ),
        Rule("readers look for the end first", "end, then claim, then entry", f"{BACK} said", setting=A_READER),
        Rule(
            "a reader that saw nothing looks again",
            "a task moves on while one looks",
            f"{BACK} lost sight",
            setting=A_READER,
        ),
    )
    small = (
        Setting(A_STOP, "worker 1, worker 1, canceller", options=TWO),
        Setting("a lane of two, a tick", "worker 2, tick 1", ENTRIES, LANE),
        Setting("a lane of two, a cancel", "worker 2, canceller", ENTRIES, LANE),
        Setting(A_LIMIT, "worker 1, worker 1, worker 1", options=LENIENT),
        Setting(A_READER, "worker 1, worker 1, reader", options=TWO),
    )
    large = (
        Setting(A_LANE, "worker 2, tick 1, canceller", options=LANE),
        Setting("two tasks, a cancel, a tick, late entries", "worker 1, worker 1, canceller, tick 1", ENTRIES, TWO),
        Setting(
            "a lane of two, two workers, a cancel, a tick, late entries",
            "worker 2, worker 1, canceller, tick 1",
            ENTRIES,
            LANE,
        ),
        Setting("three tasks, one may fail, a tick", "worker 2, worker 1, tick 1", ENTRIES, LENIENT),
        Setting("a reader, a cancel, a tick", "worker 1, worker 1, canceller, tick 1, reader", Late(), TWO),
    )

    def start(self) -> dict[str, str]:
        return {"open": "", **{f"queued/{rank}": "" for rank in range(self.options["width"])}}

    @property
    def ranks(self) -> range:
        return range(self.options["ranks"])

    def mendings(self) -> tuple[Mending, ...]:
        return (Mending((("tick", 1), ("worker", 1)), _final_and_tidy, NEVER),)

    def broken(self, bucket: Bucket) -> str | None:
        final, verdict = bucket.get("final"), bucket.get("verdict")
        if final is not None and verdict is not None and not final.startswith(verdict):
            return f"final and verdict disagree: {final}, {verdict}"
        settled = sum(bucket.get(f"end/{r}") == "failed" and f"running/{r}" not in bucket for r in self.ranks)
        if settled > self.options["allowed"] and verdict is None:
            return f"{settled} tasks failed for good and are settled, and there is no verdict"
        return None

    # ---- the worker

    def worker(self, passes: int) -> Program:
        if not passes:
            return None
        entry = yield pick("queued/")
        rank = int(entry[-1])
        then = ("worker", passes - 1)
        if not (yield create(f"running/{rank}")):
            if (yield has(f"running/{rank}")):
                yield drop(entry)
            return then
        how = yield get(f"end/{rank}")
        if how is not None:
            return "settle", rank, how, "mender", then
        if (yield has("verdict")):
            return "end", rank, "cancelled", "claimer", then
        yield tell("begin", rank)
        yield drop(entry)
        how = yield choose("done", "failed")
        return "end", rank, how, "supervisor", then

    def begin(self, before: Bucket, _: Bucket, __: None, rank: int) -> tuple[Bucket, str | None]:
        # With its own end there, it is a zombie that the tick took for dead; it is fenced at its first look.
        late = "final" in before and f"end/{rank}" not in before
        return before.put(f"~run/{rank}"), f"task {rank} was started after the job's final" if late else None

    # ---- the end and what follows

    def end(self, rank: int, how: str, by: str, then: Then) -> Program:
        counted = -1
        if not self.keeps("end first, then count"):
            counted = 0
            for other in self.ranks:
                counted += (yield get(f"end/{other}")) == "failed"
            counted += how == "failed"
        if (yield create(f"end/{rank}", how)):
            return "settle", rank, how, by, then, counted
        if by == "supervisor":
            return then
        return "settle", rank, (yield get(f"end/{rank}")), "mender", then

    def settle(self, rank: int, how: str, by: str, then: Then, counted: int = -1) -> Program:
        verdict = yield has("verdict")
        if not verdict and how == "failed":
            failed = counted
            if failed < 0:
                failed = 0
                for other in self.ranks:
                    failed += (yield get(f"end/{other}")) == "failed"
            if failed > self.options["allowed"]:
                yield create("verdict", "Failed")
                yield create("cancels")
                verdict = True
        return "settle_on", rank, by, verdict, then

    def settle_on(self, rank: int, by: str, verdict: bool, then: Then) -> Program:
        following = rank + self.options["width"]
        if not verdict and following in self.ranks and (by == "supervisor" or not (yield from self.trace(following))):
            yield create(f"queued/{following}")
        yield drop(f"queued/{rank}")
        return "finish", ("let_go", rank, then)

    def let_go(self, rank: int, then: Then) -> Program:
        yield drop(f"running/{rank}")
        return then

    def trace(self, rank: int) -> Answer:
        """Whether a rank was ever released: asked in the order in which it passes."""
        for kind in ("queued", "running", "end"):
            if (yield has(f"{kind}/{rank}")):
                return True
        return False

    # ---- final

    def finish(self, then: Then) -> Program:
        verdict_first = self.keeps("verdict, entry, claim, end")
        verdict = (yield get("verdict")) if verdict_first else None
        counted, failed, unreleased = "", 0, False
        for rank in self.ranks:
            if rank >= self.options["width"] and not (yield from self.trace(rank)):
                unreleased = True
                continue
            how = yield get(f"end/{rank}")
            if how is None:
                if self.keeps("held tasks are waited for") or verdict is None:
                    return then
                continue
            counted += str(rank)
            failed += how == "failed"
        verdict = verdict if verdict_first else (yield get("verdict"))
        if unreleased and verdict is None and self.keeps("over means every task"):
            return then
        own = "Failed" if failed > self.options["allowed"] else "Completed"
        return "write_final", verdict, own, counted, then

    def write_final(self, verdict: str | None, own: str, counted: str, then: Then) -> Program:
        if verdict is None:
            verdict = own
            if self.keeps("verdict before final") and not (yield create("verdict", own)):
                verdict = yield get("verdict")
        if not self.keeps("final before index"):
            yield drop("cancels", "open")
        said = verdict if self.keeps("final repeats the verdict") else own
        yield create("final", f"{said} of {counted}", also=("finals", verdict, counted))
        if not self.keeps("verdict before final"):
            yield create("verdict", own)
        yield drop("cancels", "open")
        return then

    def finals(self, _: Bucket, after: Bucket, won: bool, verdict: str, counted: str) -> tuple[Bucket, str | None]:
        if not won:
            return after, None
        for rank in self.ranks:
            if f"~run/{rank}" in after and f"end/{rank}" not in after:
                return after, f"final while a task runs: {rank}"
            if f"~run/{rank}" in after and str(rank) not in counted:
                return after, f"final misses a task that ran and ended: {rank}"
            if verdict == "Completed" and str(rank) not in counted:
                return after, f"final says Completed while a task has not begun: {rank}"
        return after, None

    # ---- cancel and tick

    def canceller(self) -> Program:
        if (yield has("final")):
            return None
        yield create("verdict", "Cancelled")
        yield create("cancels")
        return "carry_out", 0, ("finish", None)

    def carry_out(self, rank: int, then: Then) -> Program:
        if rank not in self.ranks:
            return then
        onward = ("carry_out", rank + 1, then)
        if (yield has(f"end/{rank}")):
            return onward
        if rank >= self.options["width"] and not (yield from self.trace(rank)):
            return onward
        if (yield has(f"running/{rank}")):
            return onward
        return "end", rank, "cancelled", "canceller", onward

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        found = yield pick("running/", "queued/", "cancels", "open")
        then = ("tick", passes - 1)
        if found in ("cancels", "open"):
            return (
                ("carry_out", 0, ("finish", then))
                if (yield has("verdict"))
                else ("walk", self.options["width"], ("finish", then))
            )
        kind, rank = found.split("/")
        how = yield get(f"end/{rank}")
        if how is not None:
            return "settle", int(rank), how, "mender", then
        if kind == "running":
            return "end", int(rank), "lost", "tick", then
        if (yield has(f"running/{rank}")):
            yield drop(found)
        return then

    def walk(self, rank: int, then: Then) -> Program:
        if rank not in self.ranks:
            return then
        if (
            not (yield from self.trace(rank))
            and (yield has(f"end/{rank - self.options['width']}"))
            and not (yield has("verdict"))
        ):
            yield create(f"queued/{rank}")
        return "walk", rank + 1, then

    # ---- the reader

    def reader(self) -> Program:
        """Looks at task 0, then at the job, then at both again."""
        for _ in range(2):
            ended_before, state = yield from self.look_at_task()
            yield tell("read_task", ended_before, state)
            over = yield has("final" if self.keeps("only final is terminal") else "verdict")
            yield tell("read_job", over)
        return None

    def look_at_task(self) -> Generator[Request, Any, tuple[bool, str]]:
        order = (
            ("end/0", "running/0", "queued/0")
            if self.keeps("readers look for the end first")
            else ("queued/0", "running/0", "end/0")
        )
        rounds = 3 if self.keeps("a reader that saw nothing looks again") else 1
        first: bool | None = None  # whether it had ended at the first look
        for _ in range(rounds):
            for key in order:
                there, ended = yield has(key, sees="end/0")
                first = ended if first is None else first
                if there:
                    return bool(first), key.split("/")[0]
        return bool(first), "gone"

    def read_task(
        self, before: Bucket, _: Bucket, __: None, ended_before: bool, state: str
    ) -> tuple[Bucket, str | None]:
        if state == "gone":
            return before, "a reader lost sight of a task"
        if state != "end" and (ended_before or "~said/task" in before):
            return before, f"a reader said {state} of a task that had ended before it looked"
        return (before.put("~said/task") if state == "end" else before), None

    def read_job(self, before: Bucket, _: Bucket, __: None, over: bool) -> tuple[Bucket, str | None]:
        if over and any(f"~run/{rank}" in before and f"end/{rank}" not in before for rank in self.ranks):
            return before, "a reader said over while a task runs"
        if not over and "~said/job" in before:
            return before, "a reader said over, and then no longer"
        return (before.put("~said/job") if over else before), None


def _final_and_tidy(bucket: Bucket) -> bool:
    return "final" in bucket and not bucket.under("queued/", "running/", "cancels", "open")
