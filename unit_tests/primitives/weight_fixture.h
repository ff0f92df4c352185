/* SPDX-License-Identifier: Apache-2.0
 *
 * Random weights of any format for tests: bytes at an odd address, like a file's.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_WEIGHT_FIXTURE_H
#define XM_UNIT_TESTS_PRIMITIVES_WEIGHT_FIXTURE_H

#include <memory>
#include <set>

#include "unit_tests/primitives/harness.h"

struct weight_format {
    xm_element element;
    uint64_t group; /* 0: not quantised; UINT64_MAX: per row */
    bool has_zero_point;
    xm_element scale = XM_F16;
    bool group_major = false, scalar_zero_point = false;
};

inline std::string
text_of(const weight_format &f)
{
    return std::string(xm_element_text(f.element)) + " g" + std::to_string(f.group) +
           (f.has_zero_point ? " zp" : "") + (f.group_major ? " group-major" : "");
}

struct test_weight {
    xm_weight host = {};
    xm_device_weight *device = nullptr;

    test_weight(uint64_t experts, uint64_t n, uint64_t k, const weight_format &f,
                uint32_t seed)
        : gen(seed)
    {
        host.element = f.element;
        host.rank = experts > 1 ? 3 : 2;
        host.experts = experts;
        host.rows = n;
        host.cols = k;
        fill(data, host.data, f.element, experts * n * k, 1.0f);
        if (f.group) {
            host.group = f.group == UINT64_MAX ? k : f.group;
            host.scale_element = f.scale;
            host.order = f.group_major ? XM_SCALE_GROUP_MAJOR : XM_SCALE_ROW_MAJOR;
            uint64_t groups = experts * n * (k / host.group);
            /* weights in [-1, 1], whatever the integer type */
            float size = xm_element_bits(f.element) == 4 ? 1.0f / 8 : 1.0f / 128;
            fill(scale, host.scale, f.scale, groups, size);
            host.zero_point_is_scalar = f.scalar_zero_point;
            if (f.has_zero_point) {
                host.zero_point_element = f.element;
                fill(zero_point, host.zero_point, f.element,
                     f.scalar_zero_point ? 1 : groups, 1.0f);
            }
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

    void fill(std::vector<uint8_t> &bytes, xm_bytes &view, xm_element e, uint64_t n,
              float size)
    {
        uint64_t n_bytes = 0;
        EXPECT_TRUE(xm_element_bytes(e, n, &n_bytes));
        bytes.resize(n_bytes + 1);
        view.p = bytes.data() + 1;
        view.n = n_bytes;
        if (!xm_element_is_float(e)) {
            for (uint8_t &b : bytes)
                b = (uint8_t)gen();
            return;
        }
        std::uniform_real_distribution<float> value(-size, size);
        for (uint64_t i = 0; i < n; i++)
            xm_store_float(e, bytes.data() + 1, i, value(gen));
    }
};

/* The rows of a table that the device could take: what a test must have run before it ends. */
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

/* Scratch of the size that plan asks for. */
struct planned_run {
    xm_run run = {};
    planned_run(const xm_primitive *p, const xm_operand *operands, xm_queue *queue)
    {
        uint64_t bytes = 0;
        xm_error err = {};
        run.queue = queue;
        EXPECT_EQ(xm_primitive_plan(p, operands, &bytes, &err), XM_OK) << err.text;
        if (bytes) {
            EXPECT_EQ(xm_buffer_create(xm_queue_engine(queue), XM_USE_DEVICE, bytes,
                                       &run.scratch, &err),
                      XM_OK)
                << err.text;
        }
    }
    ~planned_run()
    {
        xm_buffer_unref(run.scratch);
    }
};

#endif
