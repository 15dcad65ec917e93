"""Answers that are lost, doubled or ambiguous: never a wrong outcome, and never longer than the budget."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from stado_like.errors import BucketMissing, CredentialsRefused, StoreUnavailable, StoreUntrusted
from stado_like.store.conditional import Lost, Won, create_once, delete_again, write_again
from stado_like.store.protocol import Applied, Rejected, Unknown
from stado_like.store.url import open_store
from tests.contract.conftest import BUCKET, Proxied
from tests.contract.stepped_ambient import SteppedAmbient
from tests.fault_proxy import Fault, fault_proxy
from tests.servers import Server

MINE, OTHER = b'{"nonce":"aaaa"}', b'{"nonce":"bbbb"}'


def test_claim_answer_lost_still_wins(proxied: Proxied) -> None:
    """Worker is told it lost a claim that it in fact won: the first PUT landed, its reply was lost."""
    store = proxied.open()
    store.head("warm")
    proxied.proxy.clear()
    proxied.proxy.add(Fault("PUT", "claim", drop_reply=True))
    assert isinstance(create_once(store, "claim", MINE), Won)
    assert len(proxied.proxy.requests("PUT")) == 1  # sent once: read back, not sent again
    assert isinstance(create_once(store, "claim", OTHER), Lost)


def test_a_lost_answer_is_unknown_and_the_write_is_sent_once(proxied: Proxied) -> None:
    store = proxied.open()
    store.head("warm")
    proxied.proxy.clear()
    for write in (store.create, store.put, lambda key, body: store.replace(key, body, '"x"')):
        proxied.proxy.add(Fault("PUT", drop_reply=True))
        answer = write("x", MINE)
        assert isinstance(answer, Unknown)
        assert BUCKET in answer.why
    assert len(proxied.proxy.requests("PUT")) == 3
    proxied.proxy.add(Fault("DELETE", drop_reply=True))
    assert isinstance(store.delete("x"), Unknown)
    assert len(proxied.proxy.requests("DELETE")) == 1


def test_lost_answer_of_a_lost_race_is_lost(proxied: Proxied) -> None:
    proxied.beside().create("claim", OTHER)
    proxied.proxy.add(Fault("PUT", "claim", drop_reply=True))
    outcome = create_once(proxied.open(), "claim", MINE)
    assert isinstance(outcome, Lost)
    assert outcome.found.body == OTHER


def test_a_duplicated_create_is_settled_by_its_nonce(proxied: Proxied) -> None:
    store = proxied.open()
    proxied.proxy.add(Fault("PUT", "claim", duplicate=True, times=2))
    assert isinstance(store.create("claim.raw", MINE), Rejected)  # what the server says of its own first sending
    assert isinstance(create_once(store, "claim", MINE), Won)


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_an_open_status_on_a_create_is_unknown_never_lost(proxied: Proxied, status: int) -> None:
    """All contenders are told "already held", the object does not exist: a 409 was taken for "exists".

    Retry decided by HTTP status, not by the error-code string.
    """
    store = proxied.open()
    body = b"<Error><Code>OperationAborted</Code><Message>PreconditionFailed</Message></Error>"
    proxied.proxy.add(Fault("PUT", "claim", answer=status, times=3, body=body))
    assert isinstance(store.create("claim", MINE), Unknown)
    assert isinstance(create_once(store, "claim", MINE, ambient=SteppedAmbient()), Won)
    assert len(proxied.proxy.requests("PUT")) == 4


def test_409_for_ever_is_unavailable_and_a_later_try_wins(proxied: Proxied) -> None:
    ambient = SteppedAmbient()
    store = proxied.open()
    fault = proxied.proxy.add(Fault("PUT", "claim", answer=409, times=10_000))
    with pytest.raises(StoreUnavailable, match="409"):
        create_once(store, "claim", MINE, budget_s=8.0, ambient=ambient)
    assert sum(ambient.slept) <= 8.0
    assert proxied.beside().head("claim") is None
    fault.times = 0
    assert isinstance(create_once(store, "claim", MINE), Won)


def test_retry_after_is_waited_for(proxied: Proxied) -> None:
    """Server asks for seven seconds, client retries at once."""
    ambient = SteppedAmbient()
    store = proxied.open(ambient)
    store.put("x", b"1")
    proxied.proxy.add(Fault("GET", "/x", answer=503, headers={"Retry-After": "7"}))
    found = store.get("x")
    assert found is not None and found.body == b"1"
    assert ambient.slept == [7.0]
    proxied.proxy.add(Fault("PUT", "claim", answer=503, headers={"Retry-After": "5"}))
    waits = SteppedAmbient()
    assert isinstance(create_once(store, "claim", MINE, ambient=waits), Won)
    assert waits.slept == [5.0]


def test_a_wait_longer_than_the_budget_is_told_at_once(proxied: Proxied) -> None:
    ambient = SteppedAmbient()
    store = proxied.open(ambient)
    proxied.proxy.add(Fault("GET", "/x", answer=503, headers={"Retry-After": "120"}, times=10_000))
    with pytest.raises(StoreUnavailable, match="asks to wait 120 s"):
        store.get("x")
    assert ambient.slept == []


def test_reads_are_asked_again_within_a_bound(proxied: Proxied) -> None:
    ambient = SteppedAmbient()
    store = proxied.open(ambient)
    store.put("x", b"1")
    for method, ask in (("GET", store.get), ("HEAD", store.head)):
        proxied.proxy.add(Fault(method, "/x", answer=500, times=2))
        proxied.proxy.add(Fault(method, "/x", drop_reply=True))
        assert ask("x") is not None
    proxied.proxy.add(Fault("GET", "/x", answer=500, times=10_000))
    before = sum(ambient.slept)
    with pytest.raises(StoreUnavailable, match=f"HTTP 500.*|bucket {BUCKET}"):
        store.get("x")
    assert 4.0 < sum(ambient.slept) - before <= 8.0


def test_puts_and_deletes_go_through_in_the_end(proxied: Proxied) -> None:
    store = proxied.open()
    proxied.proxy.add(Fault("PUT", "/beat", answer=503, times=2))
    write_again(store, "beat", b"1", ambient=SteppedAmbient())
    proxied.proxy.add(Fault("DELETE", "/beat", answer=500, times=2))
    delete_again(store, "beat", ambient=SteppedAmbient())
    assert proxied.beside().head("beat") is None


def test_a_status_that_cannot_be_read_is_no_absence(proxied: Proxied) -> None:
    """Healthy job cancelled because its status could not be read."""
    store = proxied.open(SteppedAmbient())
    store.put("beat", b"1")
    proxied.proxy.add(Fault("HEAD", "/beat", answer=500, times=10_000))
    with pytest.raises(StoreUnavailable):
        store.heads(["other", "beat"])


def test_refused_credentials_name_the_permissions(proxied: Proxied) -> None:
    store = proxied.open(SteppedAmbient())
    proxied.proxy.add(Fault(answer=403, times=3, body=b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"))
    for ask in (lambda: store.create("x", b"1"), lambda: store.get("x"), lambda: store.delete("x")):
        with pytest.raises(CredentialsRefused, match=f"bucket {BUCKET} at http.*HTTP 403 AccessDenied: no") as refused:
            ask()
        assert "s3:PutObject" in refused.value.next_step
    assert len(proxied.proxy.log) == 3  # a refusal is definite


def test_a_clock_that_is_off_is_named_in_one_line(proxied: Proxied) -> None:
    """Every call 403 RequestTimeTooSkewed: the server's Date is 20 minutes ahead."""
    store = proxied.open()
    store.head("warm")
    date = formatdate(time.time() + 1200, usegmt=True)
    proxied.proxy.add(Fault("HEAD", answer=403, headers={"Date": date}))
    with pytest.raises(CredentialsRefused, match=r"clock is (20m0s|19m59s) behind the store"):
        store.head("x")


def test_the_stores_time_is_followed_however_wrong_ours_is(proxied: Proxied) -> None:
    """Skew error only in tests: a frozen clock must not reach the signer."""
    ambient = SteppedAmbient(wall_s=1_640_995_200.0)  # 2022
    store = proxied.open(ambient)
    applied = store.create("x", b"1")
    assert isinstance(applied, Applied)
    assert abs(applied.now - time.time()) < 5
    ambient.sleep(100.0)
    assert abs(store.now() - applied.now - 100.0) < 1.0


def test_the_bucket_lies_elsewhere_and_is_followed_once(proxied: Proxied) -> None:
    store = proxied.open()
    proxied.proxy.add(Fault(answer=301, headers={"x-amz-bucket-region": "eu-west-1"}))
    assert isinstance(store.create("x", b"1"), Applied)
    assert "/eu-west-1/s3/" in proxied.proxy.log[-1].headers["authorization"]
    assert isinstance(store.create("y", b"1"), Applied)
    assert len(proxied.proxy.log) == 3


def test_a_missing_bucket_is_not_an_absent_key(moto_server: Server, driver: str) -> None:
    for ask in ("create", "put", "get", "head", "list", "delete", "now"):
        store = open_store(moto_server.url("no-such-bucket", "p", driver))
        arguments = {"create": ("x", b"1"), "put": ("x", b"1"), "list": ("",), "now": ()}.get(ask, ("x",))
        with pytest.raises(BucketMissing, match=f"no bucket no-such-bucket at {moto_server.endpoint}"):
            getattr(store, ask)(*arguments)


def test_a_server_without_conditions_is_not_trusted(moto_server: Server, driver: str) -> None:
    with fault_proxy(moto_server.endpoint) as proxy:
        store = open_store(Server(proxy.endpoint, 0).url(BUCKET, "not-implemented", driver))
        proxy.add(Fault("PUT", answer=501, body=b"<Error><Code>NotImplemented</Code></Error>"))
        with pytest.raises(StoreUntrusted, match="does not offer conditional writes: HTTP 501"):
            store.create("x", b"1")
