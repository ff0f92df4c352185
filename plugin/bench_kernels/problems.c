/* SPDX-License-Identifier: Apache-2.0
 *
 * The default problems: decode, then prompts, of layers with the sizes of Qwen3-30B-A3B, then its
 * attention with few and with many positions.
 */
#include "plugin/bench_kernels/bench.h"

/* clang-format off */
const char *const xm_bench_problems[] = {
    "linear N=4096 K=2048 T=1 u4 g128 f16",
    "linear N=2048 K=4096 T=1 u4 g128 f16",
    "linear N=32768 K=2048 T=1 u8 g2048 f16",
    "linear N=4096 K=2048 T=1 q4_k f16",
    "linear N=4096 K=2048 T=1 q8_0 f16",
    "linear N=4096 K=2048 T=16 u4 g128 f16",
    "linear N=4096 K=2048 T=512 u4 g128 f16",
    "linear N=4096 K=2048 T=512 u4 g128 f32",
    "linear N=4096 K=2048 T=512 q4_k f16",
    "linear N=4096 K=2048 T=512 q8_0 f16",
    "moe E=128 K=8 H=2048 I=768 T=1 u4 g128 f16",
    "moe E=128 K=8 H=2048 I=768 T=1 u4 g128 f32",
    "moe E=128 K=8 H=2048 I=768 T=512 u4 g128 f16",
    "moe E=128 K=8 H=2048 I=768 T=512 u4 g128 f32",
    "moe E=128 K=8 H=2048 I=768 T=1 q4_k f16",
    "moe E=128 K=8 H=2048 I=768 T=512 q4_k f16",
    "attention Q=32 KV=4 D=128 P=2048 T=1 f16 f16",
    "attention Q=32 KV=4 D=128 P=2048 T=1 i8 f16",
    "attention Q=32 KV=4 D=128 P=2048 T=1 u4 f16",
    "attention Q=32 KV=4 D=128 P=16384 T=1 f16 f16",
    "attention Q=32 KV=4 D=128 P=16384 T=1 i8 f16",
    "attention Q=32 KV=4 D=128 P=16384 T=1 u4 f16",
    "attention Q=32 KV=4 D=128 P=512 T=512 f16 f16",
    "attention Q=32 KV=4 D=128 P=512 T=512 i8 f16",
    "attention Q=32 KV=4 D=128 P=512 T=512 u4 f16",
};
/* clang-format on */
const size_t xm_bench_n_problems = XM_ARRAY_LEN(xm_bench_problems);
