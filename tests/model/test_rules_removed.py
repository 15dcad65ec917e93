"""The bounded models, without one rule: every rule that is taken away breaks something, in the way it must.

A rule whose removal nobody notices is either not needed or not modelled: both are worth a failing test. `scripts/model
--trace` shows the counterexamples.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.model.catalogue import MODELS, is_expected, try_rule
from tests.model.language import Model, Rule

ROOT = Path(__file__).resolve().parents[2]
EVERY_RULE = [(model, rule) for model in MODELS for rule in model.rules]


@pytest.mark.parametrize(("model", "rule"), EVERY_RULE, ids=[f"{model.name}-{rule.name}" for model, rule in EVERY_RULE])
def test_a_rule_taken_away_is_noticed(model: type[Model], rule: Rule) -> None:
    outcomes = list(try_rule(model, rule))
    assert outcomes, f"the rule names a setting that is not there: {rule.setting}"
    _, found = outcomes[-1]
    assert is_expected(rule, found.error), f"expected {rule.caught!r}, found {found.error!r}\n" + "\n".join(found.trace)


def test_rules_and_settings_have_names_of_their_own() -> None:
    for model in MODELS:
        names = [rule.name for rule in model.rules]
        settings = [setting.name for setting in (*model.small, *model.large)]
        assert len(set(names)) == len(names) and len(set(settings)) == len(settings)
        with pytest.raises(ValueError, match="no rule"):
            model("no such rule")


def test_rules_name_guards_that_the_shipped_code_has() -> None:
    """A rule that is marked in the code carries the mark's name, so that model and code can be read side by side."""
    marks = set()
    for path in (file for room in ("stado_like", "worker") for file in (ROOT / room).rglob("*.py")):
        marks.update(re.findall(r"# guard: (.+?)\s*$", path.read_text(), re.MULTILINE))
    assert {rule.guard for _, rule in EVERY_RULE if rule.guard} - marks == set()
