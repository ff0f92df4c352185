/* SPDX-License-Identifier: Apache-2.0
 *
 * A dry run of a model under a layer that counts OpenCL calls, and checks on it: no call fails,
 * everything is compiled before the second token, a token costs one wait and few flushes, and
 * memory is what the weights and our own statistics say.
 */
#ifndef XM_FUNCTIONAL_TESTS_DRY_RUN_LEAN_H
#define XM_FUNCTIONAL_TESTS_DRY_RUN_LEAN_H

#include <algorithm>

#include "functional_tests/dry_run/dry_run.h"

/* The most kernels of a decoded token: in each layer of Qwen3-MoE or gpt-oss (for Gemma the tables
 * of kinds give the total); for the choice of the next token; and outside the layers (embedding,
 * positions, last norm, logits and the choice). After a long prompt, attention's keys are cut into
 * partitions; the tests then allow one kernel more than this in each layer. */
constexpr double A_LAYER = 9, A_CHOICE = 2, OUTSIDE_LAYERS = 4 + A_CHOICE;

struct Kind {
    const char *name; /* its folder below the models */
    int layers;
    double kernels; /* of a token */
    size_t passes;  /* how many passes of moe_passes change the model */
    /* the weights are as large as the file: it has no shared constants */
    bool whole_file;
};
inline const char *const moe_passes[] = {
    "FuseVectorizedMOE3GEMM", "ConvertMOEToMOECompressed", "FuseMOE3GemmCompressed"};

inline void
PrintTo(const Kind &kind, std::ostream *out)
{
    *out << kind.name;
}

inline const char *const prompts[] = {"short", "long"};
constexpr int SHORT_PROMPT = 5, LONG_PROMPT = 600; /* tokens */

inline std::string
prompt_ids(const std::string &prompt)
{
    std::string ids = "3";
    for (int i = 1; i < (prompt == "long" ? LONG_PROMPT : SHORT_PROMPT); i++)
        ids += "," + std::to_string(3 + i * 37 % 250);
    return ids;
}

constexpr int TOKENS = 7; /* runs are replayed from the sixth on */

/* The program's output and the layer's counts. Only the runs of the tokens are looked at: with
 * oneDNN's GPU engine loading has runs of its own. */
struct Seen {
    Outcome outcome;
    Json said, counted;

    double run(size_t i, const std::string &what) const
    {
        return counted.number("/runs/" + std::to_string(all_runs() - runs() + i) + "/" +
                              what);
    }
    size_t runs() const
    {
        return std::min<size_t>(all_runs(), TOKENS);
    }
    /* Returns the kernels of all runs before the first token; a long prompt takes several runs. */
    double prompt_kernels() const
    {
        double n = counted.number("/kernels");
        for (size_t i = 1; i < runs(); i++)
            n -= run(i, "kernels");
        return n;
    }

  private:
    size_t all_runs() const
    {
        return yyjson_arr_size(counted.at("/runs"));
    }
};

inline Seen
generate(const Chip &c, const std::string &model, const std::string &prompt,
         const Words &options = {}, const Words &more = {})
{
    std::string file =
        testing::TempDir() + "xemoe_counted_" + std::to_string(getpid()) + ".json";
    Settings settings = dry(c);
    settings.push_back("OPENCL_LAYERS=" XM_COUNTING_LAYER);
    settings.push_back("XM_OPENCL_COUNT=" + file);
    settings.insert(settings.end(), more.begin(), more.end());
    /* no cache, so that builds are counted */
    Words words = {"generate",     "--cache-dir=none",
                   "-m",           model,
                   "--ids",        prompt_ids(prompt),
                   "-n",           std::to_string(TOKENS),
                   "--ignore-eos", "--json"};
    words.insert(words.end(), options.begin(), options.end());
    Outcome o = run(words, settings);
    EXPECT_EQ(o.code, 0) << o.err;
    Seen seen = {o, Json(o.out), Json(read_file(file))};
    unlink(file.c_str());
    return seen;
}

/* No call may fail, except one: oneDNN finds out whether the compiler knows microkernels by
 * compiling one. */
inline void
expect_calls_succeed(const Seen &s)
{
    EXPECT_LE(s.counted.number("/failures"), XM_ONEDNN_HAS_GPU ? 1 : 0)
        << s.counted.text("/failed/0/call") << s.counted.number("/failed/0/code");
    if (s.counted.number("/failures") > 0) {
        EXPECT_EQ(s.counted.text("/failed/0/call"), "clBuildProgram");
    }
    EXPECT_GT(s.counted.number("/queues/in_order"), 0);
    EXPECT_EQ(s.counted.number("/queues/out_of_order"), 0);
}

inline void
expect_clean_calls(const Seen &s)
{
    EXPECT_NE(s.outcome.err.find("dry run"), std::string::npos) << s.outcome.err;
    EXPECT_EQ(s.said.ids("/ids"), Ids(TOKENS, 0));
    expect_calls_succeed(s);
}

/* The first run is the prompt, each other run a token. The first token may enlarge the KV cache
 * and free the prompt's buffers. */
inline void
expect_lean_tokens(const Seen &s, const Kind &kind, const std::string &prompt)
{
    const double kernels = kind.kernels + (prompt == "long" ? kind.layers : 0);
    ASSERT_EQ(s.runs(), static_cast<size_t>(TOKENS));
    EXPECT_GT(s.counted.number("/builds"), 0); /* most of them before the prompt */
    /* The last run is replayed: only arguments of attention that changed, and those of steps with
     * an expert cache, are bound again. */
    EXPECT_LT(s.run(TOKENS - 1, "arguments"),
              s.run(2, "arguments") *
                  (s.said.number("/memory/expert_cache") ? 0.6 : 0.02));
    for (size_t i = 1; i < s.runs(); i++) {
        EXPECT_EQ(s.run(i, "builds"), 0) << "token " << i;
        if (i == 1)
            continue;
        EXPECT_EQ(s.run(i, "waits"), 1) << "token " << i;
        EXPECT_GE(s.run(i, "flushes"), 2)
            << "token " << i; /* one flush before all is enqueued */
        EXPECT_LE(s.run(i, "flushes"), 4) << "token " << i;
        EXPECT_EQ(s.run(i, "allocations"), 0) << "token " << i;
        EXPECT_EQ(s.run(i, "frees"), 0) << "token " << i;
        /* Run 2 is the first that is enqueued ahead of the host. It also has the choice of the
         * token before it, because the host chose the earlier tokens. */
        EXPECT_LE(s.run(i, "kernels"), kernels + (i == 2 ? A_CHOICE : 0))
            << "token " << i;
        EXPECT_LE(s.run(i, "copies"), i == 2 ? 2 : 1) << "token " << i;
        EXPECT_LE(s.run(i, "events"), i == 2 ? 2 : 1) << "token " << i;
    }
    EXPECT_EQ(s.run(TOKENS - 1, "objects"), 0);
}

/* Our memory statistics equal the driver's, and the weights are held once. */
inline void
expect_lean_memory(const Seen &s, const Kind &kind, const std::string &model)
{
    double peak = s.counted.number("/memory/total_peak");
    double weights = s.said.number("/memory/weights");
    if (kind.whole_file)
        weights = static_cast<double>(
            std::filesystem::file_size(model + "/openvino_model.bin"));
    double beside = s.said.number("/memory/kv_cache") +
                    s.said.number("/memory/activations") +
                    s.said.number("/memory/scratch");
    EXPECT_EQ(peak, s.said.number("/memory/allocated_peak"));
    EXPECT_LE(peak, 1.10 * weights + beside + 1048576.0);
    EXPECT_EQ(s.counted.number("/memory/total"), 0) << "not freed";
}

inline bool
ran(const Seen &s, const char *pass)
{
    size_t i, n;
    yyjson_val *name;
    yyjson_arr_foreach(s.said.at("/passes"), i, n, name)
    {
        if (yyjson_equals_str(name, pass))
            return true;
    }
    return false;
}

inline void
print(const Chip &c, const std::string &model, const char *prompt, const Seen &s)
{
    printf("%-6s %-36s %-6s compiled %3.0f | prompt %4.0f kernels | token %4.0f kernels "
           "%3.0f copies %.0f waits %.0f flushes | device %.2f MiB, weights %.2f\n",
           c.name, model.c_str(), prompt, s.counted.number("/builds"), s.prompt_kernels(),
           s.run(s.runs() - 1, "kernels"), s.run(s.runs() - 1, "copies"),
           s.run(s.runs() - 1, "waits"), s.run(s.runs() - 1, "flushes"),
           s.counted.number("/memory/total_peak") / 1048576.0,
           s.said.number("/memory/weights") / 1048576.0);
}

inline void
expect_lean(const Chip &c, const Kind &kind, const std::string &model)
{
    for (const char *prompt : prompts) {
        SCOPED_TRACE(prompt);
        Seen s = generate(c, model, prompt);
        if (s.outcome.code != 0 || s.runs() == 0)
            return;
        print(c, kind.name, prompt, s);
        expect_clean_calls(s);
        expect_lean_tokens(s, kind, prompt);
        expect_lean_memory(s, kind, model);
        for (size_t i = 0; i < kind.passes; i++)
            EXPECT_TRUE(ran(s, moe_passes[i])) << moe_passes[i];
    }
}

#endif
