/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the enqueued steps of a prompt run ahead of the device, the progress reports, and what
 * a cancel leaves. On the fake engine, where each launch records how often the queue had waited
 * before it.
 */
#include "runtime/fake/fake.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

enum { PROMPT = 40, CHUNK = 16, PACE = 8 };

/* Returns a model with a chain of 40 products: many steps that no pass fuses. */
std::string
long_model()
{
    std::string more;
    int last = 17;
    for (int i = 50; i < 90; i++) {
        more += "    %" + std::to_string(i) + " = matmul %" + std::to_string(last) +
                ", %6 transpose_b=true\n";
        last = i;
    }
    return small_model(more + "    result %" + std::to_string(last) + " name=\"deep\"\n");
}

struct Told {
    uint64_t done, all;
};

class Pace : public testing::Test
{
  protected:
    void SetUp() override
    {
        const xm_device_info info = fake_cpu();
        ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
        program = std::make_unique<Program>(
            must_compile(engine, parse(long_model()), {{"XM_UBATCH", "16"}}));
        ASSERT_TRUE(*program);
        ASSERT_GT((*program)->n_steps, 4u * PACE);
        request = std::make_unique<Request>(make_request(program->get()));
    }
    void TearDown() override
    {
        request.reset();
        program.reset();
        xm_engine_unref(engine);
    }
    enum xm_status run(int64_t tokens)
    {
        const uint64_t past = xm_request_past(request->get());
        const auto in = inputs_of(program->get(), {{some_ids(tokens, 1, 64)}, past});
        std::vector<Tensor> out;
        err = {};
        xm_fake_clear_launches(engine);
        return infer(request->get(), in, out, &err);
    }
    /* Returns the largest number of steps that were enqueued between two waits of the queue. */
    uint32_t most_ahead()
    {
        size_t n = 0;
        uint32_t most = 0;
        const xm_fake_launch *l = xm_fake_launches(engine, &n);
        for (size_t i = 0, first = 0; i < n; i++) {
            if (l[i].paces != l[first].paces)
                first = i;
            most = std::max(most, l[i].label - l[first].label);
        }
        return most;
    }

    xm_engine *engine = nullptr;
    std::unique_ptr<Program> program;
    std::unique_ptr<Request> request;
    std::vector<Told> told;
    size_t cancel_at = SIZE_MAX; /* the report at which the run is cancelled */
    xm_error err = {};

    static void note(void *ctx, uint64_t done, uint64_t all)
    {
        auto *t = static_cast<Pace *>(ctx);
        t->told.push_back({done, all});
        if (t->told.size() == t->cancel_at)
            xm_request_cancel(t->request->get());
    }
};

TEST_F(Pace, IsKeptInPromptsAlone)
{
    ASSERT_XM_OK(run(PROMPT));
    EXPECT_LT(most_ahead(), (uint32_t)PACE);
    ASSERT_XM_OK(run(1));
    /* the steps of one token are enqueued without waits */
    EXPECT_GE(most_ahead(), 4u * PACE);
}

TEST_F(Pace, TokensOfAPromptAreToldAsTheyAreDone)
{
    xm_request_watch(request->get(), note, this);
    ASSERT_XM_OK(run(PROMPT));
    ASSERT_GT(told.size(), (size_t)PROMPT / CHUNK);
    uint64_t last = 0;
    bool within = false; /* a report came within a chunk, too */
    for (const Told &t : told) {
        EXPECT_EQ(t.all, (uint64_t)PROMPT);
        EXPECT_GE(t.done, last);
        EXPECT_LT(t.done, t.all);
        last = t.done;
        within |= t.done % CHUNK != 0;
    }
    EXPECT_TRUE(within);
    EXPECT_GE(last, (uint64_t)PROMPT - PROMPT % CHUNK);
    const size_t n = told.size();
    ASSERT_XM_OK(run(1));
    EXPECT_EQ(told.size(), n) << "a token is no prompt";
}

/* Cancels in the second chunk: no further step is enqueued, and the request keeps its past. */
TEST_F(Pace, ACancelIsSeenWhereThePaceIsKept)
{
    ASSERT_XM_OK(run(3));
    xm_request_watch(request->get(), note, this);
    const size_t a_chunk = ((*program)->n_steps + PACE - 1) / PACE;
    cancel_at = a_chunk + 2;
    EXPECT_EQ(run(PROMPT), XM_CANCELLED);
    EXPECT_EQ(told.size(), cancel_at);
    size_t n = 0;
    const xm_fake_launch *l = xm_fake_launches(engine, &n);
    EXPECT_LT(l[n - 1].label, (uint32_t)PACE) << err.text;
    EXPECT_EQ(xm_request_past(request->get()), 3u);
    xm_request_resume(request->get());
    cancel_at = SIZE_MAX;
    ASSERT_XM_OK(run(PROMPT));
    EXPECT_EQ(xm_request_past(request->get()), 3u + PROMPT);
}

} // namespace
