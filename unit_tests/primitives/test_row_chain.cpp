/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/norm/row_chain.h"

#include "primitives/tables.h"
#include "runtime/fake/fake.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"
#include "unit_tests/primitives/harness.h"

namespace
{

/* A chain and the types of its operands, then of its results, one letter each; h: f16. */
struct problem {
    const char *steps, *types;
    int64_t rows, n;
};

/* clang-format off */
#define BEFORE "rms_norm x0 c0 1e-06; out add x1 s0; out rms_norm s1 c1 1e-06; " \
               "rms_norm s1 _ 1e-06; out multiply s3 c2; out multiply s3 c3"
#define BEHIND "rms_norm x0 c0 1e-06; rms_norm x1 c1 0.01; add s0 s1; rms_norm s2 c2 1e-06; " \
               "add x2 s3; out multiply s4 c3; out rms_norm s5 c4 1e-06"
const problem problems[] = {
    {"out rms_norm x0 c0 1e-06",             "ff",     1, 1},
    {"out rms_norm x0 _ 0",                  "hf",     3, 15},
    {"out add x0 x1; out multiply s0 s0",    "fhhf",   2, 16},
    {BEFORE,                                 "hhhhhh", 1, 2816},
    {BEFORE,                                 "hfhfhf", 40, 35},
    {BEHIND,                                 "hfhhf",  33, 256},
    {BEHIND,                                 "fffff",  1, 8192},
    {BEHIND,                                 "hhhhh",  2, 20000},
    {"multiply x0 c0; out round_bf16 s0 _; add s1 x1; round_bf16 s2 _; out rms_norm s3 c1 1e-06",
                                             "hfff",   5, 2816},
    {"multiply x0 c0; round_bf16 s0 _; out multiply s1 c1; out round_bf16 s2 _", "fhf",  9, 35},
    {"add x3 x2; add x1 x0; multiply s1 s0; out add s2 c7; multiply s3 c6; add s4 c5; "
     "rms_norm s5 c4 1e-06; add s6 c3; multiply s7 c2; add s8 c1; out multiply s9 c0; out rms_norm s10 _ 1e-05",
                                             "hfhfhfh", 7, 64},
};
/* clang-format on */

xm_element
element_of(char letter)
{
    return letter == 'h' ? XM_F16 : XM_F32;
}

class RowChain : public PrimitiveTest
{
  protected:
    using Tensors = std::vector<std::unique_ptr<tensor>>;

    /* Every third constant is a scalar. */
    static bool is_number(uint32_t i)
    {
        return i % 3 == 2;
    }
    void describe(const problem &p, Tensors &constants, xm_row_chain_desc *desc)
    {
        ASSERT_XM_OK(xm_row_chain_parse(p.steps, &desc->chain, &err));
        const xm_row_chain &chain = desc->chain;
        ASSERT_EQ(strlen(p.types), chain.n_x + chain.n_y);
        desc->n = (uint32_t)p.n;
        for (uint32_t i = 0; i < chain.n_x; i++)
            desc->x[i] = element_of(p.types[i]);
        for (uint32_t i = 0; i < chain.n_y; i++)
            desc->y[i] = element_of(p.types[chain.n_x + i]);
        for (uint32_t i = 0; i < chain.n_c; i++) {
            int64_t n = is_number(i) ? 1 : p.n;
            constants.push_back(std::make_unique<tensor>(
                XM_F32, std::vector<int64_t>{n}, random_floats((size_t)n, 10 + i)));
            desc->constant[i] = constants.back()->buffer();
            desc->is_number[i] = is_number(i);
        }
    }
    /* Returns the host's results for the operands as they were rounded. */
    static std::vector<std::vector<float>> reference(const problem &p,
                                                     const xm_row_chain &chain,
                                                     const Tensors &x,
                                                     const Tensors &constants)
    {
        std::vector<std::vector<float>> in, y;
        const float *px[XM_CHAIN_XS], *pc[XM_CHAIN_CS];
        float *py[XM_CHAIN_YS];
        bool numbers[XM_CHAIN_CS];
        for (const auto &t : x)
            in.push_back(t->rounded());
        for (const auto &t : constants)
            in.push_back(t->rounded());
        y.assign(chain.n_y, std::vector<float>((size_t)(p.rows * p.n)));
        for (uint32_t i = 0; i < chain.n_x; i++)
            px[i] = in[i].data();
        for (uint32_t i = 0; i < chain.n_c; i++) {
            pc[i] = in[chain.n_x + i].data();
            numbers[i] = is_number(i);
        }
        for (uint32_t i = 0; i < chain.n_y; i++)
            py[i] = y[i].data();
        EXPECT_EQ(xm_ref_row_chain(&chain, px, pc, numbers, (uint64_t)p.rows,
                                   (uint64_t)p.n, py),
                  XM_OK);
        return y;
    }
    /* Returns operands whose rows have two leading dimensions. */
    static Tensors operands(const problem &p, const xm_element *element, uint32_t n,
                            uint32_t seed)
    {
        Tensors list;
        std::vector<int64_t> dims = {1, p.rows, p.n};
        for (uint32_t i = 0; i < n; i++)
            list.push_back(seed ? std::make_unique<tensor>(
                                      element[i], dims,
                                      random_floats((size_t)(p.rows * p.n), seed + i))
                                : std::make_unique<tensor>(element[i], dims));
        return list;
    }
    /* Sets *refused if every variant of the device refuses this problem. */
    void check(const problem &p, const char *variant, bool *refused)
    {
        SCOPED_TRACE(std::string(p.steps) + " over " + std::to_string(p.n));
        xm_row_chain_desc desc = {};
        Tensors constants;
        describe(p, constants, &desc);
        primitive_ptr chain;
        xm_error why = {};
        xm_status status = xm_row_chain_create(engine, &desc, &chain.p, &why);
        *refused = status == XM_UNSUPPORTED;
        if (*refused)
            return;
        ASSERT_EQ(status, XM_OK) << why.text;
        char name[64];
        xm_operand o[XM_ROW_CHAIN_N_OPERANDS] = {};
        xm_primitive_describe(chain.p, o, name, sizeof(name));
        EXPECT_STREQ(name, variant);
        Tensors x = operands(p, desc.x, desc.chain.n_x, 1);
        Tensors y = operands(p, desc.y, desc.chain.n_y, 0);
        for (size_t i = 0; i < x.size(); i++)
            o[XM_ROW_CHAIN_X + i] = x[i]->operand();
        for (size_t i = 0; i < y.size(); i++)
            o[XM_ROW_CHAIN_Y + i] = y[i]->operand();
        ASSERT_XM_OK(xm_primitive_run(chain.p, o, &run, &err));
        auto want = reference(p, desc.chain, x, constants);
        for (size_t i = 0; i < y.size(); i++)
            EXPECT_TRUE(rows_match(y[i]->read(), want[i], (size_t)p.n, desc.y[i]))
                << "result " << i;
    }
};

TEST_F(RowChain, EveryVariantAgreesWithTheReference)
{
    for (size_t v = 0; v < xm_row_chain_table.n; v++) {
        const xm_variant *row = &xm_row_chain_table.rows[v];
        xm_variant any_shape = *row;
        any_shape.refuses = nullptr;
        if (xm_variant_refusal(&any_shape, xm_engine_info(engine), nullptr))
            continue;
        SCOPED_TRACE(row->name);
        force("row_chain", row->name);
        size_t checked = 0;
        for (const problem &p : problems) {
            bool refused = false;
            check(p, row->name, &refused);
            checked += !refused;
        }
        EXPECT_GE(checked, std::size(problems) / 2);
        if (!row->refuses) {
            EXPECT_EQ(checked, std::size(problems));
        }
    }
}

TEST_F(RowChain, OddAndLongRowsGoToTheNextVariant)
{
    for (const problem &p : problems) {
        xm_row_chain_desc desc = {};
        Tensors constants;
        describe(p, constants, &desc);
        for (const char *family : {"", "sg"}) {
            setenv("XM_FORCE", family, 1);
            primitive_ptr chain;
            ASSERT_XM_OK(xm_row_chain_create(engine, &desc, &chain.p, &err));
        }
    }
}

TEST_F(RowChain, NoRowsAreNoLaunch)
{
    const problem p = {"out rms_norm x0 _ 1e-06", "ff", 0, 16};
    bool refused;
    check(p, "row_chain_vec", &refused);
}

TEST_F(RowChain, RefusesOperandsOfOtherSizes)
{
    const problem p = {BEFORE, "ffffff", 2, 16};
    xm_row_chain_desc desc = {};
    Tensors constants;
    describe(p, constants, &desc);
    primitive_ptr chain;
    ASSERT_XM_OK(xm_row_chain_create(engine, &desc, &chain.p, &err));
    Tensors x = operands(p, desc.x, 2, 1), y = operands(p, desc.y, 4, 0);
    tensor other(XM_F32, {3, 16}), narrow(XM_F32, {4, 8});
    for (const tensor *wrong : {&other, &narrow}) {
        for (size_t at : {XM_ROW_CHAIN_X + 0, XM_ROW_CHAIN_X + 1, XM_ROW_CHAIN_Y + 0,
                          XM_ROW_CHAIN_Y + 3}) {
            xm_operand o[XM_ROW_CHAIN_N_OPERANDS] = {};
            for (size_t i = 0; i < x.size(); i++)
                o[XM_ROW_CHAIN_X + i] = x[i]->operand();
            for (size_t i = 0; i < y.size(); i++)
                o[XM_ROW_CHAIN_Y + i] = y[i]->operand();
            o[at] = wrong->operand();
            xm_error why = {};
            EXPECT_EQ(xm_primitive_run(chain.p, o, &run, &why), XM_INVALID);
            EXPECT_NE(std::string(why.text).find("rows of 16"), std::string::npos)
                << why.text;
        }
    }
}

TEST_F(RowChain, RefusesAConstantThatIsTooShort)
{
    const problem p = {"out rms_norm x0 c0 1e-06", "ff", 2, 32};
    xm_row_chain_desc desc = {};
    Tensors constants;
    describe(p, constants, &desc);
    desc.n = 48;
    primitive_ptr chain;
    EXPECT_EQ(xm_row_chain_create(engine, &desc, &chain.p, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("must have 48 elements"), std::string::npos);
}

TEST(RowChainSupports, ConstantRowsOnly)
{
    xm_row_chain chain;
    ASSERT_EQ(xm_row_chain_parse("out rms_norm x0 _ 1", &chain, nullptr), XM_OK);
    EXPECT_EQ(xm_row_chain_supports(&chain, 1), nullptr);
    EXPECT_NE(xm_row_chain_supports(&chain, 0), nullptr);
    EXPECT_NE(xm_row_chain_supports(&chain, -1), nullptr);
    EXPECT_NE(xm_row_chain_supports(&chain, INT64_MAX), nullptr);
    chain.n_y = 0;
    EXPECT_NE(xm_row_chain_supports(&chain, 1), nullptr);
}

/* If memory runs out while options are written, the result is XM_NO_MEMORY: options are never cut
 * off. */
TEST(RowChainOptions, AreWholeOrThereIsNoMemory)
{
    xm_device_info info = {};
    xm_row_chain_desc desc = {};
    ASSERT_EQ(xm_row_chain_parse("rms_norm x0 _ 0.25; out rms_norm s0 _ 0.5", &desc.chain,
                                 nullptr),
              XM_OK);
    desc.n = 32;
    desc.x[0] = desc.y[0] = XM_F32;
    info.kind = XM_DEVICE_CPU;
    info.max_alloc_bytes = 1 << 20;
    uint64_t n = 1;
    for (bool seen = true; seen; n++) {
        xm_engine *engine = nullptr;
        primitive_ptr chain;
        xm_error why = {};
        ASSERT_EQ(xm_fake_engine_create(&info, nullptr, &engine, &why), XM_OK)
            << why.text;
        xm_fail_allocation(n);
        xm_status status = xm_row_chain_create(engine, &desc, &chain.p, &why);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(status, seen ? XM_NO_MEMORY : XM_OK) << n << ": " << why.text;
        xm_primitive_destroy(chain.p);
        chain.p = nullptr;
        xm_engine_unref(engine);
    }
    EXPECT_GT(n, 4u) << "the options take memory";
}

/* With two values for epsilon or none, the kernel would silently take one of them or zero. */
TEST_F(RowChain, IsNotBuiltWithAnEpsilonTooManyOrTooFew)
{
    const std::string chain = "-DROW=32 -DX0=f32 -DY0=f32 "
                              "-DCHAIN=IN(0)SCALE(0,X(0))NORM(0,X(0),C(0),0)OUT(0,0) ";
    const struct {
        const char *epsilons;
        bool is_built;
    } cases[] = {
        {"-DSCALES=1 -DN_EPSILONS=1 -DEPSILONS=1e-6f", true},
        {"-DSCALES=1 -DN_EPSILONS=1 -DEPSILONS=9,99999997e-07f", false},
        {"-DSCALES=1 -DN_EPSILONS=2 -DEPSILONS=1e-6f,1e-6f", false},
        {"-DSCALES=2 -DN_EPSILONS=1 -DEPSILONS=1e-6f", false},
        {"-DSCALES=2 -DN_EPSILONS=2 -DEPSILONS=1e-6f", false},
    };
    xm_log_set_sink([](xm_log_level, const char *, void *) {}, nullptr);
    for (const auto &c : cases) {
        xm_kernel *kernel = nullptr;
        xm_error why = {};
        EXPECT_EQ(xm_engine_kernel(engine, "row_chain_ref", (chain + c.epsilons).c_str(),
                                   &kernel, &why),
                  c.is_built ? XM_OK : XM_NOT_BUILT)
            << c.epsilons << ": " << why.text;
    }
    xm_log_set_sink(nullptr, nullptr);
}

} // namespace
