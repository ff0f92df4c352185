/* SPDX-License-Identifier: Apache-2.0
 *
 * Models without states: the program passes the cache as an input and gets it back longer.
 */
#include <algorithm>

#include "functional_tests/api/small_model.h"

namespace
{

class Stateless : public testing::TestWithParam<const char *>
{
};

INSTANTIATE_TEST_SUITE_P(Devices, Stateless, testing::Values("CPU", "REFERENCE"),
                         [](const auto &info) { return info.param; });

// A cache that the program keeps: "past_key_values.0.key" in, "present.0.key" out, and the sum of
// the rows that the mask shows.
TEST_P(Stateless, ProgramsKeepTheCacheThemselves)
{
    SmallModel m;
    const std::string cache = "?,1,?,2";
    const int ids = m.parameter("input_ids", "i64", "?,?");
    const int mask = m.parameter("attention_mask", "i64", "?,?");
    const int past = m.parameter("past_key_values.0.key", "f32", cache);
    const int table =
        m.constant<float>("f32", "4,2", {1, 2, 30, 40, 500, 600, 7e3f, 8e3f});
    const int zero = m.constant<int64_t>("i64", "", {0}),
              one = m.constant<int64_t>("i64", "1", {1}),
              both = m.constant<int64_t>("i64", "2", {1, 2});
    const int x = m.layer("Gather", 8, "batch_dims=\"0\"", {table, ids, zero},
                          {{"f32", "?,?,2", ""}});
    const int x4 = m.layer("Unsqueeze", 1, "", {x, one}, {{"f32", cache, ""}});
    const int all =
        m.layer("Concat", 1, "axis=\"2\"", {past, x4}, {{"f32", cache, "present.0.key"}});
    const int shown =
        m.layer("Convert", 1, "destination_type=\"f32\"", {mask}, {{"f32", "?,?", ""}});
    const int row = m.layer("Unsqueeze", 1, "", {shown, both}, {{"f32", "?,1,1,?", ""}});
    m.result(m.layer("MatMul", 1, "transpose_a=\"false\" transpose_b=\"false\"",
                     {row, all}, {{"f32", "?,1,1,2", "sum"}}));
    m.result(all);
    Core core = make_core();
    Model model = m.read(core.get());
    Compiled c = compile(core.get(), model.get(), GetParam());
    Request r = make_request(c.get());
    std::vector<float> kept;
    const auto step = [&](int64_t batch, std::vector<int64_t> tokens,
                          std::vector<int64_t> seen) {
        const int64_t n = (int64_t)tokens.size() / batch,
                      before = (int64_t)kept.size() / 2 / batch;
        std::vector<float> fed(kept.size() +
                               1); // a tensor without elements needs an address, too
        std::copy(kept.begin(), kept.end(), fed.begin());
        Tensor i = tensor_of(I64, {batch, n}, tokens),
               s = tensor_of(I64, {batch, before + n}, seen),
               p = tensor_of(F32, {batch, 1, before, 2}, fed);
        EXPECT_EQ(ov_infer_request_set_tensor(r.get(), "input_ids", i.get()), OK);
        EXPECT_EQ(ov_infer_request_set_tensor(r.get(), "attention_mask", s.get()), OK);
        EXPECT_EQ(ov_infer_request_set_tensor(r.get(), "past_key_values.0.key", p.get()),
                  OK);
        EXPECT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
        kept = numbers_of<float>(r.get(), "present.0.key");
        return numbers_of<float>(r.get(), "sum");
    };
    using Floats = std::vector<float>;
    EXPECT_EQ(step(1, {0, 1}, {1, 1}), Floats({31, 42}));
    EXPECT_EQ(step(1, {2}, {1, 0, 1}), Floats({501, 602}));
    EXPECT_EQ(step(1, {3}, {1, 1, 1, 1}), Floats({7531, 8642}));
    kept.clear();
    EXPECT_EQ(step(2, {0, 1, 2, 3}, {1, 1, 1, 1}), Floats({31, 42, 7500, 8600}));
}

} // namespace
