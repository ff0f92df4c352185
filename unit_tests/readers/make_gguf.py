# SPDX-License-Identifier: Apache-2.0
"""Writes GGUF files, and lists of their contents as the PyPI package gguf reads them: the folder
gguf beside this file, which test_gguf_files.cpp reads.

    make_gguf.py FOLDER [FILE.gguf …]

writes into the folder values.gguf, with a key of each type of values; types.gguf, with a tensor of
each type; split-0000N-of-00003.gguf; of each FILE the part before its tensors' bytes, as
<name>.header; and a list for each, <name>.txt, whose lines are

    file    version alignment
    key     name type count values          count "-": not a list
    tensor  name type ne offset bytes data

Values are one a line, floats as "%.17g"; if they are long or not printable ASCII, their 64-bit
FNV-1a hash is written instead, and always so for a tensor's bytes.
"""
import os
import sys

import numpy
from gguf import GGUFReader, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType as Value

NAMES = {
    Value.UINT8: "u8", Value.INT8: "i8", Value.UINT16: "u16", Value.INT16: "i16",
    Value.UINT32: "u32", Value.INT32: "i32", Value.FLOAT32: "f32", Value.BOOL: "boolean",
    Value.STRING: "string", Value.UINT64: "u64", Value.INT64: "i64", Value.FLOAT64: "f64",
}
# The package's size of a block of Q8_1 differs from ggml's, and no file has tensors of that type.
NO_TENSORS = {GGMLQuantizationType.Q8_1}


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return "#%016x" % h


def value_text(kind, part):
    if kind == Value.STRING:
        return bytes(part)
    x = part[0]
    if kind in (Value.FLOAT32, Value.FLOAT64):
        return b"%.17g" % float(x)
    return (b"true" if x else b"false") if kind == Value.BOOL else b"%d" % int(x)


def shown(text):
    plain = len(text) <= 60 and all(0x20 < c < 0x7F for c in text)
    return text.decode() if plain and text else fnv(text)


def list_of(path, has_data):
    reader = GGUFReader(path)
    yield f"file\t{reader.fields['GGUF.version'].parts[-1][0]}\t{reader.alignment}"
    for name, field in reader.fields.items():
        if name.startswith("GGUF."):
            continue
        is_list, kind = field.types[0] == Value.ARRAY, field.types[-1]
        values = b"\n".join(value_text(kind, field.parts[i]) for i in field.data)
        count = str(len(field.data)) if is_list else "-"
        yield f"key\t{name}\t{NAMES[kind]}\t{count}\t{shown(values)}"
    for t in reader.tensors:
        ne = "x".join(str(n) for n in t.shape)
        data = fnv(t.data.tobytes()) if has_data else "-"
        yield (f"tensor\t{t.name}\t{t.tensor_type.name.lower()}\t{ne}\t{t.data_offset}"
               f"\t{t.n_bytes}\t{data}")


def write_list(path, out, has_data=True):
    with open(out, "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in list_of(path, has_data))


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_values(path):
    writer = GGUFWriter(path, "values")
    for kind, name in NAMES.items():
        for i, value in enumerate(edges(kind)):
            writer.add_key_value(f"one.{name}.{i}", value, kind)
        writer.add_key_value(f"list.{name}", edges(kind), Value.ARRAY, sub_type=kind)
    writer.add_key_value("long.text", "word " * 100, Value.STRING)
    writer.add_key_value("schlüssel.\U0001f511", "\u00e9\n\t\"", Value.STRING)
    writer.add_key_value("long.list", list(range(1000)), Value.ARRAY, sub_type=Value.INT32)
    finish(writer)


def edges(kind):
    """Returns the ends of a type's range, and values in between."""
    name = NAMES[kind]
    if name in ("string", "boolean"):
        return ["text", "a\0b", "\u65e5\u672c\u8a9e"] if name == "string" else [True, False]
    if name[0] == "f":
        most = numpy.finfo({"f32": numpy.float32, "f64": numpy.float64}[name]).max
        return [0.1, -1.5, float(most), float("inf")]
    bits = int(name[1:])
    return [0, 100, 2**bits - 1] if name[0] == "u" else [-2**(bits - 1), -1, 2**(bits - 1) - 1]


def write_types(path):
    random = numpy.random.default_rng(1)
    writer = GGUFWriter(path, "types")
    writer.add_custom_alignment(64)
    for i, kind in enumerate(t for t in GGMLQuantizationType if t not in NO_TENSORS):
        columns, size = GGML_QUANT_SIZES[kind]
        blocks = 2 if columns > 1 else 3
        shape = [1 + i % 2, 1 + i % 3][:i % 3] + [blocks * size]
        data = random.integers(0, 256, shape, dtype=numpy.uint8)
        writer.add_tensor(f"of.{kind.name.lower()}", data, raw_dtype=kind)
    finish(writer)


def write_split(folder):
    random = numpy.random.default_rng(2)
    writer = GGUFWriter(os.path.join(folder, "split.gguf"), "split", split_max_tensors=2)
    writer.add_uint32("split.block_count", 5)
    for i in range(5):
        data = random.standard_normal((2, 4 + i)).astype(numpy.float32)
        writer.add_tensor(f"blk.{i}.weight", data)
    finish(writer)


def write_header(path, out):
    with open(path, "rb") as source, open(out, "wb") as f:
        f.write(source.read(GGUFReader(path).data_offset))


folder, files = sys.argv[1], sys.argv[2:]
write_values(os.path.join(folder, "values.gguf"))
write_types(os.path.join(folder, "types.gguf"))
write_split(folder)
for made in sorted(os.listdir(folder)):
    if made.endswith(".gguf"):
        write_list(os.path.join(folder, made), os.path.join(folder, made[:-5] + ".txt"))
for path in files:
    stem = os.path.join(folder, os.path.basename(path)[:-5])
    write_header(path, stem + ".header")
    write_list(path, stem + ".txt", has_data=False)
