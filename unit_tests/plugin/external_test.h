/* SPDX-License-Identifier: Apache-2.0
 *
 * A fixture for tests of external plugins: it creates a scripted plugin, compiles a model with it
 * and makes a request.
 */
#ifndef XM_UNIT_TESTS_PLUGIN_EXTERNAL_TEST_H
#define XM_UNIT_TESTS_PLUGIN_EXTERNAL_TEST_H

#include <algorithm>

#include "unit_tests/graph/graph_text.h"
#include "unit_tests/plugin/scripted_plugin.h"

#define ASSERT_XM_OK(expr) ASSERT_EQ(expr, XM_OK) << err.text

inline const char softmax_of_product[] = R"(
    %0 = parameter f32[batch,tokens,2] name="x"
    %1 = const f32[2,3] {1, -2, 3, 4, 5, -6}
    %2 = matmul %0, %1 # "mul"
    %3 = softmax %2 axis=-1 # "soft"
    result %3 name="y")";

class External : public testing::Test
{
  protected:
    External()
    {
        scripted::script = &script;
        script.ops = scripted::make_table();
        script.table = &script.ops;
    }

    ~External() override
    {
        xm_infer_destroy(infer);
        xm_compiled_unref(compiled);
        if (plugin)
            plugin->ops->destroy(plugin);
    }

    xm_status create()
    {
        err = {};
        return xm_external_create("SCRIPTED", scripted::entry, nullptr, &plugin, &err);
    }

    xm_status compile(const char *text, std::vector<xm_property> properties = {})
    {
        err = {};
        return plugin->ops->compile(plugin, 0, parse(text).release(), properties.data(),
                                    static_cast<uint32_t>(properties.size()), nullptr,
                                    &compiled, &err);
    }

    /* Creates the plugin, compiles the model in `text` and creates a request. */
    void open(const char *text)
    {
        ASSERT_XM_OK(create());
        ASSERT_XM_OK(compile(text));
        ASSERT_XM_OK(xm_compiled_create_request(compiled, &infer, &err));
    }

    xm_status set(std::vector<int64_t> dims, std::vector<float> *values)
    {
        xm_host_tensor t = {XM_F32,
                            static_cast<uint32_t>(dims.size()),
                            {},
                            values->data(),
                            values->size() * sizeof(float)};
        std::copy(dims.begin(), dims.end(), t.dim);
        err = {};
        return infer->ops->set_input(infer, 0, &t, &err);
    }

    std::vector<float> result()
    {
        xm_host_tensor t = {};
        err = {};
        EXPECT_EQ(infer->ops->output(infer, 0, &t, &err), XM_OK) << err.text;
        const float *f = static_cast<float *>(t.data);
        return std::vector<float>(f, f + t.bytes / sizeof(float));
    }

    std::string property(xm_compiled *c, const char *key)
    {
        xm_strbuf text = {};
        err = {};
        if (c)
            c->ops->get_property(c, key, &text, &err);
        else
            plugin->ops->get_property(plugin, 0, key, &text, &err);
        return take(&text);
    }

    scripted::Script script;
    xm_plugin *plugin = nullptr;
    xm_compiled *compiled = nullptr;
    xm_infer *infer = nullptr;
    xm_error err = {};
};

#endif
