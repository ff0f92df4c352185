// SPDX-License-Identifier: Apache-2.0
// The input is a GGUF file that is read as a model: it becomes a valid graph of bounded size, or
// is refused with an error text.
#include <cstring>

#include "plugin/models/gguf_graph.h"
#include "transformations/graph/validate.h"
#include "unit_tests/fuzz/fuzz.h"

// libFuzzer defines this; it is NULL in the program that only runs the corpus.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n,
                                                         size_t most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t most,
                                          unsigned seed);

namespace
{

// More memory than the graph of any file of some kilobytes needs.
enum { MOST_ARENA_BYTES = 64 << 20 };

const uint64_t edges[] = {0,          1,          2,          3,
                          4,          7,          8,          16,
                          32,         0x7fffffff, 0xfffffffe, 0xffffffff,
                          0x80000000, 0x7fc00000, 0x3f800000, UINT64_MAX};

// Overwrites the number of a random key, or one number of its list, with an edge value.
bool
change_a_key(uint8_t *bytes, const xm_gguf *g, unsigned random)
{
    if (!g->parts[0].n_keys)
        return false;
    const xm_gguf_values &v = g->parts[0].keys[random % g->parts[0].n_keys].value;
    random /= 64;
    const uint64_t value = edges[random % (sizeof(edges) / sizeof(*edges))];
    const size_t size = v.n ? v.bytes.n / v.n : 0;
    if (size == 0 || size > sizeof(value) || v.element == XM_STRING)
        return false;
    memcpy(bytes + (v.bytes.p - bytes) + (random / 16 % v.n) * size, &value, size);
    return true;
}

} // namespace

// Half of the mutations change only the value of a key, which leaves the file readable.
size_t
LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t most, unsigned seed)
{
    xm_gguf *g = nullptr;
    bool done = false;
    if (seed % 2 && xm_gguf_read_memory(bytes, n, nullptr, &g, nullptr) == XM_OK)
        done = change_a_key(bytes, g, seed / 2);
    xm_gguf_close(g);
    return done || !LLVMFuzzerMutate ? n : LLVMFuzzerMutate(bytes, n, most);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    xm_gguf *g = nullptr;
    xm_graph *graph = nullptr;
    xm_error err = {};
    if (!worked(xm_gguf_read_memory(bytes, n, nullptr, &g, &err), err))
        return 0;
    const enum xm_status s = xm_gguf_graph(g, "model.gguf", &graph, &err);
    require(worked(s, err) == (graph != nullptr), "a graph comes exactly when it worked");
    require(s == XM_OK || strncmp(err.text, "model.gguf: ", 12) == 0,
            "a sentence names the file");
    if (graph) {
        require(graph->arena.bytes < MOST_ARENA_BYTES, "a graph is as large as its file");
        xm_error wrong = {};
        require(xm_graph_validate(graph, nullptr, &wrong) == XM_OK, "a graph is valid");
    }
    xm_graph_destroy(graph);
    xm_gguf_close(g);
    return 0;
}
