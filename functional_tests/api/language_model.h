/* SPDX-License-Identifier: Apache-2.0
 *
 * A language model compiled through the public API, and runs of its sequences: token ids in, rows
 * of logits out.
 */
#ifndef XM_FUNCTIONAL_TESTS_API_LANGUAGE_MODEL_H
#define XM_FUNCTIONAL_TESTS_API_LANGUAGE_MODEL_H

#include <algorithm>

#include "functional_tests/api/api_test.h"
#include "functional_tests/common/files.h"
#include "xemoe/xemoe.h"

struct ModelOptions {
    const char *precision = "f32", *kv = "f32", *chunk = "512";
    const char *sequences = "YES"; /* NO: no sequences, only requests */
    /* Columns that share a scale when prompts are quantized to 8 bits; 0: prompts stay in 16
     * bits, which comparisons with exact logits need. */
    const char *quantisation = "0";
};

/* Tokens of a sequence, and for how many of the last of them logits are wanted. */
struct Feed {
    xm_sequence_t *sequence;
    Ids ids;
    size_t wanted;
};

class LanguageModel
{
  public:
    using Sequence = std::unique_ptr<xm_sequence_t, Free<xm_sequence_free>>;

    explicit LanguageModel(const std::string &path, const ModelOptions &s = {})
    {
        ov_compiled_model_t *c = nullptr;
        xm_batch_t *b = nullptr;
        EXPECT_EQ(ov_core_compile_model_from_file(
                      core.get(), path.c_str(), "GPU", 10, &c, "INFERENCE_PRECISION_HINT",
                      s.precision, "KV_CACHE_PRECISION", s.kv, "XM_UBATCH", s.chunk,
                      "XM_SEQUENCES", s.sequences, "DYNAMIC_QUANTIZATION_GROUP_SIZE",
                      s.quantisation),
                  OK)
            << path << ": " << last_error();
        compiled.reset(c);
        if (std::string(s.sequences) == "YES") {
            EXPECT_EQ(xm_batch_create(c, &b), OK) << last_error();
        }
        batch.reset(b);
    }

    Sequence sequence() const
    {
        xm_sequence_t *s = nullptr;
        EXPECT_EQ(xm_sequence_create(compiled.get(), &s), OK) << last_error();
        return Sequence(s);
    }

    /* Runs the batch once and returns the rows of logits of each entry. */
    std::vector<Matrix> run(const std::vector<Feed> &feeds) const
    {
        std::vector<xm_batch_entry_t> entries;
        for (const Feed &f : feeds)
            entries.push_back({f.sequence, f.ids.data(), f.ids.size(), f.wanted});
        EXPECT_EQ(xm_batch_run(batch.get(), entries.data(), entries.size()), OK)
            << last_error();
        std::vector<Matrix> all(feeds.size());
        for (size_t i = 0; i < feeds.size(); i++)
            read(i, &all[i]);
        return all;
    }

    Matrix run(const Sequence &s, const Ids &ids, size_t wanted) const
    {
        return run({{s.get(), ids, wanted}})[0];
    }

    /* Returns the rows of all ids, run in a new sequence. */
    Matrix rows(const Ids &ids) const
    {
        return run(sequence(), ids, ids.size());
    }

    ov_compiled_model_t *handle() const
    {
        return compiled.get();
    }

  private:
    /* Models of one process share the device, and so the kernels that were built. */
    static inline const Core core = make_core();
    Compiled compiled;
    std::unique_ptr<xm_batch_t, Free<xm_batch_free>> batch;

    void read(size_t i, Matrix *m) const
    {
        const float *logits = nullptr;
        EXPECT_EQ(xm_batch_logits(batch.get(), i, &logits, &m->rows, &m->cols), OK)
            << last_error();
        if (logits)
            m->data.assign(logits, logits + m->rows * m->cols);
    }
};

inline int32_t
likeliest(const Floats &row)
{
    return (int32_t)(std::max_element(row.begin(), row.end()) - row.begin());
}

/* Returns by how much the largest logit exceeds the second. */
inline float
margin(Floats row)
{
    std::partial_sort(row.begin(), row.begin() + 2, row.end(), std::greater<float>());
    return row[0] - row[1];
}

#endif
