"""What contradicts itself within a template is refused by its path with its sentence; what is near it is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stado_like.errors import InvalidSpecification
from stado_like.job.spec import rules_resources, rules_task
from stado_like.job.spec.complaints import parts
from stado_like.job.spec.validate import validate
from tests.pure.spec_contradictions import BOTH, DENY, REFUSED, RES, TAKEN, asked, gpus


def job(template: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "train"}, "spec": {"task_template": {"command": "true", **template}}}


def refusals(template: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidSpecification) as refused:
        validate(job(template))
    assert refused.value.code == "VALIDATION_ERROR"
    return {path.removeprefix("task_template."): sentence for path, sentence in refused.value.detail.items()}


@pytest.mark.parametrize(
    ("template", "path", "sentence"), REFUSED, ids=[f"{n}-{row[1]}" for n, row in enumerate(REFUSED)]
)
def test_contradiction_is_refused_where_it_stands(template: dict[str, Any], path: str, sentence: str) -> None:
    assert refusals(template) == {path: sentence}


@pytest.mark.parametrize("template", TAKEN, ids=[str(n) for n in range(len(TAKEN))])
def test_what_only_looks_like_a_contradiction_is_taken(template: dict[str, Any]) -> None:
    stored = validate(job(template))
    assert json.dumps(validate(stored)) == json.dumps(stored)


def test_a_probe_and_an_egress_rule_without_anything_name_all_they_miss() -> None:
    template = {"health_check": {"type": "HTTP"}, "network": {"egress": {**DENY, "allow": [{}]}}}
    assert refusals(template) == {
        "health_check.path": "Required for HTTP",
        "health_check.port": "Required for HTTP",
        "network.egress.allow[0].host": "Required unless cidr is given",
        "network.egress.allow[0].cidr": "Required unless host is given; every address is 0.0.0.0/0",
    }


def test_what_only_others_have_is_refused_with_what_to_use_instead() -> None:
    refused: dict[str, Any] = {
        "identity": True, "external_accesses": [{"name": "web", "port": 80}], "tools": {}, "agent_sandbox": {},
        "interactive": {"port": 8888},
    }  # fmt: skip
    found = refusals(refused)
    assert set(found) == set(refused)
    assert "secret_refs" in found["identity"]
    assert all(";" in sentence for sentence in found.values()), "each says what to use instead"
    validate(job({"identity": False, "external_accesses": [], "tools": None}))


def test_every_rule_has_refused_something() -> None:
    idle = {rule.__name__ for rule in (*rules_task.RULES, *rules_resources.RULES)}
    for template, _, _ in REFUSED:
        whole = job(template)["spec"]["task_template"]
        idle -= {rule.__name__ for rule in rules_task.RULES if rule(whole, "x")}
        resources = whole.get(RES, {})
        idle -= {rule.__name__ for rule in rules_resources.RULES if rule(resources, "x")}
    assert idle == set()


def test_a_group_is_told_of_its_own_template() -> None:
    group = {"name": "g", "task_template": {"args": ["a"]}}
    with pytest.raises(InvalidSpecification) as refused:
        validate({"metadata": {"name": "x"}, "spec": {"task_groups": [group]}})
    assert list(refused.value.detail) == ["task_groups[0].task_template.command"]


def test_stored_ask_has_the_form_that_was_chosen() -> None:
    """Per GPU or as a share: no cores and bytes beside it that nobody asked for."""
    for resources in ({**gpus(2), "per_gpu": BOTH}, {"node_fraction": 0.25}):
        stored = validate(job(asked(**resources)))["spec"]["task_template"][RES]
        assert not {"cpu_cores", "memory_bytes"} & set(stored)
        assert {name: stored[name] for name in resources if name != "gpu_requests"} == {
            name: value for name, value in resources.items() if name != "gpu_requests"
        }


def test_stored_count_of_pinned_gpus_is_their_number() -> None:
    stored = validate(job(asked(gpu_requests={"ids": ["a", "b"]})))["spec"]["task_template"][RES]
    assert stored["gpu_requests"]["count"] == 2
    assert validate(job(asked(**stored)))["spec"]["task_template"][RES] == stored


def test_stored_policy_says_which_tasks_may_be_reached() -> None:
    for egress, cluster in (({}, "all"), (DENY, "namespace"), ({**DENY, "cluster": "none"}, "none")):
        stored = validate(job({"network": {"egress": egress}}))["spec"]["task_template"]["network"]
        assert stored["egress"]["cluster"] == cluster


_NAMES = sorted({name for at, model in parts().items() if "task_template" in at for name in model.model_fields})
_LEAVES = st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.sampled_from(
    ["", "All", "Exact", "Bind", "HTTP", "deny", "sandbox", "node", "nvlink", "host", "/x", "\ud800", "9" * 30]
)  # fmt: skip
_JUNK = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(_NAMES), _JUNK, max_size=6))
def test_any_junk_gets_sentences_and_never_a_traceback(template: dict[str, Any]) -> None:
    found = rules_task.contradictions(template, "task_template")
    assert all(path.startswith("task_template") and sentence for path, sentence in found.items())
    found = rules_resources.resource_contradictions(template, "at")
    assert all(path.startswith("at.") for path in found)
