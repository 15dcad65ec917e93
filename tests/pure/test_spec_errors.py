"""Everything wrong is said at once, by the path a person wrote, contradictions beside it; nothing gets a traceback."""

from __future__ import annotations

import json
import time
from types import MappingProxyType
from typing import Any

import pytest

from stado_like.errors import Exit, InvalidSpecification
from stado_like.job.spec.complaints import MOST
from stado_like.job.spec.validate import validate


def detail_of(document: Any) -> dict[str, str]:
    with pytest.raises(InvalidSpecification) as refused:
        validate(document)
    assert refused.value.exit_code is Exit.REFUSED
    json.dumps(refused.value.as_json()).encode()
    return refused.value.detail


def job(template: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "train"}, "spec": {**spec, "task_template": {"command": "true", **(template or {})}}}


def test_all_errors_come_at_once_with_unknown_fields_among_them() -> None:
    document = {
        "metadata": {"name": "a.b", "labels": {"stado.io/x": "y"}, "nam": 1},
        "speck": {},
        "spec": {
            "replicas": 3,
            "cpu_cores": 1,
            "start": "gang",
            "priority": True,
            "array": {"size": 3, "max_parallel": 4},
            "task_template": {
                "args": ["a", 3, None, "x\0"],
                "env": {"STADO_X": "1", "C": 5},
                "time_limit_seconds": 30,
                "heartbeat_ttl_seconds": "2m",
                "restart_policy": "onfailure",
                "requested_resources": {"cpu_cores": 1, "gpu_requests": {"count": "1", "model": "H100"}},
                "resilience": {
                    "max_restarts": 1, "max_retries_failure": 2, "backoff_seconds": 500, "max_backoff_seconds": 20,
                },
            },
        },
    }  # fmt: skip
    with pytest.raises(InvalidSpecification) as refused:
        validate(document)
    at, ask, again = "task_template", "task_template.requested_resources", "task_template.resilience"
    assert refused.value.as_json() == {
        "code": "UNKNOWN_FIELD",
        "message": "Failed to validate object",
        "next_step": "Correct the fields named and submit again; `stado job schema` prints every field.",
        "detail": {
            "metadata.name": "Must be letters, digits, - and _, at most 57, without - at either end, "
            'got the text "a.b"',
            "metadata.labels.stado.io/x": "Keys under stado.io/ are reserved",
            "metadata.nam": "Unknown field; did you mean name?",
            "speck": "Unknown field; did you mean spec?",
            "replicas": "Unknown field",
            "cpu_cores": "Unknown field here; it belongs at task_template.requested_resources.cpu_cores",
            "start": 'Must be Gang, MinAvailable or Independent, got the text "gang"; did you mean Gang?',
            "priority": "Must be an integer between -1000 and 1000, got true",
            "array.max_parallel": "Must be between 0 and 3 (the array's size), got 4",
            f"{at}.command": "Required without an image: there is nothing else to run",
            f"{at}.args[1]": 'Must be a text, got 3; quote it: "3"',
            f"{at}.args[2]": "Must be a text, got null",
            f"{at}.args[3]": "Must not contain a NUL character, has one at position 1",
            f"{at}.env.STADO_X": "Variables beginning with STADO_ are set by the worker and cannot be given",
            f"{at}.env.C": 'Must be a text, got 5; quote it: "5"',
            f"{at}.time_limit_seconds": "Must be between 60 and 31622400 seconds, got 30",
            f"{at}.heartbeat_ttl_seconds": 'Must be an integer between 10 and 86400 seconds, got the text "2m"; '
            "write 120",
            f"{at}.restart_policy": 'Must be OnFailure, Always or Never, got the text "onfailure"; '
            "did you mean OnFailure?",
            f"{ask}.memory_bytes": "Must be given together with cpu_cores",
            f"{ask}.gpu_requests.count": 'Must be an integer between 0 and 65536 GPUs, got the text "1"',
            f"{ask}.gpu_requests.model": "Unknown field; did you mean models?",
            f"{again}.max_backoff_seconds": "Must be at least backoff_seconds (500), got 20",
            f"{again}.max_retries_failure": "Is another name of max_restarts, and they differ: 2 and 1; "
            "give one of them",
        },
    }


def test_a_field_at_the_top_is_sent_below_spec() -> None:
    document = {**job(), "task_template": {}, "name": "x"}
    assert detail_of(document) == {
        "task_template": "Unknown field here; it belongs at spec.task_template",
        "name": "Unknown field here; it belongs at metadata.name",
    }


@pytest.mark.parametrize("junk", [None, [], "x", 5, b"{}", [("metadata", {})]])
def test_what_is_no_mapping_is_refused(junk: Any) -> None:
    with pytest.raises(InvalidSpecification, match="A specification is a mapping"):
        validate(junk)


@pytest.mark.parametrize(
    "document",
    [{}, {1: 2}, {"spec": None}, {"metadata": [], "spec": "x"}, {"metadata": {}, "spec": {None: 1}}, {"": {}}],
)
def test_a_document_of_the_wrong_shape_is_refused_by_name(document: Any) -> None:
    assert detail_of(document)


def test_any_mapping_is_taken_at_the_top() -> None:
    assert validate(MappingProxyType(job())) == validate(job())


def test_neither_cpu_nor_memory_is_one_core_and_one_gibibyte() -> None:
    templates: list[dict[str, Any]] = [
        {},
        {"requested_resources": {}},
        {"requested_resources": {"gpu_requests": {"count": 1}}},
    ]
    for template in templates:
        asked = validate(job(template))["spec"]["task_template"]["requested_resources"]
        assert (asked["cpu_cores"], asked["memory_bytes"]) == (1, 1 << 30)


def test_whole_cores_are_stored_as_integers() -> None:
    asked = validate(job({"requested_resources": {"cpu_cores": 2.0, "memory_bytes": 5}}))
    assert json.dumps(asked["spec"]["task_template"]["requested_resources"]["cpu_cores"]) == "2"


def test_two_names_of_one_budget() -> None:
    """`max_restarts` or `max_retries_failure`: either alone is taken, equal is taken, neither is 10."""
    for given, stored in (
        ({}, 10),
        ({"max_restarts": 3}, 3),
        ({"max_retries_failure": 0}, 0),
        ({"max_restarts": 4, "max_retries_failure": 4}, 4),
    ):
        resilience = validate(job({"resilience": given}))["spec"]["task_template"]["resilience"]
        assert resilience["max_restarts"] == stored
        assert "max_retries_failure" not in resilience


def test_the_longest_backoff_follows_a_longer_first_one() -> None:
    resilience = validate(job({"resilience": {"backoff_seconds": 600}}))["spec"]["task_template"]["resilience"]
    assert resilience["max_backoff_seconds"] == 600
    assert list(detail_of(job({"resilience": {"backoff_seconds": 600, "max_backoff_seconds": 300}}))) == [
        "task_template.resilience.max_backoff_seconds"
    ]


def test_fail_job_is_stored_with_the_policy_it_forces() -> None:
    stored = validate(job({"restart_policy": "Always"}, on_failure="FailJob"))
    assert stored["spec"]["task_template"]["restart_policy"] == "Never"


def test_what_the_kernel_would_refuse_is_refused_here() -> None:
    """One variable or argument above 120 KiB, or all above 1 MiB: the kernel refuses at 128 KiB and about 2 MiB."""
    long = "x" * 122_881
    assert set(detail_of(job({"command": long, "args": ["a", long], "env": {"V": long}}))) == {
        "task_template.command",
        "task_template.args[1]",
        "task_template.env.V",
    }
    many = detail_of(job({"args": ["x" * 100_000] * 11}))
    assert many == {
        "task_template": "command, args and env together must be at most 1 MiB, got 1100112 bytes (1.05 MiB); "
        "put the data into a file"
    }
    assert validate(job({"args": ["x" * 100_000] * 10}))
    assert detail_of(job({"args": ["é" * 65_000]})), "bytes are counted, not characters"


def hostile_groups() -> list[dict[str, Any]]:
    """Each waits for all, under names that no terminal should see."""
    names = [f"\x1b[31m{n}\n" for n in range(100)]
    waits = [{"group_name": name} for name in [*names, "\0" * 5_000]]
    return [{"name": name, "task_template": {"command": "true"}, "depends_on": waits[:100]} for name in names]


def test_hostile_documents_get_a_short_answer_quickly() -> None:
    """However large the mistake: bounded detail, bounded sentences, under a second."""
    for document in (
        job({f"field_{n}\n{'x' * 500}": n for n in range(50_000)}),
        job({"args": [None] * 60_000}),
        job({"env": {f"{n}": n for n in range(9_000)}}),
        job({"args": ["x" * 130_000] * 3_000}),
        job({"command": "\x1b[31m" * 1_000_000}),
        {"metadata": {"name": "x" * 5_000_000}, "spec": {"x" * 5_000_000: 1}},
        job(after=[{"job": "train"}] * 50_000, collect=[1] * 50_000),
        job(array={"indices": [None] * 100_000, "entries": ["x" * 100_000] * 10_000}),
        job(start=[], policy={}, lifetime=[], task_groups=[{"name": []}], leader_group={}),
        {"metadata": {"name": "x"}, "spec": {"task_groups": [{"name": n} for n in range(50_000)]}},
        {"metadata": {"name": "x" * 50}, "spec": {"leader_group": "\x1b" * 100, "task_groups": hostile_groups()}},
    ):
        began = time.process_time()  # of this process: other tests run beside it
        detail = detail_of(document)
        assert time.process_time() - began < 1
        assert len(detail) <= 2 * MOST + 1
        assert all(path.isprintable() and len(path) < 300 for path in detail)
        assert all(sentence.isprintable() and len(sentence) < 400 for sentence in detail.values())


def test_cut_detail_says_how_much_is_left() -> None:
    detail = detail_of(job({"args": [None] * 1_000}))
    assert len(detail) == MOST + 1
    assert detail["…"] == "and 800 more"
