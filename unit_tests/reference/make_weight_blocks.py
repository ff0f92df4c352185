# SPDX-License-Identifier: Apache-2.0
"""Random blocks of weights, and the floats that the PyPI package gguf makes of them: the rows of
weight_blocks.txt, which test_weight.cpp reads.

    make_weight_blocks.py q4_0 q8_0 q4_k q5_k q6_k mxfp4 > weight_blocks.txt

Each format has random numbers of its own: a new one leaves the rows of the others as they are.
"""
import struct
import sys

import numpy
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize

# Fields of a block: "d" an f16, "e" a power of two, a number so many bytes.
FIELDS = {
    "q4_0": ["d", 16],
    "q8_0": ["d", 32],
    "q4_k": ["d", "d", 12, 128],
    "q5_k": ["d", "d", 12, 32, 128],
    "q6_k": [128, 64, 16, "d"],
    "mxfp4": ["e", 16],
}
EXPONENTS = [0, 1, 2, 120, 126, 127, 128, 131, 254]


def field(kind, random):
    if kind == "d":
        return struct.pack("<e", random.choice([-1, 1]) * 2.0 ** random.uniform(-16, 2))
    if kind == "e":
        return bytes([int(random.choice(EXPONENTS))])
    return random.integers(0, 256, kind, dtype=numpy.uint8).tobytes()


for name in sys.argv[1:]:
    random = numpy.random.default_rng(list(name.encode()))
    for _ in range(3 if name.endswith("k") else 6):
        block = b"".join(field(kind, random) for kind in FIELDS[name])
        rows = numpy.frombuffer(block, dtype=numpy.uint8).reshape(1, -1)
        floats = dequantize(rows, GGMLQuantizationType[name.upper()]).astype(numpy.float32)
        print(name, block.hex(), floats.tobytes().hex())
