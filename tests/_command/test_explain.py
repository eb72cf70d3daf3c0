"""Tests of the explanations that ``cuda-tma explain`` prints for the text of public posts."""

from __future__ import annotations

import io
import json
import re
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cuda_tma
from cuda_tma._command import cli
from cuda_tma._command.posted import read_posted
from cuda_tma._cuda_errors import CUDA_ERRORS, DOCUMENTED, explain_error
from cuda_tma.codec import encode
from cuda_tma.rules import RULES, WARNINGS
from tests.support.descriptors import LEGAL, LEGAL_IM2COL

# The name of each posted file contains the repository and the number of the issue.
POSTED = Path(__file__).parents[1] / "data" / "posted"
# The table contains the errors of each post. For each map, the table contains the error at creation and the broken
# rules.
EXPECTED = {
    "Dao-AILab_flash-attention_1706": ([801], [(801, []), (801, [])]),
    "NVIDIA_Fuser_4970": ([716], []),
    "NVIDIA_TransformerEngine_1085": ([801], []),
    "NVIDIA_TransformerEngine_3316": ([700], []),
    "NVIDIA_cutlass_947": ([1], [(1, [])]),
    "Soul-AILab_SoulX-FlashTalk_9": ([999], [(999, []), (999, [])]),
    "flashinfer-ai_flashinfer_2150": ([1], [(1, ["global_strides_alignment"])] * 2),
    "flashinfer-ai_flashinfer_2232": ([1], [(1, ["global_strides_alignment"])]),
    "flashinfer-ai_flashinfer_2274": ([700], [(700, [])]),
    "pytorch_pytorch_184714": ([716], []),
    "sgl-project_sglang_13775": ([1], [(1, ["global_strides_range"])]),
    "sgl-project_sglang_1413": ([700], [(700, [])] * 3),
    "sgl-project_sglang_4358": ([999], []),
    "sgl-project_sglang_6590": ([700], []),
    "vllm-project_vllm_13961": ([715], [(715, []), (715, [])]),
    "vllm-project_vllm_17442": ([715], [(715, []), (715, [])]),
    "vllm-project_vllm_28125": ([700], [(700, []), (700, [])]),
}


def explain(capsys, *arguments):
    status = cli.main(["explain", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def answered(capsys, *arguments):
    return json.loads(explain(capsys, "--json", *arguments)[1])


def test_every_posted_text_is_expected():
    assert {path.stem for path in POSTED.iterdir()} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_posted_texts(capsys, name):
    errors, maps = EXPECTED[name]
    answer = answered(capsys, str(POSTED / f"{name}.txt"))
    assert [error["number"] for error in answer["errors"]] == errors
    found = [
        (each["error"], [v["rule"] for v in each["violations"] if v["severity"] == "error"]) for each in answer["maps"]
    ]
    assert found == maps and answer["unread"] == []
    assert [each["accepted"] for each in answer["maps"]] == [not rules for _, rules in maps]
    status, out, _ = explain(capsys, str(POSTED / f"{name}.txt"))
    assert status == any(rules for _, rules in maps)
    assert all(f'"{CUDA_ERRORS[number].text}"' in out for number in errors)


def test_every_statement_rests_on_something(capsys):
    rules = {f"rule {rule.name}: {rule.source}" for rule in (*RULES, *WARNINGS)}
    tables = {"the table of rules", "the table of fields", "the text"} | {row.source for row in CUDA_ERRORS.values()}
    tables |= {"CUDA 13.5 driver API, cuTensorMapEncode*: tensorMap"}
    for path in POSTED.iterdir():
        answer = answered(capsys, str(path))
        for each in (*answer["errors"], *answer["maps"]):
            assert each["statements"]
            assert {statement["source"] for statement in each["statements"]} <= rules | tables


def test_a_sticky_error_is_not_the_maps(capsys):
    _, out, _ = explain(capsys, str(POSTED / "vllm-project_vllm_13961.txt"))
    assert 'CUDA_ERROR_ILLEGAL_INSTRUCTION (715, "an illegal instruction was encountered"): it is sticky' in out
    assert "map 2 of 2: FLOAT16, shape (23434, 32, 16, 64), box (1, 1, 192, 64), swizzle 128B (2 times)" in out
    assert "Error 715 at its creation is not about this map: it is that of an earlier kernel, and sticky." in out


def test_recorded_causes_are_listed(capsys):
    assert "Causes of 716 on an H200: the map lies 32 bytes past a multiple of 64; " in explain(capsys, "716")[1]
    assert "No recorded misuse of TMA caused 702 on an H200." in explain(capsys, "702")[1]


def test_a_broken_rule_is_named(capsys):
    _, out, _ = explain(capsys, str(POSTED / "flashinfer-ai_flashinfer_2150.txt"))
    assert "stride of dimension 1 is 2 bytes (1 BFLOAT16 elements); TMA needs a multiple of 16" in out
    assert "That is why its creation returned CUDA_ERROR_INVALID_VALUE." in out


# ---- errors in several spellings ----


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("715", [715]),
        ("error 715", [715]),
        ("CUDA error: 716", [716]),
        ("CUresult = 700", [700]),
        ("cudaErrorLaunchFailure", [719]),
        ("Triton Error [CUDA]: misaligned address", [716]),
        ("RuntimeError: Triton Error [CUDA]: invalid argument", [1]),
        ("CUDA error: unspecified launch failure (code 719, ERROR_LAUNCH_FAILED)", [719]),
        ("OSError: (External) CUDA error(719), unspecified launch failure.", [719]),
        ("cuda.core._utils.cuda_utils.CUDAError: CUDA_ERROR_INVALID_PC: invalid program counter", [718]),
        ("CUDA error: operation not supported on global/shared address space", [717]),
        ("cuTensorMapEncodeTiled failed with CUDA_ERROR_ASSERT", [710]),
        ("Failed to encode tensor map: 700\nCUDA error: an illegal memory access was encountered", [700]),
        ("error 715\nthen CUDA error: misaligned address", [715, 716]),
        ("line 715 of kernel.cu, CUDA 12.4", []),
        ("make: *** exit code 1", []),
        ("ValueError: invalid argument", []),
        ("the current error code 1", []),
        ("Error 715 (illegal instruction) in gemm.run(): Error Internal", [715]),
        ("CUDA_ERROR_ILLEGAL_ADDRESS " * 3, [700]),
        ("CUDA_ERROR_OF_NOBODY", []),
        ("cuTensorMapEncodeTiled failed: 1", [1]),
        ("cuTensorMapEncodeTiled returned 700", [700]),
        ("CUDA-Fehler: 715", [715]),
        ("Fehler 715", [715]),
        ("CUDA 错误：716", [716]),
        ("Command '['/usr/local/cuda/bin/nvcc', 'k.cu']' returned non-zero exit status 1.", []),
        ("/usr/local/cuda/bin/nvcc returned 1 exit status", []),
        ("cuda tests: result: 1 of 700, status 1/3", []),
    ],
)
def test_spellings_of_errors(text, numbers):
    assert [error.number for error in read_posted(text).errors] == numbers


def test_unknown_facts(capsys):
    status, out, err = explain(capsys, "a", "text", "without", "anything")
    assert (status, out) == (2, "") and "its 128 bytes, " in err
    assert "pass one of the driver's errors 1, 201, 700, " in err and "or the word of an mbarrier" in err


def test_from_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"error 716\xff\n")))
    assert "misaligned address" in explain(capsys)[1]


def test_a_file_of_bytes(capsys, tmp_path):
    path = tmp_path / "map"
    path.write_bytes(encode(LEGAL))
    assert "The map is legal on compute capability 9.0" in explain(capsys, str(path))[1]
    path.write_bytes(bytes([255]) * 128)
    status, out, _ = explain(capsys, str(path))
    assert status == 1 and "rank 8 cannot be encoded in a tensor map" in out


# ---- maps in several spellings ----

SPELLINGS = {
    "hex": bytes.hex,
    "bytes": repr,
    "hex in a sentence": lambda raw: f"the map:\n{raw.hex()}\nof tensor 3",
    "64-bit words": lambda raw: " ".join(f"0x{word:016x}" for word in struct.unpack("<16Q", raw)),
    "32-bit words in C": lambda raw: "{" + ", ".join(f"0x{word:08x}u" for word in struct.unpack("<32I", raw)) + "}",
    "decimal words": lambda raw: f"array({list(struct.unpack('<16Q', raw))}, dtype=uint64)",
    "decimal bytes": lambda raw: str(list(raw)),
    "our own repr": lambda raw: repr(cuda_tma.decode(raw)),
    "x/32xw of gdb": lambda raw: (
        "(gdb) x/32xw &map\n" + in_lines(raw, 16, "I", "0x7ffe{:04x} <map+16>:\t", "0x{:08x}", "\t")
    ),
    "x/16xg of gdb": lambda raw: in_lines(raw, 16, "Q", "0x7ffe{:04x}:\t", "0x{:016x}", "\t"),
    "hexdump -C": lambda raw: in_lines(raw, 16, "B", "{:08x}  ", "{:02x}", " ", "  |.0a.  ff........|"),
    "hexdump -C, in halves": lambda raw: re.sub(r"(?m)^(.{33}) ", r"\1  ", SPELLINGS["hexdump -C"](raw)),
    "xxd": lambda raw: re.sub(
        "_(..)_(..)", r" \1\2", in_lines(raw, 16, "B", "{:08x}:_", "{:02x}", "_", "  .0a.  ff........")
    ),
    "xxd -g 1": lambda raw: in_lines(raw, 16, "B", "{:08x}: ", "{:02x}", " ", "  .0a.  ff........"),
    "words with their indices": lambda raw: in_lines(raw, 8, "Q", "  map.opaque[{}] = ", "0x{:016x}"),
    "short words in C": lambda raw: "{opaque = {" + ", ".join(map(hex, struct.unpack("<16Q", raw))) + "}}",
    "a string of C": lambda raw: "".join(f"\\x{byte:02x}" for byte in raw),
    "hex before a word of letters that are digits": lambda raw: f"the map:\n{raw.hex()}\nand error 1",
}


def in_lines(raw: bytes, size: int, kind: str, before: str, form: str, between: str = " ", behind: str = "") -> str:
    """Format memory as debuggers do, in lines that begin with an address or an index and contain `size` bytes."""
    parts = [
        (i, struct.unpack(f"<{size // struct.calcsize(kind)}{kind}", raw[i : i + size])) for i in range(0, 128, size)
    ]
    return "\n".join(before.format(i) + between.join(map(form.format, words)) + behind for i, words in parts)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_maps(spelling):
    params = cuda_tma.decode(encode(LEGAL))
    assert [each.params for each in read_posted(SPELLINGS[spelling](encode(LEGAL))).maps] == [params]


def test_im2col_maps_are_read_from_bytes(capsys):
    _, out, _ = explain(capsys, encode(LEGAL_IM2COL).hex())
    assert re.search(r"map 1 of 1: \w+, shape .*, im2col, \d+ channels of \d+ pixels", out)


def test_a_line_of_deep_gemm(capsys):
    line = "Making TMA desc: global memory: 7168 4096, shared memory: 128 64, outer stride: 7176, swizzle: 128"
    status, out, _ = explain(capsys, f"{line} (base: 0), elem size: 1")
    assert status == 1
    assert "map 1 of 1: UINT8, shape (4096, 7168), box (64, 128), swizzle 128B" in out
    assert "stride of dimension 0 is 7176 bytes" in out
    assert "Not in the text, usual values assumed: data_type, global_address." in out


@pytest.mark.parametrize(("swizzle", "element_bytes", "maps"), [(128, 2, 1), (48, 2, 0), (128, 3, 0)])
def test_a_line_of_deep_gemm_with_an_unknown_size_is_not_a_map(swizzle, element_bytes, maps):
    line = "Making TMA desc: global memory: 7168 4096, shared memory: 64 64, outer stride: 7168, swizzle: "
    assert len(read_posted(f"{line}{swizzle} (base: 0), elem size: {element_bytes}").maps) == maps


def test_the_drivers_own_names(capsys):
    text = """cuTensorMapEncodeTiled(tensorDataType=CU_TENSOR_MAP_DATA_TYPE_FLOAT16, tensorRank=2,
        globalAddress=0x7f0000000008, globalDim=[64, 64], globalStrides=[128], boxDim=[64, 64], elementStrides=[1, 1],
        interleave=CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle=CU_TENSOR_MAP_SWIZZLE_64B)"""
    (found,) = answered(capsys, text)["maps"]
    assert [violation["rule"] for violation in found["violations"]] == ["global_address_alignment", "box_dim_span"]


def test_the_type_by_the_name_that_wrappers_give_it():
    text = "dataType: CU_TENSOR_MAP_DATA_TYPE_BFLOAT16\nglobalDim (64,64)\nglobalStrides (128)\nboxDim (64,64)"
    (found,) = read_posted(text).maps
    assert found.params.data_type == cuda_tma.TensorMapDataType.BFLOAT16 and "data_type" not in found.assumed


def test_a_descriptor_at_a_misaligned_address(capsys):
    text = (POSTED / "NVIDIA_cutlass_947.txt").read_text().replace("2800c0", "2800d0")
    assert (
        "Its 128 bytes were to be written at 0x7ffd7d2800d0, which is not a multiple of 64" in explain(capsys, text)[1]
    )


def test_lines_of_several_processes(capsys):
    status, out, _ = explain(capsys, "dim 4\ngmem_address 0\nglobalDim (1,2)\nglobalDim (3,4)\nerror 700")
    assert status == 1 and "fields without box_dim, global_strides are not a whole map" in out


@given(st.text(max_size=300) | st.text("(),0123456789 \nglobalDimboxStridesformatx:", max_size=300))
def test_any_text_is_read(text):
    assert isinstance(read_posted(text).maps, tuple)


# ---- mbarriers ----


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mbarrier 0x7fffe3fff81ffff6", [0x7FFFE3FFF81FFFF6]),
        ("the mbarrier at 0x7f1200000400 holds 7fffe3fff81ffff6", [0x7FFFE3FFF81FFFF6]),
        ("mbarrier word: 0x3fffe1ffffe\nmbarrier state=0x3fffe1ffffe", [0x3FFFE1FFFFE]),
        ("the mbarrier at 0x400 waits", []),
        ("0x7fffe3fff81ffff6", [0x7FFFE3FFF81FFFF6]),
        ("0x400:\t0x7fffe3fff81ffff6\n", [0x7FFFE3FFF81FFFF6]),
        ("0x7f1200000400", []),
        ("freed at 7fffe3fff81ffff6", []),
        ("error 700 at 0x7fffe3fff81ffff6", []),
    ],
)
def test_words_of_mbarriers(text, words):
    assert list(read_posted(text).barriers) == words


def test_fields_of_a_word(capsys):
    _, out, _ = explain(capsys, "mbarrier 0x7fffe3fff81ffff6")
    assert "in the phase of parity 0, 4 of its 5 arrivals are missing, 64 bytes are missing." in out
    (found,) = answered(capsys, "mbarrier 0x7fffe3fff81ffff6")["barriers"]
    assert (found["word"], found["pending_count"], found["tx_count"]) == ("0x7fffe3fff81ffff6", 4, 64)
    assert "Zeros: no mbarrier was made there" in explain(capsys, "mbarrier 0x0")[1]


# ---- errors of this package ----


def test_the_table_lists_the_sticky_errors():
    sticky = {number for number, row in CUDA_ERRORS.items() if row.is_sticky}
    assert sticky == {700, 702, 710, 714, 715, 716, 717, 718, 719}
    assert explain_error(12345) == "" and explain_error("CUDA_ERROR_OF_NOBODY") == ""
    assert explain_error(716) == explain_error("cudaErrorMisalignedAddress") != explain_error(715)
    assert DOCUMENTED.startswith("CUDA 13.5 driver API, CUresult")


def test_creation_after_a_sticky_error_reports_it(driver, device_tensor):
    tensor = device_tensor((64, 128))
    driver.errors["cuTensorMapEncodeTiled"] = 700
    with pytest.raises(cuda_tma.TensorMapError, match="CUDA_ERROR_ILLEGAL_ADDRESS, for any arguments: it is sticky"):
        cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    driver.errors = {}
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(16, 32))
    driver.errors = {"cuTensorMapReplaceAddress": 700}
    words = "failed with CUDA_ERROR_ILLEGAL_ADDRESS: it is sticky: .*cuda-tma explain 700"
    with pytest.raises(cuda_tma._cuda.core.CUDAError, match=words):
        descriptor.replace_address(1 << 33)


def test_a_launch_after_a_sticky_error_reports_it(driver, launch):
    driver.errors["cuLaunchKernelEx"] = 700
    words = "CUDA_ERROR_ILLEGAL_ADDRESS: the driver refused to launch k with LaunchConfig.*: it is sticky: "
    with pytest.raises(cuda_tma._cuda.core.CUDAError, match=words):
        launch("k", [])


@pytest.mark.parametrize(
    "text",
    [
        "error: my code 700 lines; see cuda docs",
        "Error 1 in make; cuda build",
        "make[2]: *** [CMakeFiles/cuda.dir/gemm.cu.o] Error 1",
        "gmake: *** [cuda] Error 2",
        "cuda: my code 700; see status 999",
        "error 700 lines of cuda",
    ],
)
def test_a_number_that_is_not_a_cuda_error_is_none(capsys, text):
    status, out, err = explain(capsys, text)
    assert (status, out) == (2, "") and "no known content" in err


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("cuda: error code 700", 700),
        ("cuLaunchKernel failed with code 700", 700),
        ("cuda status: 715", 715),
        ("CUDA error 700, make sure that it fits", 700),
        ("CUDA launch failed, code 700", 700),
        ("CUDA driver returned status 1", 1),
        ("CUDA error code=716", 716),
        ("make: *** [run] CUDA_ERROR_ILLEGAL_ADDRESS", 700),
    ],
)
def test_a_number_that_is_an_error_of_cuda_is_one(text, number):
    assert [error.number for error in read_posted(text).errors] == [number]


def test_nonsense_in_fields_has_no_nonsense_as_its_remedy(capsys):
    fields = "globalDim (64,16) globalStrides ({}) boxDim (16,8) elementStrides ({})"
    _, out, _ = explain(capsys, fields.format("-5", "1,1"))
    assert "to 0 elements" not in out
    assert "TMA needs a multiple of 16. Copy the tensor: a fresh allocation has positive strides. [driver:" in out
    _, out, _ = explain(capsys, "dim 2 " + fields.format("64,64,64", "1"))
    assert "rank is 2; it must be matched by element_strides, which has length 1 and needs 2. [driver:" in out


def test_unfinished_digits_are_not_a_map():
    text = "Making TMA desc: global memory: {} 64, shared memory: 64 64, outer stride: 64, swizzle: 128, elem size: 2"
    assert len(read_posted(text.format("64")).maps) == 1
    assert read_posted(text.format("1" * 5000)).maps == ()


@pytest.mark.filterwarnings("error")
def test_a_literal_with_an_invalid_escape_prints_no_warning():
    """Python 3.12 warns of these escape sequences when it evaluates a literal."""
    assert read_posted(r"the map is b'\9\x00'").maps == ()
    (found,) = read_posted("b'" + "".join(f"\\x{byte:02x}" for byte in encode(LEGAL)) + "'").maps
    assert found.params == LEGAL
