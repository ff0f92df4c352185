/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of external plugins, and their memory.
 */
#include "unit_tests/plugin/external_test.h"

namespace
{

class ExternalContext : public External
{
  protected:
    ~ExternalContext() override
    {
        xm_infer_destroy(infer);
        infer = nullptr;
        for (xm_remote *m : {x, y})
            xm_remote_destroy(m);
        xm_context_unref(context);
    }

    xm_status make_context()
    {
        const xm_context_wish wish = {};
        err = {};
        return plugin->ops->create_context(plugin, 0, &wish, &context, &err);
    }

    xm_status make_memory(xm_context *c, void *handle, uint64_t bytes, xm_remote **out)
    {
        const xm_remote_wish wish = {XM_SHARED_OCL_BUFFER, handle, bytes};
        err = {};
        return xm_context_create_remote(c, &wish, out, &err);
    }

    /* Creates a context, compiles a model in it and makes a request. */
    void open_in_context()
    {
        ASSERT_XM_OK(create());
        ASSERT_XM_OK(make_context());
        ASSERT_XM_OK(plugin->ops->compile_in(plugin, context,
                                             parse(softmax_of_product).release(), nullptr,
                                             0, &compiled, &err));
        ASSERT_XM_OK(xm_compiled_create_request(compiled, &infer, &err));
    }

    xm_context *context = nullptr;
    xm_remote *x = nullptr, *y = nullptr;
    const xm_host_tensor shape = {XM_F32, 3, {1, 1, 2}, nullptr, 8};
};

TEST_F(ExternalContext, RunsOnMemoryThatIsShared)
{
    float in[2] = {1, 2}, out[3] = {};
    open_in_context();
    xm_strbuf text = {};
    size_t pairs = 0;
    context->ops->params(context, &text, &pairs);
    EXPECT_EQ(take(&text), "CONTEXT_TYPE context");
    EXPECT_EQ(pairs, 1u);
    context->ops->device_name(context, &text);
    EXPECT_EQ(take(&text), "SCRIPTED");
    ASSERT_XM_OK(make_memory(context, in, sizeof(in), &x));
    ASSERT_XM_OK(make_memory(context, out, sizeof(out), &y));
    x->ops->params(x, &text, &pairs);
    EXPECT_EQ(take(&text), "SHARED_MEM_TYPE OCL_BUFFER");
    ASSERT_XM_OK(infer->ops->set_remote_input(infer, 0, &shape, x, &err));
    ASSERT_XM_OK(infer->ops->set_remote_output(infer, 0, y, &err));
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    xm_host_tensor t = {};
    ASSERT_XM_OK(infer->ops->describe_output(infer, 0, &t, &err));
    EXPECT_EQ(t.bytes, sizeof(out));
    EXPECT_NEAR(out[0] + out[1] + out[2], 1, 1e-6);
    /* the result lies in the remote tensor */
    EXPECT_EQ(infer->ops->output(infer, 0, &t, &err), XM_DEVICE);
    ASSERT_XM_OK(infer->ops->set_remote_output(infer, 0, nullptr, &(err = {})));
    EXPECT_EQ(result(), (std::vector<float>{out[0], out[1], out[2]}));
    xm_context *again = nullptr;
    ASSERT_XM_OK(compiled->ops->get_context(compiled, &again, &err));
    EXPECT_EQ(again, context);
    xm_context_unref(again);
}

TEST_F(ExternalContext, MemoryGrowsWhereItIsOurs)
{
    char foreign[8];
    ASSERT_XM_OK(create());
    ASSERT_XM_OK(make_context());
    ASSERT_XM_OK(make_memory(context, nullptr, 8, &x));
    ASSERT_XM_OK(make_memory(context, foreign, 8, &y));
    ASSERT_XM_OK(x->ops->grow(x, 100, &err));
    EXPECT_EQ(x->bytes, 100u);
    EXPECT_EQ(y->ops->grow(y, 100, &err), XM_INVALID);
    script.fails = "create_memory";
    err = {};
    EXPECT_EQ(x->ops->grow(x, 200, &err), XM_DEVICE);
    EXPECT_EQ(x->bytes, 100u);
}

/* A request keeps the memory it was given until it is given other memory, also when a tensor
 * grows. */
TEST_F(ExternalContext, MemoryThatGrowsStaysForTheRequestsThatHaveIt)
{
    open_in_context();
    ASSERT_XM_OK(make_memory(context, nullptr, 8, &x));
    ASSERT_XM_OK(make_memory(context, nullptr, 12, &y));
    ASSERT_XM_OK(infer->ops->set_remote_input(infer, 0, &shape, x, &err));
    ASSERT_XM_OK(infer->ops->set_remote_output(infer, 0, y, &err));
    ASSERT_XM_OK(x->ops->grow(x, 100, &err));
    ASSERT_XM_OK(y->ops->grow(y, 100, &err));
    EXPECT_EQ(script.calls, "");
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    script.calls = "";
    ASSERT_XM_OK(infer->ops->set_remote_input(infer, 0, &shape, x, &err));
    EXPECT_EQ(script.calls, "memory;");
    ASSERT_XM_OK(infer->ops->set_remote_output(infer, 0, nullptr, &err));
    EXPECT_EQ(script.calls, "memory;memory;");
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    ASSERT_XM_OK(infer->ops->set_remote_output(infer, 0, y, &err));
    xm_remote_destroy(x);
    xm_remote_destroy(y);
    x = y = nullptr;
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    std::vector<float> host = {1, 2};
    ASSERT_XM_OK(set({1, 1, 2}, &host));
    EXPECT_EQ(script.calls, "memory;memory;memory;");
    xm_infer_destroy(infer);
    infer = nullptr;
    EXPECT_EQ(script.calls, "memory;memory;memory;request;memory;");
}

TEST_F(ExternalContext, RefusesWhatIsOfAnother)
{
    open_in_context();
    xm_context *first = context;
    context = nullptr;
    ASSERT_XM_OK(make_context());
    ASSERT_XM_OK(make_memory(context, nullptr, 12, &x));
    EXPECT_EQ(infer->ops->set_remote_input(infer, 0, &shape, x, &err), XM_INVALID);
    EXPECT_STREQ(
        err.text,
        "the memory of the tensor belongs to another remote context than the model");
    EXPECT_EQ(infer->ops->set_remote_output(infer, 0, x, &err), XM_INVALID);
    ASSERT_XM_OK(make_memory(first, nullptr, 12, &y));
    err = {};
    EXPECT_EQ(infer->ops->set_remote_output(infer, 1, y, &err), XM_NOT_FOUND);
    xm_host_tensor wide = shape;
    wide.dim[2] = 3;
    wide.bytes = 12;
    err = {};
    EXPECT_EQ(infer->ops->set_remote_input(infer, 0, &wide, y, &err), XM_INVALID);
    xm_plugin *other = nullptr;
    xm_compiled *c = nullptr;
    err = {};
    ASSERT_XM_OK(xm_external_create("SCRIPTED", scripted::entry, nullptr, &other, &err));
    EXPECT_EQ(other->ops->compile_in(other, first, parse(softmax_of_product).release(),
                                     nullptr, 0, &c, &err),
              XM_INVALID);
    other->ops->destroy(other);
    xm_context_unref(first);
}

TEST_F(ExternalContext, FailsWithTheSentenceOfThePlugin)
{
    open_in_context();
    ASSERT_XM_OK(make_memory(context, nullptr, 12, &x));
    const auto expect = [&](const char *function, xm_status found) {
        EXPECT_EQ(found, XM_DEVICE) << function;
        EXPECT_STREQ(err.text, "plugin SCRIPTED: the script says so") << function;
        script.fails = "";
        err = {};
    };
    xm_context *c = context;
    script.fails = "create_context";
    expect("create_context", make_context());
    context = c;
    script.fails = "create_memory";
    expect("create_memory", make_memory(context, nullptr, 8, &y));
    script.fails = "set_remote_input";
    expect("set_remote_input", infer->ops->set_remote_input(infer, 0, &shape, x, &err));
    script.fails = "set_remote_output";
    expect("set_remote_output", infer->ops->set_remote_output(infer, 0, x, &err));
    script.gives_nothing = true;
    EXPECT_EQ(make_memory(context, nullptr, 8, &y), XM_DEVICE);
    EXPECT_EQ(make_context(), XM_DEVICE);
    EXPECT_EQ(y, nullptr);
}

TEST_F(ExternalContext, IsThereAsAWholeOrNotAtAll)
{
    script.ops.create_memory = nullptr;
    EXPECT_EQ(create(), XM_INVALID);
    EXPECT_STREQ(
        err.text,
        "plugin SCRIPTED has create_context but no create_memory, which it then needs");
    script.ops.bytes =
        offsetof(xm_ext_ops, create_context); /* a table from before contexts existed */
    open(softmax_of_product);
    EXPECT_EQ(plugin->ops->create_context, nullptr);
    EXPECT_EQ(infer->ops->set_remote_input, nullptr);
    xm_context *c = nullptr;
    EXPECT_EQ(compiled->ops->get_context(compiled, &c, &err), XM_UNSUPPORTED);
}

TEST_F(ExternalContext, DiesAfterWhatIsInIt)
{
    open_in_context();
    ASSERT_XM_OK(make_memory(context, nullptr, 8, &x));
    plugin->ops->destroy(plugin);
    plugin = nullptr;
    xm_context_unref(context);
    context = nullptr;
    xm_infer_destroy(infer);
    infer = nullptr;
    xm_compiled_unref(compiled);
    compiled = nullptr;
    EXPECT_EQ(script.calls, "request;compiled;");
    xm_remote_destroy(x);
    x = nullptr;
    EXPECT_EQ(script.calls, "request;compiled;memory;context;plugin;");
}

} // namespace
