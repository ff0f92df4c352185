# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/isa_stats on a small recorded dump. Run by tools/isa_stats --self-test."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import isa

PROGRAM = Path(__file__).resolve().parent / "isa_stats"

# Two nested loops: lines that the compiler made of linear_gemm_dpas for XE2.
DUMP = """\
//.kernel linear_gemm_dpas
//.platform XE2
//.thread_config numGRF=256, numAcc=8, numSWSB=32
//.instCount 14
// B000: Preds:{},  Succs:{B001}
_main:
(W)     mov (1|M0)               r4.0<1>:uq    r0.1<0;1,0>:uq                   {Compacted} //  ALU pipe: int; $1
// B001: Preds:{B000, B003},  Succs:{B002}
_0_001:
(W)     load.slm.d32x16t.a32 (1|M0)  r7:1      [r6:1]             {$5} // ex_desc:0x0; desc:0x2108580 // $9
(W)     mul (16|M0)              r50.0<1>:f    r45.0<0;1,0>:f    0x38008183:f     //  ALU pipe: float; $180
// B002: Preds:{B001, B002},  Succs:{B002, B003}
_0_002:
        sync.nop                             null                             {Compacted,$2.src}     // $656
(W)     load.ugm.d32x64t.a64 (1|M0)  r25:4      [r11:1]            {I@4,$19} // ex_desc:0x0; desc:0x240F580 // $656
        load.ugm.d16u32.a64 (16|M0)  r29:1      [r11:2]            {$20} // ex_desc:0x100000; desc:0x240F580 // $657
        dpas.8x1 (16|M0)         r66:f         r66:f             r25:hf            r13.0:hf         {Atomic,Compacted,$19.dst} // $659
        dpas.8x8 (16|M0)         r94:f         r94:f             r25:hf            r5.0:hf          {Atomic,Compacted} // $660
        add (16|M0)              r6.0<1>:q     r85.1<0;1,0>:q    r5.3<0;1,0>:q    {I@1}    //  ALU pipe: int; $145
        bfn.((s0^s1)&s2) (16|M0)   r17.16<1>:uw  r16.0<1;0>:uw   r121.6<0;0>:uw    255:w               //  ALU pipe: int; $219
(W&~f2.1) jmpi                               _0_002                                                  //  ALU pipe: int; $133
// B003: Preds:{B002},  Succs:{B001, B004}
        math.inv (1|M0)          r47.0<1>:f    r46.0<0;1,0>:f                   {F@2}                //  ALU pipe: math; $178
(W&~f1.1) jmpi                               _0_001                                                  //  ALU pipe: int; $690
// B004: Preds:{B003},  Succs:{}
(W)     send.gtwy (1|M0)         null     r112    null:0  0x0            0x02000010           {EOT} // wr:1+0, rd:0; end of thread
"""


class IsaStatsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def kernel(self, text=DUMP, name="OCL_asm1_simd16_entry_0001.asm"):
        (self.folder / name).write_text(text)
        return isa.kernels_in(self.folder)[-1]

    def test_reads_a_kernel(self):
        k = self.kernel()
        self.assertEqual((k.name, k.platform, k.registers, k.lanes, k.spill, k.scratch),
                         ("linear_gemm_dpas", "XE2", 256, 16, 0, 0))
        self.assertEqual(k.products(), 2)
        self.assertEqual(sorted(k.loops), ["B001", "B002"])

    def test_counts_the_hottest_loop(self):
        header, _, loop = self.kernel().hot_loops()[0]
        self.assertEqual(header, "B002")  # B001 around it has no more dpas
        self.assertEqual((loop["loads"], loop["bytes"], loop["local"]), (2, 256 + 32, 0))
        # 2 + 16 cycles of dpas, 2 sends, 2 for 128 bytes in registers of 64, 1, and 1 for the jump.
        self.assertEqual(loop["pipes"], {"dpas": 18, "send": 2, "int": 4})
        self.assertEqual((loop["one"], loop["side_by_side"]), (24, 18))

    def test_narrow_registers_take_twice_as_long(self):
        narrow = self.kernel(DUMP.replace("XE2", "DG2")).hot_loops()[0][2]
        self.assertEqual(narrow["pipes"]["int"], 4 + 1 + 1)

    def test_without_products_the_loop_that_loads_most(self):
        text = DUMP.replace("dpas.8x1", "mad").replace("dpas.8x8", "mad")
        k = self.kernel(text)
        self.assertEqual(k.products(), 0)
        self.assertEqual(k.hot_loops()[0][0], "B002")

    def test_spills_and_the_last_try(self):
        self.kernel()
        first = self.folder / "OCL_asm1_simd16_entry_0001.asm"
        os.utime(first, (1, 1))
        k = self.kernel(DUMP + "//.spill size 640\n", "OCL_asm1_simd8_entry_0001.asm")
        self.assertEqual((k.spill, k.lanes), (640, 8))
        self.assertEqual(len(isa.kernels_in(self.folder)), 1)

    def test_old_messages(self):
        for line, loaded, local in (
                ("send.dc1 (8|M0)  r12  r10  null  0x0  0x02206A05  {$0} "
                 "// wr:1+0, rd:2; untyped surface read with xy", 64, False),
                ("send.dc0 (8|M0)  r55  r35  null  0x0  0x02110002  {$0} "
                 "// wr:1+0, rd:1; byte gathering read 16b", 16, False),
                ("send.dc0 (16|M0)  r1  r2  null  0x0  0x02184202  {$0} "
                 "// wr:1h+0, rd:4; oword block read x8", 128, False),
                ("send.ugm (16|M0)  r9  r7  null:0  0x0  0x04201580  {$3} "
                 "// wr:2+0, rd:2; load.ugm.d32x2.a64", 128, False),
                ("load_block2d.ugm.d16.a64 (1|M0)  r5:8  [r1:1]  {$1} "
                 "// ex_desc:0x0; 16x8x1", 256, False),
                ("load_block2d.ugm.d32t.a64 (1|M0)  r64:8 [r4:1+(0x0,0x10)]  {$2} "
                 "// ex_desc:0x4000000; desc:0x2808403", 256, False),
                ("send.ugm (1|M0)  r11  r112  null:0  0x0  0x02808403  {$27} "
                 "// wr:1+0, rd:8; load_block2d.ugm.d32t.a64", 256, False)):
            i = isa.Instruction(line, False)
            self.assertEqual((i.kind, i.loaded, i.local), ("send", loaded, local), line)

    def test_program(self):
        self.kernel()
        run = subprocess.run([PROGRAM, "--dump", self.folder, "--json"], capture_output=True,
                             text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout)[0]["loops"][0]["one"], 24)
        run = subprocess.run([PROGRAM, "--dump", self.folder], capture_output=True, text=True)
        self.assertIn("cycles: one 24, pipes 18 (dpas 18 int 4 send 2)", run.stdout)

    def test_refuses_an_unknown_chip(self):
        for words in (["xyz", "linear_gemv_dpas"], ["skl", "linear_gemv_dpas"]):
            run = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
            self.assertEqual(run.returncode, 2)
            self.assertIn(f"unknown chip {words[0]}: tgllp ", run.stderr)
        self.assertEqual(subprocess.run([PROGRAM], capture_output=True).returncode, 2)
        self.assertEqual(subprocess.run([PROGRAM, "--help"], capture_output=True).returncode, 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
