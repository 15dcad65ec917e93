"""The agent: the one loop of a machine that looks, admits, claims, launches, and says what it has.

    step:  watch supervisors → finish endings → hear the bell → sweep → settle open claims → admit and claim → broadcast

It holds no task alive and its death harms none: supervisors are processes of their own, and all it knows of them is
in their folders. So it may be killed at any instruction and started again: it adopts what runs, replays what ended,
and goes on with claims whose answers it never heard.

`step()` never waits; it returns how many seconds may pass before the next one, if nothing happens. `run.py` waits,
on descriptors and signals. The simulator drives the same `step()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stado_like.ambient import REAL, Ambient
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import Open, Unsure
from stado_like.bucket.doorbell import Listener, ring_entries
from stado_like.bucket.ordered_place import ToStart
from stado_like.errors import StoreError
from stado_like.job import codec, keys
from stado_like.job.keys import Entry
from stado_like.job.records import BellEvent
from stado_like.job.terms import Ask
from stado_like.planning import fit
from stado_worker import claims, endings, recovery
from stado_worker.candidates import PAGES_A_STEP, Candidates
from stado_worker.deaf import kill_the_deaf
from stado_worker.followers import Followers
from stado_worker.graces import Graces
from stado_worker.holdings import Holding, Phase, Reach
from stado_worker.inbox import Inbox
from stado_worker.launcher import Launcher
from stado_worker.nursery import LaunchUnknown, NurseryFailed
from stado_worker.offer import Offer
from stado_worker.options import AgentOptions as AgentOptions
from stado_worker.queue_rules import QueueRules
from stado_worker.shim import report
from stado_worker.shim.attempt_dir import AttemptDir

SWEEP_EVERY_S = 60.0
WATCH_EVERY_S = 1.0
RETRY_S = 1.0
RETRY_MOST_S = 15.0


class Agent:
    def __init__(
        self,
        bucket: Bucket,
        options: AgentOptions,
        launcher: Launcher,
        offer: Offer,
        *,
        ambient: Ambient = REAL,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._bucket = bucket
        self._options = options
        self._launcher = launcher
        self._offer = offer
        self._ambient = ambient
        self._log = log
        self._bell = Listener(bucket)
        self._candidates = Candidates(bucket, options.only_job)
        self._holdings: dict[str, Holding] = {}
        self._reach = Reach()
        self._bell_due_s = self._sweep_due_s = self._watch_due_s = 0.0
        self._ready: set[str] = set()
        self._unread = recovery.Unread()
        self._followers = Followers()
        self._inbox = Inbox(bucket, options.worker, launcher, offer, log, options.only_job)
        self._rules = QueueRules(bucket, options.worker, offer, log)
        self._graces = Graces(bucket, options.grace_s, options.most_grace_s, log)
        self._looked_at = (0, 0)
        self._look_again_s = 0.0
        self.claiming = True
        self.claimed = 0
        self.idle_since_s = ambient.boot_s()
        self.trouble = ""

    # ---- from outside

    @property
    def held(self) -> int:
        return len(self._holdings)

    def supervisor_ended(self, attempt_id: str) -> None:
        """The launcher's descriptor says that a supervisor has ended."""
        self._ready.add(attempt_id)

    def recover(self) -> int:
        """Take over what an earlier agent of this worker left on this machine. Returns how many attempts."""
        attempts, boot_id = self._options.home.attempts, self._ambient.boot_id
        found = recovery.look_through(attempts, boot_id, self._holdings.__contains__, self._log)
        self._unread.folders = found.unread
        self._offer.undying.recover(attempts, boot_id)
        self._take_over(found.holdings)
        return len(self._holdings)

    def _take_over(self, holdings: Iterable[Holding]) -> None:
        for holding in holdings:
            self._holdings[str(holding.a)] = holding
            if holding.phase is Phase.RUNNING:
                self._launcher.adopt(holding.folder)
                self._followers.tell(holding.a, holding.folder)

    def _ask_for_unread(self, now_s: float) -> None:
        self._take_over(self._unread.ask(self._bucket, self._options, now_s, self._log))

    # ---- the loop

    def step(self) -> float:
        now_s = self._ambient.boot_s()
        self._offer.sample(now_s, self._reserved())
        self._watch(now_s)
        for part in (
            self._ask_for_unread,
            self._finish_endings,
            self._hear,
            self._sweep,
            self._obey,
            self._go_on_claiming,
            self._admit,
            self._broadcast,
        ):
            try:
                part(self._ambient.boot_s())
            except StoreError as trouble:
                self._failed(trouble)
        if self._holdings:
            self.idle_since_s = self._ambient.boot_s()
        return self._sleep_s()

    def _failed(self, trouble: StoreError) -> None:
        self._reach.failed()
        if trouble.message != self.trouble:
            self._log(trouble.message)
        self.trouble = trouble.message
        # The requests of the other parts would fail alike: do not hammer a store that is away.
        pause_s = self._ambient.boot_s() + self._ambient.uniform(RETRY_S / 2, RETRY_S)
        self._bell_due_s = max(self._bell_due_s, pause_s)
        self._sweep_due_s = max(self._sweep_due_s, pause_s)
        self._looked_at, self._look_again_s = (self._candidates.version, len(self._holdings)), pause_s

    def _accepted(self) -> None:
        self.trouble = ""
        self._reach.accepted(self._ambient.boot_s(), max((one.ttl_s for one in self._holdings.values()), default=60))

    def _sleep_s(self) -> float:
        now_s = self._ambient.boot_s()
        due = [self._bell_due_s, self._sweep_due_s, self._offer.due_s]
        if any(one.phase is Phase.RUNNING for one in self._holdings.values()):
            due.append(self._watch_due_s)
        due += [one.retry_boot_s for one in self._holdings.values() if one.phase is not Phase.RUNNING]
        if self._unread.folders:
            due.append(self._unread.due_s)
        if self.claiming and self._candidates.version != self._looked_at[0]:
            due.append(now_s)  # a claim released the next rank of its lane
        if self.claiming and self._candidates.outdated:
            due.append(self._look_again_s)
        if (retry := self._candidates.next_due_s()) is not None:
            due.append(now_s + retry - self._bucket.now())
        return max(0.0, min(due) - now_s)

    # ---- supervisors

    def _watch(self, now_s: float) -> None:
        """Which supervisors have ended. The lock is asked for those whose descriptor spoke, and for all now and
        then."""
        spoke = set(self._ready)
        self._ready.clear()
        asked = spoke
        if now_s >= self._watch_due_s:
            self._watch_due_s = now_s + WATCH_EVERY_S
            asked = set(self._holdings)
        for attempt_id in sorted(asked):
            holding = self._holdings.get(attempt_id)
            if holding is None or holding.phase is not Phase.RUNNING:
                continue
            if holding.folder.is_alive():
                if attempt_id in spoke:
                    self._launcher.adopt(holding.folder)  # ours lost the launch to another, who is to be watched now
                continue
            if attempt_id not in spoke and holding.folder.launched_by() is None and now_s < holding.retry_boot_s:
                continue  # just asked of the nursery: it has not come to life yet
            self._launcher.forget(holding.folder)
            holding.phase, holding.retry_boot_s = Phase.ENDING, 0.0

    def _finish_endings(self, now_s: float) -> None:
        for holding in self._due(Phase.ENDING, now_s):
            rebooted = holding.claim.boot_id != self._ambient.boot_id
            try:
                ending = endings.finish(self._bucket, holding, self._launcher, rebooted=rebooted)
            except (StoreError, OSError, *recovery.UNREADABLE) as trouble:
                self._again(holding, now_s, str(trouble))
                if isinstance(trouble, StoreError):
                    raise
                continue
            if ending is None:
                self._again(holding, now_s, "waits for the end of its block")
                continue
            self._forget(holding)
            if ending.goes_on and ending.goes_on not in self._holdings:  # in the same room
                folder = AttemptDir(self._options.home.attempts / ending.goes_on)
                self._take_over(recovery.rank_that_goes_on(folder, self._unread, self._ambient, self._log))
            self._offer.undying.ended(holding.folder, holding.ask, holding.stuck, self._ambient.boot_id)
            self._offer.note_delivery(now_s, delivered=not ending.undelivered, why=ending.why)
            for key in ending.entries:
                self._candidates.offer(key)
            self._inbox.forget(holding.a)

    def _due(self, phase: Phase, now_s: float) -> list[Holding]:
        return [one for one in self._holdings.values() if one.phase is phase and now_s >= one.retry_boot_s]

    def _again(self, holding: Holding, now_s: float, why: str) -> None:
        holding.complaints += 1
        longest_s = min(RETRY_S * 2 ** min(holding.complaints, 5), RETRY_MOST_S)
        holding.retry_boot_s = now_s + self._ambient.uniform(longest_s / 2, longest_s)
        self._log(f"{holding.a}: {why}")

    def _forget(self, holding: Holding) -> None:
        self._launcher.forget(holding.folder)
        self._holdings.pop(str(holding.a), None)

    # ---- hearing and sweeping

    def _hear(self, now_s: float) -> None:
        if now_s < self._bell_due_s:
            return
        self._bell_due_s = now_s + self._options.poll_s
        for event in self._bell.look():
            self._heard(event)
        self._accepted()
        if self._bell.missed:
            self._bell.missed = False
            self._sweep_due_s = min(self._sweep_due_s, now_s)

    def _heard(self, event: BellEvent) -> None:
        if event.kind == "entry":
            self._candidates.offer(event.what)
        elif event.kind == "queue":
            self._sweep_due_s = 0.0
        elif event.kind in ("cancel", "stop", "follow", "gang"):
            self._followers.pass_on(event, self._holdings.values(), self._launcher)
        else:
            self._rules.heard(event)
            self._inbox.heard(event)

    def _sweep(self, now_s: float) -> None:
        """Everything the bell might have failed to tell: the queue, retries, cancels."""
        if now_s >= self._sweep_due_s:
            self._inbox.sweep()
            self._rules.sweep()
            self._graces.sweep()
            self._candidates.sweep()
            if self._holdings:
                for row in self._bucket.store.list(keys.CANCELS).rows:
                    self._heard(BellEvent(nonce="", kind="cancel", what=row.key[len(keys.CANCELS) : -len(".json")]))
            kill_the_deaf(self._bucket, self._holdings.values(), self._launcher, now_s, self._log)
            self._followers.forget_old(self._bucket.now())
            self._sweep_due_s = now_s + self._ambient.uniform(0.9, 1.1) * SWEEP_EVERY_S
            self._accepted()
        if self._candidates.next_due_s() is not None:
            self._candidates.move_due(self._bucket.now())

    def _obey(self, now_s: float) -> None:
        self._rules.answer(now_s)
        self._inbox.obey(self._holdings, self._unread)

    # ---- admitting and claiming

    def _reserved(self) -> list[tuple[AttemptDir, Ask]]:
        return [(one.folder, one.ask) for one in self._holdings.values()]

    def _machine(self) -> fit.Machine:
        return self._offer.machine(self._reserved())

    def _admit(self, now_s: float) -> None:
        if not self.claiming or not self._inbox.lets_claim():
            return
        while (given := self._inbox.starts.take(self._machine, self._holdings)) is not None:
            self._claim(given.entry, given.ask, given.asked)  # what ticks gave us, before what we find ourselves
        here = (self._candidates.version, len(self._holdings))
        if here == self._looked_at and now_s < self._look_again_s:
            return
        for _ in range(PAGES_A_STEP):
            if self._claim_what_fits() or not self._candidates.read_on():
                break
        self._looked_at = (here[0], len(self._holdings))
        self._look_again_s = self._ambient.boot_s() + self._candidates.pause_s()

    def _claim_what_fits(self) -> bool:
        """Claim candidates in order while they fit. True when at least one was claimed, or there is no room at all."""
        progress, unfit = False, set[str]()
        for entry in self._candidates.to_try():
            if str(entry.attempt) in self._holdings:
                self._candidates.drop(entry.key)
                continue
            coarse = str(entry.envelope)
            if coarse in unfit and not entry.envelope.picky:
                continue
            machine = self._machine()
            if machine.closed or machine.taken_whole or machine.free_cpu_millis <= 0:
                return True
            ask = self._candidates.readable_ask(entry, self._log)
            if ask is None:
                continue
            if fit.why_not(machine, ask):
                unfit.add(coarse)
                continue
            if not self._rules.let_claim(entry, ask, machine, self._holdings.values(), self._candidates):
                continue
            if not self._candidates.is_there(entry):
                continue
            self._candidates.drop(entry.key)
            self._claim(entry, fit.settled(machine, ask))
            progress = True
        return progress

    def _claim(self, entry: Entry, ask: Ask, by: ToStart | None = None) -> None:
        if entry.attempt in self._unread:
            return  # the store has not said yet whose it is
        try:
            holding = claims.prepare(self._bucket, self._options, self._ambient, entry, ask, by)
        except OSError as error:
            self._offer.close(f"disk: {error}")
            self._log(f"no claim is sent: {error}")
            self._candidates.offer(entry.key)
            return
        self._holdings[str(holding.a)] = holding
        self._go_on(holding)

    def _go_on_claiming(self, now_s: float) -> None:
        for holding in self._due(Phase.CLAIMING, now_s):
            self._go_on(holding)

    def _go_on(self, holding: Holding) -> None:
        """Take a claim as far as the store answers. What is unsure is kept and asked again."""
        match claims.advance(self._bucket, holding):
            case claims.Launchable(opened, released):
                self._candidates.won()
                for key in released:
                    self._candidates.offer(key)
                ring_entries(self._bucket, released)
                self._launch(holding, opened)
            case Unsure(why):
                self._again(holding, self._ambient.boot_s(), why)
            case claims.Unreadable(bad):
                self._candidates.set_aside(holding.claim.queue_key, bad, self._log)
                self._not_mine(holding)
            case claims.NotMine(why, lost):
                if lost:
                    self._candidates.lost(holding.claim.queue_key)
                if why:
                    self._log(f"{holding.a}: {why}")
                self._not_mine(holding)

    def _not_mine(self, holding: Holding) -> None:
        report.note_done(holding.folder, ours=False, at=self._bucket.now())
        self._forget(holding)

    def _launch(self, holding: Holding, opened: Open) -> None:
        now_s = self._ambient.boot_s()
        terms = opened.terms.for_rank(holding.a.rank)
        holding.ttl_s, holding.time_limit_s = terms.ttl_s, terms.time_limit_s
        try:
            holding.folder.write_task(codec.fields_of(claims.task_of(self._options, self._graces, holding, opened)))
            self._followers.tell(holding.a, holding.folder)
            self._launcher.launch(holding.folder)
        except (NurseryFailed, OSError) as fault:
            self._log(f"{holding.a}: not started: {fault}")
            holding.phase, holding.retry_boot_s = Phase.ENDING, 0.0
            return
        except LaunchUnknown as unknown:
            self._log(f"{holding.a}: {unknown.message}")
        self.claimed += 1
        holding.complaints = 0
        holding.phase, holding.retry_boot_s = Phase.RUNNING, now_s + 5.0

    # ---- broadcasting

    def _broadcast(self, now_s: float) -> None:
        """`capacity/<worker>.json`: what is free, what is held and who of it is alive, with a promise when the next
        comes."""
        if not self._offer.is_due(now_s, accepting=self.claiming, held=len(self._holdings)):
            return
        held = tuple(one.held(self._reach.seconds) for one in self._holdings.values())
        self._bucket.put(
            keys.capacity(self._options.worker),
            self._offer.capacity(self._bucket.now(), self._reserved(), held, accepting=self.claiming),
        )
        self._offer.said(now_s, accepting=self.claiming, held=len(self._holdings))
        self._accepted()

    def withdraw(self) -> None:
        """Take the broadcast away: this worker offers nothing any more. Raises `StoreUnavailable`."""
        self._bucket.drop(keys.capacity(self._options.worker))
