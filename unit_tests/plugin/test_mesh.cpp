// SPDX-License-Identifier: Apache-2.0
// Meshes: a model on several ranks compared with one, ranks that fail.
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "plugin/mesh/mesh.h"
#include "plugin/plugin.h"
#include "runtime/fake/fake_ranks.h"
#include "unit_tests/graph/graph_text.h"

namespace
{

// ---- a plugin whose ranks fail on demand ------------------------------------------------------

// The reference plugin with faults. Run number `fails_at`, counted over all requests, fails; 0: no
// run fails. `spoils`: COLUMNS replaces its part of the last weight by rank 0's part; ROWS replaces
// its part of the last weight that is split by rows.
struct Broken {
    xm_plugin base;
    xm_plugin *inner;
};
std::atomic<int> fails_at, runs;
const char *chunks[2]; // XM_UBATCH of BROKEN.0 and BROKEN.1; nullptr: no such property
std::map<xm_compiled *, uint32_t> device_of;
enum { NOTHING, COLUMNS, ROWS } spoils;
const xm_compile_options *split_options;

xm_status
spoil(void *, xm_graph **g, xm_error *err)
{
    const xm_status s = split_options->replace(split_options->replace_ctx, g, err);
    xm_node *last = nullptr;
    for (xm_node *n = s == XM_OK ? (*g)->first : nullptr; n; n = n->next)
        last = n->op == XM_OP_WEIGHT &&
                       (spoils == COLUMNS || n->attr.weight.view.first_row > 0)
                   ? n
                   : last;
    if (last)
        last->attr.weight.view.first_col = last->attr.weight.view.first_row = 0;
    return s;
}

xm_infer_ops broken_infer_ops;
xm_status (*inner_infer)(xm_infer *r, xm_error *err);
xm_compiled_ops broken_compiled_ops;
xm_status (*inner_create)(xm_compiled *c, xm_infer **out, xm_error *err);

xm_status
broken_infer(xm_infer *r, xm_error *err)
{
    if (++runs == fails_at)
        return xm_fail(err, XM_LOST, "the device is lost");
    return inner_infer(r, err);
}

xm_status
broken_create(xm_compiled *c, xm_infer **out, xm_error *err)
{
    const xm_status s = inner_create(c, out, err);
    if (s != XM_OK)
        return s;
    broken_infer_ops = *(*out)->ops;
    inner_infer = broken_infer_ops.infer;
    broken_infer_ops.infer = broken_infer;
    (*out)->ops = &broken_infer_ops;
    return s;
}

xm_status
broken_compile(xm_plugin *p, uint32_t index, xm_graph *g, const xm_property *properties,
               uint32_t n_properties, const xm_compile_options *options,
               xm_compiled **out, xm_error *err)
{
    xm_plugin *inner = reinterpret_cast<Broken *>(p)->inner;
    xm_compile_options own = options ? *options : xm_compile_options{};
    split_options = options;
    if (spoils)
        own.replace = spoil;
    const xm_status s =
        inner->ops->compile(inner, index, g, properties, n_properties, &own, out, err);
    if (s != XM_OK)
        return s;
    broken_compiled_ops = *(*out)->ops;
    inner_create = broken_compiled_ops.create_request;
    broken_compiled_ops.create_request = broken_create;
    broken_compiled_ops.has_room = [](xm_compiled *, const uint64_t *positions,
                                      size_t n) { return n == 1 && positions[0] <= 9; };
    device_of[*out] = index;
    broken_compiled_ops.get_property = [](xm_compiled *c, const char *key, xm_strbuf *out,
                                          xm_error *err) {
        const char *chunk =
            strcmp(key, "XM_UBATCH") == 0 ? chunks[device_of[c]] : nullptr;
        xm_strbuf_printf(out, "%s", chunk ? chunk : "");
        return chunk ? XM_OK : xm_fail(err, XM_NOT_FOUND, "no property %s", key);
    };
    broken_compiled_ops.stats = [](xm_compiled *, xm_compiled_stats *s) {
        *s = {};
        s->builds = {5, 3, 2, 100, 0.5};
    };
    (*out)->ops = &broken_compiled_ops;
    return s;
}

uint32_t
broken_count(xm_plugin *)
{
    return 2;
}

void
broken_destroy(xm_plugin *p)
{
    auto *b = reinterpret_cast<Broken *>(p);
    b->inner->ops->destroy(b->inner);
    delete b;
}

xm_plugin_ops broken_ops;

xm_plugin *
new_broken()
{
    auto *b = new Broken{};
    EXPECT_EQ(xm_reference_plugin_create(&b->inner, nullptr), XM_OK);
    broken_ops = *b->inner->ops;
    broken_ops.name = "BROKEN";
    broken_ops.count = broken_count;
    broken_ops.compile = broken_compile;
    broken_ops.destroy = broken_destroy;
    b->base.ops = &broken_ops;
    return &b->base;
}

// ---- a model ---------------------------------------------------------------------------------

const char *const feed_forward = R"(
    %0 = parameter f32[tokens,32] name="x"
    %1 = weight f32[48,32] f32 @1
    %2 = weight f32[32,48] f32 @2
    %3 = matmul %0, %1 transpose_b=true
    %4 = swish %3
    %5 = matmul %4, %2 transpose_b=true
    %6 = add %5, %0
    result %6 name="y")";

const xm_property tensor = {"MODEL_DISTRIBUTION_POLICY", "TENSOR_PARALLEL"};

// Runs two tokens. Returns the result; empty after a failure, with *err set.
std::vector<float>
infer(xm_infer *r, xm_error *err)
{
    std::vector<float> x(64);
    for (size_t i = 0; i < x.size(); i++)
        x[i] = (float)(i % 7) / 7.0f - 0.4f;
    xm_host_tensor in = {}, out = {};
    in.element = XM_F32;
    in.rank = 2;
    in.dim[0] = 2;
    in.dim[1] = 32;
    in.data = x.data();
    in.bytes = x.size() * sizeof(float);
    *err = {};
    if (r->ops->set_input(r, 0, &in, err) != XM_OK || r->ops->infer(r, err) != XM_OK)
        return {};
    EXPECT_EQ(r->ops->output(r, 0, &out, err), XM_OK) << err->text;
    const auto *y = static_cast<const float *>(out.data);
    return std::vector<float>(y, y + out.bytes / sizeof(float));
}

class Mesh : public testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(xm_core_create(&core, &err), XM_OK) << err.text;
        ASSERT_EQ(xm_core_register(core, new_broken(), &err), XM_OK);
        fails_at = runs = 0;
    }
    void TearDown() override
    {
        xm_core_destroy(core);
    }

    xm_status compile(const char *device, xm_compiled **out,
                      const xm_property &property = tensor)
    {
        err = {};
        return xm_core_compile(core, parse(feed_forward).release(), device, &property, 1,
                               &options, out, &err);
    }

    std::vector<float> run(xm_infer *r)
    {
        return infer(r, &err);
    }

    std::vector<float> run_on(const char *device, const xm_property &property = tensor)
    {
        xm_compiled *c = nullptr;
        xm_infer *r = nullptr;
        EXPECT_EQ(compile(device, &c, property), XM_OK) << err.text;
        EXPECT_EQ(xm_compiled_create_request(c, &r, &err), XM_OK);
        const std::vector<float> y = run(r);
        EXPECT_FALSE(y.empty()) << err.text;
        xm_infer_destroy(r);
        xm_compiled_unref(c);
        return y;
    }

    xm_core *core = nullptr;
    xm_compile_options options = {};
    xm_error err = {};
};

// The fake network between the ranks (runtime/fake/fake_ranks.h).
xm_fake_network network;

xm_rank_group *
connect_by_network(uint32_t n)
{
    return xm_fake_group_create(n, &network);
}

TEST_F(Mesh, GivesWhatOneDeviceGives)
{
    const std::vector<float> one = run_on("REFERENCE");
    for (const char *device :
         {"REFERENCE,REFERENCE", "MESH:REFERENCE,BROKEN(3,1)",
          "MESH:REFERENCE,REFERENCE,REFERENCE", "MESH:BROKEN,REFERENCE(0.1,9)"}) {
        const std::vector<float> y = run_on(device);
        ASSERT_EQ(y.size(), one.size()) << device;
        for (size_t i = 0; i < y.size(); i++)
            EXPECT_NEAR(y[i], one[i], 1e-5 * (1 + std::abs(one[i]))) << device;
    }
    for (const char *device : {"REFERENCE,BROKEN", "MESH:REFERENCE,REFERENCE(1,3)"})
        EXPECT_EQ(run_on(device, {"MODEL_DISTRIBUTION_POLICY", "PIPELINE_PARALLEL"}), one)
            << "by layer, each sum is made by one rank";
    EXPECT_EQ(run_on("REFERENCE,REFERENCE", {"MODEL_DISTRIBUTION_POLICY", ""}), one)
        << "nothing of it is worth a message";
}

// Every run gives equal bits, because sums are added in the order of ranks.
TEST_F(Mesh, GivesTheSameBitsEachTime)
{
    xm_compiled *c = nullptr;
    xm_infer *r = nullptr;
    ASSERT_EQ(compile("REFERENCE,REFERENCE,REFERENCE", &c), XM_OK) << err.text;
    ASSERT_EQ(xm_compiled_create_request(c, &r, &err), XM_OK);
    const std::vector<float> first = run(r);
    for (int i = 0; i < 50; i++)
        EXPECT_EQ(run(r), first);
    xm_infer_destroy(r);
    xm_compiled_unref(c);
}

// Order and delay of messages must not matter. With pipeline parallelism the ranks pass values
// on.
TEST_F(Mesh, GivesTheSameBitsOverANetworkThatReorders)
{
    for (const xm_property &property :
         {tensor, xm_property{"MODEL_DISTRIBUTION_POLICY", "PIPELINE_PARALLEL"}}) {
        const char *device = strcmp(property.value, tensor.value) == 0
                                 ? "REFERENCE,REFERENCE,REFERENCE"
                                 : "REFERENCE,REFERENCE";
        options.connect = nullptr;
        const std::vector<float> wanted = run_on(device, property);
        options.connect = connect_by_network;
        for (uint64_t seed = 0; seed < 10; seed++) {
            network = {seed, 1e-3, 0, 20.0};
            EXPECT_EQ(run_on(device, property), wanted) << property.value << " " << seed;
        }
    }
}

// All ranks end in time, with the error of the rank that waited for the message. The mesh stays
// usable.
TEST_F(Mesh, AMessageThatIsLostEndsTheRun)
{
    int lost = 0;
    options.connect = connect_by_network;
    network = {3, 1e-5, 12, 0.1};
    for (const auto &[device, policy] :
         {std::pair("REFERENCE,REFERENCE,REFERENCE", "TENSOR_PARALLEL"),
          std::pair("REFERENCE,REFERENCE", "PIPELINE_PARALLEL")}) {
        xm_compiled *c = nullptr;
        xm_infer *r = nullptr;
        std::vector<float> good;
        ASSERT_EQ(compile(device, &c, {"MODEL_DISTRIBUTION_POLICY", policy}), XM_OK);
        ASSERT_EQ(xm_compiled_create_request(c, &r, &err), XM_OK);
        for (int turn = 0; turn < 30; turn++) {
            const auto began = std::chrono::steady_clock::now();
            const std::vector<float> y = run(r);
            const std::chrono::duration<double> took =
                std::chrono::steady_clock::now() - began;
            EXPECT_LT(took.count(), 5.0);
            if (y.empty()) {
                lost++;
                EXPECT_EQ(err.status, XM_LOST);
                EXPECT_EQ(std::string(err.text).find("rank "), 0u) << err.text;
                EXPECT_NE(
                    std::string(err.text).find("has not come for 0.1 s: it is lost"),
                    std::string::npos)
                    << err.text;
                continue;
            }
            EXPECT_TRUE(good.empty() || y == good);
            good = y;
        }
        EXPECT_FALSE(good.empty()) << "no run came through";
        xm_infer_destroy(r);
        xm_compiled_unref(c);
    }
    EXPECT_GT(lost, 0) << "the test loses none";
}

TEST_F(Mesh, RequestsOfSeveralThreadsDoNotMeet)
{
    xm_compiled *c = nullptr;
    ASSERT_EQ(compile("REFERENCE,REFERENCE", &c), XM_OK) << err.text;
    const std::vector<float> one = run_on("REFERENCE,REFERENCE");
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&] {
            xm_infer *r = nullptr;
            xm_error why = {};
            if (xm_compiled_create_request(c, &r, &why) != XM_OK)
                return void(wrong++);
            for (int i = 0; i < 20; i++)
                wrong += infer(r, &why) != one;
            xm_infer_destroy(r);
        });
    for (std::thread &t : threads)
        t.join();
    EXPECT_EQ(wrong, 0);
    xm_compiled_unref(c);
}

// One of three ranks has a cache with limited room; the others do not tell their room.
TEST_F(Mesh, HasRoomWhereItsRanksHave)
{
    const uint64_t few = 9, many = 10;
    xm_compiled *c = nullptr;
    ASSERT_EQ(compile("REFERENCE,BROKEN,REFERENCE", &c), XM_OK) << err.text;
    EXPECT_TRUE(c->ops->has_room(c, &few, 1));
    EXPECT_FALSE(c->ops->has_room(c, &many, 1));
    xm_compiled_unref(c);
}

// Ranks on one device share its engine. Engines build at the same time.
TEST_F(Mesh, CountsTheBuildsOfEachDeviceOnce)
{
    for (const auto &[devices, engines] : {std::pair("BROKEN.0,BROKEN.1", 2u),
                                           {"BROKEN.0,BROKEN.1,BROKEN.0", 2u},
                                           {"BROKEN.1,BROKEN.1", 1u},
                                           {"REFERENCE,BROKEN.0", 1u}}) {
        xm_compiled *c = nullptr;
        xm_compiled_stats s = {};
        ASSERT_EQ(compile(devices, &c), XM_OK) << err.text;
        c->ops->stats(c, &s);
        EXPECT_EQ(s.builds.built, 5 * engines) << devices;
        EXPECT_EQ(s.builds.loaded, 3 * engines) << devices;
        EXPECT_EQ(s.builds.launches, 2 * engines) << devices;
        EXPECT_EQ(s.builds.cache_bytes, 100 * engines) << devices;
        EXPECT_EQ(s.builds.seconds, 0.5) << devices;
        xm_compiled_unref(c);
    }
}

// A chunk is one exchange of all ranks.
TEST_F(Mesh, RanksThatCutPromptsDifferentlyAreASentence)
{
    const char *both = "BROKEN.0,BROKEN.1";
    xm_compiled *c = nullptr;
    chunks[0] = "1024";
    chunks[1] = "512";
    EXPECT_EQ(compile(both, &c), XM_UNSUPPORTED);
    EXPECT_STREQ(err.text, "device BROKEN.0 runs at most 1024 tokens of a prompt at "
                           "once, device BROKEN.1 at "
                           "most 512: set XM_UBATCH (--ubatch) to the smaller number");
    for (const char *other : {"1024", (const char *)nullptr}) {
        chunks[1] = other;
        EXPECT_EQ(compile(both, &c), XM_OK) << err.text;
        xm_compiled_unref(c);
    }
    chunks[0] = nullptr;
}

// A rank that fails before it sends, and a rank that fails before it receives.
TEST_F(Mesh, ARankThatFailsEndsTheRunByLayer)
{
    for (const auto &[devices, why] :
         {std::pair("BROKEN,REFERENCE", "rank 0: the device is lost"),
          std::pair("REFERENCE,BROKEN", "rank 1: the device is lost")}) {
        xm_compiled *c = nullptr;
        xm_infer *r = nullptr;
        ASSERT_EQ(
            compile(devices, &c, {"MODEL_DISTRIBUTION_POLICY", "PIPELINE_PARALLEL"}),
            XM_OK)
            << err.text;
        ASSERT_EQ(xm_compiled_create_request(c, &r, &err), XM_OK);
        const std::vector<float> good = run(r);
        for (int turn = 0; turn < 20; turn++) {
            fails_at = runs + 1;
            EXPECT_TRUE(run(r).empty());
            EXPECT_STREQ(err.text, why);
            EXPECT_EQ(run(r), good);
        }
        xm_infer_destroy(r);
        xm_compiled_unref(c);
    }
}

// ---- messages --------------------------------------------------------------------------------

struct Group {
    explicit Group(uint32_t ranks, bool by_network = false)
        : g(by_network ? connect_by_network(ranks) : xm_shared_group_create(ranks))
    {
    }
    ~Group()
    {
        xm_rank_group_free(g);
    }
    xm_collective *operator[](uint32_t rank) const
    {
        return xm_rank_group_rank(g, rank);
    }
    xm_rank_group *g;
};

xm_status
send(xm_collective *c, uint32_t to, int n, xm_error *err)
{
    return xm_collective_send(c, to, {reinterpret_cast<const uint8_t *>(&n), sizeof(n)},
                              err);
}

class Messages : public testing::TestWithParam<bool>
{
  protected:
    void SetUp() override
    {
        network = {1, 1e-4, 0, 20.0};
    }
};
INSTANTIATE_TEST_SUITE_P(Groups, Messages, testing::Values(false, true),
                         [](const auto &i) { return i.param ? "Fake" : "Shared"; });

// Sends more messages than may be unread, so that the sender must wait. Messages between a pair
// of ranks keep their order.
TEST_P(Messages, ArriveInTheOrderOfTheirPair)
{
    enum { N = 50 * XM_UNREAD_MESSAGES };
    const Group group(3, GetParam());
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (uint32_t from : {0u, 1u})
        threads.emplace_back([&, from] {
            for (int i = 0; i < N; i++)
                wrong += send(group[from], 2, 1000 * (int)from + i, nullptr) != XM_OK;
        });
    for (int i = 0; i < N; i++) {
        for (uint32_t from : {1u, 0u}) {
            int n = -1;
            ASSERT_EQ(
                xm_collective_receive(group[2], from, (uint8_t *)&n, sizeof(n), nullptr),
                XM_OK);
            EXPECT_EQ(n, 1000 * (int)from + i);
        }
    }
    for (std::thread &t : threads)
        t.join();
    EXPECT_EQ(wrong, 0);
}

TEST_P(Messages, OfAnotherSizeOrNobodyAreSentences)
{
    const Group group(2, GetParam());
    xm_error err = {};
    uint8_t small[2] = {};
    ASSERT_EQ(send(group[0], 1, 7, &err), XM_OK);
    EXPECT_EQ(xm_collective_receive(group[1], 0, small, sizeof(small), &err), XM_INVALID);
    EXPECT_STREQ(err.text, "rank 0 sends 4 bytes, rank 1 expects 2");
    for (uint32_t peer : {0u, 2u}) {
        err = {};
        EXPECT_EQ(send(group[0], peer, 7, &err), XM_INVALID);
        EXPECT_NE(std::string(err.text).find("cannot exchange values with rank"),
                  std::string::npos);
    }
    EXPECT_EQ(xm_collective_receive(group[1], 0, small, 0, &err), XM_OK) << "no message";
    const xm_collective_ops without = {};
    xm_collective alone = {&without, 0, 2};
    err = {};
    EXPECT_EQ(send(&alone, 1, 7, &err), XM_UNSUPPORTED);
    EXPECT_STREQ(err.text, "these ranks cannot send values to each other");
}

// A message sent before its rank left is still received. Then receivers, and senders that wait
// for room, get the rank's error.
TEST_P(Messages, ARankThatLeavesEndsWaiting)
{
    const Group group(3, GetParam());
    xm_error err = {}, why = {};
    int n = 0;
    xm_fail(&why, XM_LOST, "gone");
    ASSERT_EQ(send(group[0], 1, 7, &err), XM_OK);
    std::thread receiver([&] {
        int got = 0;
        xm_error own = {};
        EXPECT_EQ(xm_collective_receive(group[1], 0, (uint8_t *)&got, 4, &own), XM_OK);
        EXPECT_EQ(xm_collective_receive(group[1], 0, (uint8_t *)&got, 4, &own), XM_LOST);
        EXPECT_STREQ(own.text, "rank 0: gone");
    });
    std::thread sender([&] {
        xm_error own = {};
        xm_status s = XM_OK;
        while (s == XM_OK)
            s = send(group[2], 1, 1, &own);
        EXPECT_EQ(s, XM_LOST);
        EXPECT_STREQ(own.text, "rank 0: gone");
    });
    group[0]->ops->leave(group[0], &why);
    receiver.join();
    sender.join();
    xm_rank_group_reset(group.g, &why);
    ASSERT_EQ(send(group[2], 1, 8, &err), XM_OK);
    ASSERT_EQ(xm_collective_receive(group[1], 2, (uint8_t *)&n, 4, &err), XM_OK);
    EXPECT_EQ(n, 8) << "what was unread is gone";
}

// The other ranks do not wait for the failed one, and the next run works.
TEST_F(Mesh, ARankThatFailsEndsTheRun)
{
    xm_compiled *c = nullptr;
    xm_infer *r = nullptr;
    ASSERT_EQ(compile("REFERENCE,BROKEN,REFERENCE", &c), XM_OK) << err.text;
    ASSERT_EQ(xm_compiled_create_request(c, &r, &err), XM_OK);
    const std::vector<float> good = run(r);
    for (int turn = 0; turn < 20; turn++) {
        fails_at = runs + 1;
        EXPECT_TRUE(run(r).empty());
        EXPECT_EQ(err.status, XM_LOST);
        EXPECT_STREQ(err.text, "rank 1: the device is lost");
        EXPECT_EQ(run(r), good);
    }
    xm_infer_destroy(r);
    xm_compiled_unref(c);
}

// Returns a graph of two feed-forwards, each of which ends in a sum over the ranks.
std::string
two_feed_forwards()
{
    return std::string(feed_forward).substr(0, strlen(feed_forward) - strlen(R"(
    result %6 name="y")")) +
           R"(
    %7 = weight f32[48,32] f32 @3
    %8 = weight f32[32,48] f32 @4
    %9 = matmul %6, %7 transpose_b=true
    %10 = swish %9
    %11 = matmul %10, %8 transpose_b=true
    %12 = add %11, %6
    result %12 name="y")";
}

// The check joins the ranks' parts and sums of inner values. Rank 1 has wrong rows of the second
// feed-forward's first weight. So the second matmul is the first wrong value, although ranks do not
// exchange it. By layer no value is split, and none is wrong.
TEST_F(Mesh, AWrongPartIsFoundAtTheStepThatReadsIt)
{
    const xm_property layer = {"MODEL_DISTRIBUTION_POLICY", "PIPELINE_PARALLEL"};
    options.keep_graph = options.shows_inner = true;
    for (bool by_layer : {false, true})
        for (bool is_wrong : {false, true}) {
            xm_compiled *c = nullptr;
            xm_infer *r = nullptr;
            spoils = is_wrong && !by_layer ? ROWS : NOTHING;
            const xm_status s = xm_core_compile(
                core, parse(two_feed_forwards().c_str()).release(), "REFERENCE,BROKEN",
                by_layer ? &layer : &tensor, 1, &options, &c, &err);
            spoils = NOTHING;
            ASSERT_EQ(s, XM_OK) << err.text;
            ASSERT_EQ(xm_compiled_create_request(c, &r, &err), XM_OK);
            std::vector<std::string> all, wrong;
            std::pair<std::vector<std::string> *, std::vector<std::string> *> lists = {
                &all, &wrong};
            ASSERT_EQ(r->ops->check(
                          r,
                          [](const xm_step_check *check, void *ctx) {
                              auto *l = static_cast<decltype(lists) *>(ctx);
                              EXPECT_TRUE(check->compared) << check->name;
                              const std::string name = check->name;
                              l->first->push_back(name.substr(0, name.find(' ')));
                              if (xm_step_check_severity(check) > 1.0)
                                  l->second->push_back(l->first->back());
                          },
                          &lists, &err),
                      XM_OK);
            ASSERT_FALSE(run(r).empty()) << err.text;
            EXPECT_EQ(all, (std::vector<std::string>{"matmul", "swish", "linear",
                                                     "matmul", "swish", "y"}))
                << by_layer;
            if (is_wrong && !by_layer) {
                EXPECT_EQ(wrong, (std::vector<std::string>{"matmul", "swish", "y"}));
            } else {
                EXPECT_TRUE(wrong.empty());
            }
            xm_infer_destroy(r);
            xm_compiled_unref(c);
        }
}

// Rank 1 has a wrong part of the last weight: the first sum is right, the second sum, which is the
// result, is wrong.
TEST_F(Mesh, AWrongPartIsFoundAtTheFirstExchangeThatHasIt)
{
    xm_compile_options options = {};
    options.keep_graph = true;
    for (bool is_wrong : {false, true}) {
        xm_compiled *c = nullptr;
        xm_infer *r = nullptr;
        spoils = is_wrong ? COLUMNS : NOTHING;
        const xm_status s =
            xm_core_compile(core, parse(two_feed_forwards().c_str()).release(),
                            "REFERENCE,BROKEN", &tensor, 1, &options, &c, &err);
        spoils = NOTHING;
        ASSERT_EQ(s, XM_OK) << err.text;
        ASSERT_EQ(xm_compiled_create_request(c, &r, &err), XM_OK);
        std::vector<xm_step_check> checks;
        ASSERT_EQ(r->ops->check(
                      r,
                      [](const xm_step_check *check, void *ctx) {
                          static_cast<std::vector<xm_step_check> *>(ctx)->push_back(
                              *check);
                      },
                      &checks, &err),
                  XM_OK);
        ASSERT_FALSE(run(r).empty()) << err.text;
        ASSERT_EQ(checks.size(), 2u) << "a sum, and one that is the result";
        for (size_t i = 0; i < checks.size(); i++) {
            EXPECT_TRUE(checks[i].compared);
            EXPECT_EQ(checks[i].step, i);
            EXPECT_STREQ(checks[i].op, i < 1 ? "exchange" : "result");
            EXPECT_EQ(xm_step_check_severity(&checks[i]) > 1.0, is_wrong && i > 0)
                << i << " " << checks[i].name << ": " << checks[i].error;
        }
        xm_infer_destroy(r);
        xm_compiled_unref(c);
    }
}

// After a failed run, runs with a check fail until a reset, because the ranks and the whole program
// may be at different positions.
TEST_F(Mesh, ARunThatFailsLeavesNothingToCompareWith)
{
    xm_compiled *c = nullptr;
    xm_infer *r = nullptr;
    options.keep_graph = true;
    ASSERT_EQ(compile("REFERENCE,BROKEN", &c), XM_OK) << err.text;
    ASSERT_EQ(xm_compiled_create_request(c, &r, &err), XM_OK);
    int checks = 0;
    ASSERT_EQ(r->ops->check(
                  r,
                  [](const xm_step_check *check, void *ctx) {
                      *static_cast<int *>(ctx) += check->compared;
                  },
                  &checks, &err),
              XM_OK);
    ASSERT_FALSE(run(r).empty()) << err.text;
    const int all = checks;
    EXPECT_GT(all, 0);
    fails_at = runs + 1;
    EXPECT_TRUE(run(r).empty());
    EXPECT_STREQ(err.text, "rank 1: the device is lost");
    for (int turn = 0; turn < 2; turn++) {
        EXPECT_TRUE(run(r).empty());
        EXPECT_STREQ(err.text,
                     "nothing to compare with: a run before this one has failed");
    }
    EXPECT_EQ(checks, all);
    r->ops->reset(r);
    EXPECT_FALSE(run(r).empty()) << err.text;
    EXPECT_EQ(checks, 2 * all);
    xm_infer_destroy(r);
    xm_compiled_unref(c);
}

TEST_F(Mesh, WhatCannotBeCompiledIsASentence)
{
    const struct {
        const char *device, *says;
        xm_property property = tensor;
    } cases[] = {
        {"MESH:REFERENCE", "a mesh is of two devices or more, as MESH:GPU.0,GPU.1"},
        {"MESH:", "the list of devices '' has an empty place"},
        {"REFERENCE,", "the list of devices 'REFERENCE,' has an empty place"},
        {"REFERENCE,A_DEVICE_WITH_A_NAME_THAT_IS_LONGER_THAN_ANY_DEVICE_HAS_ON_EARTH_OR_"
         "ON_MARS",
         "is no device: a name has at most"},
        {"REFERENCE,NOWHERE", "rank 1: Device with \"NOWHERE\" name is not registered"},
        {"REFERENCE,REFERENCE(1)",
         "the shares '(1)' are too few or too many: a mesh of 2 devices takes as many "
         "shares, one of them above 0"},
        {"REFERENCE,REFERENCE(0,0)", "'(0,0)' are all 0"},
        {"REFERENCE,REFERENCE(1,-1)", "'(1,-1)' hold a number that is negative"},
        {"REFERENCE,REFERENCE(1,nan)", "'(1,nan)' hold a number that is negative"},
        {"REFERENCE,REFERENCE(1,1e999)", "negative or not finite"},
        {"REFERENCE,REFERENCE(1,x)", "'(1,x)' are no list of numbers"},
        {"REFERENCE,REFERENCE(1,2", "'(1,2' lack the ')' at their end"},
        {"REFERENCE,REFERENCE(1,2,3)", "'(1,2,3)' are too few or too many"},
        {"REFERENCE,REFERENCE(1,2)x", "'(1,2)x' have text behind their ')'"},
        {"REFERENCE,REFERENCE,REFERENCE",
         "it is not split by layer over 3 devices: there are too few places to cut",
         {"MODEL_DISTRIBUTION_POLICY", "PIPELINE_PARALLEL"}},
        {"REFERENCE,REFERENCE",
         "MODEL_DISTRIBUTION_POLICY is TENSOR_PARALLEL, EXPERT_PARALLEL or "
         "PIPELINE_PARALLEL, not 'LAYERS'",
         {"MODEL_DISTRIBUTION_POLICY", "LAYERS"}},
    };
    for (const auto &c : cases) {
        xm_compiled *out = nullptr;
        EXPECT_NE(compile(c.device, &out, c.property), XM_OK) << c.device;
        EXPECT_NE(std::string(err.text).find(c.says), std::string::npos)
            << c.device << ": " << err.text;
        EXPECT_EQ(out, nullptr);
    }
    std::string many = "MESH:REFERENCE";
    for (int i = 0; i < XM_MOST_RANKS; i++)
        many += ",REFERENCE";
    xm_compiled *out = nullptr;
    EXPECT_EQ(compile(many.c_str(), &out), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("names more than 64 devices"), std::string::npos)
        << err.text;
}

// Each allocation of compiling and running a mesh fails once.
TEST_F(Mesh, NoMemoryIsASentenceAndLosesNothing)
{
    for (uint64_t n = 1;; n++) {
        xm_compiled *c = nullptr;
        xm_infer *r = nullptr;
        Graph g = parse(feed_forward);
        err = {};
        xm_fail_allocation(n);
        xm_status s = xm_core_compile(core, g.release(), "REFERENCE,REFERENCE", &tensor,
                                      1, nullptr, &c, &err);
        if (s == XM_OK)
            s = xm_compiled_create_request(c, &r, &err);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (s != XM_OK) {
            EXPECT_EQ(s, XM_NO_MEMORY) << n << ": " << err.text;
            EXPECT_STRNE(err.text, "") << n;
        }
        xm_infer_destroy(r);
        xm_compiled_unref(c);
        if (!seen)
            break;
    }
}

// Rank 2 cannot be truncated to a position above 0.

} // namespace
