"""Tests of PTX texts that exceed a limit of the parser by one."""

from __future__ import annotations

import pytest

from cuda_tma.simulate import ParseError
from cuda_tma.simulate._ptx import parse, parser, places, tokens

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"


def entry(body: str) -> str:
    return f"{HEAD}.visible .entry k()\n{{\n.reg .b32 %r<4>; .reg .b64 %rd<2>;\n{body}\nret;\n}}\n"


def test_the_number_of_variables(monkeypatch):
    monkeypatch.setattr(parser, "VARIABLES", 3)
    texts = [HEAD + "".join(f".global .b32 v{i};\n" for i in range(count)) for count in (3, 4)]
    assert len(parse(texts[0]).variables) == 3
    with pytest.raises(ParseError, match="line 7: a module may declare at most 3 variables"):
        parse(texts[1])


def test_the_number_of_tokens(monkeypatch):
    monkeypatch.setattr(tokens, "_EVERY", 1)
    text = entry("add.u32 %r1, %r2, 1;")
    most = len(tokens.tokens(text, tokens.not_at_all)) - 1  # without the end
    monkeypatch.setattr(tokens, "TOKENS", most)
    assert len(tokens.tokens(text, tokens.not_at_all)) == most + 1
    monkeypatch.setattr(tokens, "TOKENS", most - 1)
    with pytest.raises(ParseError, match=f"the text has more than {most - 1} tokens"):
        tokens.tokens(text, tokens.not_at_all)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mov.u32 %r1, 0189;", "'0189' is not an octal number"),
        ("mov.b32 %r1, 0x1ffffffffffffffff;", "'0x1ffffffffffffffff' has more than 64 bits"),
        ("@L add.u32 %r1, %r2, 1;\nL:", "the guard L is not a register"),
        ("L: T: .branchtargets %r1;\nbrx.idx %r1, T;", "the target %r1 is not a label"),
        ("L: ld.global.u32 %r1, [L];", "L is not an address"),
        ("add.u32 %r1, %r2, r9;", "r9 is not declared"),
    ],
)
def test_a_name_or_a_number_that_does_not_fit(body, message):
    text = entry(body)
    with pytest.raises(ParseError, match=f"PTX line 7: {message}"):
        parse(text).functions["k"].instructions  # noqa: B018 The parser parses a body at its first use.


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (".global .b32 a[2] = {1, 2, 3};", "it has more numbers than the variable has elements"),
        (".global .b32 a[2] = {{1}, {{2}}};", "its braces are nested more deeply than the variable's dimensions"),
        (".global .b32 a[0] = {};", "0 elements"),
        (".global .b32 b; .global .b8 a[1] = {0(b)};", "the mask '0' does not select one byte, as 0xFF00 does"),
        (".global .b32 b; .global .b8 a[1] = {0xFFF0(b)};", "the mask '0xFFF0' does not select one byte"),
        (".global .b32 b; .global .b32 a[1] = {b};", "an element that holds an address must have 8 bytes"),
    ],
)
def test_an_initial_value_that_does_not_fit(declared, message):
    with pytest.raises(ParseError, match=f"line 4: .*{message}"):
        parse(HEAD + declared)


def test_the_names_of_inlined_functions(monkeypatch):
    text = entry(".loc 1 3 4, function_name $L_info_string0, inlined_at 1 2 3\nadd.u32 %r1, %r2, 1;")
    text += '.file 1 "a.cu"\n.section .debug_str\n{\n$L_info_string0:\n.b8 97\n.b8 98\n.b8 0\n}\n'
    assert parse(text).functions["k"].instructions
    monkeypatch.setattr(places, "NAME_BYTES", 1)
    with pytest.raises(ParseError, match="the names of inlined functions are missing, or longer than 1 bytes"):
        parse(text).functions["k"].instructions  # noqa: B018
