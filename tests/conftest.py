"""What every test stands on: no settings of the person who runs it, and a home of its own.

Long-lived servers are fixtures beside the tests that need them; nothing here starts a process.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A loaded two-core machine makes single examples slow; that is no finding.
settings.register_profile("stado", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stado")

# Started in a shell's background, interrupts are ignored, and would be by every command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

OURS = ("STADO_", "ASTRAEUS_", "XDG_")
PLACED_BY_THE_RUNNER = ("STADO_TEST_",)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME, so default store, state and settings file of each test are its own; no variable of ours is inherited."""
    place = tmp_path_factory.mktemp("home", numbered=True)
    for name in list(os.environ):
        if name.startswith(OURS) and not name.startswith(PLACED_BY_THE_RUNNER):
            monkeypatch.delenv(name)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("HOME", str(place))
    return place
