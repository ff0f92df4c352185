/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts in host memory with caches of several sizes: the same bits whatever is offloaded and
 * cached, statistics, requests that take turns, failures, and a device that runs out of memory.
 */
#include "plugin/expert_caches.h"

#include "plugin/planner.h"
#include "plugin/readers/openvino_ir.h"
#include "primitives/moe/expert_cache.h"
#include "runtime/fake/fake.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

enum { VOCABULARY = 256 };
const char *const tiny = "qwen3moe-tiny/ov/int4_asym_g64";

Graph
read(const std::string &model)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    const std::string path = XM_MODELS_DIR "/" + model + "/openvino_model.xml";
    EXPECT_XM_OK(xm_openvino_ir_read(path.c_str(), nullptr, &g, &err));
    return Graph(g, xm_graph_destroy);
}

xm_expert_cache_stats
stats_of(const xm_program *p)
{
    xm_expert_cache_stats s = {};
    xm_error err = {};
    EXPECT_XM_OK(xm_expert_caches_stats(p, &s, &err));
    return s;
}

/* A prompt, tokens, a few tokens at once, a token: the bytes of all logits. */
std::vector<uint8_t>
talk(xm_request *r)
{
    std::vector<uint8_t> bytes;
    uint32_t seed = 3;
    for (int64_t n : {40, 1, 1, 1, 3, 1}) {
        Tensor t = logits(r, {{some_ids(n, seed++, VOCABULARY)}});
        EXPECT_TRUE(t);
        if (!t)
            break;
        std::vector<uint8_t> more = packed(t.get());
        bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
}

class ExpertCaches : public OpenClTest
{
  protected:
    Program compile_tiny(const char *ratio, const char *mib, const char *model = tiny)
    {
        return must_compile(engine, read(model),
                            {{"OFFLOAD_RATIO", ratio}, {"XM_EXPERT_CACHE", mib}});
    }
};

struct Case {
    const char *model, *small;
};
const Case cases[] = {{tiny, "1"},
                      {"gpt-oss-tiny/ov/int4_sym_g64", "1"},
                      {"gemma4-moe-tiny/ov/int4_asym_g32", "2"}};

TEST_F(ExpertCaches, ChangeNoBit)
{
    for (const Case &c : cases) {
        SCOPED_TRACE(c.model);
        std::vector<uint8_t> want;
        for (const char *ratio : {"0", "30", "100"}) {
            for (const char *mib : {"0", c.small, "64"}) {
                SCOPED_TRACE(std::string(ratio) + " %, " + mib + " MiB");
                Program p = compile_tiny(ratio, mib, c.model);
                ASSERT_TRUE(p);
                Request r = make_request(p.get());
                std::vector<uint8_t> got = talk(r.get());
                if (want.empty())
                    want = got;
                ASSERT_EQ(got, want);
                xm_expert_cache_stats s = stats_of(p.get());
                EXPECT_EQ(s.layers > 0, *ratio != '0' && *mib != '0');
                EXPECT_EQ(s.misses > 0, s.layers > 0);
            }
        }
    }
}

} // namespace
