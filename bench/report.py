"""The page: what was measured, told as tables, with the ratios that matter and the pictures beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench import planning, ticks
from bench.figures import Results
from bench.peers.contestant import KINDS, Kind
from bench.plots import FLOOR, OWN, PEER, Bar, bars
from bench.reach import judged

WRITTEN = "<!-- Written by `scripts/bench --publish`, never by hand: run it again to change it. -->"
OURS = (
    ("stado, directory in memory, no fsync", "singles", "many", "array", "start", "no"),
    ("stado, directory on disk, synced", "disk_singles", "", "disk_array", "", "yes"),
    ("stado, SeaweedFS on loopback", "s3_singles", "", "s3_array", "s3_start", "as S3 does"),
)
METHOD = """\
Every round takes every figure once, in turns, so that a machine that gets slower in the middle slows all of them. A
figure is the median of the rounds; a ratio is the median of the rounds' ratios, so both sides of it come from the same
minutes. All work is `/bin/true`, two at a time. Single jobs are submitted one after the other by one client; a rate
counts from before the first submit until the client knows that the last job has ended (stado's single jobs on a
directory: until the last end record was written). What each peer was asked to do, and with which flags, stands further
down."""


def markdown(results: Results, head: Mapping[str, str], pictures: str = "") -> str:
    """The page. `pictures`: the folder of the SVG files as seen from it; none are shown without."""
    lines = [WRITTEN, "", "# Benchmarks", "", *(f"- {name}: {value}" for name, value in head.items()), "", METHOD, ""]
    lines += ["## To reach", "", *_reach(results)]
    lines += ["", "## Jobs per second", "", *_picture(pictures, "rates"), *_rates(results)]
    lines += ["", "## Submit to first instruction, on idle", "", *_picture(pictures, "starts"), *_starts(results)]
    lines += ["", "## What stays resident", "", *_memory(results)]
    lines += ["", "## Requests and dollars", "", *_picture(pictures, "requests"), *_requests(results)]
    lines += ["", "## Ticks and plans", "", *_ticks(results)]
    lines += ["", "## Commands, and many workers", "", *_rows(results, ("help", "job_list", "contention"))]
    lines += ["", "## How the peers were run", "", *map(_note, KINDS)]
    if results.missing:
        lines += ["", "## Not taken", "", *(f"- {what}: {why}" for what, why in results.missing.items())]
    lines += ["", "## Every round", "", *_raw(results)]
    return "\n".join(lines) + "\n"


def _note(kind: Kind) -> str:
    sizes = [f"{n:,} {what}" for n, what in ((kind.singles, "single jobs"), (kind.array, "tasks in one")) if n]
    return f"- **{kind.title}** ({', '.join(sizes)}): {kind.note}."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], right: int = 1) -> list[str]:
    """Columns from `right` on are set to the right."""
    rule = "|".join("---:" if number >= right else "---" for number in range(len(head)))
    return [f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def _picture(folder: str, name: str) -> list[str]:
    return [f"![{name}]({folder}/{name}.svg)", ""] if folder else []


def _reach(results: Results) -> list[str]:
    rows = []
    for bound, verdict in judged(results):
        if verdict is None:
            rows.append((bound.what, bound.bound, "not taken", ""))
            continue
        reached = {True: "reached", False: "**missed**", None: ""}[verdict.reached]
        rows.append((bound.what, bound.bound, verdict.found, reached))
    return _table(("figure", "bound", "here", ""), rows, right=9)


def _told(results: Results, name: str) -> str:
    return results.told(name) if results.has(name) else ""


def _ratio(results: Results, mine: str, theirs: str) -> str:
    ratio = results.ratio(mine, theirs)
    return "" if ratio is None else f"{ratio:.2f} ×"


def _rates(results: Results) -> list[str]:
    head = (
        "",
        "single jobs",
        "5,000 single jobs",
        "one array",
        "survives a power cut",
        "stado's single",
        "stado's array",
    )
    rows: list[tuple[str, ...]] = []
    for title, singles, many, array, _, kept in OURS:
        rows.append((f"**{title}**", *(_told(results, name) for name in (singles, many, array)), kept, "", ""))
    for kind in KINDS:
        names = [f"{kind.name}.{what}" for what in ("singles", "many", "array")]
        if not any(map(results.has, names)):
            if kind.title in results.missing:
                rows.append((kind.title, f"not taken: {results.missing[kind.title]}", *[""] * (len(head) - 2)))
            continue
        of = ("disk_singles", "disk_array") if kind.on_disk else ("singles", "array")
        ratios = _ratio(results, of[0], names[0]), _ratio(results, of[1], names[2])
        rows.append((kind.title, *(_told(results, name) for name in names), "yes" if kind.on_disk else "no", *ratios))
    rows += [
        (f"*{results.figures[name].title}*", "", "", results.told(name), "", "", _ratio(results, "array", name))
        for name in ("popen", "spawn", "fork")
        if results.has(name)
    ]
    note = (
        "The last two columns: stado's rate (in memory; against a peer that survives a power cut, the synced one on "
        "disk) as a multiple of the peer's."
    )
    return [*_table(head, rows), "", note]


def _starts(results: Results) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for title, *_, start, _ in OURS:
        if start and results.has(f"{start}_p50"):
            rows.append((f"**{title}**", _told(results, f"{start}_p50"), _told(results, f"{start}_p95"), ""))
    for kind in KINDS:
        p50 = f"{kind.name}.start_p50"
        if results.has(p50):
            rows.append(
                (
                    kind.title,
                    results.told(p50),
                    _told(results, f"{kind.name}.start_p95"),
                    _ratio(results, "start_p50", p50),
                )
            )
    if results.has("date"):
        rows.append(
            (f"*{results.figures['date'].title}*", results.told("date"), "", _ratio(results, "start_p50", "date"))
        )
    lines = _table(("", "p50", "p95", "stado's p50, in memory"), rows)
    if results.has("start_cold"):
        lines += ["", f"After 6 s of rest, when no warm supervisor is left, stado takes {results.told('start_cold')}."]
    return lines


def _memory(results: Results) -> list[str]:
    rows = [
        (f"**{results.figures[name].title}**", results.told(name))
        for name in ("agent", "nursery", "worker", "supervisor", "s3_agent", "s3_nursery", "s3_worker", "s3_supervisor")
        if results.has(name)
    ]
    rows += [(kind.title, results.told(f"{kind.name}.memory")) for kind in KINDS if results.has(f"{kind.name}.memory")]
    if results.has("python"):
        rows.append((f"*{results.figures['python'].title}*", results.told("python")))
    note = (
        "Proportional set size of every process that stays when there is no work, measured while nothing or one task "
        "runs; HyperQueue's server and worker live in their client's process, whose own share is taken off."
    )
    return [*_table(("", "PSS"), rows), "", note]


def _requests(results: Results) -> list[str]:
    names = ("job.puts", "job.rings", "job.gets", "job.lists", "job.deletes", "rank.puts", "rank.gets")
    lines = _rows(results, (*names, "job.dollars", "rank.dollars", "idle_minute", "idle_day"))
    if results.requests:
        lines += ["", *_by_role(results.requests)]
    return [
        *lines,
        "",
        "Prices are S3 Standard's list prices in us-east-1. The peers ask no store; they need a server that runs.",
    ]


def _by_role(requests: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One row per kind and family of keys, one column per role."""
    kinds = sorted({kind for counts in requests.values() for kind in counts})
    rows = []
    for kind in kinds:
        cells = [requests[role].get(kind) for role in requests]
        rows.append((kind, *("" if cell is None else f"{cell:g}" for cell in cells)))
    return _table(("requests per one-task job", *requests), rows)


def _ticks(results: Results) -> list[str]:
    rows = []
    for queued in ticks.SIZES:
        cells = [
            _told(results, ticks.name_of(queued, what))
            for what in ("list", "gets", "puts", "seconds", "memory", "dollars")
        ]
        if any(cells):
            rows.append((f"{queued:,}", *cells, _told(results, planning.name_of(queued))))
    head = (
        "queued",
        "LIST",
        "GET and HEAD",
        "PUT",
        "exec to exit",
        "resident at most",
        "one a minute, a day",
        "plan (CPU time)",
    )
    return [
        *_table(head, rows, right=0),
        "",
        "A tick as cron runs it, after a hundred changes; plans are of full boards.",
    ]


def _rows(results: Results, names: Sequence[str]) -> list[str]:
    rows = []
    for name in names:
        if results.has(name):
            ratio = results.ratio(name)
            beside = f"{ratio:.2f} × {results.figures[results.figures[name].floor].title}" if ratio is not None else ""
            rows.append((results.figures[name].title, results.told(name), beside))
    return _table(("", "", ""), rows)


def _raw(results: Results) -> list[str]:
    rows = []
    for name, one in results.figures.items():
        rounds = " ".join(f"{value:.{max(one.digits, 1)}f}" for value in results.rounds[name])
        rows.append((one.title, one.unit, rounds))
    return _table(("figure", "unit", "rounds"), rows, right=9)


def pictures(results: Results) -> dict[str, str]:
    """SVG by name. A picture of nothing is left out."""
    made = {
        "rates": ("Tasks per second: single jobs, and as one array", _rate_bars(results)),
        "starts": ("Submit to first instruction on an idle cluster, p50, ms", _start_bars(results)),
        "requests": ("Requests of one tick, by queue, after 100 changes", _request_bars(results)),
    }
    return {name: bars(title, rows) for name, (title, rows) in made.items() if rows}


def _rate_bars(results: Results) -> list[Bar]:
    wanted = [(title, name, OWN) for title, singles, _, array, *_ in OURS for name in (singles, array)]
    wanted += [(kind.title, f"{kind.name}.{what}", PEER) for kind in KINDS for what in ("singles", "array")]
    wanted += [(results.figures[name].title, name, FLOOR) for name in ("popen", "spawn") if results.has(name)]
    found = []
    for title, name, colour in wanted:
        if results.has(name):
            form = "" if colour == FLOOR else " – array" if name.endswith("array") else " – singles"
            found.append(
                Bar(f"{title.removesuffix(', no fsync')}{form}", results.median(name), results.told(name), colour)
            )
    return sorted(found, key=lambda bar: -bar.value)


def _start_bars(results: Results) -> list[Bar]:
    wanted = [("stado, directory", "start_p50", OWN), ("stado, SeaweedFS", "s3_start_p50", OWN)]
    wanted += [(kind.title, f"{kind.name}.start_p50", PEER) for kind in KINDS]
    wanted += [("Popen", "date", FLOOR)]
    found = [
        Bar(title, results.median(name), results.told(name), colour)
        for title, name, colour in wanted
        if results.has(name)
    ]
    return sorted(found, key=lambda bar: bar.value)


def _request_bars(results: Results) -> list[Bar]:
    found = []
    for queued in ticks.SIZES:
        for what, title in ticks.KINDS.items():
            name = ticks.name_of(queued, what)
            if results.has(name):
                found.append(
                    Bar(f"{queued:,} queued: {title}", results.median(name), f"{results.median(name):.0f}", OWN)
                )
    return found
