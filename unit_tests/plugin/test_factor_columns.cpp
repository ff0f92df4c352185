/* SPDX-License-Identifier: Apache-2.0
 *
 * How many columns of 8-bit activations share a scale, by weight format, processor and user; on
 * an engine that only counts.
 */
#include <set>

#include "plugin/gpu/planner.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

/* Returns the numbers of columns a scale, of each product that reads 8-bit activations. */
std::set<uint32_t>
factors(const std::string &format, uint32_t caps, const char *of_user)
{
    Graph g = parse("%0 = parameter f16[T,512] name=\"x\"\n"
                    "%1 = weight f16[512] f16 @0\n"
                    "%2 = rms_norm %0, %1 epsilon=0.001\n"
                    "%3 = weight f16[64,512] " +
                    format +
                    " @1\n"
                    "%4 = matmul %2, %3 transpose_b=true\n"
                    "result %4 name=\"y\"");
    xm_device_info info = {};
    xm_program *p = nullptr;
    xm_config config;
    xm_error err = {};
    info.kind = XM_DEVICE_CPU;
    info.caps = caps;
    info.global_bytes = (uint64_t)1 << 33;
    info.max_alloc_bytes = info.global_bytes;
    info.max_work_group = 1024;
    info.compute_units = 4;
    xm_config_init(&config);
    EXPECT_XM_OK(xm_config_set(&config, "INFERENCE_PRECISION_HINT", "f16", &err));
    if (of_user) {
        EXPECT_XM_OK(
            xm_config_set(&config, "DYNAMIC_QUANTIZATION_GROUP_SIZE", of_user, &err));
    }
    EXPECT_XM_OK(xm_planner_compile(&info, &config, g.release(), &p, &err));
    std::set<uint32_t> found;
    for (uint32_t i = 0; p && i < p->n_values; i++)
        if (p->values[i].form.form == XM_FORM_BYTES)
            found.insert(p->values[i].form.factor);
    xm_program_unref(p);
    return found;
}

TEST(FactorColumns, SuitTheWeightsUnlessTheUserSays)
{
    const uint32_t avx512 = XM_CAP_SHORT_PAIRS | XM_CAP_FP16,
                   avx2 = avx512 | XM_CAP_BYTE_PAIRS_ONLY,
                   vnni = avx512 | XM_CAP_BYTE_DOTS;
    const struct {
        const char *format;
        uint32_t caps;
        const char *of_user;
        std::set<uint32_t> want;
    } cases[] = {
        {"q4_0", avx2, nullptr, {32}},   {"q4_k", avx2, nullptr, {128}},
        {"q6_k", avx2, nullptr, {128}},  {"q4_k", vnni, nullptr, {128}},
        {"q6_k", vnni, nullptr, {128}},  {"q4_k", vnni, "32", {32}},
        {"q4_k", avx512, nullptr, {32}}, {"q4_k", avx2, "32", {32}},
        {"q4_0", avx2, "128", {128}},    {"q4_k", avx2, "0", {}},
        {"iq4_xs", avx2, nullptr, {}},   {"iq4_xs", vnni, nullptr, {32}},
        {"iq4_xs", avx2, "128", {}},
    };
    for (const auto &c : cases)
        EXPECT_EQ(factors(c.format, c.caps, c.of_user), c.want)
            << c.format << " " << (c.of_user ? c.of_user : "");
}

} // namespace
