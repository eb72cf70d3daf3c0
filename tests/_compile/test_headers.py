"""Tests of the search for a source's headers, which finds at least all headers that NVRTC would read."""

import os
import time

import pytest

from cuda_tma._compile.headers import _begins, _read, headers_of
from cuda_tma._compile.nvrtc import compile_source
from cuda_tma._include_path import include_path


@pytest.fixture
def folder(tmp_path):
    """Write headers, each with a text that contains its name, and return their folder."""

    def write(**texts):
        for name, text in texts.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".cuh").write_text(text)
        return tmp_path

    return write


def names(found, folder):
    return sorted(path.removeprefix(f"{folder}/") for path in found)


def test_headers_of_headers_are_found(folder):
    there = folder(
        a='#include "sub/b.cuh"\n',
        sub__b="  #  include <c.cuh> // and why\n#include<absent.cuh>\n",
        c='#pragma once\n#include "c.cuh"\n#include_next <c.cuh>',
        other__c="1",
        unused="",
    )
    source = '#if 0\n#include "a.cuh"\n#endif\n'
    found = headers_of(source, str(there / "kernel.cu"), [f"-I{there}", f"--include-path={there}/other"])
    assert names(found, there) == ["a.cuh", "c.cuh", "other/c.cuh", "sub/b.cuh"]
    assert found[f"{there}/other/c.cuh"] == b"1"


@pytest.mark.parametrize(
    "options",
    [["-I{}"], ["-I {}"], ["-I", "{}"], ["-I={}"], ["--include-path={}"], ["--include-path", "{}"], ["-Ix", "-I{}"]],
)
def test_folders_are_found_in_every_spelling(folder, options):
    there = folder(a="")
    options = [option.format(there) for option in options]
    assert names(headers_of("#include <a.cuh>", "kernel.cu", options), there) == ["a.cuh"]


def test_a_header_in_quotes_is_searched_next_to_its_includer(folder):
    there = folder(sub__a='#include "b.cuh"', sub__b="", c='#include "b.cuh"')
    assert names(headers_of('#include "sub/a.cuh"', str(there / "k.cu"), []), there) == ["sub/a.cuh", "sub/b.cuh"]
    assert headers_of("#include <c.cuh>", str(there / "k.cu"), []) == {}


def test_options_that_request_or_include_a_header_count(folder):
    there = folder(a="", b='#include "a.cuh"')
    assert names(headers_of('#if __has_include( "a.cuh" )', str(there / "k.cu"), []), there) == ["a.cuh"]
    assert names(headers_of("#if __has_include(<a.cuh>)", "k.cu", ["-I", str(there)]), there) == ["a.cuh"]
    assert names(headers_of("", "k.cu", [f"--pre-include={there}/b.cuh"]), there) == ["a.cuh", "b.cuh"]
    assert names(headers_of("", "k.cu", [f"-I{there}", "-include=b.cuh"]), there) == ["a.cuh", "b.cuh"]


def test_a_header_that_is_a_macro_is_unknown(folder):
    there = folder(a="#define FILE <b.cuh>\n#include FILE\n")
    assert headers_of('#include "a.cuh"', str(there / "k.cu"), []) is None
    assert headers_of("int include;  // #include FILE", "k.cu", []) == {}


def test_our_headers_are_found():
    found = headers_of("#include <cuda_tma/tma.cuh>", "k.cu", [f"--include-path={include_path()}"])
    assert {path.rpartition("/")[2] for path in found} >= {"tma.cuh", "barrier.cuh", "macros.cuh", "tensor_map.cuh"}


SPELLINGS = {
    "a comment before": '/* a */ #include "{}"',
    "a comment of lines before": '/* a\n * b **/ #include "{}"',
    "a comment within": '#/* a */include/* b *//**/"{}"',
    "lines that go on": '#inc\\\nlude \\\n"{}"',
    "a digraph": "%:include <{}>",
    "other blanks": "\f#\vinclude\v<{}>",
    "lines of another system": '#pragma once\r\n#include \\\r\n"{}"\r\n',
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_includes_are_found_however_they_are_spelled(folder, spelling):
    """NVRTC accepts each of these forms of #include. If the parser missed a form, the cache would return an outdated
    kernel."""
    there = folder(**{spelling.replace(" ", "_"): "#define VALUE 3\n"})
    (header,) = there.iterdir()
    source = SPELLINGS[spelling].format(header.name) + "\n__global__ void k(int* out) { *out = VALUE; }"
    compile_source(source, "k", target="compute_90a", options=[f"-I{there}"])
    assert names(headers_of(source, "k.cu", [f"-I{there}"]), there) == [header.name]


@pytest.mark.parametrize("name", ["a\\\n b.cuh", "a \\\nb.cuh", "a\\\r\n b.cuh", "a\\\n\\\n b.cuh"])
def test_a_name_may_continue_in_the_next_line(tmp_path, name):
    """In the test's source, a blank follows the backslash at the end of a continued line."""
    header = tmp_path / "a b.cuh"
    header.write_text("#define VALUE 3\n")
    source = f'#include "{name}"\n__global__ void k(int* out) {{ *out = VALUE; }}'
    compile_source(source, "k", target="compute_90a", options=[f"-I{tmp_path}"])
    assert headers_of(source, "k.cu", [f"-I{tmp_path}"]) == {str(header): b"#define VALUE 3\n"}


def test_questions_are_found_however_they_are_spelled(folder):
    there = folder(a="", b="", c="")
    source = "#if __has_include/**/(<a.cuh>) || __has_include( /* * */ <b.cuh>) || __has_include\\\n(<c.cuh>)\n#endif"
    assert names(headers_of(source, "k.cu", [f"-I{there}"]), there) == ["a.cuh", "b.cuh", "c.cuh"]


def test_includes_that_are_not_headers(folder):
    """The #include lines name an endless device, a pipe without a writer, and a folder. The last name contains a null
    character."""
    there = folder(a="1")
    os.mkfifo(there / "pipe.cuh")
    kernel = str(there / "kernel.cu")
    assert headers_of('#include "/dev/zero"\n', kernel, []) is None
    assert headers_of("", kernel, ["--pre-include=/dev/zero"]) is None
    source = f'#include "pipe.cuh"\n#include "{there}"\n#include "a\0.cuh"\n#include "a.cuh"\n'
    assert names(headers_of(source, kernel, []), there) == ["a.cuh", "pipe.cuh"]


@pytest.mark.parametrize(
    "part", ["#/*", "#/**/", "# ", "#\\\n", "#include ", '#include "', "/*", "%:", "__has_include(/*"]
)
def test_the_scan_takes_linear_time(part):
    begun = time.process_time()
    headers_of(part * 20_000, "kernel.cu", [])
    assert time.process_time() - begun < 1


def test_candidates_that_are_known_or_missing_are_passed_over(tmp_path):
    """A known file and a file that cannot be read do not hide the files after them."""
    paths = [str(tmp_path / name) for name in ("known.cuh", "missing.cuh", "b.cuh", "nul\0.cuh", "c.cuh")]
    for path in (paths[0], paths[2], paths[4]):
        (tmp_path / os.path.basename(path)).write_text(os.path.basename(path))
    found = {paths[0]: b"earlier"}
    assert [*_read(paths, found)] == [(b"b.cuh", str(tmp_path)), (b"c.cuh", str(tmp_path))]
    assert found == {paths[0]: b"earlier", paths[2]: b"b.cuh", paths[4]: b"c.cuh"}


@pytest.mark.parametrize(
    ("before", "begins"),
    [(b"", True), (b" \t", True), (b"x;\n", True), (b"/* a */ ", True), (b"x ", False), (b"*", False), (b"/", False)],
)
def test_a_directive_begins_its_line(before, begins):
    assert _begins(before + b"#include", len(before)) is begins
