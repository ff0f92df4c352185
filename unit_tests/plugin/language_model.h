/* SPDX-License-Identifier: Apache-2.0
 *
 * Language models for tests as graph text, the inputs of exported models, and runs on both.
 */
#ifndef XM_UNIT_TESTS_PLUGIN_LANGUAGE_MODEL_H
#define XM_UNIT_TESTS_PLUGIN_LANGUAGE_MODEL_H

#include <algorithm>

#include "plugin/gpu/batcher.h"
#include "runtime/operations/token_choice.h"
#include "unit_tests/plugin/plugin_test.h"

/* The inputs, the embedding %5, and an attention layer over all positions %15. */
static const std::string first_layer = R"(
    %0 = parameter i64[batch,tokens] name="input_ids"
    %1 = parameter i64[batch,past+tokens] name="attention_mask"
    %2 = parameter i32[batch] name="beam_idx"
    %3 = weight f32[64,32] f32 @3
    %4 = const i64[] {0}
    %5 = gather %3, %0, %4
    %6 = weight f32[32,32] f32 @6
    %7 = weight f32[16,32] u8 group=32 scale=f16 zp=u8 @7
    %8 = const i64[4] {0, 0, -1, 16}
    %9 = matmul %5, %6 transpose_b=true
    %10 = reshape %9, %8 special_zero=true
    %11 = matmul %5, %7 transpose_b=true
    %12 = reshape %11, %8 special_zero=true
    %13 = attention %10, %12, %12, %2, %1, _, _ scale=0.25 causal=true key_state="k" value_state="v"
    %14 = const i64[3] {0, 0, 32}
    %15 = reshape %13, %14 special_zero=true
)";

/* Returns a model with an embedding, one attention layer on a paged cache and logits [..,64].
 * `more`: further lines, which may use the hidden states %17 [batch,tokens,32]. */
inline std::string
small_model(const std::string &more = "")
{
    return first_layer + R"(
    %16 = weight f32[64,32] f32 @16
    %17 = add %15, %5
    %18 = matmul %17, %16 transpose_b=true
    result %18 name="logits"
)" + more;
}

/* Returns a model with an embedding, attention over all positions, attention over a window of 7
 * positions, and logits [..,64]. `mask`: the value that masks the second layer; `more` as in
 * small_model. */
inline std::string
two_layers(const std::string &mask = "%1", const std::string &more = "")
{
    return first_layer + R"(
    %17 = add %15, %5
    %19 = matmul %17, %6 transpose_b=true
    %20 = reshape %19, %8 special_zero=true
    %21 = matmul %17, %7 transpose_b=true
    %22 = reshape %21, %8 special_zero=true
    %23 = attention %20, %22, %22, %2, )" +
           mask +
           R"(, _, _ scale=0.25 causal=true window=7 key_state="k2" value_state="v2"
    %24 = reshape %23, %14 special_zero=true
    %25 = add %24, %17
    %16 = weight f32[64,32] f32 @16
    %18 = matmul %25, %16 transpose_b=true
    result %18 name="logits"
)" + more;
}

/* The inputs of one run of an exported model: the ids of each row, and what its other inputs are
 * made from. */
struct step {
    std::vector<std::vector<int64_t>> ids;
    uint64_t past = 0;
    std::vector<int64_t> padding = {}; /* zeros on the left of each row's mask */
    std::vector<int64_t> beams = {};
};

/* Returns the tensors of a step in the order of the program's ports. */
inline std::vector<Tensor>
inputs_of(const xm_program *p, const step &s)
{
    int64_t batch = (int64_t)s.ids.size(), tokens = (int64_t)s.ids[0].size();
    int64_t context = (int64_t)s.past + tokens;
    std::vector<int64_t> ids, mask, positions, beams = s.beams;
    for (int64_t b = 0; b < batch; b++) {
        int64_t pad = s.padding.empty() ? 0 : s.padding[(size_t)b];
        ids.insert(ids.end(), s.ids[(size_t)b].begin(), s.ids[(size_t)b].end());
        for (int64_t i = 0; i < context; i++)
            mask.push_back(i >= pad);
        for (int64_t i = (int64_t)s.past; i < context; i++)
            positions.push_back(i < pad ? 1 : i - pad);
        if (s.beams.empty())
            beams.push_back(b);
    }
    std::vector<Tensor> in;
    for (uint32_t i = 0; i < p->ports.n_inputs; i++) {
        std::string name = p->ports.inputs[i].name;
        enum xm_element e = p->ports.inputs[i].type.element;
        if (name == "input_ids")
            in.push_back(int_tensor(e, {batch, tokens}, ids));
        else if (name == "attention_mask")
            in.push_back(int_tensor(e, {batch, context}, mask));
        else if (name == "position_ids")
            in.push_back(int_tensor(e, {batch, tokens}, positions));
        else
            in.push_back(int_tensor(e, {batch}, beams));
    }
    return in;
}

/* Runs a step, whose past is that of the request. Returns the first output; NULL if the run
 * fails. */
inline Tensor
logits(xm_request *r, step s)
{
    s.past = xm_request_past(r);
    auto out = must_infer(r, inputs_of(xm_request_program(r), s));
    return out.empty() ? nullptr : out[0];
}

/* One sequence of a program, in a batch with no other sequence. */
class OneText
{
  public:
    explicit OneText(xm_program *p)
    {
        EXPECT_EQ(xm_batcher_create(p, &batcher, &err), XM_OK) << err.text;
        EXPECT_EQ(xm_kv_sequence_create(p->kv_pool, &sequence, &err), XM_OK) << err.text;
    }
    ~OneText()
    {
        xm_kv_sequence_destroy(sequence);
        xm_batcher_destroy(batcher);
    }
    OneText(const OneText &) = delete;
    /* Runs the tokens and returns the logits [1,1,V] of the last one. */
    Tensor feed(const std::vector<int64_t> &ids)
    {
        const std::vector<int32_t> list(ids.begin(), ids.end());
        const xm_batcher_entry e = {sequence, list.data(), list.size(), 1};
        uint64_t rows = 0, vocabulary = 0;
        EXPECT_EQ(xm_batcher_run(batcher, &e, 1, &err), XM_OK) << err.text;
        const float *logits = xm_batcher_logits(batcher, 0, &rows, &vocabulary);
        EXPECT_EQ(rows, 1u);
        Tensor t = make_tensor(XM_F32, {1, 1, (int64_t)vocabulary});
        std::copy_n(logits, vocabulary, t->f);
        return t;
    }
    /* Prepares the batcher to choose tokens on the device: the most likely token. */
    void prepare_choices()
    {
        const xm_token_choice likeliest = {};
        xm_batcher_prepare(batcher, &likeliest, &err);
    }
    void forget()
    {
        xm_kv_sequence_truncate(sequence, 0);
    }
    struct xm_request_stats stats() const
    {
        struct xm_request_stats s;
        xm_request_stats(xm_batcher_request(batcher), &s);
        return s;
    }

  private:
    xm_batcher *batcher = nullptr;
    xm_kv_sequence *sequence = nullptr;
    xm_error err = {};
};

/* Compares row `row` of sequence b of logits [B,T,V] with another row. The tolerance is relative
 * to the largest magnitude of the expected row. */
inline void
expect_row(const Tensor &got, int64_t b, int64_t row, const Tensor &want, int64_t want_b,
           int64_t want_row, float tolerance = 1e-4f)
{
    ASSERT_TRUE(got && want);
    int64_t v = want->dim[2];
    ASSERT_EQ(got->dim[2], v);
    ASSERT_LT(row, got->dim[1]);
    ASSERT_LT(want_row, want->dim[1]);
    const float *g = got->f + (b * got->dim[1] + row) * v;
    const float *w = want->f + (want_b * want->dim[1] + want_row) * v;
    float most = 0;
    for (int64_t i = 0; i < v; i++)
        most = std::fmax(most, magnitude(w[i]));
    for (int64_t i = 0; i < v; i++)
        ASSERT_LE(distance(g[i], w[i]), tolerance * most)
            << "row " << row << " logit " << i;
}

inline void
expect_logits(const Tensor &got, const Tensor &want, float tolerance = 1e-4f)
{
    ASSERT_TRUE(got && want);
    ASSERT_EQ(got->dim[0], want->dim[0]);
    ASSERT_EQ(got->dim[1], want->dim[1]);
    for (int64_t b = 0; b < want->dim[0]; b++)
        for (int64_t t = 0; t < want->dim[1]; t++)
            expect_row(got, b, t, want, b, t, tolerance);
}

/* Returns n pseudo-random ids below `vocabulary`, which depend on the seed. */
inline std::vector<int64_t>
some_ids(int64_t n, uint32_t seed, int64_t vocabulary)
{
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids.push_back((seed >> 8) % vocabulary);
    }
    return ids;
}

#endif
