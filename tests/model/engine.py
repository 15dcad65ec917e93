"""An explicit-state checker: every interleaving of small programs over one bucket, breadth first, so that what it finds
is shortest.

Programs are generators that yield one request at a time and are sent its answer; between two requests of one program
any other may go on, for as long as it likes. That covers more than it seems to:

* A crash is a program that is never continued, so it needs no step of its own: every state is judged as if everybody
  had died in it, by asking whether fresh programs that know nothing but the bucket would still bring the work to its
  end (`Mending`).
* A lost answer is a crash after the request, a pause of an hour is any interleaving, a stale listing is a pause after
  `pick`.
* The network may deliver a request once more at any later time, also one that was refused (`Late`).

A generator cannot be copied, so a program's position is kept as (name, arguments, answers so far) and replayed once;
positions, buckets and the steps between them are remembered. A program ends by returning None, or the name and
arguments of the program that goes on: that forgets the answers, which keeps equal positions equal. Actors that run the
same program are interchangeable, so a state keeps its positions sorted: the symmetry reduction.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.model.language import Bucket, Mending, Model, Program, Request


class Position(NamedTuple):
    """Where one actor stands: in which program, with which arguments, after which answers; and what it asks for
    next.
    """

    number: int
    program: str
    arguments: tuple[Any, ...]
    answers: tuple[Any, ...]
    request: Request | None


class Step(NamedTuple):
    label: str
    position: int
    bucket: Bucket
    error: str | None
    sent: tuple[str, ...] | None


class Network(NamedTuple):
    puts: int
    drops: int
    sent: frozenset[tuple[str, ...]]


State = tuple[Bucket, tuple[int, ...], Network]


@dataclass
class Found:
    """The outcome of one exploration. `error` None: no state within the bounds breaks anything."""

    states: int
    error: str | None = None
    trace: list[str] = field(default_factory=list)
    capped: bool = False


class Explorer:
    """Explores one model in one setting."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.known: dict[frozenset[tuple[str, str]], Bucket] = {}
        self.positions: list[Position] = []
        self._numbers: dict[tuple[Any, ...], tuple[int, ...]] = {}
        self._steps: dict[tuple[Bucket, int], tuple[Step, ...]] = {}
        self._after: dict[tuple[int, Any], tuple[int, ...]] = {}
        self._judged: dict[Bucket, str | None] = {}
        self._mendings = model.mendings()
        self._mended: list[set[Bucket]] = [set() for _ in self._mendings]
        self._late = model.setting.late

    # ---- positions: replayed once, then known by number

    def positions_of(self, program: str, arguments: tuple[Any, ...], answers: tuple[Any, ...] = ()) -> tuple[int, ...]:
        """The positions a program can be in after these answers: several where it then chooses."""
        key = (program, arguments, answers)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = tuple(dict.fromkeys(self._replay(program, arguments, answers)))
        return found

    def _replay(self, program: str, arguments: tuple[Any, ...], answers: tuple[Any, ...]) -> Iterator[int]:
        running: Program = getattr(self.model, program)(*arguments)
        try:
            request = next(running)
            for answer in answers:
                request = running.send(answer)
        except StopIteration as stop:
            if stop.value is None:
                yield self._number("", (), (), None)
            else:
                yield from self.positions_of(stop.value[0], tuple(stop.value[1:]))
            return
        if request.kind == "choose":
            for value in request.keys:
                yield from self.positions_of(program, arguments, (*answers, value))
            return
        yield self._number(program, arguments, answers, request)

    def _number(
        self, program: str, arguments: tuple[Any, ...], answers: tuple[Any, ...], request: Request | None
    ) -> int:
        key = ("#", program, arguments, answers)
        if key not in self._numbers:
            self._numbers[key] = (len(self.positions),)
            self.positions.append(Position(len(self.positions), program, arguments, answers, request))
        return self._numbers[key][0]

    # ---- steps

    def steps(self, bucket: Bucket, number: int) -> tuple[Step, ...]:
        key = (bucket, number)
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = tuple(self._make_steps(bucket, self.positions[number]))
        return found

    def _make_steps(self, bucket: Bucket, position: Position) -> Iterator[Step]:
        request = position.request
        if request is None or not self.model.may_go_on(bucket, request):
            return
        for answer, after, text in self._carry_out(request, bucket):
            error = None
            if request.also:
                method: Callable[..., tuple[Bucket, str | None] | None] = getattr(self.model, request.also[0])
                told = method(bucket, after, answer, *request.also[1:])
                if told is None:
                    continue
                after, error = told
            said = (answer, request.sees in bucket) if request.sees else answer
            for following in self.positions_of(position.program, position.arguments, (*position.answers, said)):
                yield Step(text, following, after, error, self._sent(request))

    def _carry_out(self, request: Request, bucket: Bucket) -> Iterator[tuple[Any, Bucket, str]]:
        kind, key, value, keys = request.kind, request.key, request.value, request.keys
        shown = f"{key} = {value}" if value else key
        if kind == "create":
            won = key not in bucket
            yield won, bucket.put(key, value) if won else bucket, f"create {shown}: {'won' if won else 'refused'}"
        elif kind == "put":
            yield None, bucket.put(key, value), f"put {shown}"
        elif kind == "drop":
            yield None, bucket.drop(*keys), f"delete {', '.join(keys)}"
        elif kind == "get":
            found = bucket.get(key)
            yield found, bucket, f"get {key}: {'absent' if found is None else found or 'there'}"
        elif kind == "has":
            yield key in bucket, bucket, f"head {key}: {'there' if key in bucket else 'absent'}"
        elif kind == "pick":
            for one in bucket.under(*keys):
                yield one, bucket, f"list, finds {one}"
        elif kind == "stat":
            found = bucket.get(key)
            yield (
                (found, int(bucket.held["now"])),
                bucket,
                f"get {key}: {'absent' if found is None else found or 'there'}",
            )
        elif kind == "rows":
            listed = tuple(bucket.under(key))
            yield listed, bucket, f"list {key}: {', '.join(listed) or 'nothing'}"
        elif kind == "tell":
            yield None, bucket, " ".join(str(part) for part in request.also)
        else:
            raise ValueError(f"no request is called {kind!r}")

    def _sent(self, request: Request) -> tuple[str, ...] | None:
        late = self._late
        if request.kind in ("create", "put") and late.puts and request.key.startswith(late.put_keys):
            return ("PUT", request.key, request.value)
        if request.kind == "drop" and late.drops and request.keys and str(request.keys[0]).startswith(late.drop_keys):
            return ("DELETE", *request.keys)
        return None

    def _late_steps(self, bucket: Bucket, network: Network) -> Iterator[tuple[str, Bucket, Network]]:
        for sent in network.sent:
            if sent[0] == "PUT":
                if network.puts and sent[1] not in bucket and self.model.may_arrive_late(bucket, sent[1]):
                    value = self.model.late_value(sent[1], sent[2])
                    yield f"PUT {sent[1]} again", bucket.put(sent[1], value), self._spent(network, puts=1)
            elif network.drops and any(key in bucket for key in sent[1:]):
                yield f"DELETE {', '.join(sent[1:])} again", bucket.drop(*sent[1:]), self._spent(network, drops=1)

    def _spent(self, network: Network, *, puts: int = 0, drops: int = 0) -> Network:
        left = (network.puts - puts, network.drops - drops)
        kept = frozenset(one for one in network.sent if left[0 if one[0] == "PUT" else 1])
        return Network(*left, kept)

    # ---- judging a state

    def judge(self, bucket: Bucket) -> str | None:
        if bucket not in self._judged:
            self._judged[bucket] = self.model.broken(bucket) or self._unmendable(bucket)
        return self._judged[bucket]

    def _unmendable(self, bucket: Bucket) -> str | None:
        for mending, good in zip(self._mendings, self._mended, strict=True):
            if mending.when(bucket) and not self._can_finish(bucket.without_ghosts(), mending, good):
                return mending.error
        return None

    def _can_finish(self, bucket: Bucket, mending: Mending, good: set[Bucket]) -> bool:
        """Depth first over whole runs of one program after the other; what is known to end well is remembered."""
        came_from: dict[Bucket, Bucket | None] = {bucket: None}
        stack = [bucket]
        while stack:
            here = stack.pop()
            if here in good or mending.done(here):
                back: Bucket | None = here
                while back is not None:
                    good.add(back)
                    back = came_from[back]
                return True
            for program in mending.programs:
                for after in self._alone(here, program):
                    if after not in came_from:
                        came_from[after] = here
                        stack.append(after)
        return False

    def _alone(self, bucket: Bucket, program: tuple[Any, ...]) -> Iterable[Bucket]:
        """Where the bucket can be after one whole run of this program with nobody else about."""
        reached: dict[Bucket, None] = {}
        stack = [(bucket, number) for number in self.positions_of(program[0], tuple(program[1:]))]
        seen = set(stack)
        while stack:
            here, number = stack.pop()
            if self.positions[number].request is None:
                reached[here.without_ghosts()] = None
            for step in self.steps(here, number):
                following = (step.bucket, step.position)
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
        return reached

    # ---- the search

    def explore(self, cap: int, progress: Callable[[int], None] | None = None) -> Found:
        begins = self._begins()
        came_from: dict[State, tuple[State, int, Step | tuple[str, Bucket]] | None] = dict.fromkeys(begins)
        layer = list(begins)
        for state in begins:
            if error := self.judge(state[0]):
                return Found(1, error, ["the state it starts in"])
        while layer:
            following: list[State] = []
            for state in layer:
                for after, number, step, error in self._successors(state):
                    if after not in came_from:
                        came_from[after] = (state, number, step)
                        following.append(after)
                        error = error or self.judge(after[0])
                    if error:
                        trace = [*self._trace(state, came_from), (number, step)]
                        return Found(len(came_from), error, self._told(trace))
            layer = following
            if progress is not None:
                progress(len(came_from))
            if len(came_from) > cap:
                return Found(len(came_from), capped=True)
        return Found(len(came_from))

    def _begins(self) -> list[State]:
        bucket = Bucket.of(self.model.start(), self.known)
        network = Network(self._late.puts, self._late.drops, frozenset())
        mixes: list[tuple[int, ...]] = [()]
        for program, *arguments in self.model.setting.cast():
            mixes = [(*mix, number) for mix in mixes for number in self.positions_of(program, tuple(arguments))]
        return list(dict.fromkeys((bucket, tuple(sorted(mix)), network) for mix in mixes))

    def _successors(self, state: State) -> Iterator[tuple[State, int, Any, str | None]]:
        bucket, numbers, network = state
        last = -1
        for i, number in enumerate(numbers):
            if number == last:
                continue  # its twin has just been moved
            last = number
            for step in self.steps(bucket, number):
                moved = tuple(sorted((*numbers[:i], step.position, *numbers[i + 1 :])))
                sent = step.sent
                if sent is None or sent in network.sent or not (network.puts if sent[0] == "PUT" else network.drops):
                    after = network
                else:
                    after = Network(network.puts, network.drops, network.sent | {sent})
                yield (step.bucket, moved, after), number, step, step.error
        if network.sent:
            for label, changed, left in self._late_steps(bucket, network):
                yield (changed, numbers, left), -1, (label, changed), None

    # ---- telling it

    def _trace(self, state: State, came_from: dict[State, Any]) -> list[tuple[int, Any]]:
        backwards = []
        while (before := came_from[state]) is not None:
            state, number, step = before
            backwards.append((number, step))
        return backwards[::-1]

    def _told(self, trace: list[tuple[int, Any]]) -> list[str]:
        """Lines with stable names: states know actors only by where they stand, so the names follow the steps from the
        beginning.
        """
        names: list[list[Any]] = []
        counted: dict[str, int] = {}
        for program, *arguments in self.model.setting.cast():
            counted[program] = counted.get(program, 0) + 1
            names.append([f"{program} {counted[program]}", set(self.positions_of(program, tuple(arguments)))])
        lines = []
        for number, step in trace:
            if number < 0:
                lines.append(f"{'network':<12} {step[0]}")
                continue
            actor = next(one for one in names if number in one[1])
            actor[1] = {step.position}
            lines.append(f"{actor[0]:<12} {step.label}")
        return lines


def check(model: Model, *, cap: int = 3_000_000, progress: Callable[[int], None] | None = None) -> Found:
    """Explore a model in its setting."""
    collecting = gc.isenabled()
    gc.disable()  # millions of small tuples that all stay: looking for cycles among them takes half of the time
    try:
        return Explorer(model).explore(cap, progress)
    finally:
        if collecting:
            gc.enable()
