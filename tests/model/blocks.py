"""Blocks of an array: one claim carries the first attempts of several ranks, and one record says how they ended, which
are given back, which one goes on by itself.

    queued/<a>  running/<a>    <a> = u0, u1 (units; one releases the next) or <rank>.<n>
    end/u0 = "0=done 1=back", of each rank: done | failed | cancelled | retry | back | on (given back, and held already)
    end/<rank>.<n>   stop/<rank>  stop/u0 (the mark)  cancels/<rank>  cancels/job  verdict  final  open

A holder may be paused at any step, its unit may be ended by a tick meanwhile (which takes anybody for dead, at any
time), and its machine may go on for it from a file: a rank that had begun is lost then, those that had not are given
back. `stranger` writes the entry of a rank as one who knows nothing of blocks would.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tests.model.blocks_rules import BACK, FINAL, Judged, said_of
from tests.model.language import (
    Answer,
    Bucket,
    Program,
    Request,
    Then,
    choose,
    create,
    drop,
    get,
    has,
    pick,
    tell,
)


class Blocks(Judged):
    name = "blocks"
    question = "blocks of an array: carried, given back, gone on; each rank once"

    # ---- the claim and the gate

    def worker(self, passes: int) -> Program:
        if not passes:
            return None
        entry = yield pick("queued/")
        a, then = entry.removeprefix("queued/"), ("worker", passes - 1)
        won, acknowledged = yield create(f"running/{a}", sees="~acknowledged")
        if won:
            return "gate", a, acknowledged, then
        if (yield has(f"running/{a}")):
            yield drop(entry)
        return then

    def gate(self, a: str, acknowledged: bool, then: Then) -> Program:
        how = yield get(f"end/{a}")
        if how is not None:
            return "settle", a, how, "mender", then
        judged = yield has("verdict")
        stopped = yield has(f"stop/{a.split('.')[0]}")
        unit = self.unit_of(a)
        if unit and self.keeps("carried or open") and not (yield from self.is_given_back(a)):
            yield drop(f"queued/{a}")
            yield drop(f"running/{a}")
            return then
        if judged:
            return "end", a, "cancelled", "claimer", then
        if stopped and not a.startswith("u"):
            return "end", a, "cancelled", "claimer", then
        if stopped and self.keeps("gate looks for the mark"):
            return "end_block", a, (), "claimer", then
        if a.startswith("u"):
            for child in self.children(a):
                yield create(f"queued/{child}")
        yield drop(f"queued/{a}")
        if a.startswith("u"):
            return "block", a, (), acknowledged, then
        yield tell("begin", a, acknowledged)
        how = yield choose("done", "failed")
        return "end", a, how, "supervisor", then

    def is_given_back(self, a: str) -> Answer:
        said = yield get(f"end/{self.unit_of(a)}")
        return said_of(said).get(int(a[0])) in BACK

    def children(self, unit: str) -> list[str]:
        """Of two units the second is released by the first."""
        following = int(unit[1:]) + 1
        return [f"u{following}"] if following in self.units else []

    # ---- the holder of a block

    def block(self, unit: str, results: tuple[str, ...], acknowledged: bool, then: Then) -> Program:
        """One rank after the other; `hurries`: it was told to, or its time is over."""
        ranks = self.ranks_of(unit)
        if len(results) == len(ranks) or (yield choose("goes on", "hurries")) == "hurries":
            return "end_block", unit, results, "supervisor", then
        rank = ranks[len(results)]
        yield tell("begin", f"{rank}.1", acknowledged)
        how = yield choose("done", "failed", "lasts")
        if how == "lasts":
            return "goes_on", unit, results, then
        if how == "failed" and not self.keeps("what began is never given back"):
            how = "back"
        return "block", unit, (*results, how), acknowledged, then

    def goes_on(self, unit: str, results: tuple[str, ...], then: Then) -> Program:
        """Claim of the rank, end of the unit, settle; from then on it is as every other."""
        rank = self.ranks_of(unit)[len(results)]
        first = self.keeps("claim of the rank before the end")
        if first and not (yield create(f"running/{rank}.1")) and self.keeps("a refused claim ends in its block"):
            return "end_block", unit, (*results, "lost"), "supervisor", then
        if (yield choose("lives", "dies")) == "dies":
            return "end_block", unit, (*results, "lost"), "supervisor", then  # its agent, which has the file
        return "end_block", unit, (*results, "on"), "supervisor", then

    def goes_on_alone(self, unit: str, then: Then, rank: int) -> Program:
        if not self.keeps("claim of the rank before the end") and not (yield create(f"running/{rank}.1")):
            return then
        how = yield choose("done", "failed")
        return "end", f"{rank}.1", how, "supervisor", then

    def end_block(self, unit: str, results: tuple[str, ...], by: str, then: Then) -> Program:
        """`results` of the ranks that began; the others are given back."""
        ranks, late = self.ranks_of(unit), False
        said = {rank: results[i] if i < len(results) else "back" for i, rank in enumerate(ranks)}
        failed = [rank for rank, how in said.items() if how in ("failed", "lost")]
        if failed and self.options["attempts"] > 1:
            marked, late = yield has("verdict", sees="~acknowledged")
            judged = marked
            marked = marked or ((yield has(f"stop/{unit}")) and self.keeps("retry obeys the mark"))
            for rank in failed:
                over = judged or (marked and (yield has(f"stop/{rank}")))
                said[rank] = "cancelled" if over else "retry"
        else:
            said |= dict.fromkeys(failed, "failed")
        value = " ".join(f"{rank}={how}" for rank, how in said.items())
        onward: Then = then
        on = [rank for rank, how in said.items() if how == "on"]
        if on:
            onward = ("goes_on_alone", unit, then, on[0])
        if (yield create(f"end/{unit}", value, also=("block_ended", unit, by, late))):
            return "settle", unit, value, by, onward
        if by != "supervisor":
            return "settle", unit, (yield get(f"end/{unit}")), "mender", then
        return then if self.keeps("a fenced holder ends nothing") else onward

    # ---- the end of a rank's own attempt, and what follows

    def end(self, a: str, how: str, by: str, then: Then) -> Program:
        if a.startswith("u"):
            return "end_block", a, (how,) * len(self.ranks_of(a)), by, then
        if how in ("failed", "lost"):
            how = "failed"
            if int(a[2]) < self.options["attempts"]:
                over = (yield has("verdict")) or (yield has(f"stop/{a[0]}"))
                how = "cancelled" if over else "retry"
        if (yield create(f"end/{a}", how, also=("ended", a, by))):
            return "settle", a, how, by, then
        return then if by == "supervisor" else ("settle", a, (yield get(f"end/{a}")), "mender", then)

    def settle(self, a: str, value: str, by: str, then: Then) -> Program:
        judged, unit = (yield has("verdict")), a.startswith("u")
        said = said_of(value) if unit else {int(a[0]): value}
        for rank, how in said.items():
            following = f"{rank}.1" if how in BACK else f"{rank}.{1 if unit else int(a[2])}"
            following = f"{rank}.{int(following[2]) + 1}" if how == "retry" else following
            if how not in ("retry", *BACK):
                continue
            if judged:
                if not (yield has(f"running/{following}")):
                    yield create(f"end/{following}", "cancelled", also=("ended", following, "canceller"))
            elif how == "on" or not self.keeps("what is given back is queued"):
                continue
            elif by == "supervisor" or not (yield from self.trace(following)):
                yield create(f"queued/{following}")
        if unit and by != "supervisor" and not judged and self.keeps("a dead claimer's release is mended"):
            for child in self.children(a):
                if not (yield from self.trace(child)):
                    yield create(f"queued/{child}")
        yield drop(f"queued/{a}")
        yield drop(f"running/{a}")
        return then

    def trace(self, a: str) -> Answer:
        """Whether an attempt is on its way: asked in the order in which it passes."""
        for kind in ("queued", "running", "end"):
            if (yield has(f"{kind}/{a}")):
                return True
        return False

    # ---- a stop, a verdict

    def stopper(self) -> Program:
        rank = yield choose(*range(self.options["ranks"]))
        yield create(f"stop/{rank}")
        yield from self.mark(rank)
        yield create(f"cancels/{rank}")
        yield tell("acknowledge", str(rank))
        return "carry_out_stop", rank, None

    def acknowledge(self, before: Bucket, _: Bucket, __: None, what: str) -> tuple[Bucket, str | None]:
        return before.put("~acknowledged", what), None

    def mark(self, rank: int) -> Answer:
        unit = self.unit_of(f"{rank}.1")
        if self.keeps("stop reaches the block") and not (yield has(f"end/{unit}")):
            yield create(f"stop/{unit}")
        return True

    def carry_out_stop(self, rank: int, then: Then) -> Program:
        a = yield from self.open_of(rank)
        if not a:
            yield drop(f"cancels/{rank}")
            return then
        yield from self.mark(rank)
        if a.startswith("u"):
            if not self.keeps("one look at the block") and (yield has(f"end/{a}")):
                return "end", f"{rank}.1", "cancelled", "canceller", then
            if self.keeps("look for the claim of the block") and (yield has(f"running/{a}")):
                return then
            return "end_block", a, (), "canceller", ("carry_out_stop", rank, then)
        if (yield has(f"running/{a}")):
            return then
        return "end", a, "cancelled", "canceller", then

    def open_of(self, rank: int) -> Generator[Request, Any, str]:
        """The attempt of a rank that is open, or the unit that carries it; empty when the rank is over."""
        unit = self.unit_of(f"{rank}.1")
        said = yield get(f"end/{unit}")
        if said is None:
            return unit
        for a in self.attempts(rank):
            carried = said_of(said)[rank] if a.endswith(".1") else "back"
            how = carried if carried not in BACK else (yield get(f"end/{a}"))
            if how is None:
                return a
            if how in FINAL:
                break
        return ""

    def judge(self) -> Program:
        yield create("verdict")
        yield create("cancels/job")
        yield tell("acknowledge", "job")
        return "carry_out", 0, None

    def carry_out(self, rank: int, then: Then) -> Program:
        """What nobody holds is ended; the rest by its holders."""
        if rank >= self.options["ranks"]:
            return "finish", then
        onward = ("carry_out", rank + 1, then)
        a = yield from self.open_of(rank)
        if not a or (a not in ("", "u0") and a.startswith("u") and not (yield from self.trace(a))):
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
            return "walk", 0, then
        if found.startswith("cancels/"):
            what = found.removeprefix("cancels/")
            return ("carry_out", 0, then) if what == "job" else ("carry_out_stop", int(what), then)
        kind, a = found.split("/")
        how = yield get(f"end/{a}")
        if how is not None:
            return "settle", a, how, "mender", then
        if kind == "queued":
            if (yield has(f"running/{a}")):
                yield drop(found)
            return then
        return "reap", a, then

    def reap(self, a: str, then: Then) -> Program:
        if self.unit_of(a):
            said = yield get(f"end/{self.unit_of(a)}")
            carried = said_of(said).get(int(a[0]))
            if said is None and self.keeps("the block first"):
                return then
            if carried not in BACK:
                if self.keeps("a carried rank's claim goes"):
                    yield drop(f"running/{a}")
                return then
        if a.startswith("u") and not self.keeps("only its holder gives back"):
            return "end_block", a, (), "tick", then
        return "end", a, "lost", "tick", then

    def walk(self, number: int, then: Then) -> Program:
        """Every unit, and the ranks of those that have ended: what is nowhere is queued again."""
        if number not in self.units:
            return "finish", then
        unit, onward = f"u{number}", ("walk", number + 1, then)
        if (yield has(f"end/{unit}")):
            return "walk_ranks", tuple(self.ranks_of(unit)), onward
        released = not number or (yield has(f"running/u{number - 1}")) or (yield has(f"end/u{number - 1}"))
        return ("queue_if_nowhere", unit, onward) if released else onward

    def walk_ranks(self, ranks: tuple[int, ...], then: Then) -> Program:
        if not ranks:
            return then
        a = yield from self.open_of(ranks[0])
        onward = ("walk_ranks", ranks[1:], then)
        return ("queue_if_nowhere", a, onward) if a else onward

    def queue_if_nowhere(self, a: str, then: Then) -> Program:
        rule = "a dead claimer's release is mended" if a.startswith("u") else "what is given back is queued"
        if self.keeps(rule) and not (yield from self.trace(a)) and not (yield has("verdict")):
            yield create(f"queued/{a}")
        return then

    def finish(self, then: Then) -> Program:
        """Final: every rank is over; under a verdict also those of units that were never released."""
        judged = yield has("verdict")
        for rank in range(self.options["ranks"]):
            a = yield from self.open_of(rank)
            if a and not (judged and a.startswith("u") and a != "u0" and not (yield from self.trace(a))):
                return then
        yield create("final", also=("finals",))
        yield drop(*(f"cancels/{rank}" for rank in range(self.options["ranks"])), "cancels/job", "open")
        return then

    # ---- one who knows nothing of blocks

    def stranger(self) -> Program:
        """An old tick, say, which takes the ranks for a lane's first."""
        rank = yield choose(*range(self.options["ranks"]))
        yield create(f"queued/{rank}.1")
        return None
