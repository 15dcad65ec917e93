"""The checker itself: it finds what is there to find, by the shortest way, and does not count alike states twice."""

from __future__ import annotations

from tests.model.engine import check
from tests.model.language import (
    Bucket,
    Late,
    Mending,
    Model,
    Program,
    Setting,
    choose,
    create,
    drop,
    get,
    has,
    pick,
    put,
    tell,
)


class Counter(Model):
    """Two readers of one counter who each add one: the classic lost update."""

    name = "counter"
    small = (Setting("two add", "adder, adder"),)

    def start(self) -> dict[str, str]:
        return {"count": "0"}

    def adder(self) -> Program:
        seen = yield get("count")
        yield put("count", str(int(seen) + 1), also=("added",))
        return None

    def added(self, before: Bucket, after: Bucket, _: None) -> tuple[Bucket, str | None]:
        lost = before.get("count") == after.get("count")
        return after, "an addition was lost" if lost else None


class Mutex(Model):
    """Whoever creates the key is inside; `crashes`: may die there, and nobody ever gets in again."""

    name = "mutex"
    small = (Setting("three", "enter 1, enter 1, enter 1", options=(("swept", True),)),)

    def start(self) -> dict[str, str]:
        return {"work": ""}

    def enter(self, passes: int) -> Program:
        if not passes:
            return None
        if (yield create("lock")):
            yield tell("inside", 1)
            yield tell("inside", -1)
            yield drop("work")
            yield drop("lock")
        return "enter", passes - 1

    def sweep(self) -> Program:
        yield drop("lock")
        return None

    def inside(self, before: Bucket, _: Bucket, __: None, change: int) -> tuple[Bucket, str | None]:
        count = int(before.get("~inside") or 0) + change
        return before.put("~inside", str(count)), "two are inside" if count > 1 else None

    def mendings(self) -> tuple[Mending, ...]:
        programs = (("enter", 1), ("sweep",)) if self.options["swept"] else (("enter", 1),)
        return (Mending(programs, lambda bucket: "work" not in bucket, "nobody can do the work"),)


def test_lost_update_is_found_by_the_shortest_trace() -> None:
    found = check(Counter())
    assert found.error == "an addition was lost"
    assert [line.split(maxsplit=2)[2] for line in found.trace] == [
        "get count: 0",
        "get count: 0",
        "put count = 1",
        "put count = 1",
    ]
    assert {line.split()[1] for line in found.trace} == {"1", "2"}


def test_mutual_exclusion_holds_when_a_lock_is_a_create() -> None:
    assert check(Mutex()).error is None


def test_a_crash_inside_is_found_without_an_action_of_its_own() -> None:
    """Every state is judged as if everybody had died in it."""
    found = check(Mutex(setting=Setting("one", "enter 1", options=(("swept", False),))))
    assert found.error == "nobody can do the work"
    assert found.trace == ["enter 1      create lock: won"]


def test_a_request_that_arrives_again_is_found() -> None:
    """A DELETE of the first holder takes away the lock of the second."""
    setting = Setting("late", "enter 1, enter 1, enter 1", Late(0, 1, (), ("lock",)), options=(("swept", True),))
    found = check(Mutex(setting=setting))
    assert found.error == "two are inside"
    assert "network      DELETE lock again" in found.trace


def test_actors_that_are_alike_are_not_told_apart() -> None:
    """Three alike have far fewer states than six orders of three."""

    class Alike(Mutex):
        def enter_2(self, passes: int) -> Program:
            return (yield from self.enter(passes))

        def enter_3(self, passes: int) -> Program:
            return (yield from self.enter(passes))

    different = Setting("three kinds", "enter 1, enter_2 1, enter_3 1", options=(("swept", True),))
    alike, apart = check(Mutex()).states, check(Alike(setting=different)).states
    assert alike < apart / 3


def test_an_exploration_that_grows_too_large_says_so() -> None:
    found = check(Mutex(), cap=5)
    assert found.capped and found.error is None


def test_choices_and_listings_branch() -> None:
    class Branches(Model):
        small = (Setting("one", "go"),)

        def start(self) -> dict[str, str]:
            return {"a/1": "", "a/2": "", "b/1": ""}

        def go(self) -> Program:
            found = yield pick("a/")
            wanted = yield choose("a/1", "a/2")
            if found == wanted and (yield has("b/1")):
                yield tell("met", found)
            return None

        def met(self, before: Bucket, _: Bucket, __: None, key: str) -> tuple[Bucket, str | None]:
            return before.put(f"~{key}"), "both were met" if key == "a/2" else None

    assert check(Branches()).error == "both were met"
