#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the numbers of test_round_as_trained.cpp: a router's input as computed in bf16.

    r(r(r(x / sqrt(mean(x^2) + 1e-6)) s) 3^-1/2)

r rounds to bf16, here with numpy's integers; everything in between is in f32, as torch computes it
for tensors of bf16.
"""
import numpy as np


def r(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32)


x = np.float32([[2.31, 1.12, 0.21], [-1.12, -1.7, 2.35]])
s = np.float32([1.0234375, 0.4140625, 2.109375])
norm = x / np.sqrt(np.mean(x * x, -1, keepdims=True, dtype=np.float32) + np.float32(1e-6))
y = r(r(r(norm) * s) * np.float32(3**-0.5))
for fewer in (r(r(norm * s) * np.float32(3**-0.5)), r(r(norm) * s * np.float32(3**-0.5)),
              r(r(r(norm) * s) * r(np.float32(3**-0.5)))):
    assert not np.array_equal(fewer, y)  # each rounding matters; 3^-1/2 is not rounded
plain = norm * s * np.float32(3**-0.5)
assert np.array_equal(r(s), s)
print("scale times 3^-1/2:", ", ".join(f"{v:.9g}f" for v in s * np.float32(3**-0.5)))
print("rounded:", ", ".join(f"{v:.9g}f" for v in y.ravel()))
print("not rounded:", ", ".join(f"{v:.9g}f" for v in plain.ravel()))
