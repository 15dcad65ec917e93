"""A small pre-loaded process that forks supervisors, and the agent's handle on it.

Not obvious because it is there to be fast (a fork of a loaded interpreter takes a millisecond, a fresh one a tenth of
a second) and because it must be safe to lose: killed, stopped, or left behind by its agent. So nobody is anybody's
parent that matters, the launch-once guard of the attempt's folder decides who starts it, and this process stays
single-threaded, never asks the store, and ends when its agent's end of the socket closes. Everything is imported at
the start: an upgrade on disk must not mix versions.

Run by the agent as `python -P -X utf8 -m stado_worker.nursery --fd N --entry module:function`. One message per
datagram, JSON and a newline: `{"attempt_dir": "/…"}` is answered by `{"pid": 123}` or `{"error": "…"}`; the first
message, unasked, is `{"ready": <pid>}`.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import orjson

from stado_like.ambient import REAL, Ambient
from stado_like.errors import StadoError

DEFAULT_ENTRY = "stado_worker.shim.supervise:run"
ANSWER_S = 10.0
START_S = 30.0
MOST_MESSAGE_BYTES = 65_536
# macOS has no datagrams with an end of file. A line per message works on a stream too: only one is ever under way.
KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM

Entry = Callable[..., None]
"""Called in the fork with the attempt's folder and, where the agent sent one, the socket on which it hands on more."""


class NurseryFailed(StadoError):
    """Supervisors cannot be started on this machine: nothing was launched."""

    code = "NURSERY_FAILED"


class _NeverReady(NurseryFailed):
    """Killed by a signal, or silent for too long: another one may fare better."""


class LaunchUnknown(StadoError):
    """The nursery did not answer and was replaced: the supervisor may or may not have been started. Launching the
    attempt again is safe: of two supervisors only the first that creates `launch` goes on.
    """

    code = "LAUNCH_UNKNOWN"


# -- the agent's side ----------


class Nursery:
    """Used from one thread. `prepare` is handed to the function of that name beside the entry, before any fork (the
    store's address: a client that takes long to build is built once). `log_path` takes the nursery's own standard
    error.
    """

    def __init__(
        self,
        *,
        entry: str = DEFAULT_ENTRY,
        prepare: str | None = None,
        log_path: Path | None = None,
        answer_s: float = ANSWER_S,
        start_s: float = START_S,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._entry = entry
        self._prepare = prepare
        self._log_path = log_path
        self._answer_s = answer_s
        self._start_s = start_s
        self._env = dict(env) if env is not None else None
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The nursery's pid; None before `start` and after `close`."""
        return self._process.pid if self._process is not None else None

    def fileno(self) -> int:
        """Becomes readable when the nursery ends; -1 when there is none."""
        return self._socket.fileno() if self._socket is not None else -1

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until it has imported everything. One that is killed meanwhile, or says nothing because the
        machine was paused, is replaced once, as at a launch: its agent must not end for that. Raises NurseryFailed."""
        try:
            self._start()
        except _NeverReady:
            self._start()

    def _start(self) -> None:
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, KIND)
        try:
            self._process = self._spawn(theirs)
        except OSError as error:
            ours.close()
            raise NurseryFailed(f"The nursery could not be started: {error}", "See the machine's limits") from error
        finally:
            theirs.close()
        self._socket = ours
        answer = self._receive(self._start_s)
        if not isinstance(answer, dict) or answer.get("ready") != self._process.pid:
            what = f"said nothing for {self._start_s:g} s" if answer is None else f"ended at its start ({answer!r})"
            told = self._last_words()
            may_be_chance = answer is None or (answer == "" and self._process.wait() < 0)
            self.close()
            raise (_NeverReady if may_be_chance else NurseryFailed)(
                f"The nursery {what}{told}", "Run `python -m stado_worker.nursery --help` by hand to see why"
            )

    def launch(self, attempt_dir: Path, channel: socket.socket | None = None) -> int:
        """Have a supervisor forked for this attempt; its pid. A dead nursery is replaced once. `channel`: the
        supervisor's end of a socket pair, on which the agent may hand it another attempt after this one.

        Raises NurseryFailed (nothing started) and LaunchUnknown (it did not answer; it was replaced).
        """
        body = orjson.dumps({"attempt_dir": str(attempt_dir.absolute())}) + b"\n"
        for last_try in (False, True):
            if self._socket is None or not self.is_alive():
                self.start()
            answer = self._receive(self._answer_s) if self._send(body, channel) else ""
            if answer is None:
                self._replace()
                raise LaunchUnknown(
                    f"The nursery did not answer within {self._answer_s:g} s and was replaced; "
                    f"{attempt_dir.name} may or may not have been launched",
                    "Launch it again: only one supervisor of an attempt goes on",
                )
            if isinstance(answer, dict):
                if "pid" in answer:
                    return int(answer["pid"])
                raise NurseryFailed(f"No supervisor could be forked: {answer.get('error')}", "See the machine's limits")
            # It died with our message or before it. Sending it again is safe: see LaunchUnknown.
            if last_try:
                told = self._last_words()
                self.close()
                raise NurseryFailed(
                    f"The nursery died twice at the launch of {attempt_dir.name}{told}", "See the worker's log"
                )
            self.close()
        raise AssertionError("unreachable: the second try returns or raises")

    def close(self) -> None:
        """End it: it stops at end of file, and is killed, for it may be stopped. Supervisors go on."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _replace(self) -> None:
        self.close()
        self.start()

    def _spawn(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        fd = theirs.fileno()
        command = [sys.executable, "-P", "-X", "utf8", "-m", "stado_worker.nursery"]
        command += ["--fd", str(fd), "--entry", self._entry]
        if self._prepare is not None:
            command += ["--prepare", self._prepare]
        log = open(self._log_path, "ab") if self._log_path is not None else None  # noqa: SIM115 - closed below
        try:
            return subprocess.Popen(
                command,
                cwd="/",
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log if log is not None else subprocess.DEVNULL,
                pass_fds=(fd,),
                start_new_session=True,
            )
        finally:
            if log is not None:
                log.close()

    def _send(self, body: bytes, channel: socket.socket | None) -> bool:
        assert self._socket is not None
        try:
            if channel is None:
                self._socket.sendall(body)
            else:
                socket.send_fds(self._socket, [body], [channel.fileno()])
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _receive(self, within_s: float) -> dict[str, Any] | str | None:
        """The next message; "" when the nursery is gone; None when nothing came in time."""
        assert self._socket is not None
        deadline_s = REAL.boot_s() + within_s
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        received = b""
        while not received.endswith(b"\n"):
            if not poller.poll(max(0.0, deadline_s - REAL.boot_s()) * 1000):
                return None
            try:
                part = self._socket.recv(MOST_MESSAGE_BYTES)
            except ConnectionResetError:
                return ""
            if not part:
                return ""
            received += part
        message: dict[str, Any] = orjson.loads(received)
        return message

    def _last_words(self) -> str:
        if self._log_path is None:
            return ""
        try:
            lines = self._log_path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return f"; its last words: {lines[-1]}" if lines else ""


# -- the nursery itself ----------


def preload(entry: str, prepare: str | None = None) -> Entry:
    """Import everything a supervisor uses, and find the function that is one. No request is sent, no thread started."""
    module_name, _, function_name = entry.partition(":")
    module = importlib.import_module(module_name)
    found: Entry = getattr(module, function_name)
    if prepare is not None:
        module.prepare(prepare)
    return found


def serve(channel: socket.socket, entry: Entry) -> None:
    """Fork a supervisor per message until the agent's end closes."""
    while True:
        try:
            received, fds, _, _ = socket.recv_fds(channel, MOST_MESSAGE_BYTES, 1)
            while received and not received.endswith(b"\n"):
                more = channel.recv(MOST_MESSAGE_BYTES)
                received = received + more if more else b""
        except ConnectionResetError:
            return
        if not received:
            return
        attempt_dir = str(orjson.loads(received)["attempt_dir"])
        answer: dict[str, Any]
        try:
            pid = os.fork()
        except OSError as error:
            answer = {"error": f"fork: {error.strerror}"}
        else:
            if pid == 0:
                _become_supervisor(channel, attempt_dir, entry, fds)
            answer = {"pid": pid}
        for fd in fds:
            os.close(fd)
        try:
            channel.sendall(orjson.dumps(answer) + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            return


def _become_supervisor(channel: socket.socket, attempt_dir: str, entry: Entry, fds: list[int]) -> NoReturn:
    """In the fork. The socket goes first: held here, it would keep the agent's end from ever looking closed."""
    code = 1
    try:
        channel.close()
        os.setsid()
        _reset_signals()
        _redirect(attempt_dir)
        for fd in fds:
            os.set_inheritable(fd, False)
        entry(attempt_dir, *(socket.socket(fileno=fd) for fd in fds))
        code = 0
    except BaseException:  # the last frame of this process: what happened must be readable, and only exit may follow
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _reset_signals() -> None:
    """As a fresh Python has them: what the nursery ignores, or was started with ignored, must not reach a task."""
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    kept = {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, getattr(signal, "SIGXFSZ", None)}
    for number in signal.valid_signals():
        if number not in kept and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _redirect(attempt_dir: str) -> None:
    """Nothing on 0 and 1; errors into the attempt's own `supervisor.log`, or nowhere when its folder is gone."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        errors = os.open(f"{attempt_dir}/supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError:
        errors = os.dup(nothing)
    for source, target in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(source, target)
    for fd in {nothing, errors} - {0, 1, 2}:
        os.close(fd)


def main(arguments: list[str] | None = None, ambient: Ambient = REAL) -> int:
    parser = argparse.ArgumentParser(prog="stado_worker.nursery", description="Started by a worker, not by hand.")
    parser.add_argument("--fd", type=int, required=True, help="the socket to the agent")
    parser.add_argument(
        "--entry", default=DEFAULT_ENTRY, help="module:function that is called with the attempt's folder"
    )
    parser.add_argument("--prepare", help="what the entry's module prepares before any fork")
    options = parser.parse_args(arguments)
    channel = socket.socket(fileno=options.fd)
    channel.set_inheritable(False)
    # Ended by its agent's end alone: a signal for the agent's whole group or unit must not stop a launch half-way.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Supervisors report to files: nobody wants their status, so the kernel buries them and no zombie stays.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    entry = preload(options.entry, options.prepare)
    gc.collect()
    gc.freeze()
    try:
        channel.sendall(orjson.dumps({"ready": ambient.pid}) + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        return 0
    serve(channel, entry)
    return 0


if __name__ == "__main__":
    sys.exit(main())
