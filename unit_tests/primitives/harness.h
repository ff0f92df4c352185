/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of primitives share: the engine (without a device the test is skipped, and says so),
 * device tensors filled with NaN between guard bytes, and comparisons by row.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_HARNESS_H
#define XM_UNIT_TESTS_PRIMITIVES_HARNESS_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "primitives/primitive.h"
#include "primitives/variant.h"
#include "unit_tests/compare.h"
#include "unit_tests/primitives/tolerance.h"
#include "unit_tests/sample.h"

/* The engine and queue that all tests of a program share; without a device, `why` says the
 * reason. */
struct device {
    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
    std::string why;

    static device &get()
    {
        static device d;
        return d;
    }
    ~device()
    {
        xm_queue_destroy(queue);
        xm_engine_unref(engine);
    }

  private:
    device()
    {
        const xm_device_info *infos = nullptr;
        size_t n = 0;
        xm_error err = {};
        if (xm_engine_list(&infos, &n, &err) != XM_OK || n == 0)
            why = n == 0 && err.status == XM_OK ? "no OpenCL device" : err.text;
        else if (xm_engine_create(0, nullptr, &engine, &err) != XM_OK ||
                 xm_queue_create(engine, &queue, &err) != XM_OK)
            why = err.text;
    }
};

class PrimitiveTest : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        if (!device::get().queue)
            GTEST_SKIP() << device::get().why;
        engine = device::get().engine;
        queue = device::get().queue;
        run.queue = queue;
    }
    void TearDown() override
    {
        unsetenv("XM_FORCE");
        unsetenv("POCL_EXTRA_BUILD_FLAGS");
    }

    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
    xm_run run = {};
    xm_error err = {};
};

/* A test of kernels that require a sub-group size; skipped on devices without it. */
class SubGroupTest : public PrimitiveTest
{
  protected:
    void SetUp() override
    {
        PrimitiveTest::SetUp();
        if (!IsSkipped() && !xm_device_really_has(xm_engine_info(engine),
                                                  XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE))
            GTEST_SKIP() << "no sub-groups of a required size";
    }
};

#define ASSERT_XM_OK(expr) ASSERT_EQ(expr, XM_OK) << err.text

/* Sets XM_FORCE: until the test ends, `step` runs the variant `name`. */
inline void
force(const char *step, const char *name)
{
    setenv("XM_FORCE", (std::string(step) + "=" + name).c_str(), 1);
}

/* Sets whether PoCL optimises the kernels that it compiles until the test ends. Variants for GPUs
 * are tested here only for their results, and compile six times as fast without optimisation. */
inline void
optimise(bool on)
{
    if (on || sample::is_whole())
        unsetenv("POCL_EXTRA_BUILD_FLAGS");
    else
        setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 1);
}
inline void
optimise_for(const xm_variant &row)
{
    optimise(row.family != XM_FAMILY_GEN && row.family != XM_FAMILY_SG);
}

/* Tests each variant of table t that the device can run, ignoring its shape limits: forces it
 * with XM_FORCE and calls takes(variant, i) on cases, untested ones first, until n calls returned
 * true (case taken). The last variant gets all cases that none took. Fails if one remains.
 * Without sampling (unit_tests/sample.h) each variant gets every case. */
inline void
for_rows(const xm_variant_table &t, size_t n_cases, size_t n,
         const std::function<bool(const xm_variant &, size_t)> &takes)
{
    std::vector<const xm_variant *> rows;
    for (size_t v = 0; v < t.n; v++) {
        xm_variant any_shape = t.rows[v];
        any_shape.refuses = nullptr;
        const xm_device_info *info = xm_engine_info(device::get().engine);
        if (!xm_variant_refusal(&any_shape, info, nullptr))
            rows.push_back(&t.rows[v]);
    }
    sample::deck deck(n_cases);
    for (const xm_variant *row : rows) {
        SCOPED_TRACE(row->name);
        force(t.step, row->name);
        optimise_for(*row);
        auto takes_case = [&](size_t i) { return takes(*row, i); };
        deck.deal(n, takes_case);
        if (row == rows.back())
            deck.deal_rest(takes_case);
    }
    EXPECT_TRUE(deck.all_taken()) << t.step << ": no row took some of the cases";
}

/* Returns n reproducible values in [-1, 1). */
inline std::vector<float>
random_floats(size_t n, uint32_t seed)
{
    std::mt19937 gen(seed);
    std::uniform_real_distribution<float> value(-1.0f, 1.0f);
    std::vector<float> v(n);
    for (float &f : v)
        f = value(gen);
    return v;
}

/* A dense tensor on the device between guard bytes, filled with bytes 0xff (NaN) where no values
 * are given. */
class tensor
{
  public:
    tensor(xm_element element, std::vector<int64_t> dims)
        : element_(element), dims_(std::move(dims))
    {
        n_ = 1;
        for (int64_t d : dims_)
            n_ *= (uint64_t)d;
        bytes_ = n_ * xm_element_bits(element) / 8;
        uint64_t align = xm_engine_info(device::get().engine)->base_align;
        guard_ = align > 64 ? align : 64;
        raw_.assign(2 * guard_ + bytes_, guard_byte);
        std::fill_n(raw_.begin() + (long)guard_, bytes_, (uint8_t)0xff);
        xm_error err = {};
        EXPECT_EQ(xm_buffer_create(device::get().engine, XM_USE_HOST, raw_.size(),
                                   &whole_, &err),
                  XM_OK)
            << err.text;
        EXPECT_EQ(xm_buffer_view(whole_, guard_, bytes_ ? bytes_ : 1, &view_, &err),
                  XM_OK)
            << err.text;
        upload();
    }
    tensor(xm_element element, std::vector<int64_t> dims,
           const std::vector<float> &values)
        : tensor(element, std::move(dims))
    {
        EXPECT_EQ(values.size(), n_);
        for (size_t i = 0; i < n_; i++)
            xm_store_float(element_, data(), i, values[i]);
        upload();
    }
    tensor(xm_element element, std::vector<int64_t> dims,
           const std::vector<int64_t> &values)
        : tensor(element, std::move(dims))
    {
        EXPECT_EQ(values.size(), n_);
        for (size_t i = 0; i < n_; i++)
            xm_store_int(element_, data(), i, values[i]);
        upload();
    }
    tensor(const tensor &) = delete;
    tensor &operator=(const tensor &) = delete;
    ~tensor()
    {
        xm_buffer_unref(view_);
        xm_buffer_unref(whole_);
    }

    xm_operand operand() const
    {
        xm_operand o = {};
        o.buffer = view_;
        o.element = element_;
        o.rank = (uint32_t)dims_.size();
        for (size_t d = 0; d < dims_.size(); d++)
            o.dim[d] = dims_[d];
        return o;
    }
    xm_buffer *buffer() const
    {
        return view_;
    }
    uint64_t size() const
    {
        return n_;
    }

    /* Waits for all launches, checks the guard bytes and returns the elements as f32. */
    std::vector<float> read()
    {
        download();
        std::vector<float> v(n_);
        for (size_t i = 0; i < n_; i++)
            v[i] = xm_load_float(element_, data(), i);
        return v;
    }
    std::vector<int64_t> read_ints()
    {
        download();
        std::vector<int64_t> v(n_);
        for (size_t i = 0; i < n_; i++)
            v[i] = xm_load_int(element_, data(), i);
        return v;
    }
    /* Returns the tensor's initial values after rounding to its type: what a reference should
     * read. */
    std::vector<float> rounded() const
    {
        std::vector<float> v(n_);
        for (size_t i = 0; i < n_; i++)
            v[i] = xm_load_float(element_, raw_.data() + guard_, i);
        return v;
    }

  private:
    static constexpr uint8_t guard_byte = 0xa5;

    uint8_t *data()
    {
        return raw_.data() + guard_;
    }
    void upload()
    {
        xm_error err = {};
        EXPECT_EQ(xm_queue_write(device::get().queue, whole_, 0, raw_.data(), raw_.size(),
                                 &err),
                  XM_OK)
            << err.text;
    }
    void download()
    {
        xm_error err = {};
        EXPECT_EQ(
            xm_queue_read(device::get().queue, whole_, 0, raw_.data(), raw_.size(), &err),
            XM_OK)
            << err.text;
        size_t damaged = 0;
        for (size_t i = 0; i < guard_; i++)
            damaged += raw_[i] != guard_byte || raw_[guard_ + bytes_ + i] != guard_byte;
        EXPECT_EQ(damaged, 0u) << "guard bytes were overwritten";
    }

    xm_element element_;
    std::vector<int64_t> dims_;
    uint64_t n_ = 0, bytes_ = 0, guard_ = 0;
    std::vector<uint8_t> raw_;
    xm_buffer *whole_ = nullptr, *view_ = nullptr;
};

/* Compares row by row with the type's tolerance for each element. Reports the first wrong element
 * of the first wrong row. */
inline ::testing::AssertionResult
rows_match(const std::vector<float> &got, const std::vector<float> &want, size_t row,
           xm_element element)
{
    tolerance t = tolerance_of(element);
    if (got.size() != want.size())
        return ::testing::AssertionFailure()
               << got.size() << " elements, expected " << want.size();
    for (size_t i = 0; i < got.size(); i++) {
        if (distance(got[i], want[i]) <= t.absolute + t.relative * magnitude(want[i]))
            continue;
        return ::testing::AssertionFailure()
               << "row " << i / row << " element " << i % row << ": " << got[i]
               << ", expected " << want[i];
    }
    return ::testing::AssertionSuccess();
}

/* Compares row by row: the largest error of a row must be within a tolerance relative to its
 * largest magnitude (at least 1). Long sums have no meaningful error per element. */
inline ::testing::AssertionResult
rows_within(const std::vector<float> &got, const std::vector<float> &want, size_t row,
            double tolerance)
{
    if (got.size() != want.size())
        return ::testing::AssertionFailure()
               << got.size() << " elements, expected " << want.size();
    for (size_t first = 0; first < want.size(); first += row) {
        float largest = 1, error = 0;
        for (size_t i = first; i < first + row; i++) {
            largest = std::fmax(largest, magnitude(want[i]));
            error = std::fmax(error, distance(got[i], want[i]));
        }
        if (error > tolerance * largest)
            return ::testing::AssertionFailure()
                   << "row " << first / row << ": error " << error << ", largest value "
                   << largest;
    }
    return ::testing::AssertionSuccess();
}

/* As rows_within(), with the relative tolerance of the type. */
inline ::testing::AssertionResult
rows_close(const std::vector<float> &got, const std::vector<float> &want, size_t row,
           xm_element element)
{
    return rows_within(got, want, row, tolerance_of(element).relative);
}

/* Compares row by row: the norm of the error must be within `relative` times the norm of the row,
 * so that errors in a row of small values show. */
inline ::testing::AssertionResult
rows_within_norm(const std::vector<float> &got, const std::vector<float> &want,
                 size_t row, double relative)
{
    if (got.size() != want.size())
        return ::testing::AssertionFailure()
               << got.size() << " elements, expected " << want.size();
    for (size_t first = 0; first < want.size(); first += row) {
        double norm = 0, error = 0;
        for (size_t i = first; i < first + row; i++) {
            norm += std::pow((double)magnitude(want[i]), 2);
            error += std::pow((double)distance(got[i], want[i]), 2);
        }
        if (!(std::sqrt(error) <= relative * std::sqrt(norm)))
            return ::testing::AssertionFailure()
                   << "row " << first / row << ": an error of " << std::sqrt(error)
                   << ", the row's norm is " << std::sqrt(norm);
    }
    return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult
rows_of_norm(const std::vector<float> &got, const std::vector<float> &want, size_t row,
             xm_element element)
{
    return rows_within_norm(got, want, row, (double)tolerance_of(element).relative);
}

/* Owns a primitive. */
struct primitive_ptr {
    xm_primitive *p = nullptr;
    ~primitive_ptr()
    {
        xm_primitive_destroy(p);
    }
};

#endif
