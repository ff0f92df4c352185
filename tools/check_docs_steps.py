#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The steps of docs/add_a_*.md on a copy of the tree: what a page says to add is added, and the files
that read it are checked by the compiler (which makes nothing: -fsyntax-only). A row that a page shows
as an example of those that exist must stand in its table as the page has it.

Where the tree has an assertion against a step that is left out, the compiler must refuse the rest."""
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
    """The rows of a page, indented by four, of a table's macro."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(rf"^    {name}\((?:.*\n)(?:^     .*\n)*", text, re.M)
    return [" ".join(row.split()) for row in found]


def squeezed(text):
    return " ".join(text.split())


class Steps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.copy = Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def file(self, path):
        """A file of the copy; those that no step changes stay in the tree."""
        to = self.copy / path
        if not to.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, to)
        return to

    def edit(self, path, before, added):
        """Adds a text before another one, which must be there once."""
        to = self.file(path)
        text = to.read_text(encoding="utf-8")
        self.assertEqual(text.count(before), 1, f"{path} has '{before}' other than once")
        to.write_text(text.replace(before, added + before), encoding="utf-8")

    def add_row(self, path, name, row):
        """Behind the table's last row."""
        to = self.file(path)
        lines = to.read_text(encoding="utf-8").split("\n")
        at = max(i for i, line in enumerate(lines) if line.startswith(name + "("))
        while lines[at].count("(") and not squeezed("\n".join(lines[:at + 1])).endswith(")"):
            at += 1
        lines.insert(at + 1, row)
        to.write_text("\n".join(lines), encoding="utf-8")

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
        self.assertEqual(self.compiles(*sources), "")

    def expect_refused(self, words, *sources):
        self.assertIn(words, self.compiles(*sources))

    def expect_stands(self, page, name, path, first=None):
        """Rows that a page shows, or the first of them, are those of the tree."""
        rows = rows_of(page, name)[:first]
        table = "".join((ROOT / path).read_text(encoding="utf-8").split())
        self.assertTrue(rows, f"{page} shows no row of {name}")
        for row in rows:
            self.assertIn("".join(row.split()), table, f"{page}: {path}")

    def test_weight_format(self):
        page = "add_a_weight_format.md"
        self.add_row("runtime/weight_formats.def", "FORMAT", rows_of(page, "FORMAT")[0])
        self.add_row("plugin/readers/gguf_types.def", "TYPE", rows_of(page, "TYPE")[0])
        self.expect_compiles("runtime/weight.c", "runtime/weight_decode.c",
                             "plugin/readers/gguf_tensor.c")

    def test_routing_form(self):
        self.edit("runtime/operations/moe_operation.h", "    XM_ROUTING_COUNT\n",
                  "    XM_ROUTING_SQRT_SOFTPLUS, /* s = sqrt(softplus(logits)); top-k of s */\n")
        self.expect_refused("one name a value", "transformations/graph/attrs.c")
        self.edit("transformations/graph/attrs.c",
                  f"{' ' * 44}NULL}};\nstatic const char *const gate_up_names", '"sqrt_softplus",\n')
        self.edit("runtime/reference/reference_moe.c", '    default:\n        return "unknown";\n',
                  '    case XM_ROUTING_SQRT_SOFTPLUS:\n        return "sqrt_softplus";\n')
        self.edit("runtime/reference/reference_moe.c", "    default:\n        xm_ref_softmax(logits",
                  "    case XM_ROUTING_SQRT_SOFTPLUS:\n"
                  "        for (uint64_t e = 0; e < experts; e++)\n"
                  "            score[e] = sqrtf(log1pf(expf(logits[e])));\n"
                  "        xm_ref_topk(score, 1, experts, k, true, weights, ids);\n        break;\n")
        self.expect_compiles("transformations/graph/attrs.c", "runtime/reference/reference_moe.c",
                             "primitives/moe/router.c", "transformations/passes/fuse_moe_router.c")

    def test_architecture(self):
        page = "add_an_architecture.md"
        self.expect_stands(page, "TENSOR", "plugin/models/tensors.def")
        self.expect_stands(page, "KEY", "plugin/models/metadata.def")
        self.expect_stands(page, "ARCHITECTURE", "plugin/models/architectures.def", first=1)
        self.edit("plugin/models/architectures.def", 'ARCHITECTURE("qwen3",',
                  rows_of(page, "ARCHITECTURE")[1] + "\n")
        self.expect_compiles("plugin/models/architecture.c")

    def test_pass(self):
        self.add_row("transformations/passes.def", "RULES", rows_of("add_a_pass.md", "RULES")[0])
        self.expect_compiles("transformations/pipeline.c")

    def test_option(self):
        self.expect_stands("add_an_option.md", "OPTION", "runtime/options/program.def")

    def test_sampling_parameter(self):
        """A made-up one: leaves out what is further below the largest logit."""
        self.edit("plugin/text/sampler.h", "    int last_n;", "    float most_below;\n")
        self.edit("plugin/text/sampler.c", "    if (s->only_new && s->last_n > 0)",
                  '    XM_TRY(check_range("most_below", s->most_below, 0.0f, FLT_MAX, err));\n')
        self.edit("plugin/text/candidates.h", "};\n\n/* Scratch", "    float most_below;\n")
        self.edit("plugin/text/sampler.c", ".min_p = s->min_p};", ".most_below = s->most_below,\n")
        self.edit("plugin/text/candidates.c", "    const int64_t least = (int64_t)ceil(",
                  "    const float steps = xm_weight_steps(f->temperature);\n"
                  "    if (f->most_below > 0.0f)\n"
                  "        share = fmaxf(share, xm_weight_share(f->most_below, steps));\n")
        self.edit("plugin/cli/text_out.h", "    float repetition_penalty,", "    float most_below;\n")
        self.edit("plugin/cli/text_out.c", '    { 0, "seed",',
                  '    { 0, "most-below", XM_CLI_REAL, AT(most_below), "L", "" },\n')
        self.expect_refused("excess elements", "plugin/cli/text_out.c")
        header = self.file("plugin/cli/text_out.h")
        text = header.read_text(encoding="utf-8")
        header.write_text(text.replace("N_TARGET_OPTIONS + 12", "N_TARGET_OPTIONS + 13"),
                          encoding="utf-8")
        self.edit("plugin/cli/text_out.c", ".repetition_penalty = a->repetition_penalty,",
                  ".most_below = a->most_below,\n                                ")
        self.edit("plugin/text/generation_config.c", '    { "repetition_penalty", AT',
                  '    { "most_below", AT(most_below), 0.0, 1e6 },\n')
        self.edit("plugin/text/gguf/gguf_generation.c", '    { "general.sampling.penalty_repeat",',
                  '    { "general.sampling.most_below", AT(most_below), 0.0f, 1e6f },\n')
        self.expect_compiles("plugin/text/sampler.c", "plugin/text/candidates.c",
                             "plugin/cli/text_out.c", "plugin/text/generation_config.c",
                             "plugin/text/gguf/gguf_generation.c")

    def test_device(self):
        self.expect_stands("add_a_device.md", "DEVICE", "runtime/devices.def")

    def test_capability(self):
        """As many names as bits: a bit without a name is one more than the list has."""
        header = (ROOT / "runtime/device_info.h").read_text(encoding="utf-8")
        source = (ROOT / "runtime/device_info.c").read_text(encoding="utf-8")
        bits = [int(n) for n in re.findall(r"XM_CAP_\w+ =\s*1u <<\s*(\d+)", header)]
        names = re.search(r"xm_caps_text\(.*?names\[\] = \{(.*?)\};", source, re.S)[1]
        self.assertEqual(sorted(bits), list(range(len(re.findall(r'"[^"]*"', names)))))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
