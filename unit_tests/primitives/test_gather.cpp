/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/gather/gather.h"

#include "primitives/tables.h"
#include "unit_tests/primitives/harness.h"

namespace
{

/* A weight with random bytes: every bit pattern of an integer type is a value. */
struct random_weight {
    std::vector<uint8_t> data, scale, zero_point;
    xm_weight w = {};

    random_weight(xm_element element, uint64_t rows, uint64_t cols, uint64_t group,
                  bool zp)
    {
        std::mt19937 gen(7);
        w.element = element;
        w.rank = 2;
        w.experts = 1;
        w.rows = rows;
        w.cols = cols;
        w.group = group;
        uint64_t n = rows * cols;
        if (xm_element_is_float(element)) {
            std::vector<float> v = random_floats(n, 8);
            data.resize(n * xm_element_bits(element) / 8);
            for (size_t i = 0; i < n; i++)
                xm_store_float(element, data.data(), i, v[i]);
        } else {
            data.resize((n * xm_element_bits(element) + 7) / 8);
            for (uint8_t &b : data)
                b = (uint8_t)gen();
        }
        w.data = {data.data(), data.size()};
        if (group == 0)
            return;
        uint64_t groups = rows * cols / group;
        scale.resize(groups * 2);
        w.scale_element = XM_F16;
        std::vector<float> s = random_floats(groups, 9);
        for (size_t i = 0; i < groups; i++)
            xm_store_float(XM_F16, scale.data(), i, 0.01f * s[i]);
        w.scale = {scale.data(), scale.size()};
        if (!zp)
            return;
        w.zero_point_element = element;
        zero_point.resize((groups * xm_element_bits(element) + 7) / 8);
        for (uint8_t &b : zero_point)
            b = (uint8_t)gen();
        w.zero_point = {zero_point.data(), zero_point.size()};
    }
};

struct problem {
    xm_element element;
    uint64_t cols, group;
    bool zp;
    xm_element ids, dst;
};

const problem problems[] = {
    {XM_U4, 128, 64, true, XM_I64, XM_F32},  {XM_I4, 96, 32, false, XM_I32, XM_F16},
    {XM_U8, 64, 64, true, XM_I64, XM_F16},   {XM_I8, 48, 16, false, XM_I64, XM_F32},
    {XM_F16, 33, 0, false, XM_I32, XM_F32},  {XM_F32, 20, 0, false, XM_I64, XM_F16},
    {XM_BF16, 20, 0, false, XM_I64, XM_F32},
};

class Embedding : public PrimitiveTest
{
  protected:
    void check(const problem &p)
    {
        SCOPED_TRACE(xm_element_text(p.element));
        const uint64_t rows = 10;
        const std::vector<int64_t> ids = {3, 0, 9, 10, -1, 3, 7};
        random_weight weight(p.element, rows, p.cols, p.group, p.zp);
        xm_device_weight *dw = nullptr;
        ASSERT_XM_OK(xm_device_weight_create(engine, &weight.w, &dw, &err));
        tensor id(p.ids, {1, (int64_t)ids.size()}, ids);
        tensor y(p.dst, {1, (int64_t)ids.size(), (int64_t)p.cols});
        xm_embedding_desc desc = {dw, p.ids, p.dst};
        {
            primitive_ptr embedding;
            ASSERT_XM_OK(xm_embedding_create(engine, &desc, &embedding.p, &err));
            const xm_operand operands[] = {id.operand(), y.operand()};
            ASSERT_XM_OK(xm_primitive_run(embedding.p, operands, &run, &err));
        }
        std::vector<float> want(y.size(), 0.0f);
        for (size_t t = 0; t < ids.size(); t++) {
            if (ids[t] >= 0 && ids[t] < (int64_t)rows)
                xm_weight_row(&weight.w, 0, (uint64_t)ids[t], &want[t * p.cols]);
        }
        EXPECT_TRUE(rows_match(y.read(), want, p.cols, p.dst));
        xm_device_weight_unref(dw);
    }
};

TEST_F(Embedding, EveryVariantAgreesWithTheReference)
{
    for_rows(xm_embedding_table, std::size(problems), 3,
             [&](const xm_variant &, size_t i) {
                 check(problems[i]);
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
