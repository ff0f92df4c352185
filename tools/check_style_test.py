# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/check_style: each rule finds its violation in a small tree, and a clean
tree has none. Run by tools/check_style --self-test."""
import importlib.machinery
import importlib.util
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
loader = importlib.machinery.SourceFileLoader("check_style", str(HERE / "check_style"))
spec = importlib.util.spec_from_loader("check_style", loader)
style = importlib.util.module_from_spec(spec)
loader.exec_module(style)

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"


class CheckStyle(unittest.TestCase):
    def found(self, name, text, listed=True, layout="DisableFormat: true\n", formats=""):
        """Returns the checker's messages about a tree of this file and the list that names it."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            path = root / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
            if formats:
                (root / "runtime").mkdir()
                (root / "runtime/weight_formats.def").write_text(SPDX + formats)
            if layout is not None:
                (root / ".clang-format").write_text(layout)
            if listed:
                (path.parent / "CMakeLists.txt").write_text(
                    f"# SPDX-License-Identifier: Apache-2.0\nadd_library(x {path.name})\n")
            return [f"{n}:{line}: {why}" for n, line, why in style.violations(root)[1]]

    def expect(self, words, name, text, **more):
        found = self.found(name, text, **more)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_accepts_clean_code(self):
        self.assertEqual(self.found("runtime/a.c", SPDX + (
            '#include "runtime/util/status.h"\n'
            "static int\nadd(int a, int b)\n{\n    return a + b; /* strcpy( */\n}\n"
            "int\nxm_add(int a)\n{\n    return add(a, 1);\n}\n")), [])

    @unittest.skipUnless(shutil.which("clang-format"), "clang-format is not installed")
    def test_layout_is_not_left_unchecked(self):
        text = SPDX + "int x;\n"
        self.expect("is not there", "runtime/a.c", text, layout=None)
        self.expect("clang-format failed", "runtime/a.c", text, layout="IndentWidth: many\n")
        self.expect("lay it out differently", "runtime/a.c", text + "int  y;\n",
                    layout="BasedOnStyle: LLVM\n")

    def test_counts_columns_of_prose(self):
        long = "word " * 21
        self.expect("columns of prose, at most 100", "docs/a.md", long + "\n", listed=False)
        for example in (f"| {long} |\n", f"    {long}\n", f"```\n{long}\n```\n"):
            self.assertEqual(self.found("docs/a.md", example, listed=False), [])

    def test_counts_lines_of_files(self):
        self.expect("a header has 401 lines, at most 400", "runtime/a.h", SPDX + "\n" * 400)

    def test_counts_columns(self):
        self.expect("has 106 columns", "runtime/a.h", SPDX + "/*" + "x" * 102 + "*/\n")

    def test_counts_lines_of_functions(self):
        body = "    x();\n" * 100
        self.expect("xm_f has 103 lines", "runtime/a.c",
                    SPDX + "void\nxm_f(void)\n{\n" + body + "}\n")

    def test_counts_lines_of_member_functions_of_tests(self):
        """Blocks inside member functions, and code beside them, do not count as functions."""
        text = SPDX + ("class A : public B\n{\n  protected:\n    A()\n        : x(1)\n    {\n    }\n"
                       "    std::vector<int> check(int a,\n                           int b)\n    {\n"
                       "        for_each(a)\n        {\n            y();\n        }\n%s    }\n};\n"
                       "TEST(A, B)\n{\n    all(x)\n    {\n%s    }\n}\n")
        more = "        x();\n" * 92
        self.assertEqual(self.found("unit_tests/a.cpp", text % (more, more)), [])
        self.expect("unit_tests/a.cpp:9: check has 101 lines", "unit_tests/a.cpp",
                    text % (more + "        x();\n", more))

    def test_counts_parameters_and_not_those_of_callbacks(self):
        text = SPDX + "void\nxm_f({})\n{{\n}}\n"
        self.expect("9 parameters", "runtime/a.c", text.format(", ".join(["int"] * 9)))
        self.assertEqual(self.found("runtime/a.c", text.format(
            "void (*fn)(" + ", ".join(["int"] * 9) + ")")), [])

    def test_measures_nesting(self):
        self.expect("nests deeper", "runtime/a.c", SPDX + "void\nxm_f(void)\n{\n" + "".join(
            " " * 4 * i + "if (x)\n" for i in range(1, 6)) + " " * 24 + "y();\n}\n")

    def test_knows_who_may_include_whom(self):
        for name, target in (("runtime/util/a.c", "runtime/engine.h"),
                             ("runtime/a.c", "primitives/primitive.h"),
                             ("transformations/a.c", "primitives/primitive.h"),
                             ("primitives/a.c", "transformations/pipeline.h"),
                             ("plugin/a.c", "plugin/pipeline/session.h"),
                             ("plugin/text/a.c", "plugin/pipeline/package.h"),
                             ("plugin/pipeline/a.c", "plugin/cli/cli.h"),
                             ("plugin/pipeline/a.c", "primitives/primitive.h"),
                             ("plugin/cli/a.c", "primitives/primitive.h"),
                             ("plugin/cli/a.c", "xemoe/xemoe.h"),
                             ("plugin/benchmark_app/a.c", "plugin/plugin.h"),
                             ("plugin/program_util/a.c", "plugin/cli/cli.h"),
                             ("plugin/api/a.c", "plugin/cli/cli.h"),
                             ("functional_tests/a.cpp", "runtime/engine.h")):
            self.expect(f"may not include {target}", name, SPDX + f'#include "{target}"\n')
        self.expect("by its path from the root", "plugin/a.c", SPDX + '#include "b.h"\n')

    def test_wants_prefixes_on_symbols(self):
        self.expect("does not begin with xm_", "plugin/a.c", SPDX + "int\nadd(void)\n{\n}\n")

    def test_refuses_calls(self):
        for call in ("sprintf(a, b)", "atoi(a)", "getenv(a)", "malloc(1)"):
            self.expect(call.split("(", 1)[0], "runtime/a.c",
                        SPDX + f"void\nxm_f(void)\n{{\n    {call};\n}}\n")

    def test_refuses_floats_in_the_locale_of_the_program(self):
        text = SPDX + "void\nxm_f(void)\n{{\n    {};\n}}\n"
        for call in ("strtof(a, b)", "vsnprintf(a, n, fmt, ap)", 'snprintf(a, n, "%.9g", x)',
                     'printf("%d "\n           "%5.1f", i, x)'):
            self.expect("decimal point", "runtime/a.c", text.format(call))
        for call in ('snprintf(a, n, "%d%%", x)', 'xm_strbuf_printf(b, "%g", x)'):
            self.assertEqual(self.found("runtime/a.c", text.format(call)), [])
        self.assertEqual(self.found("plugin/cli/a.c", text.format('printf("%g", x)')), [])

    def test_refuses_words(self):
        self.expect("finish it", "runtime/a.h", SPDX + "/* TO" "DO: more */\n")
        self.expect("names the model", "primitives/a.h", SPDX + "/* as Qwen does */\n")
        self.expect("path of one machine", "runtime/a.h", SPDX + '#define A "/home' '/me"\n')

    def test_wants_the_licence(self):
        self.expect("SPDX", "runtime/a.h", "int x;\n")

    def test_wants_kernels_named_as_their_file(self):
        kernel = SPDX + "__kernel void\nmoe_up_ref(uint n)\n{\n}\n"
        self.assertEqual(self.found("kernels/moe_up_ref.cl", kernel), [])
        self.expect("found: moe_up_ref", "kernels/moe_ref.cl", kernel)

    def test_wants_sources_listed(self):
        self.expect("in no CMakeLists.txt", "runtime/a.c", SPDX, listed=False)
        name, row = "kernels/cl/include/format_q4_0.h", "FORMAT(Q4_0, q4_0, 32, 18)\n"
        self.assertEqual(self.found(name, SPDX, listed=False, formats=row), [])
        self.expect("in no CMakeLists.txt", name, SPDX, listed=False,
                    formats="/* " + row + "*/" + row.replace("q4_0", "q4_1"))

    def test_refuses_readers_that_end_before_their_writers(self):
        script = "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\n{}\n{}\n"
        for reader in ("head -n 1", "grep -q x", "grep -i -m 1 x", "grep -xq y", "sed 3q", "sed '1q'"):
            self.expect("read all of it", "tools/a", script.format("set -euo pipefail", f"b | {reader}"))
            self.assertEqual(self.found("tools/a", script.format("set -eu", f"b | {reader}")), [])
        for reader in ("sed -n 1,12p", "grep x >/dev/null", "sort | uniq", "awk '!n++'"):
            self.assertEqual(self.found("tools/a", script.format("set -o pipefail", f"b | {reader}")), [])


if __name__ == "__main__":
    unittest.main()
