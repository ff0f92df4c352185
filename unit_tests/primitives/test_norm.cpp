/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/norm/norm.h"

#include <filesystem>
#include <fstream>

#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "runtime/util/log.h"
#include "unit_tests/primitives/harness.h"

namespace
{

struct problem {
    int64_t rows, n;
    xm_element src, dst;
    bool has_gamma;
};

const problem problems[] = {
    {1, 1, XM_F32, XM_F32, true},     {1, 15, XM_F32, XM_F16, true},
    {3, 16, XM_F16, XM_F32, false},   {2, 17, XM_F16, XM_F16, true},
    {33, 128, XM_F32, XM_F32, true},  {5, 2048, XM_F16, XM_F16, true},
    {40, 100, XM_F32, XM_F32, false},
};

class RmsNorm : public PrimitiveTest
{
  protected:
    void check(const problem &p)
    {
        SCOPED_TRACE(std::to_string(p.rows) + " x " + std::to_string(p.n));
        std::vector<float> values = random_floats((size_t)(p.rows * p.n), 1);
        for (size_t i = 0; i < values.size(); i++)
            /* rows so small that epsilon counts */
            values[i] *= i / (size_t)p.n % 2 ? 1.0f : 1e-3f;
        tensor x(p.src, {p.rows, p.n}, values);
        tensor gamma(XM_F32, {p.n}, random_floats((size_t)p.n, 2));
        tensor y(p.dst, {p.rows, p.n});
        xm_rms_norm_desc desc = {};
        desc.gamma = p.has_gamma ? gamma.buffer() : nullptr;
        desc.epsilon = 1e-6f;
        desc.src = p.src;
        desc.dst = p.dst;
        primitive_ptr norm;
        ASSERT_XM_OK(xm_rms_norm_create(engine, &desc, &norm.p, &err));
        const xm_operand operands[XM_RMS_NORM_N_OPERANDS] = {
            x.operand(), {}, y.operand()};
        ASSERT_XM_OK(xm_primitive_run(norm.p, operands, &run, &err));
        std::vector<float> want(x.size());
        xm_ref_rms_norm(x.rounded().data(),
                        p.has_gamma ? gamma.rounded().data() : nullptr, (uint64_t)p.rows,
                        (uint64_t)p.n, 1e-6f, want.data());
        EXPECT_TRUE(rows_match(y.read(), want, (size_t)p.n, p.dst));
    }
};

TEST_F(RmsNorm, EveryVariantAgreesWithTheReference)
{
    for_rows(xm_rms_norm_table, std::size(problems), 3,
             [&](const xm_variant &, size_t i) {
                 check(problems[i]);
                 return true;
             });
}

/* The kernel's source is broken, so that the driver's compiler refuses it. */
TEST_F(RmsNorm, AKernelThatDoesNotBuildGivesWayToTheNext)
{
    const std::string dir = ::testing::TempDir() + "xm_norm_broken";
    std::vector<std::string> warnings;
    xm_engine *own = nullptr;
    tensor gamma(XM_F32, {32}, random_floats(32, 1));
    xm_rms_norm_desc desc = {gamma.buffer(), 1e-6f, XM_F32, XM_F32};
    ASSERT_XM_OK(xm_engine_create(0, nullptr, &own, &err));
    const char *best = nullptr, *next = nullptr;
    for (size_t v = 0; v < xm_rms_norm_table.n && !next; v++) {
        const xm_variant *row = &xm_rms_norm_table.rows[v];
        if (!xm_variant_refusal(row, xm_engine_info(own), nullptr) &&
            !xm_variant_drawback(row, xm_engine_info(own)))
            (best ? next : best) = row->name;
    }
    ASSERT_NE(next, nullptr);
    std::filesystem::create_directory(dir);
    std::ofstream(dir + "/" + best + ".cl") << "this is no kernel;\n";
    setenv("XM_KERNEL_DIR", dir.c_str(), 1);
    xm_log_set_sink(
        [](xm_log_level, const char *line, void *ctx) {
            static_cast<std::vector<std::string> *>(ctx)->push_back(line);
        },
        &warnings);
    for (int round = 0; round < 2; round++) {
        primitive_ptr norm;
        char text[64] = "";
        ASSERT_XM_OK(xm_rms_norm_create(own, &desc, &norm.p, &err));
        xm_primitive_describe(norm.p, nullptr, text, sizeof(text));
        EXPECT_STREQ(text, next);
    }
    xm_log_set_sink(nullptr, nullptr);
    unsetenv("XM_KERNEL_DIR");
    std::filesystem::remove_all(dir);
    xm_engine_unref(own);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find(std::string("kernel '") + best + "'"), std::string::npos);
    EXPECT_NE(warnings[0].find("does not build on"), std::string::npos);
    EXPECT_NE(warnings[0].find("error"), std::string::npos) << warnings[0];
}

/* Returns the variant of rms_norm that is chosen under XM_FORCE, or the text of the status. */
std::string
row_for(const char *forced, xm_device_kind kind)
{
    xm_device_info device = {};
    xm_error err = {};
    size_t row = 0;
    device.kind = kind;
    setenv("XM_FORCE", forced, 1);
    const xm_pick pick = {&xm_rms_norm_table, nullptr, 0, 0, {}};
    xm_status status = xm_variant_pick(&pick, &device, nullptr, &row, &err);
    unsetenv("XM_FORCE");
    return status == XM_OK ? xm_rms_norm_table.rows[row].name : err.text;
}

TEST(Force, PrefersAFamilyWhereverItAccepts)
{
    EXPECT_EQ(row_for("", XM_DEVICE_CPU), "rms_norm_vec");
    EXPECT_EQ(row_for("", XM_DEVICE_GPU), "rms_norm_gen");
    EXPECT_EQ(row_for("gen", XM_DEVICE_CPU), "rms_norm_gen");
    EXPECT_EQ(row_for("ref", XM_DEVICE_CPU), "rms_norm_ref");
    EXPECT_EQ(row_for("vec", XM_DEVICE_GPU), "rms_norm_gen"); /* vec refuses a GPU */
    EXPECT_EQ(row_for("sg", XM_DEVICE_CPU), "rms_norm_vec");
}

TEST(Force, NamesGoBeforeFamilies)
{
    EXPECT_EQ(row_for("gen,rms_norm=rms_norm_ref", XM_DEVICE_CPU), "rms_norm_ref");
    EXPECT_EQ(row_for("rms_norm=rms_norm_vec,gen", XM_DEVICE_CPU), "rms_norm_vec");
    EXPECT_EQ(row_for("linear_few=linear_ref,gen", XM_DEVICE_CPU), "rms_norm_gen");
}

TEST(Force, AMistakeIsASentence)
{
    EXPECT_NE(row_for("general", XM_DEVICE_CPU).find("'general' is neither"),
              std::string::npos);
    EXPECT_NE(row_for("rms_norm=rms_norm_vec", XM_DEVICE_GPU).find("which cannot run"),
              std::string::npos);
    EXPECT_EQ(
        row_for("rms_norm=x", XM_DEVICE_CPU)
            .find(
                "XM_FORCE: step rms_norm has no variant 'x'; its variants are rms_norm_"),
        0u);
    std::string unknown = row_for("rms_nrom=rms_norm_ref", XM_DEVICE_CPU);
    EXPECT_EQ(
        unknown.find("XM_FORCE: there is no step 'rms_nrom'; the steps are attention_"),
        0u);
    /* the list is not cut off */
    EXPECT_NE(unknown.find(" topk"), std::string::npos) << unknown;
    EXPECT_NE(row_for("linear_few=x", XM_DEVICE_CPU).find("linear_few has no variant"),
              std::string::npos);
}

TEST_F(RmsNorm, RefusesAGammaThatIsTooShort)
{
    tensor x(XM_F32, {2, 32}), y(XM_F32, {2, 32}), gamma(XM_F32, {16});
    xm_rms_norm_desc desc = {gamma.buffer(), 1e-6f, XM_F32, XM_F32};
    primitive_ptr norm;
    ASSERT_XM_OK(xm_rms_norm_create(engine, &desc, &norm.p, &err));
    const xm_operand operands[XM_RMS_NORM_N_OPERANDS] = {x.operand(), {}, y.operand()};
    EXPECT_EQ(xm_primitive_run(norm.p, operands, &run, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("gamma"), std::string::npos);
}

} // namespace
