"""The rules of blocks, what must break without each, and the worlds in which the model is tried."""

from __future__ import annotations

from tests.model.language import Late, Rule, Setting

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
STOPPED_LATE = "a block, a stop, a tick"
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
    Setting(STOPPED_LATE, "worker 1, stopper, tick 1", options=ONE),
    Setting("a block and a verdict", "worker 1, worker 1, judge", options=BRIEF),
    Setting(STRANGE, "worker 1, worker 1, stranger", options=ONE),
    Setting(RELEASES, "worker 1, worker 1, tick 1", options=TREE),
)
LARGE: tuple[Setting, ...] = (
    Setting("a block, retries, late requests", "worker 1, worker 1, tick 1", ENTRIES, ONE),
    Setting("a block, a worker, two ticks, retries", "worker 2, tick 1, tick 1", options=ONE),
    Setting("a block, two workers, two ticks", "worker 2, worker 1, tick 1, tick 1", options=BRIEF),
    Setting("a block, a stop, two workers, a tick", "worker 2, worker 1, stopper, tick 1", options=ONE),
    Setting("a block, a verdict, a tick", "worker 2, worker 1, judge, tick 1", options=BRIEF),
    Setting("a strange entry, two workers, a tick", "worker 2, worker 1, stranger, tick 1", options=BRIEF),
    Setting("two blocks, a verdict, late requests", "worker 2, worker 1, judge", ENTRIES, TREE),
    Setting("two blocks, a stop, a tick", "worker 2, worker 1, stopper, tick 1", options=TREE),
    Setting(
        "a block of three, a tick",
        "worker 2, worker 1, tick 1",
        options=(("ranks", 3), ("block", 3), ("attempts", 1)),
    ),
)
