"""Print the public modules and objects of the package. With ``--count``, print the numbers of modules and objects.

A name is public if no part of its dotted path begins with an underscore. An object in several modules counts once.
Names of cuda.core, which ``cuda_tma.__getattr__`` returns, do not count.
"""

from __future__ import annotations

import argparse
import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import cuda_tma

PACKAGE = Path(cuda_tma.__file__).parent


def public_modules() -> list[str]:
    """Return the dotted names of the modules without an underscore in their path."""
    found = {"cuda_tma"}
    for path in PACKAGE.rglob("*"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        below = parts[:-1] if parts[-1] == "__init__" else parts
        if path.suffix in (".py", ".pyx") and not any(part.startswith("_") for part in below):
            found.add(".".join(below))
    return sorted(found)


def defined(module: str) -> set[str]:
    """Return the names without an underscore that the source of a module defines. For a package, include the names that
    it imports from itself.
    """
    is_package = PACKAGE.parent.joinpath(*module.split(".")).is_dir()
    found: set[str] = set()
    for node in _source(module).body:
        found |= _names(node, is_package)
    # Functions whose names begin with pytest_ are hooks of pytest.
    return {name for name in found if not name.startswith(("_", "pytest_"))}


def _source(module: str) -> ast.Module:
    path = PACKAGE.parent.joinpath(*module.split("."))
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())


def _names(node: ast.stmt, is_package: bool) -> set[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return {node.name}
        case ast.Assign():
            return {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.ImportFrom(level=level) if level and is_package:
            return {alias.asname or alias.name for alias in node.names}
    return set()


def declared(module: str) -> list[str]:
    """Return the names in ``__all__`` of the source. Without ``__all__``, return the names that the source defines."""
    for node in _source(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return sorted(defined(module))


def objects() -> dict[str, object]:
    """Return each public object by its first dotted name, with names in outer modules first."""
    found: dict[str, object] = {}
    seen: set[tuple[str, int]] = set()
    for module in sorted(public_modules(), key=lambda name: (name.count("."), name)):
        for name in declared(module):
            value = _value(module, name)
            if (name, id(value)) not in seen:
                seen.add((name, id(value)))
                found[f"{module}.{name}"] = value
    return found


def _value(module: str, name: str) -> object:
    """Return the object of a name, or the dotted name if its module needs a library that is not installed."""
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return f"{module}.{name}"


def lines() -> Iterator[str]:
    yield from public_modules()
    yield from sorted(objects())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", action="store_true", help="print numbers only")
    if not parser.parse_args().count:
        print("\n".join(lines()))
        return
    modules, others = len(public_modules()), len(objects())
    print(f"public modules {modules}, other objects {others}, together {modules + others}")
    print(f"names in cuda_tma.__all__ {len(cuda_tma.__all__)}")


if __name__ == "__main__":
    main()
