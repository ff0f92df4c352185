/* SPDX-License-Identifier: Apache-2.0
 *
 * Config rules for every chip of devices.def, compared with a table written by hand; parsers.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/config.h"

namespace
{

/* The config of each chip. onednn: for a dense program, for fused MoE, for unfused MoE. */
struct expectation {
    const char *chip;
    bool dpas;
    xm_tristate dense, fused, unfused;
    xm_element kv;
    xm_tristate copy;
};

const expectation expectations[] = {
    /* clang-format off */
    {"skl",   false, XM_NO,  XM_NO,  XM_NO,  XM_I8,  XM_YES},
    {"kbl",   false, XM_NO,  XM_NO,  XM_NO,  XM_I8,  XM_YES},
    {"cfl",   false, XM_NO,  XM_NO,  XM_NO,  XM_I8,  XM_YES},
    {"bxt",   false, XM_NO,  XM_NO,  XM_NO,  XM_I8,  XM_YES},
    {"glk",   false, XM_NO,  XM_NO,  XM_NO,  XM_I8,  XM_YES},
    {"cml",   false, XM_NO,  XM_NO,  XM_NO,  XM_I8,  XM_YES},
    {"icl",   false, XM_NO,  XM_NO,  XM_NO,  XM_I8,  XM_YES},
    {"ehl",   false, XM_NO,  XM_NO,  XM_NO,  XM_I8,  XM_YES},
    {"tgl",   false, XM_NO,  XM_YES, XM_NO,  XM_I8,  XM_YES},
    {"rkl",   false, XM_NO,  XM_YES, XM_NO,  XM_I8,  XM_YES},
    {"adl_s", false, XM_NO,  XM_YES, XM_NO,  XM_I8,  XM_YES},
    {"adl_p", false, XM_NO,  XM_YES, XM_NO,  XM_I8,  XM_YES},
    {"adl_n", false, XM_NO,  XM_YES, XM_NO,  XM_I8,  XM_YES},
    {"dg1",   false, XM_NO,  XM_YES, XM_NO,  XM_I8,  XM_YES},
    {"xe_hp", true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_YES},
    {"dg2",   true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_YES},
    {"dg2_g11", true, XM_YES, XM_YES, XM_YES, XM_F16, XM_YES},
    {"dg2_g12", true, XM_YES, XM_YES, XM_YES, XM_F16, XM_YES},
    {"pvc",   true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_YES},
    {"mtl_u", false, XM_NO,  XM_YES, XM_NO,  XM_I8,  XM_YES},
    {"mtl_h", false, XM_NO,  XM_YES, XM_NO,  XM_I8,  XM_YES},
    {"arl_h", true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_YES},
    {"bmg",   true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_YES},
    {"lnl",   true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_NO},
    {"ptl",   true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_NO},
    {"nvl_s", true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_NO},
    {"nvl_u", true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_NO},
    {"nvl_p", true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_NO},
    {"cri",   true,  XM_YES, XM_YES, XM_YES, XM_F16, XM_YES},
    /* clang-format on */
};

xm_device_info
chip(const xm_device_row &row)
{
    xm_device_info d = {};
    d.kind = XM_DEVICE_GPU;
    d.vendor_id = 0x8086;
    d.ip_major = row.major;
    d.ip_minor = row.minor_first;
    d.caps = XM_CAP_FP16;
    d.integrated = row.integrated;
    xm_device_apply_tables(&d);
    return d;
}

xm_device_info
chip_named(const std::string &name)
{
    size_t n;
    const xm_device_row *rows = xm_device_rows(&n);
    for (size_t i = 0; i < n; i++) {
        if (name == rows[i].name)
            return chip(rows[i]);
    }
    ADD_FAILURE() << "no chip " << name;
    return {};
}

xm_device_info
cpu()
{
    xm_device_info d = {};
    d.kind = XM_DEVICE_CPU;
    d.caps = XM_CAP_UNIFIED | XM_CAP_HOST_VISIBLE;
    return d;
}

xm_config
defaults()
{
    xm_config c;
    xm_config_init(&c);
    return c;
}

xm_config
with(const char *name, const char *value)
{
    xm_config c = defaults();
    xm_error err = {};
    EXPECT_EQ(xm_config_set(&c, name, value, &err), XM_OK) << err.text;
    return c;
}

/* Returns the config after its rules were applied without an error. */
xm_config
finalised(xm_config c, const xm_device_info &d, bool moe = false, bool fused = false)
{
    const xm_program_facts program = {fused, moe, false, false};
    xm_error err = {};
    EXPECT_EQ(xm_config_finalise(&c, &d, &program, nullptr, &err), XM_OK) << err.text;
    return c;
}

TEST(ConfigRules, FollowTheTableOnEveryChip)
{
    size_t n;
    const xm_device_row *rows = xm_device_rows(&n);
    ASSERT_EQ(n, std::size(expectations));
    for (size_t i = 0; i < n; i++) {
        const expectation &e = expectations[i];
        SCOPED_TRACE(e.chip);
        ASSERT_STREQ(rows[i].name, e.chip);
        const xm_device_info d = chip(rows[i]);
        EXPECT_EQ(xm_device_has(&d, XM_CAP_DPAS), e.dpas);
        EXPECT_EQ(finalised(defaults(), d).use_onednn, e.dense);
        EXPECT_EQ(finalised(defaults(), d, true, true).use_onednn, e.fused);
        const xm_config c = finalised(defaults(), d, true, false);
        EXPECT_EQ(c.use_onednn, e.unfused);
        EXPECT_EQ(c.kv_cache_precision, e.kv);
        EXPECT_EQ(c.copy_weights, e.copy);
        EXPECT_EQ(c.inference_precision, XM_F16);
        EXPECT_EQ(c.queue_type, XM_QUEUE_IN_ORDER);
    }
}

/* The result of each user setting on a chip of each family; every cell is written by hand.
 * onednn: for a dense program, for fused MoE, for unfused MoE; "error": the settings exclude each
 * other; "-": as in the chip's row above. */
enum Family { BEFORE_XE_LP, FROM_XE_LP, MATRIX, FAMILIES };

struct Setting {
    std::vector<std::pair<const char *, const char *>> properties;
    const char *onednn[FAMILIES];
    const char *queue, *kv, *copy, *precision;
};

const Setting settings[] = {
    /* clang-format off */
    {{{"GPU_USE_ONEDNN", "NO"}},             {"N N N", "N N N", "N N N"}, "in_order", "-",   "-",   "f16"},
    {{{"GPU_USE_ONEDNN", "YES"}},            {"Y Y Y", "Y Y Y", "Y Y Y"}, "in_order", "-",   "-",   "f16"},
    {{{"GPU_USE_ONEDNN", "AUTO"}},           {"N N N", "N Y N", "Y Y Y"}, "in_order", "-",   "-",   "f16"},
    {{{"GPU_QUEUE_TYPE", "in_order"}},       {"N N N", "N Y N", "Y Y Y"}, "in_order", "-",   "-",   "f16"},
    {{{"GPU_QUEUE_TYPE", "out_of_order"}},   {"N N N", "N N N", "N N N"}, "out_of_order", "-", "-", "f16"},
    {{{"GPU_QUEUE_TYPE", "out_of_order"},
      {"GPU_USE_ONEDNN", "NO"}},             {"N N N", "N N N", "N N N"}, "out_of_order", "-", "-", "f16"},
    {{{"GPU_QUEUE_TYPE", "out_of_order"},
      {"GPU_USE_ONEDNN", "YES"}},            {"error", "error", "error"}, "",         "",    "",    ""},
    {{{"KV_CACHE_PRECISION", "i8"}},         {"N N N", "N Y N", "Y Y Y"}, "in_order", "i8",  "-",   "f16"},
    {{{"KV_CACHE_PRECISION", "f16"}},        {"N N N", "N Y N", "Y Y Y"}, "in_order", "f16", "-",   "f16"},
    {{{"KV_CACHE_PRECISION", "f32"}},        {"N N N", "N Y N", "Y Y Y"}, "in_order", "f32", "-",   "f16"},
    {{{"INFERENCE_PRECISION_HINT", "f16"}},  {"N N N", "N Y N", "Y Y Y"}, "in_order", "-",   "-",   "f16"},
    {{{"INFERENCE_PRECISION_HINT", "f32"}},  {"N N N", "N Y N", "Y Y Y"}, "in_order", "f32", "-",   "f32"},
    {{{"INFERENCE_PRECISION_HINT", "f32"},
      {"KV_CACHE_PRECISION", "i8"}},         {"N N N", "N Y N", "Y Y Y"}, "in_order", "i8",  "-",   "f32"},
    {{{"EXECUTION_MODE_HINT", "ACCURACY"}},  {"N N N", "N Y N", "Y Y Y"}, "in_order", "f32", "-",   "f32"},
    {{{"EXECUTION_MODE_HINT", "ACCURACY"},
      {"INFERENCE_PRECISION_HINT", "f16"}},  {"N N N", "N Y N", "Y Y Y"}, "in_order", "-",   "-",   "f16"},
    {{{"XM_COPY_WEIGHTS", "NO"}},            {"N N N", "N Y N", "Y Y Y"}, "in_order", "-",   "NO",  "f16"},
    {{{"XM_COPY_WEIGHTS", "YES"}},           {"N N N", "N Y N", "Y Y Y"}, "in_order", "-",   "YES", "f16"},
    {{{"DYNAMIC_QUANTIZATION_GROUP_SIZE",
       "32"}},                               {"N N N", "N Y N", "Y Y Y"}, "in_order", "-",   "-",   "f16"},
    /* clang-format on */
};

Family
family_of(const expectation &e)
{
    return e.dpas ? MATRIX : e.fused == XM_YES ? FROM_XE_LP : BEFORE_XE_LP;
}

std::string
text_of(const xm_config &c, const char *name)
{
    xm_strbuf out = {};
    xm_error err = {};
    EXPECT_EQ(xm_config_get(&c, name, &out, &err), XM_OK) << err.text;
    std::string text = xm_strbuf_text(&out);
    xm_strbuf_free(&out);
    return text;
}

/* Returns the cell; for "-" the chip's value without the setting. */
std::string
or_own(const char *cell, const xm_config &own, const char *name)
{
    return strcmp(cell, "-") == 0 ? text_of(own, name) : cell;
}

void
expect_setting(const Setting &s, const expectation &e, const xm_device_info &d)
{
    const char *const want = s.onednn[family_of(e)];
    const xm_config own = finalised(defaults(), d);
    std::string onednn;
    for (const xm_program_facts &program : {xm_program_facts{false, false, false, false},
                                            {true, true, false, false},
                                            {false, true, false, false}}) {
        xm_config c = defaults();
        xm_error err = {};
        for (const auto &p : s.properties)
            ASSERT_EQ(xm_config_set(&c, p.first, p.second, &err), XM_OK) << err.text;
        enum xm_status status = xm_config_finalise(&c, &d, &program, nullptr, &err);
        ASSERT_EQ(status == XM_OK, strcmp(want, "error") != 0) << err.text;
        if (status != XM_OK)
            continue;
        onednn += (onednn.empty() ? "" : " ") + text_of(c, "GPU_USE_ONEDNN").substr(0, 1);
        EXPECT_EQ(text_of(c, "GPU_QUEUE_TYPE"), s.queue);
        EXPECT_EQ(text_of(c, "KV_CACHE_PRECISION"),
                  or_own(s.kv, own, "KV_CACHE_PRECISION"));
        EXPECT_EQ(text_of(c, "XM_COPY_WEIGHTS"), or_own(s.copy, own, "XM_COPY_WEIGHTS"));
        EXPECT_EQ(text_of(c, "INFERENCE_PRECISION_HINT"), s.precision);
    }
    if (strcmp(want, "error") != 0) {
        EXPECT_EQ(onednn, want);
    }
}

TEST(ConfigRules, FollowTheTableOfSettingsOnEveryChip)
{
    size_t n;
    const xm_device_row *rows = xm_device_rows(&n);
    ASSERT_EQ(n, std::size(expectations));
    for (size_t i = 0; i < n; i++) {
        const xm_device_info d = chip(rows[i]);
        for (const Setting &s : settings) {
            SCOPED_TRACE(std::string(rows[i].name) + ", " + s.properties[0].first +
                         " = " + s.properties[0].second);
            expect_setting(s, expectations[i], d);
        }
    }
}

/* The rule of OpenVINO's GPU plugin gives 32 or a whole row. Here no GPU kernel quantizes
 * activations by that rule. */
TEST(ConfigRules, ActivationsAreQuantisedOnNoChip)
{
    size_t n;
    const xm_device_row *rows = xm_device_rows(&n);
    for (size_t i = 0; i < n; i++) {
        xm_config c = defaults();
        xm_strbuf why = {};
        xm_error err = {};
        const xm_device_info d = chip(rows[i]);
        ASSERT_EQ(xm_config_finalise(&c, &d, nullptr, &why, &err), XM_OK) << err.text;
        EXPECT_EQ(c.dynamic_quantization_group_size, 0u) << rows[i].name;
        EXPECT_EQ(std::string(xm_strbuf_text(&why)).find("DYNAMIC_QUANTIZATION"),
                  std::string::npos)
            << xm_strbuf_text(&why);
        xm_strbuf_free(&why);
    }
}

/* Whether prompts are quantized to 8-bit integers, and how many columns share a scale. */
TEST(ConfigRules, ProcessorsWithBytesQuantiseF16PromptsUnlessAccuracyIsAskedFor)
{
    using Properties = std::vector<std::pair<const char *, const char *>>;
    const char *const size = "DYNAMIC_QUANTIZATION_GROUP_SIZE";
    const uint32_t shorts = XM_CAP_SHORT_PAIRS,
                   bytes = XM_CAP_SHORT_PAIRS | XM_CAP_BYTE_DOTS;
    const struct {
        uint32_t caps;
        Properties properties;
        const char *reads;
        uint32_t columns;
        bool is_stateless;
    } cases[] = {
        {bytes, {}, "32", 32, false},
        {shorts, {}, "32", 32, false},
        {0, {}, "0", 0, false},
        {bytes, {}, "0", 0, true},
        {bytes, {{"EXECUTION_MODE_HINT", "ACCURACY"}}, "0", 0, false},
        {bytes,
         {{"EXECUTION_MODE_HINT", "ACCURACY"}, {"INFERENCE_PRECISION_HINT", "f16"}},
         "0",
         0,
         false},
        {bytes, {{"INFERENCE_PRECISION_HINT", "f32"}}, "0", 0, false},
        {bytes, {{"INFERENCE_PRECISION_HINT", "bf16"}}, "0", 0, false},
        {bytes, {{"INFERENCE_PRECISION_HINT", "f16"}}, "32", 32, false},
        {bytes, {{size, "0"}}, "0", 0, false},
        {bytes, {{size, "1"}}, "1", 32, false},
        {bytes, {{size, "32"}}, "32", 32, false},
        {bytes, {{size, "127"}}, "127", 32, false},
        {bytes, {{size, "128"}}, "128", 128, false},
        {bytes, {{size, "4096"}}, "4096", 128, false},
        {bytes, {{size, "-1"}}, "18446744073709551615", 128, false},
        /* no variant takes it, neither linear nor experts */
        {shorts, {{size, "32"}}, "32", 32, false},
        {bytes, {{"EXECUTION_MODE_HINT", "ACCURACY"}, {size, "32"}}, "32", 32, false},
    };
    for (const auto &k : cases) {
        xm_config c = defaults();
        xm_error err = {};
        xm_strbuf text = {};
        xm_device_info d = cpu();
        const xm_program_facts program = {false, false, false, k.is_stateless};
        d.caps |= k.caps;
        for (const auto &p : k.properties)
            ASSERT_EQ(xm_config_set(&c, p.first, p.second, &err), XM_OK) << err.text;
        ASSERT_EQ(xm_config_finalise(&c, &d, &program, nullptr, &err), XM_OK);
        ASSERT_EQ(xm_config_get(&c, size, &text, &err), XM_OK);
        SCOPED_TRACE(k.properties.empty() ? "nothing set" : k.properties[0].second);
        EXPECT_STREQ(xm_strbuf_text(&text), k.reads);
        EXPECT_EQ(xm_config_factor_columns(&c), k.columns);
        xm_strbuf_free(&text);
    }
}

TEST(ConfigRules, OnednnComesWithAnInOrderQueueOnEveryChip)
{
    size_t n;
    const xm_device_row *rows = xm_device_rows(&n);
    for (size_t i = 0; i < n; i++) {
        SCOPED_TRACE(rows[i].name);
        const xm_device_info d = chip(rows[i]);
        for (const char *queue : {"auto", "in_order", "out_of_order"}) {
            for (bool fused : {false, true}) {
                const xm_config c =
                    finalised(with("GPU_QUEUE_TYPE", queue), d, fused, fused);
                if (c.use_onednn == XM_YES) {
                    EXPECT_EQ(c.queue_type, XM_QUEUE_IN_ORDER) << queue;
                }
            }
        }
    }
}

TEST(ConfigRules, CpuDevicesReadTheFileInPlace)
{
    const xm_config c = finalised(defaults(), cpu(), true, true);
    EXPECT_EQ(c.copy_weights, XM_NO);
    EXPECT_EQ(c.use_onednn, XM_NO);
    EXPECT_EQ(c.kv_cache_precision, XM_F16);
}

TEST(ConfigRules, OtherVendorsGpusGetNoIntelRules)
{
    xm_device_info d = {};
    d.kind = XM_DEVICE_GPU;
    d.vendor_id = 0x10de;
    xm_device_apply_tables(&d);
    const xm_config c = finalised(defaults(), d, true, true);
    EXPECT_EQ(c.use_onednn, XM_NO);
    EXPECT_EQ(c.kv_cache_precision, XM_F16);
    EXPECT_EQ(c.copy_weights, XM_YES);
}

TEST(ConfigRules, InferenceInF32MakesTheCacheF32)
{
    const xm_config c = finalised(with("INFERENCE_PRECISION_HINT", "f32"), cpu());
    EXPECT_EQ(c.kv_cache_precision, XM_F32);
}

TEST(ConfigRules, WhatKeepsNoStatesInfersInF32UnlessToldOtherwise)
{
    const struct {
        const char *key, *value;
        bool is_stateless;
        xm_element want;
    } cases[] = {
        {"EXECUTION_MODE_HINT", "PERFORMANCE", true, XM_F32},
        {"EXECUTION_MODE_HINT", "PERFORMANCE", false, XM_F16},
        {"EXECUTION_MODE_HINT", "ACCURACY", false, XM_F32},
        {"INFERENCE_PRECISION_HINT", "f16", true, XM_F16},
        {"INFERENCE_PRECISION_HINT", "dynamic", true, XM_F32},
        {"INFERENCE_PRECISION_HINT", "dynamic", false, XM_F16},
    };
    for (const auto &k : cases) {
        xm_config c = with(k.key, k.value);
        const xm_program_facts program = {false, false, false, k.is_stateless};
        const xm_device_info d = cpu();
        xm_error err = {};
        ASSERT_EQ(xm_config_finalise(&c, &d, &program, nullptr, &err), XM_OK) << err.text;
        EXPECT_EQ(c.inference_precision, k.want) << k.key << " " << k.value;
    }
}

TEST(ConfigRules, OnednnWithAnOutOfOrderQueueIsAnErrorThatSaysWhatToDrop)
{
    xm_config c = with("GPU_USE_ONEDNN", "YES");
    xm_error err = {};
    ASSERT_EQ(xm_config_set(&c, "GPU_QUEUE_TYPE", "out_of_order", &err), XM_OK);
    const xm_device_info d = cpu();
    EXPECT_EQ(xm_config_finalise(&c, &d, nullptr, nullptr, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("drop GPU_QUEUE_TYPE"), std::string::npos);
    EXPECT_FALSE(c.finalised);
}

TEST(ConfigRules, SayWhyAndAreAppliedOnce)
{
    xm_config c = defaults();
    xm_strbuf why = {};
    xm_error err = {};
    const xm_device_info d = chip_named("tgl");
    const xm_program_facts program = {true, true, true, false};
    ASSERT_EQ(xm_config_finalise(&c, &d, &program, &why, &err), XM_OK);
    const std::string text = xm_strbuf_text(&why);
    EXPECT_NE(text.find("GPU_USE_ONEDNN = YES: the model has fused MoE layers"),
              std::string::npos)
        << text;
    EXPECT_NE(
        text.find("\nKV_CACHE_PRECISION = i8: the device is an Intel GPU without DPAS\n"),
        std::string::npos);
    EXPECT_NE(text.find("\nKEY_CACHE_PRECISION = i8: the same as KV_CACHE_PRECISION\n"),
              std::string::npos);
    xm_strbuf_clear(&why);
    ASSERT_EQ(xm_config_finalise(&c, &d, nullptr, &why, &err), XM_OK);
    EXPECT_STREQ(xm_strbuf_text(&why), "");
    EXPECT_EQ(c.use_onednn, XM_YES);
    xm_strbuf_free(&why);
}

/* Keys and values have the cache's type unless one is set for either. */
TEST(ConfigRules, KeysAndValuesMayBeOfTwoTypes)
{
    const struct {
        std::vector<std::pair<const char *, const char *>> said;
        xm_element k, v;
    } cases[] = {
        {{}, XM_F16, XM_F16},
        {{{"KV_CACHE_PRECISION", "u4"}}, XM_U4, XM_U4},
        {{{"VALUE_CACHE_PRECISION", "u4"}}, XM_F16, XM_U4},
        {{{"KV_CACHE_PRECISION", "u4"}, {"KEY_CACHE_PRECISION", "i8"}}, XM_I8, XM_U4},
        {{{"EXECUTION_MODE_HINT", "ACCURACY"}, {"KEY_CACHE_PRECISION", "f16"}},
         XM_F16,
         XM_F32},
    };
    for (const auto &k : cases) {
        xm_config c = defaults();
        xm_error err = {};
        for (const auto &[name, value] : k.said)
            ASSERT_EQ(xm_config_set(&c, name, value, &err), XM_OK) << err.text;
        c = finalised(c, cpu());
        EXPECT_EQ(c.key_cache_precision, k.k);
        EXPECT_EQ(c.value_cache_precision, k.v);
    }
}

TEST(ConfigRules, RefuseValuesThatCannotWork)
{
    const struct {
        const char *name, *value;
    } bad[] = {{"XM_UBATCH", "0"},
               {"XM_UBATCH", "65537"},
               {"XM_KV_BLOCK_TOKENS", "24"},
               {"XM_KV_BLOCK_TOKENS", "0"},
               {"OFFLOAD_RATIO", "101"}};
    const xm_device_info d = cpu();
    for (const auto &b : bad) {
        xm_config c = with(b.name, b.value);
        xm_error err = {};
        EXPECT_EQ(xm_config_finalise(&c, &d, nullptr, nullptr, &err), XM_INVALID);
        EXPECT_EQ(std::string(err.text).rfind(b.name, 0), 0u) << err.text;
    }
}

TEST(ConfigText, EveryOptionGivesBackWhatItTakes)
{
    const struct {
        const char *name, *value, *back;
    } cases[] = {
        {"INFERENCE_PRECISION_HINT", "f32", "f32"},
        {"INFERENCE_PRECISION_HINT", "", "dynamic"},
        {"INFERENCE_PRECISION_HINT", "undefined", "dynamic"},
        {"INFERENCE_PRECISION_HINT", "bf16", "f32"},
        {"INFERENCE_PRECISION_HINT", "BF16", "f32"},
        {"KV_CACHE_PRECISION", "u8", "i8"},
        {"KV_CACHE_PRECISION", "bf16", "f16"},
        {"KEY_CACHE_PRECISION", "i4", "u4"},
        {"KV_CACHE_PRECISION", "undefined", "dynamic"},
        {"KV_CACHE_PRECISION", "u4", "u4"},
        {"KEY_CACHE_PRECISION", "q8_0", "i8"},
        {"VALUE_CACHE_PRECISION", "q4_0", "u4"},
        {"EXECUTION_MODE_HINT", "ACCURACY", "ACCURACY"},
        {"XM_NUMERICS", "f32", "f32"},
        {"XM_NUMERICS", "bf16", "bf16"},
        {"GPU_USE_ONEDNN", "TRUE", "YES"},
        {"GPU_USE_ONEDNN", "0", "NO"},
        {"GPU_QUEUE_TYPE", "in_order", "in_order"},
        {"DYNAMIC_QUANTIZATION_GROUP_SIZE", "18446744073709551615",
         "18446744073709551615"},
        {"XM_UBATCH", "4294967295", "4294967295"},
        {"DYNAMIC_QUANTIZATION_GROUP_SIZE", "-1", "18446744073709551615"},
        {"OFFLOAD_RATIO", "30", "30"},
        {"ENABLE_WEIGHTLESS", "true", "YES"},
        {"CPU_DENORMALS_OPTIMIZATION", "YES", "YES"},
        {"CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE", "0.5", "0.5"},
        {"ENABLE_TENSOR_PARALLEL", "YES", "YES"},
        {"MODEL_DISTRIBUTION_POLICY", "", ""},
        {"MODEL_DISTRIBUTION_POLICY", "TENSOR_PARALLEL", "TENSOR_PARALLEL"},
        {"TBB_PARTITIONER", "", "NONE"},
        {"TBB_PARTITIONER", "STATIC", "STATIC"},
        {"SNIPPETS_MODE", "DISABLE", "DISABLE"},
        {"PERF_COUNT", "YES", "YES"},
        {"CACHE_DIR", "some/folder", "some/folder"},
        {"NUM_STREAMS", "AUTO", "1"},
        {"NUM_STREAMS", "-1", "1"},
        {"NUM_STREAMS", "0", "0"},
        {"INFERENCE_PRECISION_HINT", "FP32", "f32"},
        {"PERF_COUNT", "ON", "YES"},
        {"PERF_COUNT", "off", "NO"},
        {"PERF_COUNT", "tRuE", "YES"},
        {"XM_COPY_WEIGHTS", "oN", "YES"},
        {"DEVICE_ID", "1", "1"},
        {"PERFORMANCE_HINT", "THROUGHPUT", "THROUGHPUT"},
        {"MODEL_PRIORITY", "HIGH", "HIGH"},
        {"CACHE_MODE", "OPTIMIZE_SIZE", "optimize_size"},
        {"SCHEDULING_CORE_TYPE", "PCORE_ONLY", "PCORE_ONLY"},
        {"ACTIVATIONS_SCALE_FACTOR", "-1", "-1"},
        {"ACTIVATIONS_SCALE_FACTOR", "8.5", "8.5"},
        {"LOG_LEVEL", "LOG_TRACE", "LOG_TRACE"},
        {"COMPILATION_NUM_THREADS", "5", "5"},
        {"GPU_ENABLE_LORA_OPERATION", "no", "NO"},
        {"AFFINITY", "HYBRID_AWARE", "HYBRID_AWARE"},
        {"CONFIG_FILE", "", ""},
        {"MULTI_DEVICE_PRIORITIES", "GPU,CPU", "GPU,CPU"},
    };
    for (const auto &k : cases) {
        xm_config c = with(k.name, k.value);
        xm_strbuf out = {};
        xm_error err = {};
        ASSERT_EQ(xm_config_get(&c, k.name, &out, &err), XM_OK);
        EXPECT_STREQ(xm_strbuf_text(&out), k.back) << k.name;
        xm_strbuf_free(&out);
    }
}

TEST(ConfigText, RefusesWhatItDoesNotKnow)
{
    const struct {
        const char *name, *value;
    } bad[] = {{"CONFIG_FILE", "layers.xml"},
               {"AFFINITY", "core"},
               {"INFERENCE_PRECISION_HINT", "F32"},
               {"INFERENCE_PRECISION_HINT", "i8"},
               {"INFERENCE_PRECISION_HINT", "u4"},
               {"KV_CACHE_PRECISION", "i2"},
               {"KEY_CACHE_PRECISION", "q4_1"},
               {"VALUE_CACHE_PRECISION", "f64"},
               {"MODEL_DISTRIBUTION_POLICY", "tensor"},
               {"CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE", "1.5"},
               {"CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE", "-0.5"},
               {"TBB_PARTITIONER", "static"},
               {"OFFLOAD_RATIO", "auto"},
               {"OFFLOAD_RATIO", "-2"},
               {"DYNAMIC_QUANTIZATION_GROUP_SIZE", "-2"},
               {"EXECUTION_MODE_HINT", "accuracy"},
               {"XM_NUMERICS", "f16"},
               {"KV_CACHE_PRECISION", "u3"},
               {"KEY_CACHE_PRECISION", "i3"},
               {"GPU_USE_ONEDNN", "maybe"},
               {"XM_UBATCH", "-1"},
               {"XM_UBATCH", "4294967296"},
               {"XM_UBATCH", ""},
               {"XM_UBATCH", " 1"},
               {"XM_UBATCH", "1k"},
               {"NUM_STREAMS", "auto"},
               {"DEVICE_ID", "GPU.1"},
               {"PERFORMANCE_HINT", "latency"},
               {"MODEL_PRIORITY", ""},
               {"ACTIVATIONS_SCALE_FACTOR", "8x"},
               {"ACTIVATIONS_SCALE_FACTOR", "inf"},
               {"PERF_COUNT", "yess"},
               {"PERF_COUNT", ""}};
    for (const auto &b : bad) {
        xm_config c = defaults();
        xm_error err = {};
        EXPECT_EQ(xm_config_set(&c, b.name, b.value, &err), XM_INVALID) << b.name;
        EXPECT_NE(std::string(err.text).find("expected"), std::string::npos) << err.text;
        EXPECT_EQ(std::count(std::begin(c.user_set), std::end(c.user_set), true), 0);
    }
    xm_config c = defaults();
    xm_error err = {};
    EXPECT_EQ(xm_config_set(&c, "NO_SUCH", "1", &err), XM_NOT_FOUND);
    err = {};
    EXPECT_EQ(xm_config_set(&c, "CACHE_DIR", std::string(2000, 'x').c_str(), &err),
              XM_INVALID);
    EXPECT_EQ(c.cache_dir[0], 0);
}

TEST(ConfigText, SomeWordsLeaveANumberToUs)
{
    const struct {
        xm_option option;
        const char *name, *number, *open;
    } cases[] = {{XM_OPTION_offload_ratio, "OFFLOAD_RATIO", "30", "AUTO"},
                 {XM_OPTION_offload_ratio, "OFFLOAD_RATIO", "0", "-1"},
                 {XM_OPTION_device_id, "DEVICE_ID", "1", ""}};
    for (const auto &k : cases) {
        xm_config c = with(k.name, k.number);
        xm_error err = {};
        EXPECT_TRUE(xm_config_user_set(&c, k.option)) << k.name;
        EXPECT_EQ(xm_config_set(&c, k.name, k.open, &err), XM_OK) << err.text;
        EXPECT_FALSE(xm_config_user_set(&c, k.option)) << k.name;
        EXPECT_EQ(text_of(c, k.name), "0");
    }
}

/* OpenVINO's option for caches without weights decides CACHE_MODE. */
TEST(ConfigRules, WeightlessDecidesTheCachesMode)
{
    const struct {
        const char *mode, *weightless, *want;
    } cases[] = {{"optimize_speed", nullptr, "optimize_speed"},
                 {"optimize_size", nullptr, "optimize_size"},
                 {"optimize_speed", "YES", "optimize_size"},
                 {"optimize_size", "NO", "optimize_speed"}};
    const xm_device_info d = cpu();
    for (const auto &k : cases) {
        xm_config c = with("CACHE_MODE", k.mode);
        xm_error err = {};
        if (k.weightless) {
            ASSERT_EQ(xm_config_set(&c, "ENABLE_WEIGHTLESS", k.weightless, &err), XM_OK);
        }
        ASSERT_EQ(xm_config_finalise(&c, &d, nullptr, nullptr, &err), XM_OK) << err.text;
        EXPECT_EQ(text_of(c, "CACHE_MODE"), k.want);
    }
}

TEST(ConfigText, NamesEachWordOfABooleanOnce)
{
    xm_config c = defaults();
    xm_error err = {};
    EXPECT_EQ(xm_config_set(&c, "PERF_COUNT", "maybe", &err), XM_INVALID);
    EXPECT_STREQ(err.text, "PERF_COUNT is 'maybe': expected one of YES, NO, TRUE, FALSE, "
                           "ON, OFF, 1, 0");
}

/* Returns the defaults with one option changed. */
xm_config
with_another(const char *name)
{
    const std::string before = text_of(defaults(), name);
    for (const char *value :
         {"NO", "YES", "f32", "bf16", "ACCURACY", "out_of_order", "folder", "7",
          "THROUGHPUT", "HIGH", "optimize_size", "PCORE_ONLY", "LOG_TRACE", "NUMA",
          "ROUND_ROBIN", "0.5", "TENSOR_PARALLEL", "STATIC", "DISABLE"}) {
        xm_config c = defaults();
        xm_error err = {};
        if (xm_config_set(&c, name, value, &err) == XM_OK && text_of(c, name) != before)
            return c;
    }
    ADD_FAILURE() << name << " takes no other value";
    return defaults();
}

TEST(ConfigLists, AnEngineIsSharedUnlessAnOptionOfEnginesDiffers)
{
    size_t n = 0;
    const xm_option_row *rows = xm_option_rows(&n);
    unsigned of_engines = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].name, "CONFIG_FILE") == 0)
            continue; /* it has only one value */
        const xm_config a = defaults(), b = with_another(rows[i].name);
        const bool is_engines = rows[i].list == XM_OPTIONS_ENGINE;
        EXPECT_EQ(xm_config_same_engine(&a, &b), !is_engines) << rows[i].name;
        EXPECT_TRUE(xm_config_same_engine(&b, &b)) << rows[i].name;
        of_engines += is_engines;
    }
    EXPECT_EQ(of_engines, 6u);
}

TEST(ConfigLists, OfATextOnlyWhatCountsIsCompared)
{
    xm_config a = with("CACHE_DIR", "a/long/folder"), b = with("CACHE_DIR", "short");
    xm_error err = {};
    ASSERT_EQ(xm_config_set(&a, "CACHE_DIR", "short", &err), XM_OK);
    EXPECT_TRUE(xm_config_same_engine(&a, &b));
}

TEST(ConfigText, PrintsOnlyWhatDiffersFromTheDefaults)
{
    xm_config c = with("XM_UBATCH", "64");
    EXPECT_TRUE(xm_config_user_set(&c, XM_OPTION_ubatch));
    EXPECT_FALSE(xm_config_user_set(&c, XM_OPTION_profiling));
    xm_strbuf out = {};
    xm_config_print(&c, &out);
    EXPECT_STREQ(xm_strbuf_text(&out), "XM_UBATCH = 64\n");
    xm_strbuf_free(&out);
}

} // namespace
