# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/check_budget: which figures are compared, and which differences fail. Nothing is
compiled. Run by tools/check_budget --self-test."""
import importlib.machinery
import importlib.util
import io
import subprocess
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
loader = importlib.machinery.SourceFileLoader("check_budget", str(HERE / "check_budget"))
spec = importlib.util.spec_from_loader("check_budget", loader)
budget = importlib.util.module_from_spec(spec)
loader.exec_module(budget)
Build, Figures = budget.Build, budget.Figures

DECODE = Build("linear_gemv_dpas", "-DWEI=u4 -DGROUP=128", "lnl")
PROMPT = Build("linear_gemm_dpas", "-DWEI=u4 -DGROUP=128", "lnl")
HERE_NOW, ELSEWHERE = True, False  # whether the compiler is the one that the table was made with


class Compare(unittest.TestCase):
    def found(self, build, was, now, is_same_compiler=HERE_NOW):
        was = was and Figures(*was)
        return "; ".join(budget.compare(build, was, Figures(*now), is_same_compiler))

    def test_worse_by_4_percent_fails(self):
        self.assertIn("4 % worse", self.found(DECODE, (0.1, 256, 8, ""), (0.104, 256, 8, "")))
        self.assertIn("4 % worse", self.found(PROMPT, (0.78, 256, 8, ""), (0.75, 256, 8, "")))

    def test_worse_by_2_percent_passes_and_better_too(self):
        for now in (0.102, 0.05):
            self.assertEqual(self.found(DECODE, (0.1, 256, 8, ""), (now, 256, 8, "")), "")
        self.assertEqual(self.found(PROMPT, (0.6, 256, 8, ""), (0.9, 128, 8, "")), "")

    def test_another_compiler_may_be_10_percent_worse(self):
        self.assertEqual(self.found(DECODE, (0.1, 128, 8, ""), (0.11, 256, 4, ""), ELSEWHERE), "")
        self.assertIn("16 % worse",
                      self.found(DECODE, (0.1, 128, 8, ""), (0.116, 128, 8, ""), ELSEWHERE))

    def test_vanished_products_fail(self):
        for compiler in (HERE_NOW, ELSEWHERE):
            self.assertIn("8 products have vanished",
                          self.found(DECODE, (0.1, 256, 8, ""), (0.1, 256, 0, ""), compiler))

    def test_spills_fail_unless_they_are_known(self):
        for compiler in (HERE_NOW, ELSEWHERE):
            self.assertIn("spills 64B, nothing in the table",
                          self.found(DECODE, (0.1, 256, 8, ""), (0.1, 256, 8, "64B"), compiler))
        self.assertIn("spills 3a", self.found(DECODE, (0.1, 256, 8, "64B"), (0.1, 256, 8, "3a")))
        self.assertIn("spills 65B", self.found(DECODE, (0.1, 256, 8, "64B"), (0.1, 256, 8, "65B")))
        self.assertEqual(self.found(DECODE, (0.1, 256, 8, "64B"), (0.1, 256, 8, "64B")), "")
        self.assertEqual(self.found(DECODE, (0.1, 256, 8, "64B"), (0.1, 256, 8, "")), "")

    def test_more_registers_fail(self):
        self.assertIn("takes 256 registers, 128",
                      self.found(DECODE, (0.1, 128, 8, ""), (0.1, 256, 8, "")))

    def test_a_build_that_is_not_in_the_table_fails(self):
        self.assertIn("not in budget.txt", self.found(DECODE, None, (0.1, 128, 8, "")))


class Budgets(unittest.TestCase):
    def test_marks_what_is_over(self):
        for build, cost, products, text in (
                (DECODE, 0.15, 8, "0.150/256/8"), (DECODE, 0.151, 8, "0.151/256/8!"),
                (DECODE._replace(chip="dg2"), 0.25, 8, "0.250/256/8"),
                (DECODE._replace(chip="mtl"), 0.36, 8, "0.360/256/8!"),
                (DECODE._replace(options="-DFORMAT0=mxfp4"), 0.4, 8, "0.400/256/8"),
                (DECODE._replace(options="-DWEI=f16"), 9, 8, "9.000/256/8"),
                (PROMPT, 0.75, 8, "75.0%/256/8"), (PROMPT, 0.74, 8, "74.0%/256/8!"),
                (PROMPT._replace(chip="arl"), 0.65, 8, "65.0%/256/8"),
                (PROMPT._replace(kernel="linear_gemm_sg"), 0.8, 0, "80.0%/256/0!"),
                (Build("attention_prompt_dpas", "", "lnl"), 0.1, 8, "10.0%/256/8")):
            self.assertEqual(budget.as_text(build, Figures(cost, 256, products, "")), text)

    def test_attention_has_budgets_by_its_caches(self):
        def text(kernel, caches, chip, cost):
            options = " ".join(f"-D{n}_CACHE={of}" for n, of in zip("KV", caches))
            return budget.as_text(Build(kernel, options, chip), Figures(cost, 256, 8, ""))
        for kernel, caches, chip, met, missed in (
                ("attention_decode_dpas", ("f16", "f16"), "lnl", 0.10, 0.101),
                ("attention_decode_dpas", ("i8", "i8"), "dg2", 0.25, 0.251),
                ("attention_decode_dpas", ("u4", "u4"), "pvc", 0.50, 0.501),
                ("attention_decode_sg", ("f16", "f16"), "tgllp", 1.0, 1.001),
                ("attention_decode_sg", ("u4", "u4"), "mtl", 2.0, 2.001),
                ("attention_prompt_dpas", ("f16", "f16"), "lnl", 0.50, 0.499),
                ("attention_prompt_dpas", ("f16", "f16"), "arl", 0.45, 0.449)):
            self.assertFalse(text(kernel, caches, chip, met).endswith("!"), (kernel, chip))
            self.assertTrue(text(kernel, caches, chip, missed).endswith("!"), (kernel, chip))
        for kernel, caches, cost in (("attention_decode_dpas", ("f16", "u4"), 9),
                                     ("attention_prompt_dpas", ("i8", "i8"), 0.01)):
            self.assertFalse(text(kernel, caches, "lnl", cost).endswith("!"))

    def test_the_table_comes_back(self):
        table = {DECODE: Figures(0.107, 256, 8, ""), PROMPT: Figures(0.591, 256, 6, "640B"),
                 DECODE._replace(chip="nvl-u"): Figures(0.2, 128, 1024, "3a")}
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch.object(budget, "TABLE", Path(folder) / "budget.txt"):
                budget.TABLE.write_text(budget.table_text("IGC 1, driver 2", table))
                self.assertEqual(budget.read_table(), ("IGC 1, driver 2", table))


class Figuring(unittest.TestCase):
    LOOP = {"one": 200, "bytes": 2304, "local": 0, "cycles_of": {"dpas": 150}}
    MADE = {"loop": LOOP, "registers": 128, "products": 8, "spill": 0, "scratch": 0}

    def test_decoding_counts_bytes_of_weights(self):
        # 32 rows with half a byte a weight, and an activation of two bytes: 2048 of 2304 bytes are
        # weights.
        self.assertAlmostEqual(budget.figures(DECODE, self.MADE).cost, 200 / 2048)
        rows_of_four = DECODE._replace(kernel="linear_gemv_sg")
        self.assertAlmostEqual(budget.figures(rows_of_four, self.MADE).cost, 200 / 1152)
        blocks = DECODE._replace(options="-DFORMAT0=q4_k -DFORMAT_q4_k")
        self.assertAlmostEqual(budget.figures(blocks, self.MADE).cost, 200 / 2304 * 20 / 18)

    def test_decoding_counts_no_local_memory(self):
        made = dict(self.MADE, loop=dict(self.LOOP, bytes=3328, local=1024))
        self.assertAlmostEqual(budget.figures(DECODE, made).cost, 200 / 2048)

    def test_a_prompt_counts_products(self):
        self.assertAlmostEqual(budget.figures(PROMPT, self.MADE).cost, 0.75)

    def test_rounds_of_loops_are_no_loop(self):
        def figures(blocks):
            return {"kinds": {"dpas": sum(products[b] for b in blocks)} if products else {}}
        kernel = mock.Mock(figures=figures, loops={"B1": {"B1", "B2", "B3"}, "B2": {"B2"},
                                                   "B3": {"B3"}})
        loops = [(h, kernel.loops[h], h) for h in ("B1", "B2", "B3")]
        products = {"B1": 0, "B2": 8, "B3": 4}
        self.assertEqual(budget.hottest(loops, kernel), "B2")
        products = {"B1": 1, "B2": 8, "B3": 4}
        self.assertEqual(budget.hottest(loops, kernel), "B1")
        products = {}
        self.assertEqual(budget.hottest(loops, kernel), "B1")

    def test_spills_and_private_arrays(self):
        for more, text in (({"spill": 64}, "64B"), ({"scratch": 3}, "3a"), ({}, "")):
            self.assertEqual(budget.figures(DECODE, dict(self.MADE, **more)).spilled, text)


class Shares(unittest.TestCase):
    def test_of_bandwidth_and_of_engines(self):
        gate = DECODE._replace(kernel="moe_gate_up_dpas")
        table = {gate: Figures(0.1, 256, 8, ""), PROMPT: Figures(0.59, 256, 6, ""),
                 gate._replace(chip="nvl-u"): Figures(0.1, 256, 8, ""),
                 PROMPT._replace(kernel="linear_gemm_sg", chip="mtl"): Figures(0.5, 128, 0, "")}
        with mock.patch.object(budget, "read_table", lambda: ("", table)):
            text = budget.shares()
        # 64 EUs at 2.05 GHz issue 131.2 cycles a ns: 1312 GB/s at 0.1 cycles a byte; the memory has
        # 136.5.
        self.assertIn("| u4 g128 | - | - | - | - | - | 961 | - | - | - |\n", text)
        self.assertIn("| u4 g128 | - | - | - | - | - | 59 | - | - | - |\n", text)


class Builds(unittest.TestCase):
    LIST = [("linear_gemv_dpas", [], "-DSRC=f16 -DWEI=u4 -DGROUP=128"),
            ("linear_gemv_sg", [], "-DWEI=u4 -DGROUP=64"),
            ("linear_gemv_sg", [], "-DFORMAT0=q4_1 -DFORMAT_q4_1"),
            ("linear_gemm_dpas", [], "-DWEI=u4 -DGROUP=128"),
            ("linear_gemm_sg", [], "-DWEI=u4 -DGROUP=128"),
            ("linear_gemm_sg", [], "-DTILE=f16 -DWEI=u4 -DGROUP=128"),
            ("linear_gemv_sg", ["pvc"], "-DFORMAT0=q5_0 -DFORMAT_q5_0"),
            ("linear_gemv_sg", [], "-DFORMAT0=iq1_s -DFORMAT_iq1_s"),
            ("attention_decode_sg", [], "-DSRC=f32 -DD=64"),
            ("attention_decode_sg", [], "-DSRC=f16 -DD=64"),
            ("rope_sg", [], "-DSRC=f16")]

    def setUp(self):
        patch = mock.patch.object(budget.offline, "listed_builds", lambda: iter(self.LIST))
        patch.start()
        self.addCleanup(patch.stop)
        self.of = {}
        for b in budget.builds():
            self.of.setdefault((b.kernel, b.options), []).append(b.chip)

    def test_what_dispatch_takes(self):
        without = ["tgllp", "mtl"]
        self.assertEqual(self.of, {
            ("linear_gemv_dpas", "-DWEI=u4 -DGROUP=128"): budget.NAMES,
            ("linear_gemv_sg", "-DFORMAT0=q4_1 -DFORMAT_q4_1"): budget.NAMES,
            ("linear_gemm_dpas", "-DWEI=u4 -DGROUP=128"):
                [name for name in budget.NAMES if name not in without],
            ("linear_gemm_sg", "-DWEI=u4 -DGROUP=128"): without,
            ("attention_decode_sg", "-DD=64"): budget.NAMES})

    def test_a_sample_has_one_of_the_kernels_with_a_loop(self):
        tiles = [Build(f"{name}_dpas", "-DWEI=u4", chip) for chip in ("dg2", "lnl")
                 for name in ("linear_gemm", "moe_gemm_gate_up", "moe_gemm_down")]
        taken = [budget.sample([*tiles, DECODE], seed, set(), {}) for seed in range(6)]
        self.assertEqual({len(some) for some in taken}, {2})
        self.assertEqual({b for some in taken for b in some}, {*tiles, DECODE})

    def test_a_sample_has_each_row_once(self):
        everything = budget.builds()
        taken = [budget.sample(everything, seed, set(), {}) for seed in range(len(budget.NAMES))]
        for some in taken:
            self.assertEqual(sorted((b.kernel, b.options) for b in some), sorted(self.of))
        self.assertEqual({b for some in taken for b in some if b.kernel.endswith("v_dpas")},
                         {b for b in everything if b.kernel.endswith("v_dpas")})


class Offline(unittest.TestCase):
    SOURCE = "#if A\nint a;\n#elif defined(cl_b)\nint b; // why\n#else\nint c;\n#endif\n"

    def test_lists_each_word(self):
        self.assertEqual(budget.offline.with_words("-DA=%x -DB_%x", {"x": ["p", "q"]}),
                         ["-DA=p -DB_p", "-DA=q -DB_q"])
        self.assertEqual(budget.offline.with_words("-DA=1", {}), ["-DA=1"])

    def test_asks_for_the_compilers_own_names(self):
        names = budget.offline.own_names()
        self.assertIn("cl_intel_subgroup_2d_block_io", names)
        self.assertNotIn("__has_builtin", names)
        log = "k.cl:2:2: warning: defined cl_b [-W]\nerror: the end\nwarning: defined cl_a\n"
        self.assertEqual(budget.offline.probed(log), ["cl_a", "cl_b"])
        self.assertIn("#ifdef cl_b\n#warning defined cl_b\n", budget.offline.probe(["cl_b"]))

    def test_knows_names_that_conditions_compare(self):
        self.assertIn("__OPENCL_C_VERSION__", budget.offline.own_names())  # on a continued line
        source = "#if defined(A) && \\\n    __OPENCL_C_VERSION__ >= 200\nnew\n#else\nold\n#endif\n"
        log = "warning: defined __OPENCL_C_VERSION__=120\nwarning: defined __OPENCL_C_VERSION__\n"
        for version, kept in ("120", "old"), ("300", "new"):
            names = tuple(budget.offline.probed(log.replace("120", version)))
            self.assertEqual(budget.offline.preprocessed(source, "-DA", names).split(), [kept])

    def test_compiles_what_a_change_touches(self):
        made = []
        def build(source, options="-O -DA=0", defined=("cl_b",)):
            made.append(0)
            def make():
                made[-1] = 1
                return {"n": len(made)}
            with mock.patch.object(budget.offline, "CACHE", Path(folder)):
                budget.offline.cached_build("k", ("lnl",), options, source, lambda: defined, make)
        with tempfile.TemporaryDirectory() as folder:
            build(self.SOURCE)
            build(self.SOURCE)
            build(self.SOURCE.replace("int a", "int z"))  # in a branch that is not compiled
            build(self.SOURCE.replace("int c", "int z"))
            build(self.SOURCE.replace("// why", "// because"))
            build(self.SOURCE.replace("int b", "int z"))
            build(self.SOURCE, "-O -DA=1")
            build(self.SOURCE, "-O2 -DA=0")
            build(self.SOURCE.replace("int c", "int y"), defined=())
        self.assertEqual(made, [1, 0, 0, 0, 0, 1, 1, 1, 1])


class Changes(unittest.TestCase):
    def kernels(self, folder, source, header="int b;\n"):
        """Patches the folder of kernels: one kernel, k, with a header."""
        path = Path(folder)
        (path / "include").mkdir(exist_ok=True)
        (path / "include/h.h").write_text(header)
        (path / "k.cl").write_text('#include "h.h"\n' + source)
        budget.offline.code_digest.cache_clear()
        return mock.patch.object(budget.offline, "KERNELS", path)

    def tearDown(self):
        budget.offline.code_digest.cache_clear()

    def test_of_code_and_includes_but_not_of_comments(self):
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "table.txt"
            self.assertEqual(budget.offline.changed([], table), set())
            with self.kernels(folder, "int a; /* why */\n"):
                self.assertEqual(budget.offline.changed(["k"], table), {"k"})
                table.write_text("# compiler: 1\nk 1/2/3 -DA\n" + budget.offline.code_lines(["k"]))
                self.assertEqual(budget.offline.changed(["k"], table), set())
            for source, header, is_changed in (
                    ("int  a; /* because */ // or\n", "int b;\n", False),
                    ("int z;\n", "int b;\n", True), ("int a;\n", "int z;\n", True)):
                with self.kernels(folder, source, header):
                    self.assertEqual(bool(budget.offline.changed(["k"], table)), is_changed)

    def test_a_sample_has_all_rows_of_a_changed_kernel_and_some_of_others(self):
        rows = [DECODE._replace(options=f"-DGROUP={n}") for n in range(400)]
        known = dict.fromkeys(rows[1:])
        self.assertEqual(budget.sample(rows, 3, {DECODE.kernel}, known), rows)
        some = budget.sample(rows, 3, set(), known)
        self.assertIn(rows[0], some)  # not in the table
        self.assertTrue(25 < len(some) < 80, len(some))
        taken = {b for seed in range(8) for b in budget.sample(rows, seed, set(), known)}
        self.assertEqual(taken, set(rows))


class Program(unittest.TestCase):
    def check(self, **flags):
        """Returns exit code and output of a check in which every build gives the figures MADE."""
        made = dict(Figuring.MADE, **flags.pop("made", {}))
        out = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(out), \
                mock.patch.object(budget, "TABLE", Path(folder) / "budget.txt"), \
                mock.patch.object(budget, "PAGE", Path(folder) / "page.md"), \
                mock.patch.object(budget, "builds", lambda: [DECODE]), \
                mock.patch.object(budget, "compile_offline", lambda b, compiler: made), \
                mock.patch.object(budget.offline, "current_driver", lambda: flags.pop("driver", 1)), \
                mock.patch.object(budget.offline, "current_compiler", lambda folder: "IGC 2"):
            budget.PAGE.write_text(f"a\n{budget.SHARES_BEGIN}old\n{budget.SHARES_END}b\n")
            if "table" in flags:
                named, table = flags["table"]
                budget.TABLE.write_text(budget.table_text(named, table))
            code = budget.check(flags.get("update", False), False, flags.get("known", False))
            self.written = budget.TABLE.read_text() if budget.TABLE.exists() else ""
            self.page = budget.PAGE.read_text()
        return code, out.getvalue()

    AS_MADE = {DECODE: Figures(200 / 2048, 128, 8, "")}

    def test_passes_and_fails(self):
        self.assertEqual(self.check(table=("IGC 2", self.AS_MADE))[0], 0)
        worse = {DECODE: Figures(0.09, 128, 8, "")}
        self.assertEqual(self.check(table=("IGC 2", worse))[0], 1)
        code, out = self.check(table=("IGC 1", worse))
        self.assertEqual(code, 0)
        self.assertIn("the table is of IGC 1, the compiler here is IGC 2", out)
        self.assertIn("--update", out)

    def test_changed_code_fails_with_the_same_compiler(self):
        with mock.patch.object(budget.offline, "changed", lambda kernels, table: set(kernels)):
            code, out = self.check(table=("IGC 2", self.AS_MADE))
            self.assertEqual(code, 1)
            self.assertIn("the code of linear_gemv_dpas has changed since: --update", out)
            self.assertEqual(self.check(table=("IGC 1", self.AS_MADE))[0], 0)

    def test_stale_rows_and_errors_fail(self):
        table = dict(self.AS_MADE)
        table[PROMPT] = Figures(0.7, 128, 8, "")
        code, out = self.check(table=("IGC 2", table))
        self.assertEqual(code, 1)
        self.assertIn("for lnl is built no more", out)
        code, out = self.check(table=("IGC 2", self.AS_MADE), made={"error": "no such thing"})
        self.assertEqual(code, 1)
        self.assertIn("no such thing", out)

    def test_update_takes_no_new_spills(self):
        self.assertEqual(self.check(update=True)[0], 0)
        self.assertIn("# compiler: IGC 2\n", self.written)
        self.assertEqual(self.check(update=True, made={"spill": 64})[0], 1)
        self.assertEqual(self.written, "")
        self.assertEqual(self.check(update=True, made={"spill": 64}, known=True)[0], 0)
        self.assertIn("/128/8/64B ", self.written)

    def test_update_writes_the_shares(self):
        self.check(update=True, made={})
        self.assertTrue(self.page.startswith(f"a\n{budget.SHARES_BEGIN}Decoding, "), self.page)
        self.assertTrue(self.page.endswith(f"|\n{budget.SHARES_END}b\n"), self.page)
        self.assertNotIn("old", self.page)

    def test_the_page_has_the_shares(self):
        page = budget.PAGE.read_text()
        self.assertIn(budget.SHARES_END, page)
        self.assertEqual(page, budget.with_shares(page))

    def test_says_what_is_missing(self):
        code, out = self.check(driver=None)
        self.assertEqual((code, out), (0, "skipped: check_budget: Intel's current GPU driver is "
                                          "not installed\n"))

    def test_refuses_an_unknown_option(self):
        run = subprocess.run([HERE / "check_budget", "--all"], capture_output=True)
        self.assertEqual(run.returncode, 2)

    def test_the_table_is_of_the_list(self):
        _, table = budget.read_table()
        self.assertEqual(sorted(set(table) ^ set(budget.builds()))[:3], [])


if __name__ == "__main__":
    unittest.main()
