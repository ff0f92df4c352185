// SPDX-License-Identifier: Apache-2.0
// The input is the sampling parameters of a request, as JSON.
#include "plugin/text/sampler.h"
#include "plugin/text/sampling_json.h"
#include "unit_tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    yyjson_doc *doc = yyjson_read(reinterpret_cast<const char *>(bytes), n, 0);
    if (!doc)
        return 0;
    xm_sampling s;
    xm_sampling_lists lists = {};
    xm_error err = {};
    xm_sampling_init(&s);
    const xm_status status =
        xm_sampling_from_json(yyjson_doc_get_root(doc), nullptr, &s, &lists, &err);
    if (worked(status, err)) {
        xm_sampler *sampler = nullptr;
        const float logits[] = {0.0f, 1.0f, -1.0f, 0.5f};
        const int32_t text[] = {1, 2, 1, 2, 1};
        xm_error why = {};
        if (worked(xm_sampler_create(&s, 4, &sampler, &why), why)) {
            xm_sampler_scratch *scratch = xm_sampler_scratch_create(4);
            int32_t id = 0;
            xm_sampler_begin(sampler, text, 5, nullptr);
            for (int i = 0; i < 4; i++)
                if (xm_sampler_next(sampler, scratch, logits, &id, nullptr) == XM_OK)
                    require(id >= 0 && id < 4, "a token of the vocabulary");
            xm_sampler_scratch_free(scratch);
        }
        xm_sampler_free(sampler);
    }
    xm_sampling_lists_free(&lists);
    yyjson_doc_free(doc);
    return 0;
}
