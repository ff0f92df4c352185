/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences and batches through the public headers: many contexts together give what requests
 * give one by one, and each mistake has its status and error text.
 */
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "functional_tests/api/api_test.h"
#include "xemoe/xemoe.h"

using Sequence = std::unique_ptr<xm_sequence_t, Free<xm_sequence_free>>;
using Batch = std::unique_ptr<xm_batch_t, Free<xm_batch_free>>;
using Ids = std::vector<int32_t>;

namespace
{

const char *const model_path =
    XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml";
enum { VOCABULARY = 1536, PAGE_TOKENS = 8 };

Compiled
compile_model(ov_core_t *core, const char *sequences, const char *kv_memory = "64")
{
    ov_compiled_model_t *c = nullptr;
    EXPECT_EQ(ov_core_compile_model_from_file(
                  core, model_path, "GPU", 10, &c, "INFERENCE_PRECISION_HINT", "f32",
                  "XM_UBATCH", "16", "XM_KV_BLOCK_TOKENS", "8", "XM_SEQUENCES", sequences,
                  "XM_KV_MEMORY", kv_memory),
              OK)
        << last_error();
    return Compiled(c);
}

Ids
some_ids(size_t n, unsigned seed)
{
    std::mt19937 random(seed);
    Ids ids(n);
    for (auto &id : ids)
        id = (int32_t)(random() % VOCABULARY);
    return ids;
}

int32_t
best(const float *row)
{
    return (int32_t)(std::max_element(row, row + VOCABULARY) - row);
}

/* Returns the token that a separate request gives after some ids. */
int32_t
alone(ov_compiled_model_t *compiled, const Ids &ids)
{
    const Request r = make_request(compiled);
    const int64_t n = (int64_t)ids.size();
    std::vector<int64_t> tokens(ids.begin(), ids.end()), mask(ids.size(), 1), positions;
    for (int64_t i = 0; i < n; i++)
        positions.push_back(i);
    int32_t beam = 0;
    auto feed = [&](const char *name, ov_element_type_e type, std::vector<int64_t> dims,
                    void *data) {
        ov_tensor_t *t = nullptr;
        EXPECT_EQ(ov_tensor_create_from_host_ptr(
                      type, {(int64_t)dims.size(), dims.data()}, data, &t),
                  OK);
        const Tensor tensor(t);
        EXPECT_EQ(ov_infer_request_set_tensor(r.get(), name, t), OK) << last_error();
    };
    feed("input_ids", I64, {1, n}, tokens.data());
    feed("attention_mask", I64, {1, n}, mask.data());
    feed("position_ids", I64, {1, n}, positions.data());
    feed("beam_idx", I32, {1}, &beam);
    EXPECT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    ov_tensor_t *t = nullptr;
    void *data = nullptr;
    EXPECT_EQ(ov_infer_request_get_tensor(r.get(), "logits", &t), OK) << last_error();
    const Tensor logits(t);
    EXPECT_EQ(ov_tensor_data(t, &data), OK);
    return best((const float *)data + (n - 1) * VOCABULARY);
}

Sequence
make_sequence(const ov_compiled_model_t *compiled)
{
    xm_sequence_t *s = nullptr;
    EXPECT_EQ(xm_sequence_create(compiled, &s), OK) << last_error();
    return Sequence(s);
}

Batch
make_batch(const ov_compiled_model_t *compiled)
{
    xm_batch_t *b = nullptr;
    EXPECT_EQ(xm_batch_create(compiled, &b), OK) << last_error();
    return Batch(b);
}

size_t
length(const Sequence &s)
{
    size_t n = SIZE_MAX;
    EXPECT_EQ(xm_sequence_length(s.get(), &n), OK);
    return n;
}

/* A context: its sequence and all its ids. */
struct Context {
    Sequence sequence;
    Ids ids;

    Ids pending() const
    {
        return Ids(ids.begin() + (long)length(sequence), ids.end());
    }
};

/* Runs the ids that the sequences do not hold yet, and appends the likeliest token to each. */
void
advance(xm_batch_t *batch, const std::vector<Context *> &contexts)
{
    std::vector<Ids> pending;
    std::vector<xm_batch_entry_t> entries;
    for (const Context *c : contexts)
        pending.push_back(c->pending());
    for (size_t i = 0; i < contexts.size(); i++)
        entries.push_back(
            {contexts[i]->sequence.get(), pending[i].data(), pending[i].size(), 1});
    ASSERT_EQ(xm_batch_run(batch, entries.data(), entries.size()), OK) << last_error();
    for (size_t i = 0; i < contexts.size(); i++) {
        const float *logits = nullptr;
        size_t rows = 0, vocabulary = 0;
        ASSERT_EQ(xm_batch_logits(batch, i, &logits, &rows, &vocabulary), OK);
        ASSERT_EQ(rows, 1u);
        ASSERT_EQ(vocabulary, (size_t)VOCABULARY);
        EXPECT_EQ(length(contexts[i]->sequence), contexts[i]->ids.size());
        contexts[i]->ids.push_back(best(logits));
    }
}

class Sequences : public testing::Test
{
  protected:
    static void SetUpTestSuite()
    {
        core = new Core(make_core());
        model = new Compiled(compile_model(core->get(), "YES"));
        plain = new Compiled(compile_model(core->get(), "NO"));
    }
    static void TearDownTestSuite()
    {
        delete plain;
        delete model;
        delete core;
    }
    static Context begin(const Ids &ids)
    {
        return {make_sequence(model->get()), ids};
    }
    /* Fails unless the last n ids are those that requests would give one after the other. */
    static void expect_greedy(const Context &c, size_t n)
    {
        for (size_t i = c.ids.size() - n; i < c.ids.size(); i++)
            EXPECT_EQ(c.ids[i],
                      alone(plain->get(), Ids(c.ids.begin(), c.ids.begin() + (long)i)))
                << "token " << i << " of " << c.ids.size();
    }
    static Core *core;
    static Compiled *model, *plain;
};
Core *Sequences::core;
Compiled *Sequences::model, *Sequences::plain;

TEST_F(Sequences, GiveTogetherWhatRequestsGiveOneByOne)
{
    const Batch batch = make_batch(model->get());
    Context a = begin(some_ids(3, 1)), b = begin(some_ids(17, 2)),
            c = begin(some_ids(40, 3)), d = begin(some_ids(8, 4));
    advance(batch.get(), {&a, &b, &c});
    advance(batch.get(), {&a, &b, &c});
    advance(batch.get(), {&c, &d, &a}); /* a prompt beside single tokens; b waits */
    for (int i = 0; i < 3; i++)
        advance(batch.get(), {&d, &b, &c, &a});
    expect_greedy(a, 6);
    expect_greedy(b, 5);
    expect_greedy(c, 6);
    expect_greedy(d, 4);
}

TEST_F(Sequences, ForksGoOnApart)
{
    const Batch batch = make_batch(model->get());
    Context a = begin(some_ids(13, 5));
    advance(batch.get(), {&a});
    xm_sequence_t *fork = nullptr;
    ASSERT_EQ(xm_sequence_fork(a.sequence.get(), &fork), OK) << last_error();
    Context b = {Sequence(fork), a.ids};
    EXPECT_EQ(length(b.sequence), 13u);
    b.ids.back() = 7;
    advance(batch.get(), {&a, &b});
    a.sequence.reset(); /* the shared pages belong to the other now */
    advance(batch.get(), {&b});
    expect_greedy(a, 1);
    expect_greedy(b, 2);
}

TEST_F(Sequences, TruncatedOnesGoOn)
{
    const Batch batch = make_batch(model->get());
    Context a = begin(some_ids(30, 6));
    advance(batch.get(), {&a});
    size_t kept = 0;
    EXPECT_EQ(xm_sequence_truncate(a.sequence.get(), 100, &kept), OK);
    EXPECT_EQ(kept, 30u);
    EXPECT_EQ(xm_sequence_truncate(a.sequence.get(), 11, &kept), OK);
    EXPECT_EQ(kept, 11u);
    a.ids.resize(11);
    const Ids other = some_ids(20, 7);
    a.ids.insert(a.ids.end(), other.begin(), other.end());
    advance(batch.get(), {&a});
    expect_greedy(a, 1);
    EXPECT_EQ(xm_sequence_truncate(a.sequence.get(), 0, nullptr), OK);
    EXPECT_EQ(length(a.sequence), 0u);
}

TEST_F(Sequences, TakeOverTheBeginningsOfOthers)
{
    const Batch batch = make_batch(model->get());
    Context a = begin(some_ids(30, 8));
    Context b = begin(a.ids), c = begin(some_ids(30, 9));
    b.ids[20] = b.ids[20] ? 0 : 1;
    advance(batch.get(), {&a});
    size_t found = 0;
    ASSERT_EQ(xm_sequence_match(b.sequence.get(), b.ids.data(), b.ids.size(), &found),
              OK);
    EXPECT_EQ(found, 2u * PAGE_TOKENS) << "whole pages before the token that differs";
    ASSERT_EQ(xm_sequence_match(c.sequence.get(), c.ids.data(), c.ids.size(), &found),
              OK);
    EXPECT_EQ(found, 0u);
    advance(batch.get(), {&c, &b, &a});
    expect_greedy(a, 2);
    expect_greedy(b, 1);
    expect_greedy(c, 1);
    a.sequence.reset(); /* its pages can still be found */
    Context d = begin(Ids(a.ids.begin(), a.ids.begin() + 24));
    ASSERT_EQ(xm_sequence_match(d.sequence.get(), d.ids.data(), d.ids.size(), &found),
              OK);
    EXPECT_EQ(found, 2u * PAGE_TOKENS) << "one token at least is left to run";
    advance(batch.get(), {&d});
    expect_greedy(d, 1);
}

TEST_F(Sequences, RunInTwoThreads)
{
    std::vector<std::vector<Context>> contexts(2);
    for (unsigned i = 0; i < 6; i++)
        contexts[i % 2].push_back(begin(some_ids(5 + 7 * i, 20 + i)));
    std::vector<std::thread> threads;
    for (auto &list : contexts)
        threads.emplace_back([&list] {
            const Batch batch = make_batch(model->get());
            std::vector<Context *> all;
            for (Context &c : list)
                all.push_back(&c);
            for (int i = 0; i < 4; i++)
                advance(batch.get(), all);
        });
    for (auto &t : threads)
        t.join();
    for (const auto &list : contexts)
        for (const Context &c : list)
            expect_greedy(c, 4);
}

TEST_F(Sequences, AreCancelledFromAnotherThread)
{
    const Batch batch = make_batch(model->get());
    Context a = begin(some_ids(5, 30)), b = begin(some_ids(2000, 31));
    advance(batch.get(), {&a});
    const Ids pending = a.pending();
    const xm_batch_entry_t entries[] = {
        {a.sequence.get(), pending.data(), pending.size(), 1},
        {b.sequence.get(), b.ids.data(), b.ids.size(), 1}};
    EXPECT_EQ(xm_batch_cancel(batch.get()), OK) << "nothing runs";
    std::atomic<bool> done{false};
    std::thread other([&] {
        while (!done) {
            EXPECT_EQ(xm_batch_cancel(batch.get()), OK);
            std::this_thread::yield();
        }
    });
    EXPECT_EQ(xm_batch_run(batch.get(), entries, 2), INFER_CANCELLED);
    done = true;
    other.join();
    EXPECT_NE(last_error().find("cancelled"), std::string::npos) << last_error();
    EXPECT_EQ(length(a.sequence), 5u);
    EXPECT_EQ(length(b.sequence), 0u);
    const float *logits = nullptr;
    size_t rows = 1, vocabulary = 0;
    EXPECT_EQ(xm_batch_logits(batch.get(), 0, &logits, &rows, &vocabulary),
              OUT_OF_BOUNDS);
    EXPECT_EQ(rows, 1u) << "left as it was";
    b.ids.resize(20);
    advance(batch.get(), {&a, &b});
    expect_greedy(a, 2);
    expect_greedy(b, 1);
}

/* A context that exceeds the limit keeps its positions; another's end makes room. */
TEST_F(Sequences, ShareTheMemoryThereIs)
{
    const Compiled small = compile_model(core->get(), "YES", "1");
    const Batch batch = make_batch(small.get());
    Sequence first = make_sequence(small.get()), second = make_sequence(small.get());
    const Ids ids = some_ids(64, 40);
    const xm_batch_entry_t fill = {first.get(), ids.data(), ids.size(), 0},
                           next = {second.get(), ids.data(), ids.size(), 1};
    ov_status_e s = OK;
    for (int i = 0; s == OK && i < 1000; i++) {
        const size_t before = length(first);
        s = xm_batch_run(batch.get(), &fill, 1);
        EXPECT_EQ(length(first), s == OK ? before + ids.size() : before);
    }
    EXPECT_EQ(s, GENERAL_ERROR);
    EXPECT_NE(last_error().find("the KV cache is full"), std::string::npos)
        << last_error();
    EXPECT_GT(length(first), 0u);
    EXPECT_EQ(xm_batch_run(batch.get(), &next, 1), GENERAL_ERROR);
    EXPECT_EQ(length(second), 0u);
    first.reset();
    EXPECT_EQ(xm_batch_run(batch.get(), &next, 1), OK) << last_error();
    EXPECT_EQ(length(second), ids.size());
}

TEST_F(Sequences, EndInAnyOrder)
{
    Core own = make_core();
    Compiled compiled = compile_model(own.get(), "YES");
    Batch batch = make_batch(compiled.get());
    Context a = {make_sequence(compiled.get()), some_ids(9, 50)};
    advance(batch.get(), {&a});
    xm_sequence_t *fork = nullptr;
    ASSERT_EQ(xm_sequence_fork(a.sequence.get(), &fork), OK);
    Context b = {Sequence(fork), a.ids};
    compiled.reset();
    own.reset();
    a.sequence.reset();
    advance(batch.get(), {&b});
    expect_greedy(b, 2);
    batch.reset();
    EXPECT_EQ(length(b.sequence), 10u);
}

/* Runs a batch that is refused with this status and error text. */
void
expect_refused(const Batch &batch, const std::vector<xm_batch_entry_t> &entries,
               ov_status_e status, const std::string &why)
{
    EXPECT_EQ(xm_batch_run(batch.get(), entries.data(), entries.size()), status) << why;
    EXPECT_EQ(last_error(), why);
}

TEST_F(Sequences, RefuseWhatMakesNoSense)
{
    const Compiled other = compile_model(core->get(), "YES");
    const Batch batch = make_batch(model->get());
    const Sequence own = make_sequence(model->get()),
                   foreign = make_sequence(other.get());
    const int32_t ids[] = {5, VOCABULARY, 6};
    expect_refused(batch, {{own.get(), ids, 1, 1}, {foreign.get(), ids, 1, 1}},
                   PARAMETER_MISMATCH, "entry 1: the sequence belongs to another model");
    expect_refused(
        batch, {{own.get(), ids, 1, 2}}, GENERAL_ERROR,
        "sequence 0: the logits of 2 tokens are requested, but only 1 tokens are run");
    expect_refused(batch, {{own.get(), ids, 0, 0}}, GENERAL_ERROR,
                   "there are no tokens to run for sequence 0");
    expect_refused(batch, {{own.get(), ids, 1, 1}, {own.get(), ids, 1, 1}}, GENERAL_ERROR,
                   "entries 0 and 1 name the same sequence");
    const xm_batch_entry_t unknown = {own.get(), ids, 3, 1};
    EXPECT_EQ(xm_batch_run(batch.get(), &unknown, 1), GENERAL_ERROR);
    EXPECT_NE(last_error().find("1536"), std::string::npos) << last_error();
    EXPECT_EQ(length(own), 0u);
    const xm_batch_entry_t right = {own.get(), ids, 1, 0};
    ASSERT_EQ(xm_batch_run(batch.get(), &right, 1), OK) << last_error();
    size_t found = 0;
    EXPECT_EQ(xm_sequence_match(own.get(), ids, 3, &found), PARAMETER_MISMATCH);
    EXPECT_EQ(last_error(), "only an empty sequence can take over cached tokens");
}

/* Models without sequences, and models compiled for something else. */
TEST_F(Sequences, NeedAModelOfTheirKind)
{
    xm_sequence_t *s = nullptr;
    xm_batch_t *b = nullptr;
    const Model sum = read_text(core->get(), add_model(true));
    const Compiled adder = compile(core->get(), sum.get(), "GPU"),
                   reference = compile(core->get(), sum.get());
    EXPECT_EQ(xm_sequence_create(adder.get(), &s), NOT_IMPLEMENTED);
    EXPECT_EQ(last_error(), "the model has no KV cache that sequences could hold");
    EXPECT_EQ(xm_batch_create(adder.get(), &b), NOT_IMPLEMENTED);
    EXPECT_NE(last_error().find("no states"), std::string::npos) << last_error();
    EXPECT_EQ(xm_sequence_create(reference.get(), &s), NOT_IMPLEMENTED);
    EXPECT_EQ(last_error(), "this device does not support sequences");
    EXPECT_EQ(xm_batch_create(reference.get(), &b), NOT_IMPLEMENTED);
    EXPECT_EQ(xm_batch_create(plain->get(), &b), NOT_IMPLEMENTED);
    EXPECT_NE(last_error().find("XM_SEQUENCES"), std::string::npos) << last_error();
    EXPECT_EQ(s, nullptr);
    EXPECT_EQ(b, nullptr);
}

TEST_F(Sequences, TakeNoNull)
{
    const Batch batch = make_batch(model->get());
    const Sequence own = make_sequence(model->get());
    const int32_t id = 5;
    const float *logits = nullptr;
    size_t n = 0, m = 0;
    xm_sequence_t *s = nullptr;
    xm_batch_t *b = nullptr;
    EXPECT_EQ(xm_sequence_create(nullptr, &s), INVALID_C_PARAM);
    EXPECT_EQ(xm_sequence_create(model->get(), nullptr), INVALID_C_PARAM);
    EXPECT_EQ(xm_sequence_fork(nullptr, &s), INVALID_C_PARAM);
    EXPECT_EQ(xm_sequence_fork(own.get(), nullptr), INVALID_C_PARAM);
    EXPECT_EQ(xm_sequence_length(nullptr, &n), INVALID_C_PARAM);
    EXPECT_EQ(xm_sequence_length(own.get(), nullptr), INVALID_C_PARAM);
    EXPECT_EQ(xm_sequence_truncate(nullptr, 0, &n), INVALID_C_PARAM);
    EXPECT_EQ(xm_sequence_match(nullptr, &id, 1, &n), INVALID_C_PARAM);
    EXPECT_EQ(xm_sequence_match(own.get(), nullptr, 1, &n), INVALID_C_PARAM);
    EXPECT_EQ(xm_sequence_match(own.get(), nullptr, 0, &n), OK) << "no tokens";
    EXPECT_EQ(xm_sequence_match(own.get(), &id, 1, nullptr), INVALID_C_PARAM);
    EXPECT_EQ(xm_batch_create(nullptr, &b), INVALID_C_PARAM);
    EXPECT_EQ(xm_batch_create(model->get(), nullptr), INVALID_C_PARAM);
    EXPECT_EQ(xm_batch_logits(nullptr, 0, &logits, &n, &m), INVALID_C_PARAM);
    EXPECT_EQ(xm_batch_logits(batch.get(), 0, nullptr, &n, &m), INVALID_C_PARAM);
    EXPECT_EQ(xm_batch_logits(batch.get(), 0, &logits, &n, &m), OUT_OF_BOUNDS)
        << "no measured run has ended yet";
    EXPECT_EQ(xm_batch_cancel(nullptr), INVALID_C_PARAM);
    const xm_batch_entry_t nobody = {nullptr, &id, 1, 1},
                           nothing = {own.get(), nullptr, 1, 1},
                           right = {own.get(), &id, 1, 1};
    EXPECT_EQ(xm_batch_run(batch.get(), &nobody, 1), INVALID_C_PARAM);
    EXPECT_EQ(xm_batch_run(batch.get(), &nothing, 1), INVALID_C_PARAM);
    EXPECT_EQ(xm_batch_run(batch.get(), nullptr, 1), INVALID_C_PARAM);
    EXPECT_EQ(xm_batch_run(batch.get(), &right, 0), INVALID_C_PARAM);
    EXPECT_EQ(length(own), 0u);
    ASSERT_EQ(xm_batch_run(batch.get(), &right, 1), OK) << last_error();
    EXPECT_EQ(xm_batch_logits(batch.get(), 0, &logits, &n, &m), OK);
    EXPECT_NE(logits, nullptr);
    for (const size_t i : {(size_t)1, (size_t)UINT32_MAX + 1, SIZE_MAX}) {
        const float *const before = logits;
        EXPECT_EQ(xm_batch_logits(batch.get(), i, &logits, &n, &m), OUT_OF_BOUNDS);
        EXPECT_EQ(logits, before);
        EXPECT_EQ(last_error(), "there are no logits of entry " + std::to_string(i) +
                                    ": the batch's last run has 1 entries");
    }
    EXPECT_EQ(xm_batch_run(nullptr, &right, 1), INVALID_C_PARAM);
    xm_sequence_free(nullptr);
    xm_batch_free(nullptr);
}

} // namespace
