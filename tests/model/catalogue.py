"""Every model, and how one of them is tried with or without a rule: the same for the tests and for `scripts/model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.model.blocks import Blocks
from tests.model.core import Core
from tests.model.engine import Found, check
from tests.model.families import Families
from tests.model.final import FinalRecord
from tests.model.gang import Gang
from tests.model.holds import Holds
from tests.model.lanes import Lanes
from tests.model.language import Model, Rule, Setting
from tests.model.moves import Moves
from tests.model.names import Names
from tests.model.overdue import Overdue
from tests.model.quotas import Quotas
from tests.model.reap import Reap
from tests.model.waits import Waits

MODELS: tuple[type[Model], ...] = (
    Core,
    Lanes,
    Blocks,
    FinalRecord,
    Names,
    Waits,
    Families,
    Overdue,
    Moves,
    Reap,
    Gang,
    Holds,
    Quotas,
)


def settings(model: type[Model], *, large: bool, rule: Rule | None = None) -> tuple[Setting, ...]:
    """The worlds to try. A rule that shows in one of them names it; its counterexample is small, so the larger ones are
    for the whole protocol.
    """
    if rule is not None:
        if not rule.setting:
            return model.small
        return tuple(one for one in (*model.small, *model.large) if rule.setting == one.name)
    return (*model.small, *model.large) if large else model.small


def try_rule(
    model: type[Model],
    rule: Rule | None,
    *,
    large: bool = False,
    cap: int = 3_000_000,
    progress: Callable[[str, int], None] | None = None,
) -> Iterator[tuple[Setting, Found]]:
    """The model without this rule (None: whole), one setting after the other until something breaks."""
    for setting in settings(model, large=large, rule=rule):
        name = setting.name

        def tell(states: int, name: str = name) -> None:
            if progress is not None:
                progress(name, states)

        found = check(model(rule.name if rule else "", setting), cap=cap, progress=tell)
        yield setting, found
        if found.error:
            return


def is_expected(rule: Rule, error: str | None) -> bool:
    """Whether the counterexample is of the kind that the missing rule must give."""
    return error is not None and any(words in error for words in rule.caught.split(" | "))
