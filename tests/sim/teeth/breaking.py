"""Taking a guard out of a shipped function: its text is changed, compiled in its own module, and put in the
function's place.

The code object is swapped, not the function: whoever imported the function before has the broken one too.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("stado_like", "worker", "coordinator", "cli")


def marks() -> list[tuple[str, str]]:
    """Every `# guard: <name>` in shipped code, as (file, name), in the order of the files."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for line in path.read_text().splitlines():
                _, mark, name = line.partition("# guard: ")
                if mark:
                    found.append((str(path.relative_to(ROOT)), name.strip()))
    return found


def module_of(file: str) -> ModuleType:
    parts = Path(file).with_suffix("").parts
    return importlib.import_module(".".join(parts if parts[0] == "stado_like" else parts[1:]))


@contextmanager
def broken(file: str, function: str, *changes: tuple[str, str]) -> Iterator[None]:
    """Within, `function` (`name` or `Class.name`) of `file` has each text of `changes` replaced, once each."""
    module = module_of(file)
    found = _function(module, function)
    source = textwrap.dedent(inspect.getsource(found))
    for old, new in changes:
        if source.count(old) != 1:
            raise LookupError(f"{file}: {function} holds {source.count(old)} times: {old!r}\n{source}")
        source = source.replace(old, new)
    kept = found.__code__
    found.__code__ = _compiled(source, module, kept)
    try:
        yield
    finally:
        found.__code__ = kept


def _function(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    if not isinstance(found, FunctionType):
        raise LookupError(f"{module.__name__}.{name} is no function")
    return found


def _compiled(source: str, module: ModuleType, kept: Any) -> Any:
    tree = ast.parse(source)
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    namespace: dict[str, Any] = {}
    future = "from __future__ import annotations\n"
    code = compile(ast.parse(future + ast.unparse(tree)), kept.co_filename, "exec")
    exec(code, {**module.__dict__}, namespace)
    return namespace[definition.name].__code__
