/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/commands.h"

#include <string.h>

#include "plugin/program_util/suggest.h"

/* clang-format off */
const struct xm_cli_command xm_cli_commands[] = {
    { "devices",    xm_cli_devices,    "list the devices and their properties",
      "xemoe devices --json" },
    { "info",       xm_cli_info,       "show what a model file contains, and what it compiles to",
      "xemoe info model.gguf -v" },
    { "list",       xm_cli_list,       "list the models below a folder, and which of them fit",
      "xemoe list ~/models" },
    { "plan",       xm_cli_plan,       "show how much memory a model needs, whether it fits, and how fast it will be",
      "xemoe plan model.gguf -d GPU -c 8192" },
    { "compile",    xm_cli_compile,    "write a compiled model, which loads faster",
      "xemoe compile model.gguf -o model.blob" },
    { "generate",   xm_cli_generate,   "continue a text",
      "xemoe generate model.gguf -p 'The capital of France is' -n 16" },
    { "chat",       xm_cli_chat,       "hold a conversation on the terminal",
      "xemoe chat model.gguf -s 'Answer in one sentence.'" },
    { "serve",      xm_cli_serve,      "serve models over HTTP with OpenAI's API",
      "xemoe serve model.gguf --port 8080" },
    { "embed",      xm_cli_embed,      "compute embeddings of texts: one vector of length 1 for each text",
      "xemoe embed model.gguf -p 'Paris' -p 'Rome' -o embeddings.npy" },
    { "logits",     xm_cli_logits,     "compute the logits of every position, as an .npy file",
      "xemoe logits model.gguf --ids 1,2,3 -o logits.npy" },
    { "bench",      xm_cli_bench,      "measure tokens per second, as llama-bench does",
      "xemoe bench model.gguf -p 512,2048 -n 128 -o json" },
    { "benchmark_app", xm_cli_benchmark_app, "measure inferences per second, as OpenVINO's benchmark_app does",
      "xemoe benchmark_app -m model.xml -d GPU -hint latency -niter 100" },
    { "tune",       xm_cli_tune,       "find the fastest kernels for a model on this device, and remember them",
      "xemoe tune model.gguf -d GPU" },
    { "selftest",   xm_cli_selftest,   "test a device against the host reference, measure it, and write a report",
      "xemoe selftest -d GPU" },
    { "perplexity", xm_cli_perplexity, "compute the perplexity of a text, or the divergence of two models",
      "xemoe perplexity model.gguf -f text.txt -c 512" },
    { "verify",     xm_cli_verify,     "compare each step with the host reference, or logits with those of another program",
      "xemoe verify model.gguf -p 'The capital of France is' --decode 2" },
    { "opt",        xm_cli_opt,        "run single passes on a graph in text form",
      "xemoe opt fuse_glu < graph.xmg" },
    { "make-model", xm_cli_make_model, "write a synthetic model of any dimensions",
      "xemoe make-model -o small --arch qwen3moe --layers 2" },
};
const size_t xm_cli_n_commands = XM_ARRAY_LEN(xm_cli_commands);

const struct xm_cli_fact xm_cli_exit_codes[] = {
    { "0",   "success" },
    { "1",   "a failure while running; also: a turn of 'chat' failed, or a command in it that was not typed on a terminal; or 'verify --against' found logits that differ too much" },
    { "2",   "the command line, or the value of an environment variable, is wrong" },
    { "3",   "a file is missing, damaged, not supported or not writable; also: a model's file was shortened, or its disk failed, while weights were read" },
    { "4",   "a device failure: there is no device of that name, the device failed, or its memory is too small; 'plan': the model does not fit" },
    { "5",   "'verify' found a step over its tolerance, or a part of 'selftest' failed" },
    { "130", "stopped by Ctrl-C: at once while loading, else between tokens or chunks of a prompt; a second Ctrl-C stops at once" },
    { "128+N", "signal N ended the program: 129 the terminal was closed, 141 the reader of the output has gone, 143 kill" },
};
const size_t xm_cli_n_exit_codes = XM_ARRAY_LEN(xm_cli_exit_codes);

const struct xm_cli_fact xm_cli_environment[] = {
    { "XM_MODEL",        "the model for commands that are given none" },
    { "XM_DEBUG",        "flags for more output, separated by commas; XM_DEBUG=help lists them" },
    { "XM_SKIP",         "passes to skip, separated by commas, by file name or public name" },
    { "XM_STOP",         "the pass after which rewriting ends" },
    { "XM_DUMP",         "a folder to which the graph is written after each pass that changed it, as text and for Graphviz" },
    { "XM_FORCE",        "step=variant: use this kernel variant for this step; a family (ref, vec, gen, sg, host, onednn): use its kernels wherever they can run; a number N: use the Nth kernel that each step can use, or its last one" },
    { "XM_SUB_DEVICES",  "N: split a processor into N devices, CPU.0 to CPU.N-1, each with its share of the cores; for meshes (docs/mesh.md)" },
    { "XM_RANK_TIMEOUT", "seconds without a sign of life from another process of an MPI job after which the job ends (3); 0: no limit, for example for a debugger. That of the first process holds for all" },
    { "XM_DEVICE_AS",    "a chip (tgl, mtl_u, …) whose facts replace those of the device: configuration rules see the chip, but the real device runs" },
    { "XM_NUMERICS",     "bf16: round embeddings, router inputs and per-layer embeddings, as training in bf16 does; f32: do not round. Not read by benchmark_app" },
    { "XM_TUNED_KERNELS", "NO: as the option --no-tune in each command. Not read by benchmark_app" },
    { "XM_AHEAD",        "NO: wait for each decoded token before the next run is enqueued, and choose each token on the host. Not read by benchmark_app" },
    { "XM_REPLAY",       "NO: make each kernel launch of a decoded token anew instead of replaying recorded launches. Not read by benchmark_app" },
    { "XM_PLUGINS",      "lists of device plugins in the format of OpenVINO's plugins.xml, separated by colons" },
    { "XM_KERNEL_DIR",   "a folder whose kernel sources replace the built-in ones" },
    { "XM_LEVEL_ZERO",   "the Level Zero loader to open instead of libze_loader.so.1; off: do not use Level Zero" },
    { "XDG_CACHE_HOME",  "the folder below which compiled kernels are kept (~/.cache)" },
    { "XDG_STATE_HOME",  "the folder below which chats keep the history of typed lines (~/.local/state)" },
    { "NO_COLOR",        "if it is set, output has no dim or coloured letters; TERM=dumb: no escape codes" },
};
const size_t xm_cli_n_environment = XM_ARRAY_LEN(xm_cli_environment);
/* clang-format on */

const struct xm_cli_command *
xm_cli_command_find(const char *name)
{
    for (size_t i = 0; i < xm_cli_n_commands; i++) {
        if (strcmp(name, xm_cli_commands[i].name) == 0)
            return &xm_cli_commands[i];
    }
    return NULL;
}

int
xm_cli_no_command(const char *name)
{
    struct xm_suggestion near = xm_suggest_for(name, strlen(name));
    for (size_t i = 0; i < xm_cli_n_commands; i++)
        xm_suggest(&near, xm_cli_commands[i].name);
    xm_suggest_list(&near, "help --help --version"); /* main.c handles these */
    return near.best
               ? xm_cli_usage("there is no command '%s': did you mean '%s'? See 'xemoe "
                              "--help'",
                              name, near.best)
               : xm_cli_usage("there is no command '%s'; see 'xemoe --help'", name);
}
