/* SPDX-License-Identifier: Apache-2.0
 *
 * External plugins in the test's process: what they see, which of their answers are checked, and
 * the result of each failure.
 */
#include "plugin/exec_graph.h"
#include "unit_tests/plugin/external_test.h"

namespace
{

/* y = x plus the sum of all earlier x; the state begins with 10. */
const char sum_so_far[] = R"(
    %0 = parameter f32[2] name="x"
    %1 = const f32[2] {10, 10}
    %2 = read_value f32[2] %1 variable="sum"
    %3 = add %0, %2
    %4 = assign %3 variable="sum"
    result %3 name="y")";

/* ---- what a plugin sees ------------------------------------------------------------ */

TEST_F(External, SeesAModelAsItsFileHasIt)
{
    ASSERT_XM_OK(create());
    ASSERT_XM_OK(compile(softmax_of_product));
    const xm_ext_host *h = script.host;
    EXPECT_EQ(h->version, XM_EXT_VERSION);
    EXPECT_EQ(h->bytes, sizeof(*h));
    const xm_ext_model *m = reinterpret_cast<xm_external_compiled *>(compiled)->model;
    std::string text;
    for (uint32_t i = 0; i < h->model_nodes(m); i++) {
        xm_ext_node n;
        h->model_node(m, i, &n);
        text += n.op;
        for (uint32_t k = 0; k < n.n_in; k++)
            text += " " + std::to_string(n.in[k].node);
        for (uint32_t k = 0; k < n.n_attributes; k++) {
            const char *key, *value;
            h->model_attribute(m, i, k, &key, &value);
            text += std::string(" ") + key + "=" + value;
        }
        text += "\n";
    }
    EXPECT_EQ(text, "Parameter\nConst\nMatMul 0 1 transpose_a=false transpose_b=false\n"
                    "SoftMax 2 axis=-1\nResult 3\n");
    EXPECT_STREQ(h->model_name(m), "t");
    xm_ext_type t;
    h->model_type(m, {2, 0}, &t);
    EXPECT_EQ(t.rank, 3u);
    EXPECT_EQ(t.max[1], -1);
    EXPECT_EQ(t.min[2], 3);
    EXPECT_EQ(t.max[2], 3);
    xm_ext_tensor c;
    ASSERT_EQ(h->model_constant(m, 1, &c), XM_EXT_OK);
    EXPECT_EQ(c.bytes, 6 * sizeof(float));
    EXPECT_EQ(c.dim[1], 3);
    float last;
    memcpy(&last, static_cast<char *>(c.data) + 20, sizeof(last));
    EXPECT_EQ(last, -6);
    EXPECT_EQ(h->model_constant(m, 2, &c), XM_EXT_INVALID);
    xm_ext_port port;
    ASSERT_EQ(h->model_ports(m, 1), 1u);
    h->model_port(m, 1, 0, &port);
    EXPECT_STREQ(port.name, "y");
    EXPECT_EQ(port.node, 4u);
}

TEST_F(External, IsToldNothingOfNodesThatAreNotThere)
{
    ASSERT_XM_OK(create());
    ASSERT_XM_OK(compile(softmax_of_product));
    const xm_ext_host *h = script.host;
    const xm_ext_model *m = reinterpret_cast<xm_external_compiled *>(compiled)->model;
    xm_ext_node n;
    h->model_node(m, 5, &n);
    EXPECT_STREQ(n.op, "");
    const char *key, *value;
    h->model_attribute(m, 2, 2, &key, &value);
    EXPECT_STREQ(key, "");
    xm_ext_type t;
    h->model_type(m, {2, 1}, &t);
    EXPECT_EQ(t.rank, 0u);
    xm_ext_port port;
    h->model_port(m, 0, 1, &port);
    EXPECT_EQ(port.node, XM_EXT_NONE);
    xm_ext_tensor c;
    EXPECT_EQ(h->model_constant(m, 99, &c), XM_EXT_INVALID);
}

TEST_F(External, RunsNodesAsTheReferenceDoes)
{
    open(softmax_of_product);
    std::vector<float> x = {1, 2, -3, 0.5f};
    ASSERT_XM_OK(set({1, 2, 2}, &x));
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    const std::vector<float> found = result();
    EXPECT_EQ(infer->ops->past(infer), 2u);
    xm_plugin *reference = nullptr;
    xm_compiled *c = nullptr;
    xm_infer *r = nullptr;
    ASSERT_XM_OK(xm_reference_plugin_create(&reference, &err));
    ASSERT_XM_OK(reference->ops->compile(reference, 0,
                                         parse(softmax_of_product).release(), nullptr, 0,
                                         nullptr, &c, &err));
    ASSERT_XM_OK(xm_compiled_create_request(c, &r, &err));
    std::swap(r, infer);
    ASSERT_XM_OK(set({1, 2, 2}, &x));
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    EXPECT_EQ(found, result());
    std::swap(r, infer);
    xm_infer_destroy(r);
    xm_compiled_unref(c);
    reference->ops->destroy(reference);
}

TEST_F(External, KeepsStatesUntilTheyAreReset)
{
    open(sum_so_far);
    std::vector<float> x = {1, 2};
    ASSERT_XM_OK(set({2}, &x));
    for (float times : {1.f, 2.f}) {
        ASSERT_XM_OK(infer->ops->infer(infer, &err));
        EXPECT_EQ(result(), (std::vector<float>{10 + times, 10 + 2 * times}));
    }
    infer->ops->reset(infer);
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    EXPECT_EQ(result(), (std::vector<float>{11, 12}));
}

TEST_F(External, NeedsResetForStates)
{
    script.ops.reset = nullptr;
    script.ops.import_model = nullptr; /* importing needs it as well */
    ASSERT_XM_OK(create());
    ASSERT_XM_OK(compile(sum_so_far));
    EXPECT_EQ(xm_compiled_create_request(compiled, &infer, &err), XM_UNSUPPORTED);
    EXPECT_STREQ(err.text, "plugin SCRIPTED has no reset, which models with states need");
}

TEST_F(External, TakesWeightsThatOnlyTheHostKnows)
{
    open(R"(
        %0 = parameter i64[n] name="ids"
        %2 = weight f32[4,8] f32 @2
        %3 = const i64[] {0}
        %4 = gather %2, %0, %3
        result %4 name="rows")");
    const xm_ext_model *m = reinterpret_cast<xm_external_compiled *>(compiled)->model;
    xm_ext_tensor t;
    EXPECT_EQ(script.host->model_constant(m, 1, &t), XM_EXT_UNSUPPORTED);
    int64_t ids[] = {3, 0};
    const xm_host_tensor in = {XM_I64, 1, {2}, ids, sizeof(ids)};
    ASSERT_XM_OK(infer->ops->set_input(infer, 0, &in, &err));
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    EXPECT_EQ(result().size(), 16u);
    ids[0] = 4;
    EXPECT_EQ(infer->ops->set_input(infer, 0, &in, &err), XM_INVALID);
}

TEST_F(External, HearsWhyANodeDoesNotRun)
{
    open(softmax_of_product);
    const xm_ext_model *m = reinterpret_cast<xm_external_compiled *>(compiled)->model;
    scripted::Bytes bytes;
    float x[2] = {1, 2};
    xm_ext_tensor in[2] = {{XM_EXT_F32, 2, {1, 2}, x, sizeof(x)}, {}}, out[1];
    const auto run = [&](uint32_t node) {
        xm_ext_error why = {""};
        const int32_t s =
            script.host->run_node(m, node, in, out, scripted::Bytes::alloc, &bytes, &why);
        EXPECT_EQ(s == XM_EXT_OK, why.text[0] == '\0');
        return std::make_pair(s, std::string(why.text));
    };
    EXPECT_EQ(run(2).first, XM_EXT_OK);
    EXPECT_EQ(run(9).second, "the model has 5 nodes, there is no 9");
    EXPECT_EQ(run(0).first, XM_EXT_INVALID); /* a parameter alone has no value */
    in[0].bytes--;
    EXPECT_EQ(run(2).second, "operand 0 of matmul 'mul' does not have the number of "
                             "bytes that its shape needs");
    in[0].bytes++;
    in[0].rank = 9;
    EXPECT_EQ(run(2).first, XM_EXT_INVALID);
    in[0].rank = 2;
    in[0].dim[0] = -1;
    EXPECT_EQ(run(2).first, XM_EXT_INVALID);
    in[0].dim[0] = 2;
    in[0].dim[1] = 1; /* shapes that cannot be multiplied */
    EXPECT_EQ(run(2).first, XM_EXT_INVALID);
    in[0].dim[0] = 1;
    in[0].dim[1] = 2;
    script.fails = "alloc";
    EXPECT_EQ(run(2).first, XM_EXT_NO_MEMORY);
}

/* ---- the table --------------------------------------------------------------------- */

TEST_F(External, TableMustHaveWhatIsNeeded)
{
    const auto without = [&](auto member) {
        xm_ext_ops whole = script.ops;
        script.ops.*member = nullptr;
        EXPECT_EQ(create(), XM_INVALID);
        script.ops = whole;
        return std::string(err.text);
    };
    const std::string plugin_has_no = "plugin SCRIPTED has no ";
    EXPECT_EQ(without(&xm_ext_ops::compile),
              plugin_has_no + "compile, which every plugin needs");
    without(&xm_ext_ops::create_request);
    without(&xm_ext_ops::destroy_compiled);
    without(&xm_ext_ops::set_input);
    without(&xm_ext_ops::infer);
    without(&xm_ext_ops::output);
    without(&xm_ext_ops::destroy_request);
    EXPECT_EQ(
        without(&xm_ext_ops::compiled_port),
        "plugin SCRIPTED has import_model but no compiled_port, which it then needs");
    EXPECT_EQ(without(&xm_ext_ops::reset),
              "plugin SCRIPTED has import_model but no reset, which it then needs");
    without(&xm_ext_ops::profile_reset);
    without(&xm_ext_ops::resume);
    /* it was destroyed after it had begun */
    EXPECT_NE(script.calls.find("plugin;"), std::string::npos);
}

TEST_F(External, SmallestTableRuns)
{
    for (auto member : {&xm_ext_ops::cancel, &xm_ext_ops::resume, &xm_ext_ops::destroy,
                        &xm_ext_ops::profile_reset, &xm_ext_ops::reset})
        script.ops.*member = nullptr;
    script.ops.count = nullptr;
    script.ops.description = nullptr;
    script.ops.get_property = nullptr;
    script.ops.set_property = nullptr;
    script.ops.query_model = nullptr;
    script.ops.import_model = nullptr;
    script.ops.export_model = nullptr;
    script.ops.compiled_port = nullptr;
    script.ops.profile = nullptr;
    open(softmax_of_product);
    EXPECT_EQ(plugin->ops->count(plugin), 1u);
    EXPECT_STREQ(plugin->ops->description, "SCRIPTED");
    EXPECT_EQ(plugin->ops->import_model, nullptr);
    EXPECT_EQ(infer->ops->profile, nullptr);
    EXPECT_EQ(property(nullptr, "FULL_DEVICE_NAME"), "SCRIPTED");
    EXPECT_EQ(plugin->ops->set_property(plugin, "KEY", "1", &err), XM_NOT_FOUND);
    EXPECT_STREQ(err.text, "Unsupported property KEY by SCRIPTED plugin");
    Graph g = parse(softmax_of_product);
    err = {};
    EXPECT_EQ(plugin->ops->query_model(plugin, 0, g.get(), nullptr, nullptr, &err),
              XM_UNSUPPORTED);
    const xm_export to = {};
    err = {};
    EXPECT_EQ(compiled->ops->export_model(compiled, &to, &err), XM_UNSUPPORTED);
    infer->ops->reset(infer);
    infer->ops->cancel(infer); /* so that the next run does not begin */
    std::vector<float> x = {1, 2};
    ASSERT_XM_OK(set({1, 1, 2}, &x));
    EXPECT_EQ(infer->ops->infer(infer, &err), XM_CANCELLED);
    infer->ops->resume(infer);
    err = {};
    EXPECT_EQ(infer->ops->infer(infer, &err), XM_OK);
}

TEST_F(External, TableMayBeLongerOrShorterThanOurs)
{
    struct {
        xm_ext_ops ops;
        void *later[4];
    } longer = {script.ops, {}};
    memset(longer.later, 0xff, sizeof(longer.later));
    longer.ops.bytes = sizeof(longer);
    script.table = &longer.ops;
    open(softmax_of_product);
    xm_infer_destroy(infer);
    xm_compiled_unref(compiled);
    plugin->ops->destroy(plugin);
    infer = nullptr;
    compiled = nullptr;
    plugin = nullptr;
    script.ops.bytes = offsetof(xm_ext_ops, destroy_request);
    script.table = &script.ops;
    EXPECT_EQ(create(), XM_INVALID);
    EXPECT_STREQ(err.text,
                 "plugin SCRIPTED has no destroy_request, which every plugin needs");
}

TEST_F(External, OtherVersionIsRefused)
{
    const std::string sentence =
        "plugin SCRIPTED was built for version 2 of xemoe/plugin.h, but this xemoe has "
        "version 1: build the plugin again";
    script.ops.version = 2;
    EXPECT_EQ(create(), XM_UNSUPPORTED);
    EXPECT_EQ(err.text, sentence);
    script.fails = "entry"; /* as in a plugin that checks the version itself */
    script.status = XM_EXT_UNSUPPORTED;
    EXPECT_EQ(create(), XM_UNSUPPORTED);
    EXPECT_EQ(err.text, sentence);
    EXPECT_EQ(script.calls, ""); /* no other function was called */
}

TEST_F(External, EntryMayRefuse)
{
    script.fails = "entry";
    EXPECT_EQ(create(), XM_DEVICE);
    EXPECT_STREQ(err.text, "plugin SCRIPTED: the script says so");
    script.table = nullptr;
    EXPECT_EQ(create(), XM_DEVICE);
    script.fails = "";
    EXPECT_EQ(create(), XM_INVALID);
    EXPECT_STREQ(err.text, "plugin SCRIPTED returned no table of functions");
}

TEST(ExternalNames, AreWordsWithoutDots)
{
    EXPECT_EQ(xm_external_refuse_name("EXAMPLE_2"), nullptr);
    for (const char *bad : {"", "A.1", "A,B", "A:B", "A B", "A(1)"})
        EXPECT_NE(xm_external_refuse_name(bad), nullptr) << bad;
    EXPECT_NE(xm_external_refuse_name(std::string(64, 'A').c_str()), nullptr);
}

/* ---- failures ---------------------------------------------------------------------- */

/* Calls every function; returns the first failed status. */
class ExternalFailure : public External, public testing::WithParamInterface<const char *>
{
  protected:
    xm_status do_everything()
    {
        std::vector<float> x = {1, 2};
        xm_strbuf text = {};
        xm_host_tensor y;
        Graph g = parse(softmax_of_product);
        const xm_export to = {
            [](void *, const void *, uint64_t, xm_error *) { return XM_OK; }, nullptr,
            nullptr};
        const xm_import from = {
            nullptr, reinterpret_cast<const uint8_t *>("scripted blob"), 13, nullptr};
        xm_status s = create();
        if (s == XM_OK)
            s = plugin->ops->set_property(plugin, "KEY", "1", &err);
        if (s == XM_OK)
            s = plugin->ops->get_property(plugin, 0, "FULL_DEVICE_NAME", &text, &err);
        xm_strbuf_free(&text);
        if (s == XM_OK)
            s = plugin->ops->query_model(
                plugin, 0, g.get(), [](const char *, void *) {}, nullptr, &err);
        if (s == XM_OK)
            s = plugin->ops->import_model(plugin, 0, &from, nullptr, 0, &compiled, &err);
        if (s == XM_OK)
            s = compiled->ops->export_model(compiled, &to, &err);
        xm_compiled_unref(compiled);
        compiled = nullptr;
        if (s == XM_OK)
            s = compile(softmax_of_product);
        if (s == XM_OK)
            s = xm_compiled_create_request(compiled, &infer, &err);
        if (s == XM_OK)
            s = set({1, 1, 2}, &x);
        if (s == XM_OK)
            s = infer->ops->infer(infer, &err);
        if (s == XM_OK)
            s = infer->ops->output(infer, 0, &y, &err);
        if (s == XM_OK)
            s = infer->ops->profile->rows(
                infer, [](void *, const xm_profile_row *) {}, nullptr, &err);
        return s;
    }

    void close()
    {
        xm_infer_destroy(infer);
        xm_compiled_unref(compiled);
        if (plugin)
            plugin->ops->destroy(plugin);
        infer = nullptr;
        compiled = nullptr;
        plugin = nullptr;
    }
};

TEST_P(ExternalFailure, ComesOutWithItsSentence)
{
    EXPECT_EQ(do_everything(), XM_OK) << err.text;
    close();
    script.fails = GetParam();
    EXPECT_EQ(do_everything(), XM_DEVICE);
    EXPECT_STREQ(err.text, "plugin SCRIPTED: the script says so");
    close();
    script.text = "";
    script.status = XM_EXT_LOST;
    EXPECT_EQ(do_everything(), XM_LOST);
    EXPECT_NE(std::string(err.text).find(" failed without a message: "),
              std::string::npos)
        << err.text;
    close();
    script.text = std::string(600, 'x') + "\n";
    script.text[3] = '\n';
    script.status = 99;
    EXPECT_EQ(do_everything(), XM_DEVICE);
    EXPECT_NE(std::string(err.text).find(" returned 99, which is not a status: xxx xxx"),
              std::string::npos)
        << err.text;
    close();
    /* not statuses of the interface; some are the host's own */
    for (int32_t none : {-1, 8, 9, 11}) {
        script.status = none;
        err = {};
        EXPECT_EQ(do_everything(), XM_DEVICE) << none;
        EXPECT_NE(std::string(err.text).find("which is not a status"), std::string::npos);
        close();
    }
}

INSTANTIATE_TEST_SUITE_P(Functions, ExternalFailure,
                         testing::Values("entry", "set_property", "get_property",
                                         "query_model", "import_model", "compiled_port",
                                         "export_model", "compile", "create_request",
                                         "set_input", "infer", "output", "profile"),
                         [](const auto &info) { return std::string(info.param); });

/* The n-th allocation fails, for every n: nothing leaks, and the error is XM_NO_MEMORY. */
using ExternalMemory = ExternalFailure;
TEST_F(ExternalMemory, MayEndAnywhere)
{
    xm_status s = XM_NO_MEMORY;
    int n = 1;
    for (bool seen = true; seen; n++) {
        scripted::script->calls.clear();
        Graph unrelated = parse(softmax_of_product);
        xm_fail_allocation(0);
        ASSERT_XM_OK(create());
        xm_graph *g = parse(softmax_of_product).release();
        std::vector<float> x = {1, 2};
        xm_host_tensor y;
        err = {};
        xm_fail_allocation(static_cast<uint64_t>(n));
        s = plugin->ops->compile(plugin, 0, g, nullptr, 0, nullptr, &compiled, &err);
        if (s == XM_OK)
            s = xm_compiled_create_request(compiled, &infer, &err);
        if (s == XM_OK)
            s = set({1, 1, 2}, &x);
        if (s == XM_OK)
            s = infer->ops->infer(infer, &err);
        if (s == XM_OK)
            s = infer->ops->output(infer, 0, &y, &err);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (seen && s != XM_OK) {
            EXPECT_EQ(s, XM_NO_MEMORY) << n << ": " << err.text;
        }
        close();
    }
    EXPECT_EQ(s, XM_OK);
    EXPECT_GT(n, 20);
    for (int i = 1; i < 8; i++) {
        xm_fail_allocation(static_cast<uint64_t>(i));
        create();
        xm_fail_allocation(0);
        close();
    }
}

TEST_F(External, GivesObjectsWhereItSaysSo)
{
    ASSERT_XM_OK(create());
    script.gives_nothing = true;
    EXPECT_EQ(compile(softmax_of_product), XM_DEVICE);
    EXPECT_STREQ(err.text, "plugin SCRIPTED: compile returned no compiled model");
    script.gives_nothing = false;
    ASSERT_XM_OK(compile(softmax_of_product));
    script.gives_nothing = true;
    EXPECT_EQ(xm_compiled_create_request(compiled, &infer, &err), XM_DEVICE);
    EXPECT_STREQ(err.text, "plugin SCRIPTED: create_request returned no request");
}

TEST_F(External, ResultsAreWhatTheModelSays)
{
    open(softmax_of_product);
    std::vector<float> x = {1, 2};
    xm_host_tensor y;
    EXPECT_EQ(infer->ops->infer(infer, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'x' has not been set");
    ASSERT_XM_OK(set({1, 1, 2}, &x));
    EXPECT_EQ(infer->ops->output(infer, 0, &y, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "output 'y' has no value before a successful run");
    err = {};
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    const std::function<void(xm_ext_tensor &)> lies[] = {
        [](xm_ext_tensor &t) { t.element = XM_EXT_F16; },
        [](xm_ext_tensor &t) { t.rank = 2; },
        [](xm_ext_tensor &t) { t.rank = 1000; },
        [](xm_ext_tensor &t) { t.dim[2] = 4; },
        [](xm_ext_tensor &t) { t.dim[1] = -1; },
        [](xm_ext_tensor &t) { t.dim[0] = t.dim[1] = INT64_MAX; },
        [](xm_ext_tensor &t) { t.bytes -= 4; },
        [](xm_ext_tensor &t) { t.bytes += 4; },
        [](xm_ext_tensor &t) { t.data = nullptr; },
    };
    for (const auto &lie : lies) {
        script.spoil = lie;
        err = {};
        EXPECT_EQ(infer->ops->output(infer, 0, &y, &err), XM_DEVICE);
        EXPECT_NE(std::string(err.text).find("result 'y'"), std::string::npos)
            << err.text;
    }
    script.spoil = nullptr;
    err = {};
    EXPECT_EQ(infer->ops->output(infer, 1, &y, &err), XM_NOT_FOUND);
    err = {};
    EXPECT_EQ(infer->ops->output(infer, 0, &y, &err), XM_OK);
}

TEST_F(External, InputsAreComparedBeforeThePluginSeesThem)
{
    open(softmax_of_product);
    std::vector<float> x = {1, 2, 3};
    EXPECT_EQ(set({1, 1, 3}, &x), XM_INVALID);
    EXPECT_EQ(set({1, 2}, &x), XM_INVALID);
    EXPECT_EQ(set({1, 1, 2}, &x), XM_INVALID);
    err = {};
    EXPECT_EQ(infer->ops->set_input(infer, 1, nullptr, &err), XM_NOT_FOUND);
}

/* ---- import and export ------------------------------------------------------------- */

TEST_F(External, ImportsWhatItExports)
{
    ASSERT_XM_OK(create());
    ASSERT_XM_OK(compile(softmax_of_product));
    std::string blob;
    const xm_export to = {[](void *ctx, const void *bytes, uint64_t n, xm_error *) {
                              static_cast<std::string *>(ctx)->append(
                                  static_cast<const char *>(bytes), n);
                              return XM_OK;
                          },
                          &blob, nullptr};
    ASSERT_XM_OK(compiled->ops->export_model(compiled, &to, &err));
    EXPECT_EQ(blob, "scripted blob");
    const xm_export full = {[](void *, const void *, uint64_t, xm_error *e) {
                                return xm_fail(e, XM_IO, "the disk is full");
                            },
                            nullptr, nullptr};
    EXPECT_EQ(compiled->ops->export_model(compiled, &full, &err), XM_IO);
    EXPECT_STREQ(err.text, "the disk is full");
    xm_compiled_unref(compiled);
    const xm_import from = {nullptr, reinterpret_cast<const uint8_t *>(blob.data()),
                            blob.size(), nullptr};
    err = {};
    ASSERT_XM_OK(
        plugin->ops->import_model(plugin, 0, &from, nullptr, 0, &compiled, &err));
    EXPECT_EQ(property(compiled, "LOADED_FROM_CACHE"), "YES");
    ASSERT_EQ(compiled->ports.n_inputs, 1u);
    EXPECT_STREQ(compiled->ports.inputs[0].name, "x");
    EXPECT_EQ(compiled->ports.inputs[0].bound[0].max, -1);
    EXPECT_EQ(compiled->ports.inputs[0].type.shape.dim[1].n, 2);
    ASSERT_XM_OK(xm_compiled_create_request(compiled, &infer, &err));
    std::vector<float> x = {1, 2, 3, 4};
    ASSERT_XM_OK(set({2, 2}, &x));
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    EXPECT_EQ(result(), x);
}

TEST_F(External, PortsOfImportedModelsMakeSense)
{
    const xm_import from = {nullptr, reinterpret_cast<const uint8_t *>("scripted blob"),
                            13, nullptr};
    const std::function<void(uint32_t, xm_ext_port &)> lies[] = {
        [](uint32_t, xm_ext_port &) {}, /* the number of ports has no end */
        [](uint32_t, xm_ext_port &p) { p.name = nullptr; },
        [](uint32_t, xm_ext_port &p) { p.names = nullptr; },
        [](uint32_t, xm_ext_port &p) { p.n_names = 4097; },
        [](uint32_t, xm_ext_port &p) { p.n_names = UINT32_MAX; },
        [](uint32_t, xm_ext_port &p) { p.type.rank = 9; },
        [](uint32_t, xm_ext_port &p) { p.type.element = 26; },
        [](uint32_t, xm_ext_port &p) { p.type.element = XM_EXT_DYNAMIC; },
        [](uint32_t, xm_ext_port &p) { p.type.min[1] = -2; },
        [](uint32_t, xm_ext_port &p) { p.type.max[1] = 1; },
    };
    ASSERT_XM_OK(create());
    for (const auto &lie : lies) {
        script.spoil_port = lie;
        err = {};
        EXPECT_EQ(
            plugin->ops->import_model(plugin, 0, &from, nullptr, 0, &compiled, &err),
            XM_INVALID);
        EXPECT_NE(std::string(err.text).find("plugin SCRIPTED"), std::string::npos);
        EXPECT_EQ(compiled, nullptr);
    }
}

/* ---- properties, times, destruction -------------------------------------------------- */

TEST_F(External, AnswersForPropertiesThatThePluginDoesNotKnow)
{
    script.devices = 2;
    ASSERT_XM_OK(create());
    EXPECT_EQ(property(nullptr, "FULL_DEVICE_NAME"), "scripted 0");
    EXPECT_EQ(property(nullptr, "AVAILABLE_DEVICES"), "0 1");
    EXPECT_EQ(property(nullptr, "SUPPORTED_PROPERTIES"),
              "SUPPORTED_PROPERTIES AVAILABLE_DEVICES FULL_DEVICE_NAME DEVICE_TYPE");
    EXPECT_EQ(property(nullptr, "NOPE"), "");
    EXPECT_STREQ(err.text, "Unsupported property NOPE by SCRIPTED plugin");
    ASSERT_XM_OK(compile(softmax_of_product));
    EXPECT_EQ(property(compiled, "EXECUTION_DEVICES"), "SCRIPTED.0");
    EXPECT_EQ(property(compiled, "NETWORK_NAME"), "t");
    EXPECT_EQ(property(compiled, "LOADED_FROM_CACHE"), "NO");
}

TEST_F(External, GetsItsOwnPropertiesOnly)
{
    ASSERT_XM_OK(create());
    const std::vector<xm_property> given = {
        {"CACHE_DIR", "/tmp"}, {"XM_UBATCH", "8"}, {"KEY", "1"}, {"XM_UB", "2"}};
    ASSERT_XM_OK(compile(softmax_of_product, given));
    EXPECT_EQ(script.calls, "KEY=1;");
    xm_compiled_unref(compiled);
    script.calls.clear();
    script.supported = "KEY XM_UBATCH CACHE_DIR";
    ASSERT_XM_OK(compile(softmax_of_product, given));
    EXPECT_EQ(script.calls, "CACHE_DIR=/tmp;XM_UBATCH=8;KEY=1;");
    EXPECT_EQ(plugin->ops->set_property(plugin, "NOPE", "1", &err), XM_NOT_FOUND);
    EXPECT_STREQ(err.text, "Unsupported property NOPE by SCRIPTED plugin");
}

TEST_F(External, SaysWhichNodesItRuns)
{
    ASSERT_XM_OK(create());
    Graph g = parse(softmax_of_product);
    std::string names;
    const auto add = [](const char *node, void *to) {
        *static_cast<std::string *>(to) += std::string(node) + ";";
    };
    ASSERT_XM_OK(plugin->ops->query_model(plugin, 0, g.get(), add, &names, &err));
    EXPECT_NE(names.find("mul;"), std::string::npos);
    EXPECT_EQ(names.find("soft;"), std::string::npos);
}

TEST_F(External, TellsTimes)
{
    open(softmax_of_product);
    std::vector<float> x = {1, 2};
    ASSERT_XM_OK(set({1, 1, 2}, &x));
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    const xm_profile_ops *profile = infer->ops->profile;
    std::string rows;
    const auto add = [](void *to, const xm_profile_row *r) {
        *static_cast<std::string *>(to) +=
            std::to_string(r->step) + r->kind + r->op + r->name + r->type + r->precision +
            r->kernel + std::to_string(r->runs) + " " + std::to_string(r->ns) + ";";
    };
    ASSERT_XM_OK(profile->rows(infer, add, &rows, &err));
    EXPECT_EQ(rows,
              "0primitiveMatMulmulMatMulf32mul_f321 1000;1hostSoftMaxsoftSoftMax1 500;");
    profile->reset(infer);
    rows.clear();
    ASSERT_XM_OK(profile->rows(infer, add, &rows, &err));
    EXPECT_EQ(rows.substr(0, 36), "0primitiveMatMulmulMatMulf32mul_f320");
    uint64_t dropped = 1;
    EXPECT_EQ(profile->begin_trace(infer, &err), XM_UNSUPPORTED);
    EXPECT_EQ(profile->trace(infer, nullptr, nullptr, &dropped, &err), XM_UNSUPPORTED);
}

TEST_F(External, RunsAreCancelledFromOtherThreads)
{
    open(softmax_of_product);
    std::vector<float> x = {1, 2};
    ASSERT_XM_OK(set({1, 1, 2}, &x));
    script.waits = true;
    std::thread other([&] {
        while (!script.is_running)
            std::this_thread::yield();
        infer->ops->cancel(infer);
    });
    EXPECT_EQ(infer->ops->infer(infer, &err), XM_CANCELLED);
    other.join();
    infer->ops->resume(infer);
    script.waits = false;
    EXPECT_EQ(infer->ops->past(infer), 0u);
    err = {};
    EXPECT_EQ(infer->ops->infer(infer, &err), XM_OK);
}

TEST_F(External, ShowsTheModelAsWhatItRuns)
{
    ASSERT_XM_OK(create());
    ASSERT_XM_OK(compile(softmax_of_product));
    xm_exec_graph g = {};
    ASSERT_XM_OK(compiled->ops->exec_graph(compiled, &g, &err));
    ASSERT_EQ(g.n_steps, 2u);
    EXPECT_STREQ(g.nodes[1].type, "FullyConnected"); /* OpenVINO's name of the op */
    EXPECT_STREQ(g.nodes[1].kernels, "SCRIPTED");
    xm_exec_graph_free(&g);
}

TEST_F(External, LivesAsLongAsWhatItMade)
{
    open(softmax_of_product);
    plugin->ops->destroy(plugin);
    plugin = nullptr;
    xm_compiled_unref(compiled);
    compiled = nullptr;
    EXPECT_EQ(script.calls, "");
    std::vector<float> x = {1, 2};
    ASSERT_XM_OK(set({1, 1, 2}, &x));
    ASSERT_XM_OK(infer->ops->infer(infer, &err));
    EXPECT_EQ(result().size(), 3u);
    xm_infer_destroy(infer);
    infer = nullptr;
    EXPECT_EQ(script.calls, "request;compiled;plugin;");
}

TEST_F(External, RequestsRunSideBySide)
{
    open(softmax_of_product);
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&, t] {
            xm_infer *r = nullptr;
            xm_error e = {};
            float x[2] = {static_cast<float>(t), 1};
            const xm_host_tensor in = {XM_F32, 3, {1, 1, 2}, x, sizeof(x)};
            xm_host_tensor out = {};
            if (xm_compiled_create_request(compiled, &r, &e) != XM_OK)
                return;
            for (int i = 0; i < 20; i++)
                good += r->ops->set_input(r, 0, &in, &e) == XM_OK &&
                        r->ops->infer(r, &e) == XM_OK &&
                        r->ops->output(r, 0, &out, &e) == XM_OK;
            xm_infer_destroy(r);
        });
    }
    for (std::thread &t : threads)
        t.join();
    EXPECT_EQ(good, 80);
}

} // namespace
