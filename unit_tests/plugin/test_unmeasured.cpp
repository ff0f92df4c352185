/* SPDX-License-Identifier: Apache-2.0
 *
 * Which steps of a program have no measured variant, on the fake engine.
 */
#include "plugin/gpu/unmeasured.h"

#include "functional_tests/common/folder.h"
#include "primitives/measured_rows.h"
#include "primitives/timed_problem.h"
#include "runtime/fake/fake.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

class Unmeasured : public ::testing::Test
{
  protected:
    void TearDown() override
    {
        program.reset();
        xm_engine_unref(engine);
    }
    void compile_on(const Properties &properties, const std::string &model = two_layers())
    {
        const xm_device_info info = fake_cpu();
        xm_config config;
        xm_config_init(&config);
        for (const auto &p : properties)
            ASSERT_XM_OK(xm_config_set(&config, p.first, p.second, &err));
        program.reset();
        xm_engine_unref(engine);
        engine = nullptr;
        ASSERT_XM_OK(xm_fake_engine_create(&info, &config, &engine, &err));
        program = must_compile(engine, parse(model), properties);
    }
    std::string lines()
    {
        xm_strbuf out = {};
        EXPECT_XM_OK(xm_program_unmeasured(program.get(), &out, &err));
        const std::string text = xm_strbuf_text(&out);
        xm_strbuf_free(&out);
        return text;
    }
    /* Settles all steps of a problem line except those whose name contains `left`. */
    void settle(const char *line, const std::string &left = "no step")
    {
        size_t n = 0;
        const xm_timed_step *steps = xm_timed_steps(&n);
        xm_timed_problem p;
        ASSERT_XM_OK(xm_timed_problem_parse_step(line, &p, &err));
        for (size_t i = 0; i < n; i++) {
            const xm_problem_class c = xm_timed_class(&p, steps[i].is_down);
            const xm_variant_table *table = xm_timed_table(steps[i].step);
            if (steps[i].kind != p.kind || left == steps[i].step)
                continue;
            ASSERT_TRUE(i % 2 ? xm_measured_row_keep(engine, table, &c, 0)
                              : xm_measured_row_keep_none(engine, table, &c));
        }
    }
    Folder folder{"unmeasured"};
    xm_engine *engine = nullptr;
    Program program{nullptr, xm_program_unref};
    xm_error err = {};
};

/* Each layer's projections read as many bytes as the vocabulary's matrix, which has twice the
 * rows. */
TEST_F(Unmeasured, StepsComeInTheOrderOfWhatTheyRead)
{
    compile_on({{"CACHE_DIR", folder.path.c_str()}});
    EXPECT_EQ(lines(), "attention Q=2 KV=1 D=16 P=1024 f16 f16\n"
                       "linear N=32 K=32 f32 f32\n"
                       "linear N=64 K=32 f32 f32\n"
                       "linear N=16 K=32 u8 g32 f32");
    compile_on({{"CACHE_DIR", folder.path.c_str()}}, small_model());
    EXPECT_EQ(lines(), "attention Q=2 KV=1 D=16 P=1024 f16 f16\n"
                       "linear N=64 K=32 f32 f32\n"
                       "linear N=32 K=32 f32 f32\n"
                       "linear N=16 K=32 u8 g32 f32");
}

TEST_F(Unmeasured, SettledStepsAreLeftOut)
{
    compile_on({{"CACHE_DIR", folder.path.c_str()}});
    settle("attention Q=2 KV=1 D=16 P=1024 f16 f16");
    settle("linear N=64 K=32 f32 f32", "linear_long");
    settle("linear N=32 K=32 f32 f32");
    EXPECT_EQ(lines(), "linear N=64 K=32 f32 f32\nlinear N=16 K=32 u8 g32 f32")
        << "prompts of one are not measured";
    settle("linear N=64 K=32 f32 f32");
    settle("linear N=16 K=32 u8 g32 f32");
    EXPECT_EQ(lines(), "");
}

TEST_F(Unmeasured, ThereAreNoneWhereNothingIsKeptOrTaken)
{
    compile_on({});
    EXPECT_EQ(lines(), "");
    compile_on({{"CACHE_DIR", folder.path.c_str()}, {"XM_TUNED_KERNELS", "NO"}});
    EXPECT_EQ(lines(), "");
}

} // namespace
