/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels/cl/budget.txt lists a build of every kernel for matrix engines or for products of four
 * bytes, with every weight format that the variant tables allow: tools/check_budget compiles all
 * of them.
 */
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "primitives/moe/experts.h"
#include "primitives/product.h"
#include "primitives/tables.h"

namespace
{

enum { N = 4096, K = 2048, GROUP = 128 };

/* A weight large enough for any kernel; no bytes of it are read. */
xm_weight
plain(xm_weight_format format, xm_element element)
{
    static const uint8_t byte = 0;
    xm_weight w = {};
    w.format = format;
    w.element = element;
    w.rank = 2;
    w.experts = 1;
    w.rows = N;
    w.cols = K;
    w.data = {&byte, (uint64_t)N * K};
    w.group = format != XM_WEIGHT_ELEMENTS || element == XM_F16 ? 0 : GROUP;
    w.scale_element = element == XM_F4E2M1 ? XM_F8E8M0 : XM_F16;
    return w;
}

std::vector<xm_weight>
weights()
{
    std::vector<xm_weight> all;
    for (int format = XM_WEIGHT_ELEMENTS + 1; format < XM_WEIGHT_FORMATS; format++)
        all.push_back(plain((xm_weight_format)format, XM_DYNAMIC));
    for (int element = 0; element < XM_ELEMENT_COUNT; element++)
        if (element != XM_BOOL) /* weights are not quantized to boolean */
            all.push_back(plain(XM_WEIGHT_ELEMENTS, (xm_element)element));
    return all;
}

/* Returns the define that says how the weight is stored: -DFORMAT0=…, -DWEI=… or -DCODES=…. */
std::string
stored_as(const xm_weight &w)
{
    char defines[XM_WEIGHT_DEFINES];
    xm_weight_defines(xm_one_weight(&w), defines, sizeof(defines));
    return std::string(defines).substr(0, std::string(defines).find(' '));
}

/* A line of budget.txt: kernel, chips with figures, options. */
struct build {
    std::string kernel, chips, options;
    bool has(const std::string &option) const
    {
        return options.find(" " + option + " ") != std::string::npos;
    }
};

std::vector<build>
watched()
{
    std::ifstream file(XM_SOURCE_DIR "/kernels/cl/budget.txt");
    std::vector<build> all;
    std::vector<std::string> chips;
    for (std::string line, word; std::getline(file, line);) {
        std::istringstream words(line);
        if (line.rfind("# kernel", 0) == 0) {
            for (words >> word >> word; words >> word && word != "options";)
                chips.push_back(word);
        } else if (line[0] != '#') {
            build b;
            words >> b.kernel;
            for (const std::string &chip : chips)
                if (words >> word && word != "-")
                    b.chips += " " + chip;
            for (b.options = " "; words >> word;)
                b.options += word + " ";
            all.push_back(b);
        }
    }
    return all;
}

/* Returns the chip whose figures stand for all chips with the variant's instructions. */
std::string
chip_for(const xm_variant &row)
{
    return row.caps & XM_CAP_DPAS ? " lnl" : " tgllp";
}

bool
is_build_of(const build &b, const xm_variant &row)
{
    return b.kernel == xm_variant_kernel(&row) && b.has("-DSHARES=4") == row.shares &&
           b.chips.find(chip_for(row)) != std::string::npos;
}

bool
is_watched(const std::vector<build> &builds, const xm_variant &row,
           const std::string &option)
{
    for (const build &b : builds)
        if (is_build_of(b, row) && b.has(option))
            return true;
    return false;
}

/* Calls check(variant) for the table's variants for matrix engines or for products of four bytes.
 */
template <typename Check>
void
each_row(const xm_variant_table &table, Check check)
{
    for (size_t i = 0; i < table.n; i++)
        if (table.rows[i].caps & (XM_CAP_DPAS | XM_CAP_DP4A))
            check(table.rows[i]);
}

TEST(WatchedBuilds, HaveEveryFormatThatARowTakes)
{
    const std::vector<build> builds = watched();
    size_t rows = 0;
    const auto check = [&](const xm_variant &row) {
        size_t taken = 0;
        rows++;
        for (const xm_weight &w : weights()) {
            xm_product p = {};
            p.weights = {{&w, &w}, 2};
            p.src = XM_F16;
            if (row.refuses(&p))
                continue;
            taken++;
            EXPECT_TRUE(is_watched(builds, row, stored_as(w)))
                << row.name << " with " << stored_as(w)
                << ": list it in kernels/cl/sg_builds.txt, then tools/check_budget "
                   "--update";
        }
        EXPECT_GE(taken, 18u) << row.name;
    };
    for (const xm_variant_table &table : xm_linear_tables)
        each_row(table, check);
    for (xm_moe_step step :
         {XM_MOE_GATE_UP, XM_MOE_DOWN, XM_MOE_GEMM_GATE_UP, XM_MOE_GEMM_DOWN})
        each_row(xm_moe_tables[step], check);
    EXPECT_GE(rows, 12u);
}

TEST(WatchedBuilds, HaveTheOptionsOfExperts)
{
    const std::vector<build> builds = watched();
    each_row(xm_moe_tables[XM_MOE_GATE_UP], [&](const xm_variant &row) {
        EXPECT_TRUE(is_watched(builds, row, "-DROUTES=1")) << row.name;
        EXPECT_TRUE(is_watched(builds, row, "-DPARTIAL=1")) << row.name;
    });
    each_row(xm_moe_tables[XM_MOE_DOWN], [&](const xm_variant &row) {
        EXPECT_TRUE(is_watched(builds, row, "-DPARTIAL=1")) << row.name;
    });
}

} // namespace
