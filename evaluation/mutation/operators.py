"""Small faults in a Python module.

Each mutant is the text of the module with one or two places replaced.

Mutants of locks, cleanup, refusals, limits and caches are `guards`. To detect them, a test must cause an error, run a
second thread, or reach a limit. Text, annotations, decorators and formatted strings do not change.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Edit", "Mutant", "mutants_of"]

COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
}  # fmt: skip
LOGIC = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
LIMIT = re.compile(r"max|most|limit|capacity|budget|size|bytes|total|stop|end|until|patience|seconds|depth|len\(", re.I)
CLEANUP = re.compile(r"\.(close|unlink|clear|pop|remove|kill|release|restore|discard|terminate|join|cancel)\(|restore")
CACHED = re.compile(r"cache|kept|known|memo", re.I)
LATE = frozenset({"__exit__", "__del__", "close"})


class Edit(NamedTuple):
    """A replacement of the bytes from `start` to `stop` in the text of a module."""

    start: int
    stop: int
    text: str


class Mutant(NamedTuple):
    """A fault of a module, where `before` is its first line, and `stop` the number of its last line."""

    path: str
    line: int
    stop: int
    kind: str
    guard: bool
    function: str
    before: str
    after: str
    edits: tuple[Edit, ...]

    def applied(self, source: bytes) -> bytes:
        """Return the text of the module with the fault."""
        for edit in reversed(self.edits):
            source = source[: edit.start] + edit.text.encode() + source[edit.stop :]
        return source

    def is_python(self, source: bytes) -> bool:
        """Return whether the module still compiles."""
        try:
            compile(self.applied(source), self.path, "exec")
        except (SyntaxError, ValueError):
            return False
        return True


class _Module(ast.NodeVisitor):
    """A collector of the faults of one module."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source, self.found = path, source, list[Mutant]()
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.scope: list[str] = []

    # ---- places ----

    def start(self, node: ast.AST) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def stop(self, node: ast.AST) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST) -> str:
        return self.source[self.start(node) : self.stop(node)].decode()

    def add(self, node: ast.AST, kind: str, *edits: Edit, guard: bool = False) -> None:
        guard = guard or bool(self.scope and self.scope[-1] in LATE)
        line = self.source.count(b"\n", 0, edits[0].start) + 1
        before = self.lines[line - 1].decode().strip()
        after = "; ".join(f"{self.source[e.start : e.stop].decode()!r:.60} -> {e.text!r:.60}" for e in edits)
        stop = max(line, node.end_lineno if kind in ("operator", "limit", "argument") else line)
        self.found.append(Mutant(self.path, line, stop, kind, guard, ".".join(self.scope), before, after, edits))

    def replace(self, node: ast.AST, text: str, kind: str, guard: bool = False) -> None:
        self.add(node, kind, Edit(self.start(node), self.stop(node), text), guard=guard)

    def between(self, left: ast.AST, right: ast.AST, words: tuple[str, str], kind: str, guard: bool = False) -> None:
        """Replace the operator between two operands."""
        pattern = re.escape(words[0]).replace(r"\ ", r"\s+")
        word = rf"\b{pattern}\b" if words[0][0].isalpha() else pattern
        gap = self.source[self.stop(left) : self.start(right)].decode()
        found = re.search(word, gap)
        if found and "#" not in gap:
            start = self.stop(left) + len(gap[: found.start()].encode())
            self.add(left, kind, Edit(start, start + len(found[0].encode()), words[1]), guard=guard)

    # ---- statements ----

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.scope.append(node.name)
        for each in (*node.args.defaults, *(default for default in node.args.kw_defaults if default), *node.body):
            self.visit(each)
        self.scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        for each in node.body:
            self.visit(each)
        self.scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip formatted strings, because positions inside them differ between versions of Python."""

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            text = self.text(node)
            self.replace(node, "pass", "dropped call", bool(CLEANUP.search(text) or CACHED.search(text)))
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self.scope and not any(isinstance(target, ast.Name) for target in node.targets):
            self.replace(node, "pass", "dropped assignment", bool(CACHED.search(self.text(node.targets[0]))))
        if not (isinstance(node.targets[0], ast.Name) and node.targets[0].id.startswith("__")):
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.replace(node, "pass", "dropped assignment")
        self.visit(node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        self.replace(node, "pass", "dropped cleanup", guard=True)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.replace(node, "pass", "dropped raise", guard=True)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.replace(node.value, "None", "dropped result")
            self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self.replace(node, "continue", "loop")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.replace(node, "break", "loop")

    def visit_With(self, node: ast.With) -> None:
        head = self.source[self.stop(node.items[-1].context_expr) : self.start(node.body[0])]
        if not any(item.optional_vars for item in node.items) and b"#" not in head:
            stop = self.stop(node.items[-1].context_expr) + head.index(b":") + 1
            self.add(node, "dropped with", Edit(self.start(node), stop, "if True:"), guard=True)
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        if node.finalbody:
            first = node.finalbody[0]
            at = self.source.rindex(b"finally", self.start(node), self.start(first))
            if not node.handlers and not node.orelse:
                edits = Edit(self.start(node), self.start(node) + 3, "if True"), Edit(at, at + 7, "if True")
                self.add(node, "finally only without an error", *edits, guard=True)
            edit = Edit(self.start(first), self.stop(node.finalbody[-1]), "pass")
            self.add(first, "dropped finally", edit, guard=True)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.replace(node.type, "()", "dropped handler", guard=True)
        for each in node.body:
            self.visit(each)

    def visit_If(self, node: ast.If) -> None:
        test = self.text(node.test)
        if "TYPE_CHECKING" in test:
            return
        leaves = isinstance(node.body[-1], (ast.Raise, ast.Return, ast.Continue, ast.Break)) and not node.orelse
        refuses = isinstance(node.body[-1], ast.Raise)
        if leaves:
            self.replace(node.test, "False", "dropped early exit", refuses)
        self.replace(node.test, f"not ({test})", "negated condition", refuses)
        self.generic_visit(node)

    # ---- expressions ----

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.replace(node.test, f"not ({self.text(node.test)})", "negated condition")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        limit = bool(LIMIT.search(self.text(node)) or re.search(r"\b_?[A-Z][A-Z_]+\b", self.text(node)))
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            order = isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
            kind = "limit" if order and limit else "operator"
            self.between(left, right, COMPARISONS[type(operator)], kind, guard=order and limit)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        if len(node.values) == 2:  # An expression with more operands would need parentheses after the mutation.
            self.between(*node.values, LOGIC[type(node.op)], "operator")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_text = isinstance(node.left, (ast.Constant, ast.JoinedStr)) and not isinstance(
            getattr(node.left, "value", ""), (int, float)
        )
        if type(node.op) in ARITHMETIC and not is_text:
            self.between(node.left, node.right, ARITHMETIC[type(node.op)], "operator")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.replace(node, f"bool({self.text(node.operand)})", "negated condition")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace(node, str(not node.value), "constant")
        elif isinstance(node.value, int):
            self.replace(node, f"{node.value + 1}", "constant")

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            self.replace(node.func, {"min": "max", "max": "min"}[node.func.id], "limit", guard=True)
        first, second = (*node.args, None, None)[:2]
        plain = (ast.Name, ast.Attribute, ast.Subscript)
        if isinstance(first, plain) and isinstance(second, plain) and self.text(first) != self.text(second):
            swapped = Edit(self.start(first), self.stop(second), f"{self.text(second)}, {self.text(first)}")
            self.add(node, "argument", swapped)
        self.generic_visit(node)


def mutants_of(path: str, source: bytes) -> Iterator[Mutant]:
    """Yield the mutants of a module in the order of its lines."""
    module = _Module(path, source)
    module.visit(ast.parse(source))
    yield from sorted(module.found, key=lambda mutant: (mutant.edits, mutant.kind))
