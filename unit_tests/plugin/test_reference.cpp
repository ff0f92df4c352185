/* SPDX-License-Identifier: Apache-2.0
 *
 * The device REFERENCE: its checks, states and results.
 */
#include "plugin/plugin.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

TEST(ReferencePlugin, ChecksInputsAndKeepsResults)
{
    xm_core *core = nullptr;
    xm_compiled *c = nullptr;
    xm_infer *r = nullptr;
    xm_error err = {};
    ASSERT_XM_OK(xm_core_create(&core, &err));
    ASSERT_XM_OK(xm_core_compile(core,
                                 parse(R"(
        %0 = parameter f32[N,2] name="x"
        %1 = abs %0
        result %1 name="y")")
                                     .release(),
                                 "REFERENCE", nullptr, 0, nullptr, &c, &err));
    ASSERT_XM_OK(xm_compiled_create_request(c, &r, &err));
    float data[4] = {-1, 2, -3, 4};
    xm_host_tensor x = {XM_F32, 2, {2, 2}, data, sizeof(data)}, y;
    EXPECT_EQ(r->ops->infer(r, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'x' has not been set");
    auto fails = [&](const xm_host_tensor &t, const char *with) {
        xm_error why = {};
        EXPECT_EQ(r->ops->set_input(r, 0, &t, &why), XM_INVALID);
        EXPECT_STREQ(why.text, with);
    };
    xm_host_tensor bad = x;
    bad.dim[0] = 3;
    fails(bad, "input 'x': its shape needs 24 bytes, found 16");
    bad = x;
    bad.rank = 1;
    fails(bad, "input 'x': expected rank 2, found 1");
    bad = x;
    bad.element = XM_F16;
    fails(bad, "input 'x': expected f32, found f16");
    EXPECT_EQ(r->ops->output(r, 0, &y, nullptr), XM_INVALID);
    ASSERT_XM_OK(r->ops->set_input(r, 0, &x, &err));
    data[0] = 9; /* the request has a copy */
    err = {};
    ASSERT_XM_OK(r->ops->infer(r, &err));
    ASSERT_XM_OK(r->ops->output(r, 0, &y, &err));
    EXPECT_EQ(static_cast<float *>(y.data)[0], 1);
    EXPECT_EQ(static_cast<float *>(y.data)[3], 4);
    xm_infer_destroy(r);
    xm_compiled_unref(c);
    xm_core_destroy(core);
}

/* As with other devices, a cancel lasts until runs resume. */
TEST(ReferencePlugin, ACancelBeforeARunIsForThatRun)
{
    xm_core *core = nullptr;
    xm_compiled *c = nullptr;
    xm_infer *r = nullptr;
    xm_error err = {};
    ASSERT_XM_OK(xm_core_create(&core, &err));
    ASSERT_XM_OK(xm_core_compile(core,
                                 parse(R"(
        %0 = parameter f32[N] name="x"
        %1 = abs %0
        result %1 name="y")")
                                     .release(),
                                 "REFERENCE", nullptr, 0, nullptr, &c, &err));
    ASSERT_XM_OK(xm_compiled_create_request(c, &r, &err));
    float data[2] = {-1, 2};
    xm_host_tensor x = {XM_F32, 1, {2}, data, sizeof(data)};
    ASSERT_XM_OK(r->ops->set_input(r, 0, &x, &err));
    r->ops->cancel(r);
    for (int i = 0; i < 2; i++) {
        xm_error why = {};
        EXPECT_EQ(r->ops->infer(r, &why), XM_CANCELLED);
        EXPECT_STREQ(why.text, "cancelled between two operations");
    }
    r->ops->resume(r);
    EXPECT_XM_OK(r->ops->infer(r, &err));
    xm_infer_destroy(r);
    xm_compiled_unref(c);
    xm_core_destroy(core);
}

TEST(ReferencePlugin, MultipliesWithWeightsInBlocks)
{
    for (int f = XM_WEIGHT_ELEMENTS + 1; f < XM_WEIGHT_FORMATS; f++) {
        const std::string text = std::string("%0 = parameter f32[1,512] name=\"x\"\n"
                                             "%1 = weight f32[3,512] ") +
                                 xm_weight_formats[f].text +
                                 " @1\n%2 = matmul %0, %1 transpose_b=true\n"
                                 "result %2 name=\"y\"";
        SCOPED_TRACE(text);
        Graph weights = parse(text);
        std::vector<float> row(512), data(512, 0.0f);
        data[300] = 1; /* makes the weight of the product a column */
        xm_core *core = nullptr;
        xm_compiled *c = nullptr;
        xm_infer *r = nullptr;
        xm_error err = {};
        ASSERT_XM_OK(xm_core_create(&core, &err));
        ASSERT_XM_OK(xm_core_compile(core, parse(text).release(), "REFERENCE", nullptr, 0,
                                     nullptr, &c, &err));
        ASSERT_XM_OK(xm_compiled_create_request(c, &r, &err));
        xm_host_tensor x = {XM_F32, 2, {1, 512}, data.data(), 512 * sizeof(float)}, y;
        ASSERT_XM_OK(r->ops->set_input(r, 0, &x, &err));
        ASSERT_XM_OK(r->ops->infer(r, &err));
        ASSERT_XM_OK(r->ops->output(r, 0, &y, &err));
        const struct xm_weight *w = nullptr;
        xm_for_each_node(n, weights.get())
        {
            if (n->op == XM_OP_WEIGHT)
                w = &n->attr.weight;
        }
        ASSERT_TRUE(w);
        for (uint64_t n = 0; n < 3; n++) {
            xm_weight_row(w, 0, n, row.data());
            EXPECT_FLOAT_EQ(static_cast<float *>(y.data)[n], row[300]);
        }
        xm_infer_destroy(r);
        xm_compiled_unref(c);
        xm_core_destroy(core);
    }
}

/* Indices beyond a table are refused by the reference and by the devices alike. */
class Tables : public testing::TestWithParam<const char *>
{
};

TEST_P(Tables, HaveNoRowsPastTheirEnds)
{
    xm_core *core = nullptr;
    xm_compiled *c = nullptr;
    xm_infer *r = nullptr;
    xm_error err = {};
    ASSERT_XM_OK(xm_core_create(&core, &err));
    if (xm_core_compile(core,
                        parse(R"(
        %0 = parameter i64[N,M] name="ids"
        %1 = convert %0 to=i32
        %2 = weight f32[4,8] f32 @2
        %3 = const i64[] {0}
        %4 = gather %2, %1, %3
        result %4 name="rows")")
                            .release(),
                        GetParam(), nullptr, 0, nullptr, &c, &err) == XM_NOT_FOUND) {
        xm_core_destroy(core);
        GTEST_SKIP() << "no OpenCL device";
    }
    ASSERT_NE(c, nullptr) << err.text;
    ASSERT_XM_OK(xm_compiled_create_request(c, &r, &err));
    auto run = [&](std::vector<int64_t> ids) {
        const xm_host_tensor t = {XM_I64, 2, {1, 2}, ids.data(), 16};
        err = {};
        enum xm_status s = r->ops->set_input(r, 0, &t, &err);
        return s == XM_OK ? r->ops->infer(r, &err) : s;
    };
    EXPECT_EQ(run({0, 3}), XM_OK) << err.text;
    EXPECT_EQ(run({0, 4}), XM_INVALID);
    EXPECT_STREQ(err.text,
                 "input 'ids': the value 4 of element 1 is not an index below 4");
    EXPECT_EQ(run({-1, 0}), XM_INVALID);
    EXPECT_STREQ(err.text,
                 "input 'ids': the value -1 of element 0 is not an index below 4");
    EXPECT_EQ(run({INT64_MIN, 0}), XM_INVALID);
    EXPECT_EQ(run({(int64_t)1 << 32, 0}), XM_INVALID) << "what i32 would make 0 of";
    EXPECT_EQ(run({1, 2}), XM_OK) << "a refused run changes nothing: " << err.text;
    xm_infer_destroy(r);
    xm_compiled_unref(c);
    xm_core_destroy(core);
}

INSTANTIATE_TEST_SUITE_P(Devices, Tables, testing::Values("REFERENCE", "GPU"));

} // namespace
