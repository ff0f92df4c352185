/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/layout/layout.h"

#include <numeric>

#include "primitives/tables.h"
#include "unit_tests/primitives/harness.h"

namespace
{

std::vector<int64_t>
counting(size_t n)
{
    std::vector<int64_t> v(n);
    std::iota(v.begin(), v.end(), 1);
    return v;
}

class Copy : public PrimitiveTest
{
  protected:
    void copy(xm_element element, tensor &src, tensor &dst, const xm_copy_space &space)
    {
        xm_copy_desc desc = {element};
        primitive_ptr copy;
        ASSERT_XM_OK(xm_copy_create(engine, &desc, &copy.p, &err));
        const xm_operand operands[] = {src.operand(), dst.operand()};
        ASSERT_XM_OK(xm_copy_enqueue(copy.p, operands, &space, &run, &err));
    }
    void transpose(xm_element element)
    {
        SCOPED_TRACE(xm_element_text(element));
        const int64_t order[] = {0, 2, 1, 3};
        tensor src(element, {2, 3, 5, 19}, counting(2 * 3 * 5 * 19));
        tensor dst(element, {2, 5, 3, 19});
        xm_operand o = src.operand();
        xm_copy_space space;
        xm_copy_transpose(&space, &o, order);
        copy(element, src, dst, space);
        std::vector<int64_t> in = src.read_ints(), want;
        for (int b = 0; b < 2; b++)
            for (int h = 0; h < 5; h++)
                for (int t = 0; t < 3; t++)
                    for (int i = 0; i < 19; i++)
                        want.push_back(in[(size_t)(((b * 3 + t) * 5 + h) * 19 + i)]);
        EXPECT_EQ(dst.read_ints(), want);
    }
};

TEST_F(Copy, EveryVariantTransposesEveryElementSize)
{
    const xm_element elements[] = {XM_BOOL, XM_I8, XM_F16, XM_I32, XM_I64};
    for_rows(xm_copy_table, std::size(elements), 2, [&](const xm_variant &, size_t i) {
        transpose(elements[i]);
        return true;
    });
}

TEST_F(Copy, TransposesTheInnermostDimension)
{
    const int64_t order[] = {1, 0};
    tensor src(XM_I32, {7, 33}, counting(7 * 33)), dst(XM_I32, {33, 7});
    xm_operand o = src.operand();
    xm_copy_space space;
    xm_copy_transpose(&space, &o, order);
    copy(XM_I32, src, dst, space);
    std::vector<int64_t> got = dst.read_ints();
    for (int i = 0; i < 33; i++)
        for (int j = 0; j < 7; j++)
            ASSERT_EQ(got[(size_t)(i * 7 + j)], j * 33 + i + 1);
}

TEST_F(Copy, SlicesWithSteps)
{
    const int64_t start[] = {1, 4}, step[] = {2, -2};
    tensor src(XM_I64, {5, 6}, counting(30)), dst(XM_I64, {2, 3});
    xm_operand s = src.operand(), d = dst.operand();
    xm_copy_space space;
    xm_copy_slice(&space, &s, &d, start, step);
    copy(XM_I64, src, dst, space);
    EXPECT_EQ(dst.read_ints(), (std::vector<int64_t>{11, 9, 7, 23, 21, 19}));
}

TEST_F(Copy, ConcatenatesAndSplits)
{
    tensor a(XM_I32, {2, 2, 3}, counting(12)), b(XM_I32, {2, 1, 3}, counting(6));
    tensor whole(XM_I32, {2, 3, 3}), part(XM_I32, {2, 1, 3});
    xm_operand oa = a.operand(), ob = b.operand(), ow = whole.operand(),
               op = part.operand();
    xm_copy_space space;
    xm_copy_concat_part(&space, &oa, &ow, 1, 0);
    copy(XM_I32, a, whole, space);
    xm_copy_concat_part(&space, &ob, &ow, 1, 2);
    copy(XM_I32, b, whole, space);
    EXPECT_EQ(whole.read_ints(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 1, 2, 3, 7, 8, 9,
                                                       10, 11, 12, 4, 5, 6}));
    xm_copy_split_part(&space, &ow, &op, 1, 1);
    copy(XM_I32, whole, part, space);
    EXPECT_EQ(part.read_ints(), (std::vector<int64_t>{4, 5, 6, 10, 11, 12}));
}

TEST_F(Copy, BroadcastsInMoreThanFourDimensions)
{
    tensor src(XM_I32, {3, 1, 2, 1, 2, 1}, counting(12));
    tensor dst(XM_I32, {2, 3, 2, 2, 2, 2, 2});
    xm_operand s = src.operand(), d = dst.operand();
    xm_copy_space space;
    xm_copy_broadcast(&space, &s, &d);
    copy(XM_I32, src, dst, space);
    std::vector<int64_t> got = dst.read_ints();
    for (size_t i = 0; i < got.size(); i++) {
        size_t e = i / 2 % 2, c = i / 8 % 2, a = i / 32 % 3;
        ASSERT_EQ(got[i], (int64_t)(a * 4 + c * 2 + e + 1)) << i;
    }
}

TEST_F(Copy, CopiesABlockWhole)
{
    tensor src(XM_F16, {4, 9}, counting(36)), dst(XM_F16, {4, 9});
    xm_operand s = src.operand(), d = dst.operand();
    xm_copy_space space;
    xm_copy_broadcast(&space, &s, &d);
    copy(XM_F16, src, dst, space);
    EXPECT_EQ(dst.read(), src.read());
}

TEST_F(Copy, RefusesASpaceOutsideItsOperands)
{
    tensor src(XM_I32, {4}, counting(4)), dst(XM_I32, {4});
    xm_copy_space space = {};
    space.rank = 1;
    space.extent[0] = 4;
    space.src_stride[0] = 1;
    space.dst_stride[0] = 1;
    space.dst_offset = 1;
    xm_copy_desc desc = {XM_I32};
    primitive_ptr copy;
    ASSERT_XM_OK(xm_copy_create(engine, &desc, &copy.p, &err));
    const xm_operand operands[] = {src.operand(), dst.operand()};
    EXPECT_EQ(xm_copy_enqueue(copy.p, operands, &space, &run, &err), XM_INVALID);
}

} // namespace
