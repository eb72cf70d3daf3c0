"""Small faults that can be put into a source file: what `tools/mutate.py` draws from.

A mutant replaces one piece of text by another, so that everything else of the file stays as it was. Python is read by
`ast`, Cython by its tokens, logical line by logical line. Strings, comments, docstrings, annotations, decorators,
signatures and tables (displays at module or class level) are left alone.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant", "is_other_program", "mutants_of"]

_INSTEAD = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
    "+": ("-",),
    "-": ("+",),
    "*": ("+",),
    "/": ("*",),
    "//": ("*",),
    "%": ("*",),
    "**": ("*",),
    "<<": (">>",),
    ">>": ("<<",),
    "&": ("|",),
    "|": ("&",),
    "^": ("|",),
    "and": ("or",),
    "or": ("and",),
    "True": ("False",),
    "False": ("True",),
}
_SYMBOLS: dict[type, str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.And: "and",
    ast.Or: "or",
}


@dataclass(frozen=True)
class Change:
    """`new` in the place of the characters `start` to `end` of a text, and in words."""

    line: int
    start: int
    end: int
    new: str
    what: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


@dataclass(frozen=True)
class Mutant(Change):
    """A change of the file `path`."""

    path: str


def mutants_of(path: str, text: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text."""
    if Path(path).suffix == ".pyx":
        found = _Tokens(path, text).mutants()
    else:
        syntax = _Syntax(path, text)
        syntax.visit(ast.parse(text))
        found = syntax.mutants
    return sorted(set(found), key=lambda mutant: (mutant.start, mutant.end, mutant.new))


def is_other_program(mutant: Mutant, text: str) -> bool:
    """Whether the mutant of a .py file is Python, and means something else; of Cython only a compiler can tell."""
    if Path(mutant.path).suffix == ".pyx":
        return True
    try:
        return ast.dump(ast.parse(mutant.apply(text))) != ast.dump(ast.parse(text))
    except SyntaxError:
        return False


def _mutant(path: str, text: str, start: int, end: int, new: str) -> Mutant:
    """The mutant, with words for it: what stood there, and what stands there now."""
    old, now = (" ".join(piece.split()) for piece in (text[start:end], new))
    return Mutant(text.count("\n", 0, start) + 1, start, end, new, f"{old} -> {now or 'nothing'}", path)


class _Syntax(ast.NodeVisitor):
    """The mutants of a Python file."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.mutants: list[Mutant] = []
        self._in_function = False
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def _at(self, line: int, column: int) -> int:
        """`ast` counts columns in bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _replace(self, start: int, end: int, *news: str) -> None:
        self.mutants += [_mutant(self.path, self.text, start, end, new) for new in news]

    def _operator(self, before: ast.AST, after: ast.AST, kind: type) -> None:
        symbol = _SYMBOLS.get(kind)
        if symbol is None or any(_is_text(node) for node in (before, after)):
            return
        start, end = self._span(before)[1], self._span(after)[0]
        pattern = r"\s+".join(re.escape(word) for word in symbol.split())
        if match := re.search(pattern, self.text[start:end]):
            self._replace(start + match.start(), start + match.end(), *_INSTEAD[symbol])

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Nothing within: it is a text, and before Python 3.12 its positions are not those of the file."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        was, self._in_function = self._in_function, True
        for child in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(child)
        self._in_function = was

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        was, self._in_function = self._in_function, False
        for child in node.body:
            self.visit(child)
        self._in_function = was

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for i, operator in enumerate(node.ops):
            self._operator(sides[i], sides[i + 1], type(operator))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._operator(node.left, node.right, type(node.op))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for before, after in zip(node.values, node.values[1:], strict=False):
            self._operator(before, after, type(node.op))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
            self._replace(self._span(node)[0], self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(*self._span(node), str(not node.value))
        elif isinstance(node.value, (int, float)):
            self._replace(*self._span(node), repr(node.value + 1), repr(node.value - 1))

    def visit_Call(self, node: ast.Call) -> None:
        for one, other in zip(node.args, node.args[1:], strict=False):
            if not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred):
                (a, b), (c, d) = self._span(one), self._span(other)
                self._replace(a, d, self.text[c:d] + self.text[b:c] + self.text[a:b])
        self.generic_visit(node)

    def _condition(self, node: ast.If | ast.While | ast.IfExp) -> None:
        start, end = self._span(node.test)
        if "TYPE_CHECKING" not in self.text[start:end]:
            self._replace(start, end, f"not ({self.text[start:end]})")
            self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = _condition  # type: ignore[assignment]

    def _removed(self, node: ast.stmt) -> None:
        if self._in_function:
            self._replace(*self._span(node), "pass")
        self.generic_visit(node)

    visit_Raise = visit_AugAssign = visit_Delete = visit_Continue = visit_Break = _removed  # type: ignore[assignment]

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._removed(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self._in_function:
            self._removed(node)
        elif not isinstance(node.value, (ast.Dict, ast.List, ast.Set, ast.Tuple)):  # a table
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not isinstance(node.value, (ast.Dict, ast.List, ast.Set, ast.Tuple)):
            self.visit(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._replace(*self._span(node.value), "None")
        self.generic_visit(node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int
    is_number: bool


class _Tokens:
    """The mutants of a Cython file.

    What is an operator is seen by the spaces that the style puts around it: `a < b`, but `<int>a`; `a * b`, but `*a`.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text

    def mutants(self) -> list[Mutant]:
        found: list[Mutant] = []
        for line in self._code_lines():
            found += [*self._of_words(line), *self._of_statement(line), *self._of_arguments(line)]
        return found

    def _make(self, start: int, end: int, new: str) -> Mutant:
        return _mutant(self.path, self.text, start, end, new)

    def _code_lines(self) -> Iterator[list[_Token]]:
        """The logical lines within functions; of a declaration, what follows its `=`."""
        functions: list[int] = []  # the columns at which those begin that the line stands in
        for column, line in self._logical_lines():
            while functions and column <= functions[-1]:
                functions.pop()
            words = [token.text for token in line]
            if words[-1] == ":" and "(" in words and words[0] in ("def", "cdef", "cpdef") and words[1] != "class":
                functions.append(column)
            elif not functions or words[0] in ("def", "cdef", "cpdef", "class", "import", "from", "@", "global"):
                if functions and words[0] == "cdef" and "=" in words:
                    yield line[words.index("=") + 1 :]
            elif not (len(line) == 1 and line[0].text == ""):
                yield line

    def _logical_lines(self) -> Iterator[tuple[int, list[_Token]]]:
        """(column of its first token, tokens) of each, a string being a token without text."""
        starts = [0]
        for physical in self.text.splitlines(keepends=True):
            starts.append(starts[-1] + len(physical))
        readable = re.sub(
            r"(?<=except)\?|(?<=\w)\?(?=>)", " ", self.text
        )  # Cython's own use of a sign unknown to Python
        line: list[_Token] = []
        column, inside = 0, 0
        for token in tokenize.generate_tokens(io.StringIO(readable).readline):
            name = tokenize.tok_name[token.type]
            inside += (name == "FSTRING_START") - (name == "FSTRING_END")  # from Python 3.12 on
            if name in ("NL", "COMMENT", "INDENT", "DEDENT", "ENDMARKER") or (inside and name != "FSTRING_START"):
                continue
            if name == "NEWLINE":
                if line:
                    yield column, line
                line = []
                continue
            column = column if line else token.start[1]
            start, end = (starts[row - 1] + at for row, at in (token.start, token.end))
            text = "" if name in ("STRING", "FSTRING_START", "FSTRING_END") else token.string
            line.append(_Token(text, start, end, name == "NUMBER"))

    def _of_words(self, line: list[_Token]) -> Iterator[Mutant]:
        """Operators, constants, `not`."""
        for i, token in enumerate(line):
            pair = " ".join(other.text for other in line[i : i + 2])
            before = " ".join(other.text for other in line[max(i - 1, 0) : i + 1])
            if token.is_number:
                yield from self._of_number(token)
            elif token.text in ("True", "False"):
                yield self._make(token.start, token.end, _INSTEAD[token.text][0])
            elif pair in ("is not", "not in"):
                yield self._make(token.start, line[i + 1].end, _INSTEAD[pair][0])
            elif before in ("is not", "not in") or not self._spaced(token):
                continue
            elif token.text == "not":
                yield self._make(token.start, token.end + 1, "")
            elif token.text in _INSTEAD and not (token.text == "in" and line[0].text == "for"):
                for new in _INSTEAD[token.text]:
                    yield self._make(token.start, token.end, new)

    def _spaced(self, token: _Token) -> bool:
        around = self.text[token.start - 1 : token.start] + self.text[token.end : token.end + 1]
        return (around.isspace() and len(around) == 2) or (token.text == "not" and around[-1:].isspace())

    def _of_number(self, token: _Token) -> Iterator[Mutant]:
        try:
            value = int(token.text, 0)
        except ValueError:
            return
        for new in (value + 1, value - 1):
            yield self._make(token.start, token.end, str(new) if new >= 0 else f"({new})")

    def _of_statement(self, line: list[_Token]) -> Iterator[Mutant]:
        """Conditions turned round, statements removed."""
        first, last = line[0], line[-1]
        depths, words = _depths(line), [token.text for token in line]
        if first.text in ("if", "elif", "while") and last.text == ":":
            start, end = line[1].start, line[-2].end
            yield self._make(start, end, f"not ({self.text[start:end]})")
        elif any(word == ":" and depth == 0 for word, depth in zip(words, depths, strict=True)):
            return  # a head, or a head and its statement in one line
        elif first.text in ("raise", "return", "continue", "break", "del"):
            yield self._make(first.start, last.end, "pass")
        elif not self.text[: first.start].rpartition("\n")[2].strip():  # whole: not what follows a declaration's `=`
            assigns = any(word.endswith("=") and depth == 0 for word, depth in zip(words, depths, strict=True))
            if assigns or (last.text == ")" and first.text.isidentifier() and first.text not in ("yield", "assert")):
                yield self._make(first.start, last.end, "pass")

    def _of_arguments(self, line: list[_Token]) -> Iterator[Mutant]:
        """A call's first two arguments swapped."""
        depths = _depths(line)
        for i, token in enumerate(line[1:], 1):
            if token.text != "(" or not line[i - 1].text.isidentifier() or line[i - 1].end != token.start:
                continue
            inner = [j for j in range(i + 1, len(line)) if depths[j] == depths[i] + 1 and line[j].text == ","]
            close = next((j for j in range(i + 1, len(line)) if depths[j] == depths[i]), len(line))
            commas = [j for j in inner if j < close]
            if not commas or any(line[j].text == "=" for j in range(i, (commas[1:] or [close])[0])):
                continue
            (a, b), (c, d) = (i + 1, commas[0] - 1), (commas[0] + 1, (commas[1:] or [close])[0] - 1)
            if c <= d and line[a].text != "*" and line[c].text not in ("*", "**"):
                one, other = self.text[line[a].start : line[b].end], self.text[line[c].start : line[d].end]
                between = self.text[line[b].end : line[c].start]
                if one != other:
                    yield self._make(line[a].start, line[d].end, other + between + one)


def _depths(line: list[_Token]) -> list[int]:
    """How many brackets each token stands in; a bracket itself stands outside."""
    depths, depth = [], 0
    for token in line:
        depth -= token.text in (")", "]", "}")
        depths.append(depth)
        depth += token.text in ("(", "[", "{")
    return depths
