/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the memory that 'xemoe plan' predicts for a run with the statistics of the run.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_PREDICTION_H
#define XM_FUNCTIONAL_TESTS_COMMON_PREDICTION_H

#include <cmath>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

/* Returns ids "1,38,75,…" below any vocabulary; a long prompt of them uses every expert. */
inline std::string
some_ids(int n)
{
    std::string ids = "1";
    for (int i = 1; i < n; i++)
        ids += "," + std::to_string(i * 37 % 250);
    return ids;
}

/* Returns the JSON result of generating `n` tokens after a prompt. */
inline Json
generate_json(const std::string &model, int prompt, int n, const Words &options,
              const Settings &settings = {})
{
    Words words = {
        "generate",        "-m",           model,   "--ids", some_ids(prompt), "-n",
        std::to_string(n), "--ignore-eos", "--json"};
    words.insert(words.end(), options.begin(), options.end());
    Outcome o = run(words, settings);
    EXPECT_EQ(o.code, 0) << o.err;
    return Json(o.out);
}

/* Fails unless every kind of memory, at the end and at its peak, is within 3 % of the plan. */
inline void
expect_prediction(const std::string &model, int context, const Words &options = {},
                  const Settings &settings = {})
{
    SCOPED_TRACE(model + ", context " + std::to_string(context));
    Words words = {"plan", model, "-c", std::to_string(context), "--json"};
    words.insert(words.end(), options.begin(), options.end());
    Outcome o = run(words, settings);
    ASSERT_EQ(o.code, 0) << o.err;
    Json plan(o.out), real = generate_json(model, context - 1, 2, options, settings);
    std::vector<std::string> figures = {
        "kv_cache",       "activations",        "scratch",     "allocated",
        "allocated_peak", "inputs_and_results", "expert_cache"};
    for (const char *kind :
         {"cl_mem", "cl_mem_host", "usm_host", "usm_device", "usm_shared", "mapped"}) {
        for (const char *of : {"now", "peak", "buffers"})
            figures.push_back(std::string("kinds/") + kind + "/" + of);
    }
    for (const std::string &name : figures) {
        double said = plan.number("/memory/" + name), is = real.number("/memory/" + name);
        EXPECT_LE(std::fabs(said - is), 0.03 * is) << name << ": " << said << ", " << is;
    }
    EXPECT_GT(real.number("/memory/allocated"), 0.0);
}

#endif
