/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole language model: prompts in chunks, padding, beams, states on the host.
 */
#include <algorithm>

#include "plugin/readers/openvino_ir.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

Graph
read_model()
{
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_openvino_ir_read(XM_MODELS_DIR
                                     "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml",
                                     nullptr, &g, &err));
    return Graph(g, xm_graph_destroy);
}

Properties
in_f32(const char *ubatch)
{
    return {{"INFERENCE_PRECISION_HINT", "f32"},
            {"KV_CACHE_PRECISION", "f32"},
            {"XM_UBATCH", ubatch}};
}

enum { VOCABULARY = 1536 };

class ModelTest : public OpenClTest
{
  protected:
    static xm_program *whole()
    {
        static Program p = must_compile(opencl_engine(), read_model(), in_f32("512"));
        return p.get();
    }
};

TEST_F(ModelTest, CutPromptsGiveTheSameLogits)
{
    Program one = must_compile(engine, read_model(), in_f32("1")),
            three = must_compile(engine, read_model(), in_f32("3"));
    for (int64_t n : {1, 7, 40}) {
        step s = {{some_ids(n, 11, VOCABULARY)}};
        Tensor want = logits(make_request(whole()).get(), s);
        expect_logits(logits(make_request(three.get()).get(), s), want);
        if (n < 40)
            expect_logits(logits(make_request(one.get()).get(), s), want);
    }
}

TEST_F(ModelTest, PaddedBatchEqualsSingleRuns)
{
    Request both = make_request(whole());
    auto longer = some_ids(7, 1, VOCABULARY), shorter = some_ids(4, 2, VOCABULARY);
    auto padded = shorter;
    padded.insert(padded.begin(), 3, 0);
    Tensor got = logits(both.get(), {{longer, padded}, 0, {0, 3}});
    Tensor next = logits(both.get(), {{{5}, {9}}, 0, {0, 3}});
    Request a = make_request(whole()), b = make_request(whole());
    Tensor want_a = logits(a.get(), {{longer}}), want_b = logits(b.get(), {{shorter}});
    for (int64_t t = 0; t < 7; t++)
        expect_row(got, 0, t, want_a, 0, t);
    for (int64_t t = 0; t < 4; t++)
        expect_row(got, 1, 3 + t, want_b, 0, t);
    expect_row(next, 0, 0, logits(a.get(), {{{5}}}), 0, 0);
    expect_row(next, 1, 0, logits(b.get(), {{{9}}}), 0, 0);
}

TEST_F(ModelTest, BeamsContinueTheRowsTheyName)
{
    Request r = make_request(whole());
    auto prompt = some_ids(5, 1, VOCABULARY);
    logits(r.get(), {{prompt}});
    logits(r.get(), {{{1}, {2}, {3}}, 0, {}, {0, 0, 0}});
    Tensor got = logits(r.get(), {{{4}, {5}, {6}}, 0, {}, {2, 0, 2}});
    const int64_t history[3][2] = {{3, 4}, {1, 5}, {3, 6}};
    for (int b = 0; b < 3; b++) {
        auto ids = prompt;
        ids.insert(ids.end(), history[b], history[b] + 2);
        Request fresh = make_request(whole());
        expect_row(got, b, 0, logits(fresh.get(), {{ids}}), 0, 6);
    }
}

TEST_F(ModelTest, StatesOnTheHostGiveTheSame)
{
    setenv("XM_SKIP", "SDPAToPagedAttention", 1);
    Program p = must_compile(engine, read_model(), in_f32("512"));
    unsetenv("XM_SKIP");
    ASSERT_TRUE(p);
    EXPECT_EQ(p->n_kv, 0u);
    EXPECT_TRUE(p->host_states);
    Request host = make_request(p.get()), device = make_request(whole());
    for (auto &s : std::vector<step>{{{some_ids(4, 1, VOCABULARY)}}, {{{7}}}, {{{8}}}}) {
        expect_logits(logits(host.get(), s), logits(device.get(), s));
        EXPECT_EQ(xm_request_past(host.get()), xm_request_past(device.get()));
    }
    /* states on the host cannot be truncated: all are emptied */
    xm_request_truncate(host.get(), 2);
    EXPECT_EQ(xm_request_past(host.get()), 0u);
    xm_request_reset(device.get());
    expect_logits(logits(host.get(), {{{3, 4}}}), logits(device.get(), {{{3, 4}}}));
}

enum xm_status
stop_behind(xm_request *r, uint32_t step, const xm_operand *operands, void *ctx,
            xm_error *err)
{
    (void)operands;
    (void)err;
    if (step == *static_cast<uint32_t *>(ctx))
        xm_request_cancel(r);
    return XM_OK;
}

/* States on the host cannot be truncated, and a failed run may have changed some of them. */
TEST_F(ModelTest, AFailedRunEmptiesStatesOnTheHost)
{
    setenv("XM_SKIP", "SDPAToPagedAttention", 1);
    Program p = must_compile(engine, read_model(), in_f32("512"));
    unsetenv("XM_SKIP");
    ASSERT_TRUE(p);
    ASSERT_GE(p->n_steps, 2u);
    Request r = make_request(p.get()), fresh = make_request(p.get());
    logits(r.get(), {{some_ids(4, 1, VOCABULARY)}});
    uint32_t last = p->n_steps - 2;
    xm_request_set_hook(r.get(), stop_behind, &last);
    auto in = inputs_of(p.get(), {{some_ids(3, 2, VOCABULARY)}, 4});
    std::vector<Tensor> out;
    EXPECT_EQ(infer(r.get(), in, out, &err), XM_CANCELLED) << err.text;
    EXPECT_EQ(xm_request_past(r.get()), 0u);
    xm_request_set_hook(r.get(), nullptr, nullptr);
    xm_request_resume(r.get());
    expect_logits(logits(r.get(), {{{3, 4}}}), logits(fresh.get(), {{{3, 4}}}));
}

TEST_F(ModelTest, SampledLogitsAreThoseRows)
{
    xm_compile_options options = {};
    options.sampled_logits = true;
    Program p = must_compile(engine, read_model(), in_f32("3"), &options);
    EXPECT_TRUE(p->can_chunk);
    const auto ids = some_ids(7, 1, VOCABULARY);
    Request all = make_request(whole());
    OneText text(p.get());
    expect_row(text.feed(ids), 0, 0, logits(all.get(), {{ids}}), 0, 6);
    expect_row(text.feed({5}), 0, 0, logits(all.get(), {{{5}}}), 0, 0);
    /* a request runs the whole prompt and gets the indices of the wanted rows */
    Request r = make_request(p.get());
    auto in = inputs_of(whole(), {{ids}});
    in.push_back(int_tensor(XM_I64, {2}, {6, 2}));
    xm_request_reset(all.get());
    const Tensor want = logits(all.get(), {{ids}});
    const uint32_t port =
        xm_port_find(p->ports.inputs, p->ports.n_inputs, "sampled_tokens_indices");
    ASSERT_LT(port, p->ports.n_inputs);
    std::rotate(in.begin() + port, in.end() - 1, in.end());
    const auto got = must_infer(r.get(), in);
    ASSERT_EQ(got.size(), 1u);
    expect_row(got[0], 0, 0, want, 0, 6);
    expect_row(got[0], 0, 1, want, 0, 2);
}

} // namespace
