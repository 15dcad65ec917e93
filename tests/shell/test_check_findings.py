"""For every code of the catalogue a bucket that has it; what can be repaired is, and then nothing is left of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stado_like.fsck.check import Checked
from stado_like.fsck.finding import NOTHING, REMEDIES
from stado_like.fsck.repair import REPAIRS
from stado_like.job import keys, reasons
from stado_like.job.records import Verdict
from stado_like.job.states import JobState
from tests.builders_broken import ARRAY, Make
from tests.builders_broken_gangs import CASES
from tests.builders_check import Yard, codes, entries_of, only_entry
from tests.builders_jobs import attempt, claim, run, submit


@pytest.fixture
def yard(request: pytest.FixtureRequest) -> Yard:
    return Yard(request.node.nodeid)


NAMED = [pytest.param(code, make, audit, id=f"{n:02d}-{code}") for n, (code, make, audit) in enumerate(CASES)]


@pytest.mark.parametrize(("code", "make", "audit"), NAMED)
def test_a_finding_is_reported_and_repaired(yard: Yard, code: str, make: Make, audit: bool) -> None:
    """A listing that meets a control character survives, and the key is reported."""
    make(yard, yard.bucket())
    before = yard.contents()
    said = yard.check(audit=audit)
    assert code in codes(said.findings), said
    assert (said.repaired, yard.contents()) == ([], before)  # a check writes nothing
    assert code in codes(yard.check(audit=True).findings)
    done = yard.check(audit=audit, repair=True)
    again = yard.check(audit=audit)
    assert again.findings == done.findings
    assert not any(one.can_be_repaired for one in again.findings)
    assert (code in codes(done.repaired)) == (code not in codes(done.findings)) == (code in REPAIRS)


@pytest.mark.parametrize(("code", "make", "audit"), NAMED)
def test_an_audit_is_no_other_repair(yard: Yard, code: str, make: Make, audit: bool) -> None:
    make(yard, yard.bucket())
    first = yard.check(repair=True)
    second = yard.check(audit=True, repair=True)
    assert not second.repaired, (first, second)


def test_every_code_of_the_catalogue_has_a_bucket() -> None:
    assert {code for code, _, _ in CASES} == set(REMEDIES)


def test_what_no_program_may_choose_has_no_repair() -> None:
    assert {code for code, remedy in REMEDIES.items() if not remedy.startswith(NOTHING)} == set(REPAIRS)


# ---- what repairs lead to


def test_a_repaired_attempt_can_be_claimed_and_ends(yard: Yard) -> None:
    b = yard.bucket()
    j = submit(b)
    key = only_entry(b, j)
    b.store.delete(key)
    yard.check(repair=True)
    assert only_entry(b, j) == key
    run(b, attempt(j))
    assert yard.check(audit=True).findings == []


def test_an_end_that_asks_for_a_retry_is_settled_into_its_next_entry(yard: Yard) -> None:
    b = yard.bucket()
    j = submit(b)
    claim(b, attempt(j))
    retry = replace(
        run(b, attempt(submit(b, "other")), 1),
        attempt=str(attempt(j)),
    )
    b.decide(keys.end(attempt(j)), retry)
    yard.check(repair=True)
    assert b.store.head(keys.running(attempt(j))) is None
    assert keys.parse_later(only_entry(b, j)).attempt == attempt(j, n=2)


def test_a_repaired_cancel_ends_every_waiting_task_and_says_so_to_people(yard: Yard) -> None:
    b = yard.bucket()
    j = submit(b, **ARRAY)
    b.decide(keys.verdict(j), Verdict(nonce="n", state=JobState.CANCELLED, reason=reasons.RUN_CANCELLED, early=True))
    done = yard.check(repair=True)
    assert codes(done.repaired) == {"verdict-without-index", "cancel-unfinished"}
    final = b.final(j)
    assert final is not None and final.state is JobState.CANCELLED
    assert entries_of(b, j) == []
    assert b.store.head(keys.cancel_index(j)) is None


def test_a_finding_names_its_key_and_is_one_line(yard: Yard) -> None:
    for _, make, _ in CASES:
        place = Yard(f"{yard.name}-line")
        make(place, place.bucket())
        said: Checked = place.check(audit=True)
        for one in said.findings:
            assert one.key and one.remedy == REMEDIES[one.code]
            assert "\n" not in one.sentence and one.sentence.isprintable()
