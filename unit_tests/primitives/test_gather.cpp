/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/gather/gather.h"

#include "primitives/tables.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

struct problem {
    weight_format format;
    uint64_t cols;
    xm_element ids, dst;
};

const weight_format u4g32 = {XM_U4, 32, true}, f16 = {XM_F16, 0, false};

std::vector<problem>
all_problems()
{
    std::vector<problem> problems = {
        {{XM_U4, 64, true}, 128, XM_I64, XM_F32},
        {{XM_I4, 32, false}, 96, XM_I32, XM_F16},
        {{XM_U8, 64, true}, 64, XM_I64, XM_F16},
        {{XM_I8, 16, false}, 48, XM_I64, XM_F32},
        {f16, 33, XM_I32, XM_F32},
        {{XM_F32, 0, false}, 20, XM_I64, XM_F16},
        {{XM_BF16, 0, false}, 20, XM_I64, XM_F32},
        {view_of(u4g32), 96, XM_I64, XM_F32},
        {view_of({XM_U8, 32, true, XM_F16, true}), 64, XM_I64, XM_F16},
        {view_of(f16), 21, XM_I64, XM_F32},
    };
    for (const weight_format &f : some_blocks())
        problems.push_back({f, 512, XM_I64, f.is_view ? XM_F16 : XM_F32});
    for (const weight_format &f : some_codes())
        problems.push_back({f, 512, XM_I32, f.is_view ? XM_F32 : XM_F16});
    problems.push_back({{XM_F8E4M3, 0, false}, 21, XM_I64, XM_F32});
    problems.push_back({view_of({XM_NF4, UINT64_MAX, false}), 50, XM_I64, XM_F32});
    return problems;
}
const std::vector<problem> problems = all_problems();

class Embedding : public PrimitiveTest
{
  protected:
    void check(const problem &p)
    {
        SCOPED_TRACE(text_of(p.format));
        const uint64_t rows = 10;
        const std::vector<int64_t> ids = {3, 0, 9, 10, -1, 3, 7};
        test_weight weight(1, rows, p.cols, p.format, 7);
        tensor id(p.ids, {1, (int64_t)ids.size()}, ids);
        tensor y(p.dst, {1, (int64_t)ids.size(), (int64_t)p.cols});
        xm_embedding_desc desc = {weight.device, p.ids, p.dst};
        {
            primitive_ptr embedding;
            ASSERT_XM_OK(xm_embedding_create(engine, &desc, &embedding.p, &err));
            const xm_operand operands[] = {id.operand(), y.operand()};
            ASSERT_XM_OK(xm_primitive_run(embedding.p, operands, &run, &err));
        }
        std::vector<float> want(y.size(), 0.0f);
        for (size_t t = 0; t < ids.size(); t++) {
            if (ids[t] >= 0 && ids[t] < (int64_t)rows)
                xm_weight_row(&weight.host, 0, (uint64_t)ids[t], &want[t * p.cols]);
        }
        EXPECT_TRUE(rows_match(y.read(), want, p.cols, p.dst));
    }
};

TEST_F(Embedding, EveryVariantAgreesWithTheReference)
{
    for_rows(xm_embedding_table, problems.size(), 4, [&](const xm_variant &, size_t i) {
        check(problems[i]);
        return true;
    });
}

/* A row of all codes of a type, or of ones with all codes as scales of 16 columns each. */
struct every_code {
    xm_element element, scale;
};
const every_code every_codes[] = {{XM_NF4, XM_DYNAMIC},    {XM_F4E2M1, XM_DYNAMIC},
                                  {XM_F8E4M3, XM_DYNAMIC}, {XM_F8E5M2, XM_DYNAMIC},
                                  {XM_F8E5M2, XM_F8E4M3},  {XM_F8E4M3, XM_F8E5M2},
                                  {XM_F8E4M3, XM_F8E8M0}};

class Codes : public PrimitiveTest
{
  protected:
    void check(const every_code &c)
    {
        const bool has_scale = c.scale != XM_DYNAMIC;
        const bool is_4_bits = xm_element_bits(c.element) == 4;
        const uint64_t n = has_scale ? 4096 : is_4_bits ? 32 : 256;
        std::vector<uint8_t> data(n), scale(256);
        for (size_t i = 0; i < 256; i++)
            scale[i] = (uint8_t)i;
        for (size_t i = 0; i < n; i++) /* 0x38 and 0x3c are the code of 1 */
            data[i] = has_scale   ? c.element == XM_F8E4M3 ? 0x38 : 0x3c
                      : is_4_bits ? (uint8_t)((2 * i + 1) << 4 | (2 * i % 16))
                                  : (uint8_t)i;
        xm_weight w = {};
        w.rank = 2;
        w.experts = w.rows = 1;
        w.cols = n;
        w.element = c.element;
        w.data = {data.data(), is_4_bits ? n / 2 : n};
        w.group = has_scale ? 16 : 0;
        w.scale_element = c.scale;
        if (has_scale)
            w.scale = {scale.data(), scale.size()};
        ASSERT_STREQ(xm_weight_check(&w), nullptr);
        check_row(w);
    }

    /* Compares bits, except for subnormal numbers, which a device may flush to zero. */
    void check_row(const xm_weight &w)
    {
        xm_device_weight *d = nullptr;
        ASSERT_XM_OK(xm_device_weight_create(engine, &w, &d, &err));
        tensor id(XM_I32, {1, 1}, std::vector<int64_t>{0});
        tensor y(XM_F32, {1, 1, (int64_t)w.cols});
        const xm_embedding_desc desc = {d, XM_I32, XM_F32};
        {
            primitive_ptr embedding;
            ASSERT_XM_OK(xm_embedding_create(engine, &desc, &embedding.p, &err));
            const xm_operand operands[] = {id.operand(), y.operand()};
            ASSERT_XM_OK(xm_primitive_run(embedding.p, operands, &run, &err));
        }
        const std::vector<float> have = y.read();
        std::vector<float> want(w.cols);
        xm_weight_row(&w, 0, 0, want.data());
        for (size_t i = 0; i < want.size(); i++) {
            const bool is_small = std::fpclassify(want[i]) == FP_SUBNORMAL;
            EXPECT_TRUE(have[i] == want[i] || (is_small && have[i] == 0.0f) ||
                        (std::isnan(have[i]) && std::isnan(want[i])))
                << xm_element_text(w.element) << " " << i << ": " << have[i] << ", not "
                << want[i];
        }
        xm_device_weight_unref(d);
    }
};

TEST_F(Codes, OfEveryValueAreTheSameNumbersByEveryVariant)
{
    for_rows(xm_embedding_table, XM_ARRAY_LEN(every_codes), XM_ARRAY_LEN(every_codes),
             [&](const xm_variant &, size_t i) {
                 check(every_codes[i]);
                 return true;
             });
}

class Gather : public PrimitiveTest
{
  protected:
    void check(xm_element element, uint32_t axis)
    {
        SCOPED_TRACE(axis);
        const int64_t dims[] = {3, 4, 5};
        const std::vector<int64_t> ids = {2, 0, -1, 99};
        std::vector<int64_t> values(60);
        for (size_t i = 0; i < values.size(); i++)
            values[i] = (int64_t)i + 1;
        std::vector<int64_t> out_dims(dims, dims + 3);
        out_dims[axis] = (int64_t)ids.size();
        tensor x(element, {3, 4, 5}, values), id(XM_I64, {4}, ids), y(element, out_dims);
        xm_gather_desc desc = {axis, element, XM_I64};
        primitive_ptr gather;
        ASSERT_XM_OK(xm_gather_create(engine, &desc, &gather.p, &err));
        const xm_operand operands[] = {x.operand(), id.operand(), y.operand()};
        ASSERT_XM_OK(xm_primitive_run(gather.p, operands, &run, &err));
        std::vector<int64_t> want;
        for (int64_t i = 0; i < out_dims[0]; i++)
            for (int64_t j = 0; j < out_dims[1]; j++)
                for (int64_t k = 0; k < out_dims[2]; k++) {
                    int64_t at[] = {i, j, k};
                    int64_t n = ids[(size_t)at[axis]];
                    at[axis] = n < 0 ? n + dims[axis] : n;
                    bool inside = at[axis] < dims[axis];
                    want.push_back(inside ? (at[0] * 4 + at[1]) * 5 + at[2] + 1 : 0);
                }
        EXPECT_EQ(y.read_ints(), want);
    }
};

TEST_F(Gather, TakesEveryAxisAndElementSize)
{
    for (xm_element e : {XM_U8, XM_F16, XM_I32, XM_I64})
        for (uint32_t axis = 0; axis < 3; axis++)
            check(e, axis);
}

} // namespace
