"""The rules of blocks, what must break without each, the worlds in which they are tried, and what must hold there."""

from __future__ import annotations

from tests.model.language import Bucket, Late, Mending, Model, Rule, Setting

FINAL = ("done", "failed", "cancelled")
BACK = ("back", "on")

LOST = "a rank is lost"
TWICE = "was started twice"
AFTER_STOP = "after the stop was acknowledged"
ENDED_TWICE = "ended twice"

ENTRIES = Late(1, 1, ("queued/", "running/"), ("running/", "queued/"))
ONE = (("ranks", 2), ("block", 2), ("attempts", 2))
BRIEF = (("ranks", 2), ("block", 2), ("attempts", 1))
TREE = (("ranks", 2), ("block", 1), ("attempts", 1))
GOES_ON = "a block, two workers, a tick"
STOPPED = "a block and a stop"
STOPPED_LATE = "a block of one, a stop, a tick"
STRANGE = "a block and an entry that nobody should have written"
RELEASES = "two blocks"

RULES: tuple[Rule, ...] = (
    Rule(
        "carried or open",
        "a claimer of a rank's first attempt looks whether its block has given it back",
        f"{TWICE} | {ENDED_TWICE}",
        "carried or open",
        STRANGE,
    ),
    Rule(
        "the block first",
        "the claim of a rank whose block goes on is left alone",
        f"{TWICE} | {ENDED_TWICE}",
        "the block first",
        GOES_ON,
    ),
    Rule("a carried rank's claim goes", "... and dropped once its block ended it", LOST, setting=GOES_ON),
    Rule(
        "claim of the rank before the end",
        "the rank that goes on is claimed before the record that opens it",
        TWICE,
        setting=GOES_ON,
    ),
    Rule(
        "a refused claim ends in its block",
        "a rank that cannot be claimed is stopped, and lost within its block",
        TWICE,
        setting=STRANGE,
    ),
    Rule(
        "a fenced holder ends nothing",
        "a holder whose unit another has ended kills what would have gone on",
        ENDED_TWICE,
        setting=GOES_ON,
    ),
    Rule(
        "only its holder gives back",
        "whoever ends a unit for another gives nothing back",
        TWICE,
        setting=GOES_ON,
    ),
    Rule("what began is never given back", "... nor a holder a rank that began", TWICE, setting=GOES_ON),
    Rule(
        "stop reaches the block",
        "a stop of a rank marks its unit, before it is acknowledged",
        AFTER_STOP,
        "stop reaches the block",
        STOPPED,
    ),
    Rule(
        "gate looks for the mark",
        "a claimer of a marked unit gives all of it back",
        AFTER_STOP,
        "gate looks for the mark",
        STOPPED,
    ),
    Rule(
        "retry obeys the mark",
        "before a block's end decides a retry, the mark is looked for, then the rank's stop",
        AFTER_STOP,
        "retry obeys verdict",
        STOPPED_LATE,
    ),
    Rule(
        "look for the claim of the block",
        "a canceller gives back the block of a stopped rank only where nobody holds it",
        "ended under its holder",
        "look for the claim first",
        STOPPED,
    ),
    Rule(
        "one look at the block",
        "who ends a stopped rank goes by one answer about its block: a rank that it carried meanwhile has ended",
        f"{ENDED_TWICE} | ended under its holder",
        setting=STOPPED,
    ),
    Rule(
        "a dead claimer's release is mended",
        "a mender's settle and the tick's walk release the units again",
        LOST,
        setting=RELEASES,
    ),
    Rule("what is given back is queued", "by settle, and by the tick's walk", LOST, setting=GOES_ON),
)

SMALL: tuple[Setting, ...] = (
    Setting(GOES_ON, "worker 1, worker 1, tick 2", options=BRIEF),
    Setting("a block, two workers, late requests", "worker 1, worker 1, tick 1", ENTRIES, BRIEF),
    Setting(STOPPED, "worker 1, worker 1, stopper", options=ONE),
    Setting(STOPPED_LATE, "worker 1, stopper, tick 1", options=(("ranks", 1), ("block", 1), ("attempts", 2))),
    Setting("a block and a verdict", "worker 1, worker 1, judge", options=BRIEF),
    Setting(STRANGE, "worker 1, worker 1, stranger", options=ONE),
    Setting(RELEASES, "worker 1, worker 1, tick 1", options=TREE),
)
LARGE: tuple[Setting, ...] = (
    Setting("a block, a stop, a tick", "worker 1, stopper, tick 1", options=ONE),
    Setting("a block, retries, late requests", "worker 1, worker 1, tick 1", ENTRIES, ONE),
    Setting("a block, a worker, two ticks, retries", "worker 2, tick 1, tick 1", options=ONE),
    Setting("a block, two workers, two ticks", "worker 1, worker 1, tick 1, tick 1", options=BRIEF),
    Setting("a block, a stop, two workers, a tick", "worker 1, worker 1, stopper, tick 1", options=BRIEF),
    Setting("a block, a verdict, a tick", "worker 1, worker 1, judge, tick 1", options=BRIEF),
    Setting("a strange entry, two workers, a tick", "worker 1, worker 1, stranger, tick 1", options=BRIEF),
    Setting("two blocks, a verdict, late requests", "worker 1, worker 1, judge", ENTRIES, TREE),
    Setting("two blocks, a stop, a tick", "worker 1, worker 1, stopper, tick 1", options=TREE),
    Setting(
        "a block of three, a tick",
        "worker 1, worker 1, tick 1",
        options=(("ranks", 3), ("block", 3), ("attempts", 1)),
    ),
)


class Judged(Model):
    """What must hold, whoever did what."""

    rules, small, large = RULES, SMALL, LARGE

    def start(self) -> dict[str, str]:
        return {"open": "", "queued/u0": ""}

    # ---- which rank belongs to which unit

    @property
    def units(self) -> range:
        return range(-(-self.options["ranks"] // self.options["block"]))

    def ranks_of(self, unit: str) -> list[int]:
        first = int(unit[1:]) * self.options["block"]
        return list(range(first, min(first + self.options["block"], self.options["ranks"])))

    def unit_of(self, a: str) -> str:
        """The unit that carries this attempt; empty for units themselves and for later attempts."""
        return f"u{int(a[0]) // self.options['block']}" if a.endswith(".1") else ""

    # ---- at every instant

    def mendings(self) -> tuple[Mending, ...]:
        return (Mending((("tick", 1), ("worker", 1)), _final_and_tidy, LOST),)

    def how(self, bucket: Bucket, a: str) -> str | None:
        """How an attempt of a rank ended, whoever says it."""
        carried = said_of(bucket.get(f"end/{self.unit_of(a)}")).get(int(a[0])) if a.endswith(".1") else None
        return bucket.get(f"end/{a}") or (carried if carried not in BACK else None)

    def attempts(self, rank: int) -> list[str]:
        return [f"{rank}.{n}" for n in range(1, self.options["attempts"] + 1)]

    def broken(self, bucket: Bucket) -> str | None:
        for rank in range(self.options["ranks"]):
            said = said_of(bucket.get(f"end/{self.unit_of(f'{rank}.1')}")).get(rank)
            if f"end/{rank}.1" in bucket and said not in BACK:
                return f"attempt {rank}.1 {ENDED_TWICE}: in its block ({said}) and by itself"
            if sum(self.how(bucket, a) in FINAL for a in self.attempts(rank)) > 1:
                return f"rank {rank} {ENDED_TWICE} for good"
        return None

    def begin(self, before: Bucket, _: Bucket, __: None, a: str, acknowledged: bool) -> tuple[Bucket, str | None]:
        """`acknowledged`: whether a stop or cancel had been when the claim was won under which it starts."""
        error, own = None, self.how(before, a)
        others = [self.how(before, other) for other in self.attempts(int(a[0])) if other != a]
        # With its own end there it is a zombie, taken for dead after its gate; it is fenced at its first look.
        if own is None and any(other in FINAL for other in others):
            error = f"a finished task was started again: {a}"
        elif f"~started/{a}" in before:
            error = f"attempt {a} {TWICE}"
        elif acknowledged and before.get("~acknowledged") in (a[0], "job"):
            error = f"{a} was started under a claim won {AFTER_STOP}"
        elif a.endswith(".2") and others == [None]:
            error = f"{a} was started before the attempt before it had ended"
        elif own is None and "final" in before:
            error = f"{a} was started after the job's final"
        return before.put(f"~started/{a}"), error

    # ---- at a request

    def block_ended(
        self, before: Bucket, after: Bucket, won: bool, unit: str, by: str, late: bool
    ) -> tuple[Bucket, str | None]:
        said = said_of(after.get(f"end/{unit}"))
        if won and by == "canceller" and any(f"~started/{rank}.1" in before for rank in said):
            return after, "a running block was ended under its holder"
        stopped = before.get("~acknowledged")
        if won and late and any(how == "retry" and stopped in (str(rank), "job") for rank, how in said.items()):
            return after, f"a retry was decided {AFTER_STOP}"
        return after, None

    def ended(self, before: Bucket, after: Bucket, won: bool, a: str, by: str) -> tuple[Bucket, str | None]:
        if won and by == "canceller" and f"~started/{a}" in before:
            return after, f"{a} was ended under its holder"
        return after, None

    def finals(self, before: Bucket, after: Bucket, won: bool) -> tuple[Bucket, str | None]:
        for key in before.under("~started/"):
            a = key.removeprefix("~started/")
            if won and self.how(before, a) is None:
                return after, f"final while {a} runs"
        return after, None


def said_of(value: str | None) -> dict[int, str]:
    """What a unit's end says of its ranks."""
    return {int(word[0]): word[2:] for word in (value or "").split()}


def _final_and_tidy(bucket: Bucket) -> bool:
    return "final" in bucket and not bucket.under("queued/", "running/", "cancels/", "open")
