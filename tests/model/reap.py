"""Who may decide a death: a tick that saw an attempt twice, unchanged, a lease apart; the worker's word; claims that
never came to anything.

    running = <since>   beat = <when>   word = <nonce>@<when>   observed = <what was seen last>/<since when>
    end = lost | undelivered
    the world:  now   alive (the supervisor)   asleep   cut (its connection is dead)   down (the store)
                agent (a broadcast that never stops)

Time is counted in leases (TTL): a live supervisor that can reach the store beats before each next one, an attempt is
stale two after its last beat. What passes between two requests of one program may be any number of them. Not here:
checkpoints as a signal, the brake, a provider's word.
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
    Then,
    choose,
    create,
    drop,
    has,
    put,
    stat,
    tell,
)

STALE = 2
ARMED = 1

HEALTHY = "a healthy attempt was reaped"
STUCK = "a dead attempt never ends"
CHARGED = "an attempt that never began was charged"

OUTAGE = "an outage"
OUTAGES = "three outages"
CUT = "its connection alone is dead"
SLEEP = "a supervisor that sleeps, a tick that sleeps"
NEVER_BEGAN = "a claim that came to nothing"
IMPOSTOR = "dead, and another worker names the attempt"
UNREADABLE = "reads that fail"


class Reap(Model):
    name = "reap"
    question = "who may decide a death, and who never"
    rules = (
        Rule("seen twice", "stale arms; down needs an arming a lease old", HEALTHY, "seen twice", OUTAGE),
        Rule("an arming is for what was seen", "a beat since then voids it", HEALTHY, setting=OUTAGES),
        Rule(
            "the store stays up for a beat",
            "assumed: between two outages every live supervisor reaches it once",
            HEALTHY,
            setting=OUTAGES,
        ),
        Rule(
            "reads are fresh",
            "the end is created right after the oldest of its reads, else they are repeated",
            HEALTHY,
            "reap reads fresh",
            SLEEP,
        ),
        Rule("the worker's word", "a fresh broadcast that names the attempt clears it", HEALTHY, setting=CUT),
        Rule(
            "the word names the claim", "... with the nonce of the claim that stands", STUCK, "claim's nonce", IMPOSTOR
        ),
        Rule(
            "a failed read is no evidence",
            "what could not be read is not taken for absent",
            HEALTHY,
            setting=UNREADABLE,
        ),
        Rule("a claim counts as a beat", "a claim without a beat grows stale like one", STUCK, setting=NEVER_BEGAN),
        Rule(
            "undelivered spends nothing", "a claim without a beat is ended as undelivered", CHARGED, setting=NEVER_BEGAN
        ),
    )
    small = (
        Setting(OUTAGE, "supervisor 1, tick 3, tick 1, clock 4, outage 1", options=(("beat", "0"), ("alive", True))),
        Setting(OUTAGES, "supervisor 0, tick 4, clock 6, outage 3", options=(("beat", "0"), ("alive", True))),
        Setting(
            CUT,
            "supervisor 0, agent mine, cut, tick 4, clock 5",
            options=(("beat", "0"), ("alive", True), ("agent", True)),
        ),
        Setting(SLEEP, "sleeper, tick 3, clock 5", options=(("beat", "0"), ("alive", True))),
        Setting(NEVER_BEGAN, "tick 3, tick 2, clock 4", options=(("beat", None), ("alive", False))),
        Setting(IMPOSTOR, "agent other, tick 3, clock 4", options=(("beat", "0"), ("alive", False), ("agent", True))),
        Setting(
            UNREADABLE, "supervisor 1, tick 4, clock 5", options=(("beat", "0"), ("alive", True), ("unreadable", True))
        ),
    )
    large = (
        Setting(
            "a death or none, two outages, two ticks",
            "supervisor 1, tick 4, tick 2, clock 5, outage 2",
            options=(("beat", "0"), ("alive", True)),
        ),
        Setting("a sleep, two ticks", "sleeper, tick 3, tick 2, clock 6", options=(("beat", "0"), ("alive", True))),
        Setting(
            "cut off, outages, two ticks",
            "supervisor 1, agent mine, cut, tick 4, tick 3, clock 6, outage 2",
            options=(("beat", "0"), ("alive", True), ("agent", True)),
        ),
    )

    def start(self) -> dict[str, str]:
        world = {"now": "0", "running": "0"}
        if self.options["beat"] is not None:
            world["beat"] = self.options["beat"]
        if self.options["alive"]:
            world["alive"] = ""
        if self.options.get("agent"):
            world["agent"] = ""
        return world

    def mendings(self) -> tuple[Mending, ...]:
        programs: list[tuple[object, ...]] = [("tick", 1), ("clock", 1)]
        if self.options.get("agent"):
            programs.append(("broadcast", "other"))
        return (Mending(tuple(programs), lambda bucket: "end" in bucket, STUCK, when=_dead),)

    def may_go_on(self, bucket: Bucket, request: Request) -> bool:
        return "down" not in bucket or request.kind == "tell"

    # ---- the world

    def clock(self, leases: int) -> Program:
        for _ in range(leases):
            yield tell("advance")
        return None

    def advance(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None] | None:
        """The next lease begins: not before everybody who can has beaten in this one."""
        now = before.held["now"]
        if int(now) >= 10:
            return None
        if "down" not in before:
            reaches = "alive" in before and "asleep" not in before and "cut" not in before and "end" not in before
            if reaches and before.get("beat") != now:
                return None
            if "agent" in before and not (before.get("word") or "").endswith(f"@{now}"):
                return None
        return before.put("now", str(int(now) + 1)), None

    def outage(self, times: int) -> Program:
        for _ in range(times):
            yield tell("goes_down")
            yield tell("comes_up")
        return None

    def goes_down(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None] | None:
        if (
            self.keeps("the store stays up for a beat")
            and "alive" in before
            and before.get("beat") != before.held["now"]
        ):
            return None
        return before.put("down"), None

    def comes_up(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        return before.drop("down"), None

    def cut(self) -> Program:
        yield tell("is_cut")
        return None

    def is_cut(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        return before.put("cut"), None

    # ---- supervisor and agent

    def supervisor(self, mortal: bool) -> Program:
        if mortal and (yield choose("lives", "dies")) == "dies":
            yield tell("dies")
            return None
        if (yield has("end")):
            return None
        yield put("beat", also=("beats",))
        return "supervisor", mortal

    def beats(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None] | None:
        return None if "cut" in before else (before.put("beat", before.held["now"]), None)

    def dies(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        return before.drop("alive"), None

    def sleeper(self) -> Program:
        """A supervisor whose machine is paused once, and goes on as if nothing had been."""
        yield put("beat", also=("beats",))
        yield tell("falls_asleep")
        yield tell("wakes")
        return "supervisor", False

    def falls_asleep(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        return before.put("asleep"), None

    def wakes(self, before: Bucket, _: Bucket, __: None) -> tuple[Bucket, str | None]:
        return before.drop("asleep").put("~awake", before.held["now"]), None

    def agent(self, nonce: str) -> Program:
        """Broadcasts that it holds the attempt. Another worker's agent may believe so too: its claim had no answer, and
        lost.
        """
        yield put("word", also=("says", nonce))
        return "agent", nonce

    def broadcast(self, nonce: str) -> Program:
        """For mending: one broadcast."""
        yield put("word", also=("says", nonce))
        return None

    def says(self, before: Bucket, _: Bucket, __: None, nonce: str) -> tuple[Bucket, str | None]:
        return before.put("word", f"{nonce}@{before.held['now']}"), None

    # ---- the tick

    def tick(self, passes: int) -> Program:
        if not passes:
            return None
        then = ("tick", passes - 1)
        since, now = yield stat("running")
        if since is None:
            return then
        if (yield has("end")):
            yield drop("running")
            return then
        readable = (yield choose(True, False)) if self.options.get("unreadable") else True
        beat, now = yield stat("beat")
        if not readable:
            if self.keeps("a failed read is no evidence"):
                return then
            beat = None
        if beat is None and not self.keeps("a claim counts as a beat"):
            return then
        last = since if beat is None else beat
        if now - int(last) < STALE:
            return then
        return (
            "judge",
            last,
            now,
            "undelivered" if beat is None and self.keeps("undelivered spends nothing") else "lost",
            then,
        )

    def judge(self, last: str, read_at: int, how: str, then: Then) -> Program:
        """`read_at`: when the beat was read. The end must follow the *oldest* of the reads it rests on."""
        word, now = yield stat("word")
        if word is not None and self.keeps("the worker's word"):
            nonce, at = word.split("@")
            if now - int(at) <= 1 and (nonce == "mine" or not self.keeps("the word names the claim")):
                return then
        if self.keeps("seen twice"):
            armed, now = yield stat("observed")
            seen, since = armed.split("/") if armed else ("", "0")
            if armed is None or (seen != last and self.keeps("an arming is for what was seen")):
                yield put("observed", f"{last}/{now}")
                return then
            if now - int(since) < ARMED:
                return then
        yield create("end", how, also=("reaped", read_at, how))
        return then

    def reaped(
        self, before: Bucket, after: Bucket, won: bool, read_at: int, how: str
    ) -> tuple[Bucket, str | None] | None:
        now = int(before.held["now"])
        if self.keeps("reads are fresh") and now != read_at:
            return None  # it reads again: another pass
        error = None
        if won and "alive" in before and "asleep" not in before and int(before.get("~awake") or -1) < now:
            error = HEALTHY
        elif won and how == "lost" and "beat" not in before:
            error = CHARGED
        return after, error


def _dead(bucket: Bucket) -> bool:
    return "alive" not in bucket and "down" not in bucket
