/* SPDX-License-Identifier: Apache-2.0
 *
 * Random weights of any format for tests. Their bytes begin at an odd address, as they may in a
 * file.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_WEIGHT_FIXTURE_H
#define XM_UNIT_TESTS_PRIMITIVES_WEIGHT_FIXTURE_H

#include <algorithm>
#include <memory>
#include <set>

#include "unit_tests/primitives/harness.h"

struct weight_format {
    xm_element element;
    uint64_t group; /* 0: not quantized; UINT64_MAX: one per row */
    bool has_zero_point;
    xm_element scale = XM_F16;
    bool group_major = false, scalar_zero_point = false;
    /* XM_WEIGHT_ELEMENTS: the members above describe the weight; any other block format ignores
     * them. */
    xm_weight_format blocks = XM_WEIGHT_ELEMENTS;
    /* A view of a larger weight, with rows, columns and experts around it. */
    bool is_view = false;
    bool has_codebook = false, has_factors = false;
    xm_element zero = XM_DYNAMIC; /* of zero points; XM_DYNAMIC: the weights' */
};

inline weight_format
blocks_of(int format)
{
    weight_format f = {XM_DYNAMIC, 0, false};
    f.blocks = (xm_weight_format)format;
    return f;
}

inline weight_format
view_of(weight_format f)
{
    f.is_view = true;
    return f;
}

inline weight_format
with_zeros(weight_format f, xm_element zero)
{
    f.zero = zero;
    return f;
}

inline weight_format
codebook_of(weight_format f)
{
    f.element = XM_U4;
    f.has_codebook = true;
    return f;
}

inline weight_format
with_factors(weight_format f)
{
    f.has_factors = true;
    return f;
}

/* Returns formats of codes (small floats, codebooks), which kernels read in runs of 16 like
 * blocks. */
inline std::vector<weight_format>
code_formats()
{
    return {
        {XM_NF4, 64, false},
        {XM_NF4, 32, false, XM_F32, true},
        {XM_F4E2M1, 32, false, XM_F8E8M0},
        {XM_F4E2M1, UINT64_MAX, false, XM_BF16},
        {XM_F8E4M3, 32, false, XM_F8E8M0},
        {XM_F8E4M3, UINT64_MAX, false, XM_F32},
        {XM_F8E4M3, 0, false},
        {XM_F8E5M2, 64, false},
        {XM_F8E5M2, 128, false, XM_F8E5M2},
        codebook_of({XM_U4, 32, false}),
        codebook_of({XM_U4, 0, false}),
        with_factors({XM_F4E2M1, 16, false, XM_F8E4M3}),
        with_factors({XM_F16, 0, false}),
        with_factors({XM_BF16, 0, false}),
        with_factors({XM_F32, 0, false}),
        with_factors(blocks_of(XM_WEIGHT_NVFP4)),
        view_of({XM_NF4, 32, false, XM_F32, true}),
        view_of({XM_F8E5M2, 0, false}),
        view_of({XM_F4E2M1, 32, false, XM_F8E8M0}),
        view_of(codebook_of({XM_U4, 32, false})),
        view_of(with_factors({XM_F4E2M1, 16, false, XM_F8E4M3, true})),
        view_of(with_factors({XM_F16, 0, false})),
        view_of(with_factors(blocks_of(XM_WEIGHT_Q4_K))),
        /* groups smaller than 16 codes */
        {XM_NF4, 8, false},
        view_of({XM_F8E4M3, 4, false, XM_F8E8M0}),
    };
}

inline std::vector<weight_format>
with_codes(std::vector<weight_format> formats)
{
    for (const weight_format &f : code_formats())
        formats.push_back(f);
    return formats;
}

/* Returns a sample of code_formats(); all of them with XM_TEST_ALL=1. */
inline std::vector<weight_format>
some_codes()
{
    enum { SOME = 5 };
    return sample::of(code_formats(), SOME);
}

/* Returns block format i modulo BLOCK_FORMATS, in the order of the table of weight formats. */
enum { BLOCK_FORMATS = XM_WEIGHT_FORMATS - 1 };
inline weight_format
blocks_number(size_t i)
{
    return blocks_of(XM_WEIGHT_ELEMENTS + 1 + (int)(i % BLOCK_FORMATS));
}

/* Returns the formats and, after them, every block format as a whole weight and as a view. */
inline std::vector<weight_format>
with_blocks(std::vector<weight_format> formats)
{
    for (size_t i = 0; i < BLOCK_FORMATS; i++) {
        formats.push_back(blocks_number(i));
        formats.push_back(view_of(blocks_number(i)));
    }
    return formats;
}

/* Returns a sample of the block formats and their views; all of them with XM_TEST_ALL=1. */
inline std::vector<weight_format>
some_blocks()
{
    enum { SOME = 6 };
    return sample::of(with_blocks({}), SOME);
}

/* Returns the smallest number of columns that a view may be cut at: the group or the block. */
inline uint64_t
unit_of(const weight_format &f, uint64_t k)
{
    if (f.group)
        return f.group == UINT64_MAX ? k : f.group;
    return xm_weight_formats[f.blocks].block_cols;
}

/* Returns a format for a second weight of a kernel that takes weights of several formats. For a
 * block format it is the i-th block format after f that divides k columns; for others f itself.
 * Every second one of the block formats has factors if f has them. */
inline weight_format
beside(const weight_format &f, uint64_t k, size_t i)
{
    weight_format other = f;
    other.has_factors = f.has_factors && (!f.blocks || i % 2 == 0);
    while (f.blocks != XM_WEIGHT_ELEMENTS && i > 0) {
        other.blocks = blocks_number((size_t)other.blocks).blocks;
        i -= k % unit_of(other, k) == 0;
    }
    return other;
}

inline std::string
text_of(const weight_format &f)
{
    const std::string of = f.blocks ? xm_weight_formats[f.blocks].text
                                    : std::string(xm_element_text(f.element)) + " g" +
                                          std::to_string(f.group);
    return of + (f.has_codebook ? " codebook" : "") + (f.has_factors ? " factors" : "") +
           (f.has_zero_point ? " zp" : "") +
           (f.zero == XM_DYNAMIC ? "" : xm_element_text(f.zero)) +
           (f.group_major ? " group-major" : "") + (f.is_view ? ", a view" : "");
}

struct test_weight {
    xm_weight host = {};
    xm_device_weight *device = nullptr;

    test_weight(uint64_t experts, uint64_t n, uint64_t k, const weight_format &f,
                uint32_t seed)
        : gen(seed)
    {
        const uint64_t unit = unit_of(f, k);
        /* whether a view cuts columns, too */
        const bool cuts = f.is_view && f.group != UINT64_MAX;
        store(f.is_view ? experts + 2 : experts, f.is_view ? n + 6 : n,
              cuts ? k + 3 * unit : k, f);
        if (f.is_view) {
            EXPECT_STREQ(xm_weight_slice_rows(&host, 2, n), nullptr);
            EXPECT_STREQ(xm_weight_slice_experts(&host, 1, experts), nullptr);
            EXPECT_STREQ(xm_weight_slice_cols(&host, cuts ? unit : 0, k), nullptr);
        }
        EXPECT_STREQ(xm_weight_check(&host), nullptr);
        xm_error err = {};
        EXPECT_EQ(xm_device_weight_create(device::get().engine, &host, &device, &err),
                  XM_OK)
            << err.text;
    }
    test_weight(const test_weight &) = delete;
    test_weight &operator=(const test_weight &) = delete;
    ~test_weight()
    {
        xm_device_weight_unref(device);
    }

  private:
    std::mt19937 gen;
    std::vector<uint8_t> data, scale, zero_point;
    std::vector<float> codebook, factor;

    void store(uint64_t experts, uint64_t n, uint64_t k, const weight_format &f)
    {
        host.format = f.blocks;
        host.rank = experts > 1 ? 3 : 2;
        host.experts = experts;
        host.rows = n;
        host.cols = k;
        if (f.has_codebook)
            fill_floats(codebook, host.codebook, XM_CODEBOOK_NUMBERS, -1.0f);
        if (f.has_factors)
            fill_floats(factor, host.factor, experts, 0.25f);
        if (f.blocks) {
            fill_blocks();
            return;
        }
        host.element = f.element;
        fill(data, host.data, f.element, experts * n * k, 1.0f);
        if (f.group) {
            host.group = unit_of(f, k);
            host.scale_element = f.scale;
            host.order = f.group_major ? XM_SCALE_GROUP_MAJOR : XM_SCALE_ROW_MAJOR;
            uint64_t groups = experts * n * (k / host.group);
            /* Scales make the weights lie in [-1, 1], whatever the integer type. */
            const bool is_float = xm_element_is_float(f.element) || f.has_codebook;
            float size = is_float                          ? 1.0f
                         : xm_element_bits(f.element) == 4 ? 1.0f / 8
                                                           : 1.0f / 128;
            fill(scale, host.scale, f.scale, groups, size);
            host.zero_point_is_scalar = f.scalar_zero_point;
            if (f.has_zero_point) {
                host.zero_point_element = f.zero == XM_DYNAMIC ? f.element : f.zero;
                fill(zero_point, host.zero_point, host.zero_point_element,
                     f.scalar_zero_point ? 1 : groups, 1.0f / size);
            }
        }
    }

    /* Returns whether the largest magnitude of a block is between 0.25 and 2, as in other
     * weights. */
    bool is_sane(const uint8_t *block)
    {
        std::vector<float> v(xm_weight_info(&host)->block_cols);
        float largest = 0;
        xm_weight_info(&host)->decode(block, v.data());
        for (float x : v)
            largest = x == x ? std::fmax(largest, std::fabs(x)) : INFINITY;
        return largest > 0.25f && largest < 2.0f;
    }

    /* Returns random bytes whose decoded numbers are sane; needs no knowledge of the format. */
    std::vector<uint8_t> sane_block()
    {
        enum { MOST_TRIES = 100000 };
        std::vector<uint8_t> block(xm_weight_info(&host)->block_bytes);
        for (int i = 0; i < MOST_TRIES; i++) {
            for (uint8_t &b : block)
                b = (uint8_t)gen();
            if (is_sane(block.data()))
                return block;
        }
        ADD_FAILURE() << "no sane block of " << xm_weight_info(&host)->text;
        return block;
    }

    /* Fills the weight with 24 random blocks in random order. */
    void fill_blocks()
    {
        const xm_weight_format_info *f = xm_weight_info(&host);
        std::vector<std::vector<uint8_t>> some(24);
        for (std::vector<uint8_t> &block : some)
            block = sane_block();
        data.resize(1 + host.experts * host.rows * (host.cols / f->block_cols) *
                            f->block_bytes);
        for (size_t at = 1; at < data.size(); at += f->block_bytes)
            std::copy_n(some[gen() % some.size()].data(), f->block_bytes, &data[at]);
        host.data = {data.data() + 1, data.size() - 1};
    }

    /* Appends n numbers between `least` and 1; `view` points at them. */
    void fill_floats(std::vector<float> &numbers, xm_bytes &view, uint64_t n, float least)
    {
        std::uniform_real_distribution<float> value(least, 1.0f);
        for (uint64_t i = 0; i < n; i++)
            numbers.push_back(value(gen));
        view = {(const uint8_t *)numbers.data(), n * sizeof(float)};
    }

    /* Returns a random code of a small float that is not NaN and not far from 1. */
    uint8_t small_bits(xm_element e)
    {
        if (e == XM_F8E8M0)
            return (uint8_t)(124 + gen() % 4);
        if (e == XM_F8E4M3 || e == XM_F8E5M2)
            return (uint8_t)(gen() & 0xbf);
        return (uint8_t)gen();
    }

    void fill(std::vector<uint8_t> &bytes, xm_bytes &view, xm_element e, uint64_t n,
              float size)
    {
        uint64_t n_bytes = 0;
        EXPECT_TRUE(xm_element_bytes(e, n, &n_bytes));
        bytes.resize(n_bytes + 1);
        view.p = bytes.data() + 1;
        view.n = n_bytes;
        if (!xm_element_is_float(e) || xm_element_is_small_float(e)) {
            for (uint8_t &b : bytes)
                b = small_bits(e);
            return;
        }
        std::uniform_real_distribution<float> value(-size, size);
        for (uint64_t i = 0; i < n; i++)
            xm_store_float(e, bytes.data() + 1, i, value(gen));
    }
};

/* Returns the names of the variants that the device can run, ignoring shape limits. A test must
 * have run all of them when it ends. */
inline std::set<std::string>
rows_to_cover(const xm_variant_table &t)
{
    std::set<std::string> names;
    for (size_t i = 0; i < t.n; i++) {
        const xm_variant row = {t.rows[i].name, t.rows[i].family, t.rows[i].caps,
                                nullptr};
        if (!xm_variant_refusal(&row, xm_engine_info(device::get().engine), nullptr))
            names.insert(row.name);
    }
    return names;
}

/* A run with scratch memory of the size that plan returns, filled with NaN: reading scratch that
 * was not written shows. */
struct planned_run {
    xm_run run = {};
    planned_run(const xm_primitive *p, const xm_operand *operands, xm_queue *queue)
    {
        uint64_t bytes = 0;
        xm_error err = {};
        run.queue = queue;
        EXPECT_EQ(xm_primitive_plan(p, operands, nullptr, &bytes, &err), XM_OK)
            << err.text;
        if (bytes) {
            EXPECT_EQ(xm_buffer_create(xm_queue_engine(queue), XM_USE_DEVICE, bytes,
                                       &run.scratch, &err),
                      XM_OK)
                << err.text;
            EXPECT_EQ(xm_queue_fill(queue, run.scratch, 0, 0xff, bytes, &err), XM_OK)
                << err.text;
        }
    }
    ~planned_run()
    {
        xm_buffer_unref(run.scratch);
    }
};

#endif
