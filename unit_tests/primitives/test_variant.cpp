/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that the device's compiler refuses: the next variant is used, and one warning is
 * logged. On the fake engine, for one table, for tables that depend on each other, and for whole
 * primitives.
 */
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "primitives/attention/attention.h"
#include "primitives/linear/linear.h"
#include "primitives/moe/moe.h"
#include "primitives/norm/norm.h"
#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/fake/fake.h"
#include "runtime/util/log.h"

#define ASSERT_XM_OK(expr) ASSERT_EQ(expr, XM_OK) << err.text

namespace
{

const char *
odd_refuses(const void *problem)
{
    return *static_cast<const int *>(problem) % 2 ? "it is odd" : nullptr;
}

const xm_variant rows[] = {
    {"best", XM_FAMILY_ANY, 0, odd_refuses},
    {"good", XM_FAMILY_ANY, 0, nullptr},
    {"last", XM_FAMILY_ANY, 0, nullptr},
};
const xm_variant_table table = {"example", rows, 3};

class Variant : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        info.kind = XM_DEVICE_GPU;
        info.caps = XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE | XM_CAP_SG_SHORT |
                    XM_CAP_SG_CHAR | XM_CAP_FP16;
        info.sub_group_sizes[0] = 16;
        info.max_alloc_bytes = 64 << 20;
        info.base_align = 64;
        info.max_work_group = 256;
        info.local_bytes = 1 << 16;
        info.compute_units = 2;
        snprintf(info.name, sizeof(info.name), "fake chip");
        open();
        xm_log_set_sink(
            [](xm_log_level level, const char *line, void *ctx) {
                if (level == XM_LOG_WARNING)
                    static_cast<std::vector<std::string> *>(ctx)->push_back(line);
            },
            &warnings);
    }
    void TearDown() override
    {
        unsetenv("XM_FORCE");
        xm_log_set_sink(nullptr, nullptr);
        xm_engine_unref(engine);
    }
    void open()
    {
        xm_engine_unref(engine);
        engine = nullptr;
        ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
    }
    void refuse(std::initializer_list<const char *> names)
    {
        for (const char *name : names)
            ASSERT_TRUE(xm_fake_refuse_build(engine, name));
    }
    std::string chosen(const xm_stage &stage, int problem)
    {
        xm_choice choice = {};
        err = {};
        return xm_stage_choose(&stage, &problem, &choice, &err) == XM_OK
                   ? choice.row->name
                   : err.text;
    }
    xm_device_info info = {};
    xm_engine *engine = nullptr;
    xm_error err = {};
    std::vector<std::string> warnings;
};

TEST_F(Variant, ARefusedKernelIsWarnedOfOnceAndNotBuiltAgain)
{
    refuse({"best"});
    xm_kernel *k = nullptr;
    EXPECT_EQ(xm_engine_kernel(engine, "best", "-DA=1", &k, &err), XM_NOT_BUILT);
    EXPECT_STREQ(err.text, "kernel 'best': error: the fake compiler refuses");
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0], "kernel 'best' (-DA=1) does not build on fake chip; the step "
                           "uses its next kernel variant, if it has one:\nwarning: it is "
                           "fake\nerror: the fake compiler refuses");
    uint64_t calls = xm_fake_calls(engine, XM_FAKE_KERNEL);
    err = {};
    EXPECT_EQ(xm_engine_kernel(engine, "best", "-DA=1", &k, &err), XM_NOT_BUILT);
    EXPECT_STREQ(err.text, "kernel 'best': error: the fake compiler refuses");
    EXPECT_EQ(xm_fake_calls(engine, XM_FAKE_KERNEL), calls);
    EXPECT_EQ(warnings.size(), 1u);
    EXPECT_EQ(xm_engine_kernel(engine, "best", "-DA=2", &k, &err), XM_NOT_BUILT);
    EXPECT_EQ(warnings.size(), 2u); /* a warning for another kernel */
}

TEST_F(Variant, AStageTakesTheNextRow)
{
    xm_stage all = {}, best = {}, good = {}, none = {};
    ASSERT_XM_OK(xm_stage_build(&all, engine, &table, "-DN=1", &err));
    EXPECT_EQ(chosen(all, 2), "best");
    EXPECT_EQ(chosen(all, 1), "good");
    open();
    refuse({"best"});
    ASSERT_XM_OK(xm_stage_build(&best, engine, &table, "-DN=1", &err));
    EXPECT_EQ(chosen(best, 2), "good");
    xm_stage again = {};
    ASSERT_XM_OK(xm_stage_build(&again, engine, &table, "-DN=1", &err));
    EXPECT_EQ(chosen(again, 2), "good");
    EXPECT_EQ(warnings.size(), 1u);
    open();
    refuse({"good"});
    ASSERT_XM_OK(xm_stage_build(&good, engine, &table, "-DN=1", &err));
    EXPECT_EQ(chosen(good, 2), "best");
    EXPECT_EQ(chosen(good, 1), "last");
    int odd = 1;
    EXPECT_STREQ(xm_stage_describe(&good, &odd), "last");
    open();
    refuse({"best", "good", "last"});
    EXPECT_EQ(xm_stage_build(&none, engine, &table, "-DN=1", &err), XM_NOT_BUILT);
    EXPECT_STREQ(err.text, "example: no kernel variant builds: kernel 'best': error: the "
                           "fake compiler refuses");
}

TEST_F(Variant, AStageOfOneProblemBuildsOnlyTheRowThatRunsIt)
{
    const int odd = 1, even = 2;
    xm_stage first = {}, second = {}, forced = {};
    const uint64_t calls = xm_fake_calls(engine, XM_FAKE_KERNEL);
    ASSERT_XM_OK(xm_stage_build_for(&first, engine, &table, &odd, "-DN=1", &err));
    EXPECT_STREQ(xm_stage_describe(&first, nullptr), "good");
    EXPECT_EQ(xm_fake_calls(engine, XM_FAKE_KERNEL), calls + 1);
    refuse({"best", "good"});
    ASSERT_XM_OK(xm_stage_build_for(&second, engine, &table, &even, "-DN=2", &err));
    xm_choice choice = {};
    ASSERT_XM_OK(xm_stage_choose(&second, nullptr, &choice, &err));
    EXPECT_STREQ(choice.row->name, "last");
    EXPECT_NE(choice.kernel, nullptr);
    EXPECT_EQ(warnings.size(), 2u);
    setenv("XM_FORCE", "example=best", 1);
    EXPECT_EQ(xm_stage_build_for(&forced, engine, &table, &odd, "", &err),
              XM_UNSUPPORTED);
    EXPECT_STREQ(err.text,
                 "example: XM_FORCE asks for best, which cannot run: it is odd");
}

TEST_F(Variant, AForcedRowThatDoesNotBuildIsAnError)
{
    refuse({"good"});
    setenv("XM_FORCE", "example=good", 1);
    xm_stage stage = {};
    EXPECT_EQ(xm_stage_build(&stage, engine, &table, "", &err), XM_NOT_BUILT);
    EXPECT_STREQ(err.text,
                 "example: XM_FORCE asks for this variant: kernel 'good': error: "
                 "the fake compiler refuses");
    err = {};
    setenv("XM_FORCE", "example=god", 1);
    EXPECT_EQ(xm_stage_build(&stage, engine, &table, "", &err), XM_NOT_FOUND);
    EXPECT_STREQ(
        err.text,
        "XM_FORCE: step example has no variant 'god'; its variants are best good last");
}

/* A number selects among the variants that the step can take, in their order; a number too large
 * selects the last. */
TEST_F(Variant, ForceTakesANumber)
{
    const struct {
        const char *force;
        int problem;
        const char *row;
    } cases[] = {{"1", 2, "best"}, {"2", 2, "good"},    {"3", 2, "last"},
                 {"4", 2, "last"}, {"999", 2, "last"},  {"1", 1, "good"},
                 {"2", 1, "last"}, {"gen,2", 2, "good"}};
    for (const auto &c : cases) {
        xm_stage stage = {};
        setenv("XM_FORCE", c.force, 1);
        ASSERT_XM_OK(xm_stage_build_for(&stage, engine, &table, &c.problem, "", &err));
        EXPECT_STREQ(xm_stage_describe(&stage, nullptr), c.row) << c.force;
    }
    refuse({"good"});
    xm_stage stage = {};
    const int even = 2;
    setenv("XM_FORCE", "2", 1);
    ASSERT_XM_OK(xm_stage_build_for(&stage, engine, &table, &even, "-DN=3", &err));
    EXPECT_STREQ(xm_stage_describe(&stage, nullptr), "last");
    for (const char *wrong : {"0", "01", "-1", "1x", "1000", "=1", "=best", "2,1"}) {
        setenv("XM_FORCE", wrong, 1);
        EXPECT_EQ(xm_variant_check_force(&err), XM_INVALID) << wrong;
    }
}

/* XM_FORCE is read when a stage is built, not during a run. */
TEST_F(Variant, ForceIsReadWhenAStageIsBuilt)
{
    xm_stage stage = {}, forced = {};
    const int even = 0;
    ASSERT_XM_OK(xm_stage_build(&stage, engine, &table, "", &err));
    setenv("XM_FORCE", "example=last", 1);
    EXPECT_STREQ(xm_stage_describe(&stage, &even), "best");
    ASSERT_XM_OK(xm_stage_build(&forced, engine, &table, "", &err));
    for (const char *later : {"example=good", "nonsense"}) {
        setenv("XM_FORCE", later, 1);
        EXPECT_STREQ(xm_stage_describe(&stage, &even), "best");
        EXPECT_STREQ(xm_stage_describe(&forced, &even), "last");
    }
}

TEST_F(Variant, MoreArgumentsThanAKernelTakesAreRefused)
{
    xm_queue *queue = nullptr;
    xm_kernel *k = nullptr;
    ASSERT_XM_OK(xm_queue_create(engine, &queue, &err));
    ASSERT_XM_OK(xm_engine_kernel(engine, "many", "", &k, &err));
    const xm_launch_shape shape = {XM_ALONE};
    xm_counts counts = {};
    counts.n[XM_UNITS] = 1;
    xm_args args = {};
    for (int i = 0; i < XM_KERNEL_ARGS; i++)
        xm_put_uint(&args, "x", 1);
    EXPECT_EQ(xm_launch(&shape, k, &counts, &args, queue, &err), XM_OK) << err.text;
    xm_put_uint(&args, "x", 1);
    EXPECT_EQ(xm_launch(&shape, k, &counts, &args, queue, &err), XM_UNSUPPORTED);
    EXPECT_STREQ(err.text, "kernel 'many': 49 arguments, at most 48");
    xm_queue_destroy(queue);
}

TEST_F(Variant, OtherFailuresAreNoReasonForTheNextRow)
{
    xm_stage stage = {};
    xm_fake_fail(engine, XM_FAKE_KERNEL, 1);
    EXPECT_EQ(xm_stage_build(&stage, engine, &table, "", &err), XM_DEVICE);
    EXPECT_TRUE(warnings.empty());
}

/* Two tables whose kernels depend on each other's variants: the defines of b's kernel contain a's
 * variant. */
struct coupled {
    xm_engine *engine;
    xm_pick picks[2];
    int calls;
};

xm_status
build_coupled(void *ctx, size_t i, xm_error *err)
{
    auto *c = static_cast<coupled *>(ctx);
    xm_kernel *k = nullptr;
    c->calls++;
    std::string defines = "-DOTHER=" + std::to_string(c->picks[1 - i].row);
    return xm_engine_kernel(c->engine, c->picks[i].table->rows[c->picks[i].row].name,
                            defines.c_str(), &k, err);
}

TEST_F(Variant, CoupledTablesAreBuiltAgainTogether)
{
    static const xm_variant others[] = {{"second", XM_FAMILY_ANY, 0, nullptr},
                                        {"second_ref", XM_FAMILY_ANY, 0, nullptr}};
    static const xm_variant_table other = {"other", others, 2};
    int even = 0;
    coupled c = {engine, {{&table, &even, 0, 0, {}}, {&other, nullptr, 0, 0, {}}}, 0};
    refuse({"second"});
    ASSERT_XM_OK(xm_variant_build(c.picks, 2, engine, build_coupled, &c, &err));
    EXPECT_EQ(c.picks[0].row, 0u);
    EXPECT_EQ(c.picks[1].row, 1u);
    EXPECT_EQ(c.calls, 4);
    EXPECT_EQ(xm_engine_kernels_built(engine),
              3u); /* best of table 0, best of table 1, second_ref */
    EXPECT_EQ(warnings.size(), 1u);

    open();
    c = {engine, {{&table, &even, 0, 0, {}}, {&other, nullptr, 0, 0, {}}}, 0};
    refuse({"second_ref", "second"});
    EXPECT_EQ(xm_variant_build(c.picks, 2, engine, build_coupled, &c, &err),
              XM_NOT_BUILT);
    EXPECT_STREQ(err.text, "other: no kernel variant builds: kernel 'second': error: the "
                           "fake compiler refuses");
}

/* On a GPU whose driver has no sub-groups every step has a variant without them. */
TEST_F(Variant, WithoutSubGroupsOtherFamiliesServe)
{
    size_t n = 0;
    const xm_variant_table *tables = xm_variant_tables(&n);
    info.caps = 0;
    memset(info.sub_group_sizes, 0, sizeof(info.sub_group_sizes));
    for (size_t t = 0; t < n; t++) {
        SCOPED_TRACE(tables[t].step);
        /* whether a variant runs on the device and takes any shape */
        bool serves_all = false;
        for (size_t i = 0; i < tables[t].n; i++) {
            xm_variant row = tables[t].rows[i];
            const bool any_shape = !row.refuses;
            row.refuses = nullptr;
            const char *why = xm_variant_refusal(&row, &info, nullptr);
            if (row.family == XM_FAMILY_SG) {
                EXPECT_STREQ(why, "the device has no sub-groups of a required size");
            }
            serves_all = serves_all || (!why && any_shape);
        }
        EXPECT_TRUE(serves_all);
    }
}

TEST_F(Variant, TheRouterFallsBackToo)
{
    xm_router_desc desc = {};
    desc.routing.kind = XM_ROUTING_SOFTMAX_TOPK;
    desc.routing.top_k = 2;
    xm_primitive *p = nullptr;
    refuse({"moe_route_sg"});
    ASSERT_XM_OK(xm_router_create(engine, &desc, &p, &err));
    char text[64] = "";
    xm_primitive_describe(p, nullptr, text, sizeof(text));
    EXPECT_STREQ(text, "moe_route_gen");
    xm_primitive_destroy(p);
}

/* Variants that refuse the heads of a problem are not compiled. */
TEST(AttentionKernels, AreOneAStepOnEveryChip)
{
    size_t n;
    const xm_device_row *chips = xm_device_rows(&n);
    for (size_t i = 0; i < n; i++) {
        for (uint32_t head : {64u, 72u, 320u}) {
            SCOPED_TRACE(std::string(chips[i].name) + ", heads of " +
                         std::to_string(head));
            xm_error err = {};
            xm_device_info info;
            xm_engine *e = nullptr;
            xm_primitive *p = nullptr;
            ASSERT_XM_OK(xm_device_imagine(chips[i].name, &info, &err));
            ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &e, &err));
            xm_attention_desc desc = {};
            desc.heads_q = 4;
            desc.heads_kv = 2;
            desc.d = desc.dv = head;
            desc.scale = 1.0f;
            desc.causal = true;
            desc.page_tokens = 32;
            desc.element = desc.k_cache = desc.v_cache = XM_F16;
            ASSERT_XM_OK(xm_attention_create(e, &desc, &p, &err));
            EXPECT_EQ(xm_fake_calls(e, XM_FAKE_KERNEL), 4u);
            xm_primitive_destroy(p);
            xm_engine_unref(e);
        }
    }
}

} // namespace
