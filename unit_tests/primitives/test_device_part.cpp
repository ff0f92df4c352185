/* SPDX-License-Identifier: Apache-2.0
 *
 * Which parts of weights a device that shares the host's memory reads in place, and which it
 * copies.
 */
#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "primitives/primitive.h"
#include "runtime/fake/fake.h"

namespace
{

enum { ROWS = 6, COLS = 8192 };

class DevicePart : public testing::Test
{
  protected:
    void SetUp() override
    {
        info.kind = XM_DEVICE_CPU;
        info.max_alloc_bytes = 1 << 20;
        info.base_align = 64;
        info.caps = XM_CAP_HOST_VISIBLE;
        info.max_work_group = 256;
        info.local_bytes = 1024;
        snprintf(info.name, sizeof(info.name), "fake chip");
        xm_config_init(&config);
        config.copy_weights = XM_NO;
        ASSERT_EQ(xm_fake_engine_create(&info, &config, &engine, &err), XM_OK)
            << err.text;
        for (size_t i = 0; i < bytes.size(); i++)
            bytes[i] = (float)i;
        whole.format = XM_WEIGHT_ELEMENTS;
        whole.element = XM_F32;
        whole.rank = 2;
        whole.experts = 1;
        whole.rows = ROWS;
        whole.cols = COLS;
        whole.data = {reinterpret_cast<const uint8_t *>(bytes.data()),
                      bytes.size() * sizeof(float)};
    }
    void TearDown() override
    {
        xm_engine_unref(engine);
    }
    /* Returns whether the device has a copy of w's bytes. Expects that a copy has exactly the bytes
     * of w's view. */
    bool is_copied(const xm_weight &w)
    {
        xm_device_weight *d = nullptr;
        EXPECT_EQ(xm_device_part_create(engine, &w, &d, &err), XM_OK) << err.text;
        const auto *got = static_cast<const float *>(xm_buffer_host_ptr(d->data));
        const bool copied = got != bytes.data();
        for (uint64_t r = 0; r < w.rows && copied; r++)
            for (uint64_t c = 0; c < w.cols; c++)
                EXPECT_EQ(got[r * w.cols + c],
                          bytes[(w.view.first_row + r) * COLS + w.view.first_col + c]);
        if (copied) {
            EXPECT_EQ(xm_buffer_bytes(d->data), w.rows * w.cols * sizeof(float));
        }
        xm_device_weight_unref(d);
        return copied;
    }
    xm_error err = {};
    xm_device_info info = {};
    xm_config config = {};
    xm_engine *engine = nullptr;
    std::vector<float> bytes = std::vector<float>(ROWS * COLS);
    xm_weight whole = {};
};

/* A part whose rows are short and have other columns between them is copied, because a processor
 * would also fetch the bytes between them. Longer rows, or all columns, are read in place. */
TEST_F(DevicePart, IsCopiedWhereItsRowsAreShortAndApart)
{
    EXPECT_FALSE(is_copied(whole));
    xm_weight rows = whole, columns = whole, wide = whole;
    ASSERT_STREQ(xm_weight_slice_rows(&rows, 2, 3), nullptr);
    EXPECT_FALSE(is_copied(rows));
    ASSERT_STREQ(xm_weight_slice_cols(&columns, 256, 256), nullptr);
    EXPECT_TRUE(is_copied(columns));
    ASSERT_STREQ(xm_weight_slice_rows(&columns, 1, 4), nullptr);
    EXPECT_TRUE(is_copied(columns));
    ASSERT_STREQ(xm_weight_slice_cols(&wide, 4096, 2048), nullptr);
    EXPECT_TRUE(is_copied(wide)) << "8 KiB of each row";
    wide = whole;
    ASSERT_STREQ(xm_weight_slice_cols(&wide, 0, 4096), nullptr);
    EXPECT_FALSE(is_copied(wide)) << "16 KiB of each row";
}

} // namespace
