"""The bounded models, whole: nothing breaks within the small bounds. `scripts/model --large` runs the larger ones."""

from __future__ import annotations

import pytest

from tests.model.catalogue import MODELS, try_rule
from tests.model.language import Model


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_whole_protocol_has_no_counterexample(model: type[Model]) -> None:
    """Every interleaving of the small settings: no task lost, none started that must not be, no budget charged
    twice.
    """
    for setting, found in try_rule(model, None):
        assert found.error is None, "\n".join([f"{model.name}, {setting.name}: {found.error}", *found.trace])
        assert not found.capped, (
            f"{model.name}, {setting.name}: more than {found.states} states; the bounds are too large for a test"
        )
        assert found.states > 30, f"{model.name}, {setting.name}: only {found.states} states; its actors can do nothing"
