#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the steps of docs/add_a_*.md on a copy of the tree: adds the code that a page says to add,
and lets the compiler check the files that include it (with -fsyntax-only, which writes no output).
A row that a page shows as an example of existing rows must be in the table exactly as on the page.
The files that a page lists (in the table after its mark `files`) must be those that the steps
touch.

If the tree has an assertion against leaving out a step, the compiler must refuse the others."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CC = os.environ.get("CC", "cc")
FLAGS = ["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-missing-field-initializers",
         "-Werror", "-D_DEFAULT_SOURCE", "-D_POSIX_C_SOURCE=200809L", '-DXM_VERSION="0"']


def rows_of(page, name):
    """Returns the rows of a table's macro that a page shows, which are indented by four."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(rf"^    {name}\((?:.*\n)(?:^     .*\n)*", text, re.M)
    return [" ".join(row.split()) for row in found]


def squeezed(text):
    return " ".join(text.split())


class Steps(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.copy = Path(self.folder.name)
        self.touched = set()

    def tearDown(self):
        self.folder.cleanup()

    def file(self, path):
        """Returns a file of the copy, which is copied from the tree at its first use."""
        to = self.copy / path
        if not to.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, to)
        return to

    def edit(self, path, before, added):
        """Inserts a text before another one, which must occur once in the file."""
        to = self.file(path)
        self.touched.add(path)
        text = to.read_text(encoding="utf-8")
        self.assertEqual(text.count(before), 1, f"{path} has '{before}' other than once")
        to.write_text(text.replace(before, added + before), encoding="utf-8")

    def add_row(self, path, name, row):
        """Adds a row after the table's last row."""
        to = self.file(path)
        self.touched.add(path)
        lines = to.read_text(encoding="utf-8").split("\n")
        at = max(i for i, line in enumerate(lines) if line.startswith(name + "("))
        first = at
        while "\n".join(lines[first:at + 1]).count("(") != "\n".join(lines[first:at + 1]).count(")"):
            at += 1
        lines.insert(at + 1, row)
        to.write_text("\n".join(lines), encoding="utf-8")

    def create(self, path, text):
        to = self.copy / path
        self.touched.add(path)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text, encoding="utf-8")

    def append_of(self, page, name, path):
        """Appends a page's block of code to a file."""
        text = self.file(path).read_text(encoding="utf-8")
        self.create(path, text + self.block(page, name))

    def create_of(self, page, name, path):
        """Writes a page's block of code to a file."""
        self.create(path, self.block(page, name))

    def block(self, page, name):
        text = (DOCS / page).read_text(encoding="utf-8")
        return re.search(rf"<!-- file: {re.escape(name)} -->\n```c\n(.*?)^```", text, re.S | re.M)[1]

    def compiles(self, *sources):
        for source in sources:
            used = self.file(source)
            run = subprocess.run(
                [CC, *FLAGS, f"-I{self.copy}", f"-I{ROOT}", f"-I{ROOT}/plugin/include", str(used)],
                capture_output=True, text=True, check=False)
            if run.returncode:
                return run.stderr
        return ""

    def expect_compiles(self, *sources):
        self.assertEqual(self.compiles(*sources)[:2000], "")

    def expect_refused(self, words, *sources):
        self.assertIn(words, self.compiles(*sources))

    def expect_lists(self, page, most):
        """The page's table of files lists those that were touched, and no more than `most`."""
        text = (DOCS / page).read_text(encoding="utf-8")
        table = re.search(r"<!-- files -->\n((?:\|.*\n)+)", text)
        self.assertTrue(table, f"{page} has no table of files")
        listed = set(re.findall(r"^\| `([^`]+)` \|", table[1], re.M))
        self.assertEqual(listed, self.touched, page)
        self.assertLessEqual(len(listed), most, page)

    def expect_stands(self, page, name, path, first=None):
        """The rows that a page shows, or the first of them, are in the tree's table."""
        rows = rows_of(page, name)[:first]
        table = "".join((ROOT / path).read_text(encoding="utf-8").split())
        self.assertTrue(rows, f"{page} shows no row of {name}")
        for row in rows:
            self.assertIn("".join(row.split()), table, f"{page}: {path}")

    def test_weight_format(self):
        page = "add_a_weight_format.md"
        self.add_row("runtime/weight_formats.def", "FORMAT", rows_of(page, "FORMAT")[0])
        self.add_row("plugin/readers/gguf_types.def", "TYPE", rows_of(page, "TYPE")[0])
        self.append_of(page, "decode_s4.c", "runtime/weight_decode.c")
        self.create_of(page, "include/format_s4.h", "kernels/cl/include/format_s4.h")
        self.expect_compiles("runtime/weight.c", "runtime/weight_decode.c",
                             "plugin/readers/gguf_tensor.c")
        self.expect_lists(page, 4)

    def test_routing_form(self):
        page = "add_a_routing_form.md"
        self.add_row("kernels/cl/include/routings.def", "ROUTING_FORM",
                     rows_of(page, "ROUTING_FORM")[0])
        self.edit("plugin/models/decoder.h", "    XM_GATES\n", "    XM_GATE_SOFTPLUS,\n")
        self.expect_refused("XM_GATE_SOFTPLUS", "plugin/models/decoder_experts.c")
        self.edit("plugin/models/decoder_experts.c", "    case XM_GATE_SOFTMAX_OF_CHOSEN:\n",
                  "    case XM_GATE_SOFTPLUS:\n"
                  "        return xm_op1(&s->b, XM_OP_SOFTPLUS, logits);\n")
        self.expect_compiles("transformations/graph/attrs.c", "runtime/reference/reference_moe.c",
                             "primitives/moe/router.c", "transformations/passes/fuse_moe_router.c",
                             "plugin/models/decoder_experts.c")
        self.expect_lists(page, 4)

    def test_architecture(self):
        page = "add_an_architecture.md"
        self.expect_stands(page, "TENSOR", "plugin/models/tensors.def")
        self.expect_stands(page, "KEY", "plugin/models/metadata.def")
        self.expect_stands(page, "ARCHITECTURE", "plugin/models/architectures.def", first=1)
        self.edit("plugin/models/architectures.def", 'ARCHITECTURE("qwen3",',
                  rows_of(page, "ARCHITECTURE")[1] + "\n")
        self.expect_compiles("plugin/models/architecture.c")

    def test_pass(self):
        page, file = "add_a_pass.md", "transformations/passes/fuse_subtract.c"
        self.create_of(page, "fuse_subtract.c", file)
        self.add_row("transformations/passes.def", "RULES", rows_of(page, "RULES")[0])
        self.expect_compiles("transformations/pipeline.c", file)
        self.expect_lists(page, 2)

    def test_fused_operation(self):
        page, folder = "add_a_primitive.md", "primitives/squared_relu/"
        self.add_row("transformations/graph/ops.def", "OP", rows_of(page, "OP")[0])
        self.edit("transformations/graph/evaluate_fused.c",
                  "enum xm_status\nxm_eval_glu(struct xm_eval_call *c)\n",
                  "enum xm_status\nxm_eval_squared_relu(struct xm_eval_call *c)\n{\n"
                  "    for (uint64_t i = 0; i < c->out[0]->n; i++)\n"
                  "        c->out[0]->f[i] = c->in[0]->f[i] > 0 ? c->in[0]->f[i] * c->in[0]->f[i] : 0;\n"
                  "    return XM_OK;\n}\n\n")
        self.create("transformations/passes/fuse_squared_relu.c",
                    '#include "transformations/pipeline.h"\n'
                    '#include "transformations/rewrite/patterns.h"\n'
                    "const struct xm_rule xm_rules_fuse_squared_relu[] = {\n"
                    '    { "squared", P(POWER, P(RELU, VAR(0)), SCALAR(2)), P(SQUARED_RELU, VAR(0)) },\n'
                    "    { .name = NULL },\n};\n")
        self.add_row("transformations/passes.def", "RULES",
                     'RULES(fuse_squared_relu, "FuseSquaredReLU", "needs normal spelling")')
        self.create_of(page, "squared_relu.h", folder + "squared_relu.h")
        self.create_of(page, "squared_relu.c", folder + "squared_relu.c")
        self.add_row("primitives/variant_tables.def", "TABLE", rows_of(page, "TABLE")[0].strip())
        lower = "plugin/lower/lower_rows.c"
        self.edit(lower, "/* clang-format off */\nconst struct xm_lower_op xm_lower_row_ops",
                  f'#include "{folder}squared_relu.h"\n'
                  "static enum xm_status\n"
                  "lower_squared_relu(struct xm_lower *l, struct xm_node *n)\n{\n"
                  "    const enum xm_element e = xm_lower_element(&n->out[0]);\n"
                  "    const struct xm_squared_relu_desc desc = {e, e};\n"
                  "    struct xm_step_operand operands[XM_SQUARED_RELU_N_OPERANDS];\n"
                  "    struct xm_primitive *primitive = NULL;\n"
                  "    XM_TRY(xm_lower_input_as(l, n, 0, e, &operands[XM_SQUARED_RELU_X]));\n"
                  "    XM_TRY(xm_lower_result(l, n, 0, e, &operands[XM_SQUARED_RELU_Y]));\n"
                  "    XM_TRY(xm_squared_relu_create(l->p->engine, &desc, &primitive, l->err));\n"
                  "    return xm_lower_finish(l, n, primitive, operands, NULL);\n}\n\n"
                  "static const char *\n"
                  "why_not_squared_relu(const struct xm_lower_question *q)\n{\n"
                  "    (void)q;\n    return NULL;\n}\n\n")
        self.edit(lower, "    { XM_OP_NONE, NULL, NULL }",
                  "    { XM_OP_SQUARED_RELU, lower_squared_relu, why_not_squared_relu },\n")
        self.expect_compiles("transformations/graph/op_table.c", "transformations/graph/evaluate.c",
                             "transformations/graph/evaluate_fused.c",
                             "transformations/passes/fuse_squared_relu.c",
                             "transformations/pipeline.c", "primitives/variant_tables.c",
                             folder + "squared_relu.c", lower)
        self.expect_lists(page, 8)

    def test_option(self):
        page, options = "add_an_option.md", "runtime/options/program.def"
        self.expect_stands(page, "OPTION", options)
        self.add_row(options, "OPTION", 'OPTION(made_up, U32, uint32_t, "XM_MADE_UP", 1, "made up")')
        self.expect_compiles("runtime/config.c")
        self.expect_lists(page, 1)

    def test_sampling_parameter(self):
        """Follows the page with a made-up sampling parameter, which leaves out tokens whose logits
        are too far below the largest."""
        page = "add_a_sampling_parameter.md"
        self.expect_stands(page, "SAMPLING", "plugin/text/sampling.def", first=1)
        self.add_row("plugin/text/sampling.def", "SAMPLING", rows_of(page, "SAMPLING")[1])
        self.edit("plugin/text/candidates.c", "    const int64_t least = (int64_t)ceil((double)share",
                  self.rule_of(page))
        self.touched.add("unit_tests/text/test_sampling_parameters.cpp")
        self.expect_compiles("plugin/text/sampling.c", "plugin/text/sampler.c",
                             "plugin/text/candidates.c", "plugin/text/sampling_json.c",
                             "plugin/text/generation_config.c", "plugin/text/gguf/gguf_generation.c",
                             "plugin/cli/text_out.c", "plugin/cli/chat_settings.c",
                             "plugin/genai/llm_run.c")
        self.expect_lists(page, 3)

    def rule_of(self, page):
        """Returns the page's block of C that is not a file."""
        text = (DOCS / page).read_text(encoding="utf-8")
        return re.search(r"<!-- rule -->\n```c\n(.*?)^```", text, re.S | re.M)[1]

    def test_endpoint(self):
        page, file = "add_an_endpoint.md", "plugin/server/count_tokens.c"
        self.create_of(page, "count_tokens.c", file)
        self.add_row("plugin/server/routes.def", "ROUTE", rows_of(page, "ROUTE")[0])
        self.edit("plugin/server/CMakeLists.txt", "    engine.c\n", "    count_tokens.c\n")
        self.expect_compiles("plugin/server/server.c", file)
        self.expect_lists(page, 3)

    def test_device(self):
        self.expect_stands("add_a_device.md", "DEVICE", "runtime/devices.def")

    def test_instruction_set(self):
        """Follows the page with a made-up define, which a row of an existing kernel sets."""
        page = "add_a_kernel_variant.md"
        self.add_row("runtime/capabilities.def", "CAP", rows_of(page, "CAP")[0].strip())
        self.edit("runtime/util/compiler.h", "/* Whether the processor has AVX512-BF16:",
                  "static inline bool\nxm_cpu_has_avx10(void)\n{\n"
                  '    return __builtin_cpu_supports("avx512bw");\n}\n\n')
        self.edit("primitives/linear/linear.c", '    {"linear_gemv_vec",',
                  '    {"linear_gemv_avx10", XM_FAMILY_VEC, XM_CAP_AVX10, xm_product_not_in_planes,\n'
                  "     {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}}, XM_FORM_PLANES, .joins = true},\n")
        self.expect_compiles("runtime/device_info.c", "runtime/ocl/ocl_devices.c",
                             "primitives/linear/linear.c")
        self.expect_lists(page, 3)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
