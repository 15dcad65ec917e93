"""`scripts/model`: the bounded models from the command line, at small or larger bounds, with a table and, when asked,
the counterexamples.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.model.catalogue import MODELS, is_expected, try_rule
from tests.model.language import Model, Rule

WHOLE = "(none)"


class Progress:
    """One line on standard error, at most twice a second, and only for people."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()
        self.last = 0.0

    def __call__(self, setting: str, states: int) -> None:
        now = time.monotonic()
        if self.shown and now - self.last > 0.5:
            self.last = now
            print(f"\r\033[K{setting}: {states:,} states", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def main() -> int:
    asked = _arguments()
    rows = [(model, rule) for model in MODELS for rule in (None, *model.rules) if _wanted(asked.only, model, rule)]
    if not rows:
        names = ", ".join(model.name for model in MODELS)
        print(f"No model or rule is called {' '.join(asked.only)!r}. The models are: {names}.", file=sys.stderr)
        return 2
    begun, states, wrong = time.monotonic(), 0, 0
    print(f"{'model':<8} {'rule removed':<38} {'setting':<46} {'states':>10} {'s':>6}  result")
    for model, rule in rows:
        more, right = _try(model, rule, asked)
        states += more
        wrong += not right
    print(f"{len(rows)} rows, {states:,} states, {time.monotonic() - begun:.0f} s; ", end="")
    print("all as expected" if not wrong else f"{wrong} NOT as expected (marked !)")
    return 1 if wrong else 0


def _try(model: type[Model], rule: Rule | None, asked: argparse.Namespace) -> tuple[int, bool]:
    """One rule, in its settings: a line for each. Returns the states seen, and whether it came out as it must."""
    progress, states, caught = Progress(), 0, False
    begun = time.monotonic()
    for setting, found in try_rule(model, rule, large=asked.large, cap=asked.cap, progress=progress):
        progress.clear()
        states += found.states
        caught = found.error is not None and (rule is None or is_expected(rule, found.error))
        good = found.error is None if rule is None else caught or found.error is None
        result = found.error or (
            f"no counterexample up to the cap of {asked.cap:,}" if found.capped else "no counterexample"
        )
        took = time.monotonic() - begun
        print(
            f"{model.name:<8} {rule.name if rule else WHOLE:<38} {setting.name:<46} {found.states:>10,} {took:>6.1f}"
            f"{'  ' if good else ' !'}{result}",
            flush=True,
        )
        begun = time.monotonic()
        if found.error and (asked.trace or rule is None):
            print("\n".join(f"           {line}" for line in found.trace))
    if rule is not None and not caught:
        print(
            f"{model.name:<8} {rule.name:<38} ! nothing noticed that this rule was removed (or not as {rule.caught!r})"
        )
    return states, caught == (rule is not None)


def _wanted(only: list[str], model: type[Model], rule: Rule | None) -> bool:
    return not only or model.name in only or (rule.name if rule else f"{model.name}:whole") in only


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/model", description=__doc__)
    parser.add_argument(
        "only", nargs="*", metavar="MODEL | RULE | MODEL:whole", help="only these models, or only without these rules"
    )
    parser.add_argument("--large", action="store_true", help="also the larger settings of the whole models (minutes)")
    parser.add_argument("--trace", action="store_true", help="print the shortest trace of every counterexample")
    parser.add_argument(
        "--cap", type=int, default=20_000_000, help="give up on a setting after so many states (default %(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
