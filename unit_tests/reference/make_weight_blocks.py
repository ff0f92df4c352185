# SPDX-License-Identifier: Apache-2.0
"""Prints blocks of weights, random ones and ones that no quantiser makes, and the floats to which
the PyPI package gguf decodes them: the rows of weight_blocks.txt, which test_weight.cpp reads.

    make_weight_blocks.py q4_0 q8_0 q4_k q5_k q6_k mxfp4 > weight_blocks.txt

Each format has its own random numbers, so that a new format does not change the rows of others.
"""
import struct
import sys

import numpy
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize

# Fields of a block: "d" is an f16, "e" a power of two, a number that many bytes.
FIELDS = {
    "q4_0": ["d", 16],
    "q4_1": ["d", "d", 16],
    "q5_0": ["d", 4, 16],
    "q5_1": ["d", "d", 4, 16],
    "q8_0": ["d", 32],
    "iq4_nl": ["d", 16],
    "q2_k": [16, 64, "d", "d"],
    "q3_k": [32, 64, 12, "d"],
    "q4_k": ["d", "d", 12, 128],
    "q5_k": ["d", "d", 12, 32, 128],
    "q6_k": [128, 64, 16, "d"],
    "iq4_xs": ["d", 2, 4, 128],
    "mxfp4": ["e", 16],
    "nvfp4": [4, 32],
    "q1_0": ["d", 16],
    "q2_0": ["d", 16],
    "tq1_0": [48, 4, "d"],
    "tq2_0": [64, "d"],
    "iq2_xxs": ["d", 64],
    "iq2_xs": ["d", 64, 8],
    "iq2_s": ["d", 32, 32, 8, 8],
    "iq3_xxs": ["d", 64, 32],
    "iq3_s": ["d", 64, 8, 32, 4],
    "iq1_s": ["d", 32, 16],
    "iq1_m": [32, 16, 8],
}
EXPONENTS = [0, 1, 2, 120, 126, 127, 128, 131, 254]
# The f16 values of three further blocks: the smallest, subnormal, the largest, infinite.
EXTREMES = [b"\x01\x00\xff\x83", b"\xff\x7b\xff\xfb", b"\x00\xfc\xff\x7b"]


def field(kind, random, halves):
    if kind == "d":
        any_half = struct.pack("<e", random.choice([-1, 1]) * 2.0 ** random.uniform(-16, 2))
        return halves.pop(0) if halves else any_half
    if kind == "e":
        return bytes([int(random.choice(EXPONENTS))])
    return random.integers(0, 256, kind, dtype=numpy.uint8).tobytes()


def bits_times_half(bits_each, smallest, step):
    """Decodes formats that the package cannot: an f16, then 16 bytes of numbers of a few bits."""
    def floats(rows):
        d = rows[0, :2].view(numpy.float16).astype(numpy.float32)
        bits = numpy.unpackbits(rows[0, 2:], bitorder="little").reshape(-1, bits_each)
        return d * (smallest + step * (bits @ (1 << numpy.arange(bits_each))))
    return floats


BY_FORMULA = {"q1_0": bits_times_half(1, -1, 2), "q2_0": bits_times_half(2, -1, 1)}


def floats_of(name, rows):
    if name in BY_FORMULA:
        return BY_FORMULA[name](rows)
    return dequantize(rows, GGMLQuantizationType[name.upper()])


def print_block(name, random, halves):
    block = b"".join(field(kind, random, halves) for kind in FIELDS[name])
    rows = numpy.frombuffer(block, dtype=numpy.uint8).reshape(1, -1)
    floats = floats_of(name, rows).astype(numpy.float32)
    print(name, block.hex(), floats.tobytes().hex())


for name in sys.argv[1:]:
    random = numpy.random.default_rng(list(name.encode()))
    for _ in range(3 if name[-1] == "k" or name[0] in "it" else 6):
        print_block(name, random, [])
    for pair in EXTREMES if "d" in FIELDS[name] else []:
        print_block(name, random, [pair[:2], pair[2:]])
