/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines in an OpenCL context of the application, on its queue, with memory of both sides; on
 * the first device.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/engine.h"

namespace
{

constexpr size_t n_bytes = 4000;

std::vector<uint8_t>
pattern(uint8_t seed)
{
    std::vector<uint8_t> v(n_bytes);
    for (size_t i = 0; i < n_bytes; i++)
        v[i] = uint8_t(i * 7 + seed);
    return v;
}

/* An application with a context, a queue and memory. */
class OclShare : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        const xm_device_info *infos;
        size_t n = 0;
        ASSERT_EQ(xm_engine_list(&infos, &n, &err), XM_OK) << err.text;
        if (n == 0)
            GTEST_SKIP() << "no OpenCL device";
        xm_engine *own = nullptr;
        ASSERT_EQ(xm_engine_create(0, nullptr, &own, &err), XM_OK) << err.text;
        device = (cl_device_id)xm_engine_cl_device(own);
        xm_engine_unref(own);
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
        ASSERT_NE(context, nullptr);
    }

    void TearDown() override
    {
        xm_queue_destroy(queue);
        xm_engine_unref(engine);
        for (cl_mem m : mems)
            clReleaseMemObject(m);
        for (cl_command_queue q : queues)
            clReleaseCommandQueue(q);
        if (context)
            clReleaseContext(context);
    }

    cl_command_queue make_queue(cl_command_queue_properties bits = 0)
    {
        const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, bits, 0};
        queues.push_back(
            clCreateCommandQueueWithProperties(context, device, list, nullptr));
        EXPECT_NE(queues.back(), nullptr);
        return queues.back();
    }

    cl_mem make_mem(size_t bytes = n_bytes)
    {
        mems.push_back(
            clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, nullptr));
        EXPECT_NE(mems.back(), nullptr);
        return mems.back();
    }

    xm_status try_open(cl_command_queue q, const xm_config *config = nullptr)
    {
        const xm_shared_cl share = {context, q};
        return xm_engine_create_in(0, config, &share, &engine, &err);
    }

    void open(cl_command_queue q)
    {
        ASSERT_EQ(try_open(q), XM_OK) << err.text;
        ASSERT_EQ(xm_queue_create(engine, &queue, &err), XM_OK) << err.text;
    }

    xm_buffer *wrap(xm_memory_kind kind, void *native, uint64_t bytes = n_bytes)
    {
        xm_buffer *b = nullptr;
        EXPECT_EQ(xm_buffer_wrap(engine, kind, native, bytes, &b, &err), XM_OK)
            << err.text;
        return b;
    }

    xm_buffer *make(xm_memory_kind kind)
    {
        xm_buffer *b = nullptr;
        EXPECT_EQ(xm_buffer_create_shared(engine, kind, n_bytes, &b, &err), XM_OK)
            << err.text;
        return b;
    }

    void copy_with_a_kernel(xm_buffer *src, xm_buffer *dst)
    {
        xm_kernel *k = nullptr;
        ASSERT_EQ(xm_engine_kernel(engine, "copy_bytes", "-DPER_ITEM=4", &k, &err), XM_OK)
            << err.text;
        const xm_arg args[] = {xm_arg_buffer(src), xm_arg_i64(0), xm_arg_buffer(dst),
                               xm_arg_i64(0), xm_arg_i64(n_bytes)};
        const xm_launch launch = {{n_bytes / 4, 1, 1}, {0, 0, 0}};
        EXPECT_EQ(xm_queue_run(queue, k, args, 5, &launch, &err), XM_OK) << err.text;
    }

    /* The application's write, our kernel and the application's read, without waits in between. */
    void pass_on(cl_command_queue q, uint8_t seed)
    {
        const std::vector<uint8_t> in = pattern(seed);
        std::vector<uint8_t> out(n_bytes);
        cl_mem from = make_mem(), to = make_mem();
        xm_buffer *src = wrap(XM_MEMORY_CL, from), *dst = wrap(XM_MEMORY_CL, to);
        EXPECT_EQ(clEnqueueWriteBuffer(q, from, CL_FALSE, 0, n_bytes, in.data(), 0,
                                       nullptr, nullptr),
                  CL_SUCCESS);
        copy_with_a_kernel(src, dst);
        EXPECT_EQ(clEnqueueReadBuffer(q, to, CL_TRUE, 0, n_bytes, out.data(), 0, nullptr,
                                      nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(in, out);
        xm_buffer_unref(src);
        xm_buffer_unref(dst);
    }

    uint32_t references(cl_context c)
    {
        cl_uint n = 0;
        clGetContextInfo(c, CL_CONTEXT_REFERENCE_COUNT, sizeof(n), &n, nullptr);
        return n;
    }

    void expect_sentence(const char *part)
    {
        EXPECT_NE(std::string(err.text).find(part), std::string::npos) << err.text;
        err = {};
    }

    xm_error err = {};
    cl_device_id device = nullptr;
    cl_context context = nullptr;
    std::vector<cl_command_queue> queues;
    std::vector<cl_mem> mems;
    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
};

TEST_F(OclShare, RunsInTheContextOfOthersAndLetsGoOfIt)
{
    const uint32_t before = references(context);
    open(nullptr);
    EXPECT_EQ(xm_engine_cl_context(engine), context);
    cl_command_queue his = make_queue();
    EXPECT_NE(xm_queue_native(queue), his);
    xm_queue_destroy(queue);
    xm_engine_unref(engine);
    queue = nullptr;
    engine = nullptr;
    clReleaseCommandQueue(queues.back());
    queues.clear();
    EXPECT_EQ(references(context), before);
}

TEST_F(OclShare, CommandsOfBothOnAQueueComeInOrder)
{
    cl_command_queue his = make_queue();
    open(his);
    EXPECT_EQ(xm_queue_native(queue), his);
    pass_on(his, 3);
    pass_on(his, 4);
}

TEST_F(OclShare, SoTheyDoOnAQueueThatIsOutOfOrder)
{
    cl_command_queue his = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const xm_shared_cl share = {context, his};
    EXPECT_TRUE(xm_shared_queue_is_out_of_order(&share));
    open(his);
    for (uint8_t i = 0; i < 8; i++)
        pass_on(his, i);
}

TEST_F(OclShare, FindsTheDeviceOfAContextAndOfAQueue)
{
    size_t index = 99;
    xm_shared_cl share = {context, nullptr};
    EXPECT_EQ(xm_engine_find_shared(&share, 0, &index, &err), XM_OK) << err.text;
    EXPECT_EQ(index, 0u);
    EXPECT_EQ(xm_engine_find_shared(&share, 1, &index, &err), XM_NOT_FOUND);
    expect_sentence("has 1 devices, so there is no device 1");
    share = {nullptr, make_queue()};
    EXPECT_FALSE(xm_shared_queue_is_out_of_order(&share));
    EXPECT_EQ(xm_engine_find_shared(&share, 7, &index, &err), XM_OK) << err.text;
    EXPECT_EQ(index, 0u);
    EXPECT_EQ(share.context, context);
}

TEST_F(OclShare, RefusesAQueueOfAnotherContext)
{
    cl_context other = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    cl_command_queue q =
        clCreateCommandQueueWithProperties(other, device, nullptr, nullptr);
    EXPECT_EQ(try_open(q), XM_INVALID);
    expect_sentence("does not belong to the given OpenCL context");
    clReleaseCommandQueue(q);
    clReleaseContext(other);
}

TEST_F(OclShare, MeasuresOnlyWhereTheQueueDoes)
{
    xm_config config;
    xm_config_init(&config);
    config.profiling = true;
    EXPECT_EQ(try_open(make_queue(), &config), XM_INVALID);
    expect_sentence("CL_QUEUE_PROFILING_ENABLE");
    ASSERT_EQ(try_open(make_queue(CL_QUEUE_PROFILING_ENABLE), &config), XM_OK)
        << err.text;
    ASSERT_EQ(xm_queue_create(engine, &queue, &err), XM_OK) << err.text;
    EXPECT_TRUE(xm_queue_measures(queue));
}

TEST_F(OclShare, TakesMemoryThatIsLargeEnoughAndOfTheContext)
{
    open(nullptr);
    xm_buffer *b = nullptr;
    EXPECT_EQ(xm_buffer_wrap(engine, XM_MEMORY_CL, make_mem(100), 101, &b, &err),
              XM_INVALID);
    expect_sentence("has 100 bytes, the tensor needs 101");
    cl_context other = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    cl_mem m = clCreateBuffer(other, CL_MEM_READ_WRITE, n_bytes, nullptr, nullptr);
    EXPECT_EQ(xm_buffer_wrap(engine, XM_MEMORY_CL, m, n_bytes, &b, &err), XM_INVALID);
    expect_sentence("another OpenCL context");
    EXPECT_EQ(b, nullptr);
    clReleaseMemObject(m);
    clReleaseContext(other);
}

TEST_F(OclShare, HoldsMemoryOfOthersAndCountsOnlyItsOwn)
{
    open(nullptr);
    xm_memory_stats m;
    cl_mem his = make_mem();
    xm_buffer *b = wrap(XM_MEMORY_CL, his);
    cl_uint references = 0;
    clGetMemObjectInfo(his, CL_MEM_REFERENCE_COUNT, sizeof(references), &references,
                       nullptr);
    EXPECT_EQ(references, 2u);
    xm_engine_memory_stats(engine, &m);
    EXPECT_EQ(m.total_now, 0u);
    xm_buffer_unref(b);
    b = make(XM_MEMORY_CL);
    xm_engine_memory_stats(engine, &m);
    EXPECT_EQ(m.total_now, n_bytes);
    xm_buffer_unref(b);
    xm_engine_memory_stats(engine, &m);
    EXPECT_EQ(m.total_now, 0u);
}

/* Copies between all kinds of memory, made by either side. */
TEST_F(OclShare, CopiesBetweenAllKindsOfMemory)
{
    open(make_queue());
    if (!xm_engine_has_usm(engine))
        GTEST_SKIP() << "the device has no USM";
    const xm_memory_kind kinds[] = {XM_MEMORY_CL, XM_MEMORY_USM_HOST,
                                    XM_MEMORY_USM_DEVICE};
    std::vector<xm_buffer *> all;
    for (xm_memory_kind k : kinds)
        all.push_back(make(k));
    for (xm_memory_kind k : kinds)
        all.push_back(wrap(k == XM_MEMORY_CL ? k : XM_MEMORY_USM_SHARED,
                           xm_buffer_native(all[all.size() - 3])));
    for (size_t i = 0; i < 3; i++)
        EXPECT_EQ(xm_buffer_kind(all[i]), xm_buffer_kind(all[i + 3]));
    xm_buffer *own = nullptr;
    ASSERT_EQ(xm_buffer_create(engine, XM_USE_HOST, n_bytes, &own, &err), XM_OK);
    all.push_back(own);
    uint8_t seed = 0;
    for (xm_buffer *src : all) {
        for (xm_buffer *dst : all) {
            if (xm_buffer_native(src) == xm_buffer_native(dst))
                continue;
            const std::vector<uint8_t> in = pattern(seed++);
            std::vector<uint8_t> out(n_bytes);
            EXPECT_EQ(xm_queue_write(queue, src, 0, in.data(), n_bytes, &err), XM_OK);
            EXPECT_EQ(xm_queue_copy(queue, src, 8, dst, 16, n_bytes - 16, &err), XM_OK)
                << err.text;
            EXPECT_EQ(xm_queue_read(queue, dst, 16, out.data(), n_bytes - 16, &err),
                      XM_OK);
            EXPECT_TRUE(std::equal(out.begin(), out.end() - 16, in.begin() + 8));
        }
    }
    for (xm_buffer *b : all)
        xm_buffer_unref(b);
}

/* Buffers whose flags forbid the host to read or to write. */
TEST_F(OclShare, GetsAtBuffersThatTheHostIsKeptOutOf)
{
    const cl_queue_properties orders[] = {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
    const cl_mem_flags flags[] = {CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY,
                                  CL_MEM_HOST_WRITE_ONLY};
    uint8_t seed = 0;
    for (cl_queue_properties order : orders) {
        xm_queue_destroy(queue);
        xm_engine_unref(engine);
        open(make_queue(order));
        xm_buffer *plain =
            make(xm_engine_has_usm(engine) ? XM_MEMORY_USM_HOST : XM_MEMORY_CL);
        for (cl_mem_flags f : flags) {
            cl_mem his = clCreateBuffer(context, f, n_bytes, nullptr, nullptr);
            xm_buffer *b = wrap(XM_MEMORY_CL, his);
            const std::vector<uint8_t> in = pattern(++seed), more = pattern(++seed);
            std::vector<uint8_t> out(n_bytes);
            EXPECT_EQ(xm_queue_write(queue, b, 0, in.data(), n_bytes, &err), XM_OK)
                << err.text;
            EXPECT_EQ(xm_queue_read(queue, b, 0, out.data(), n_bytes, &err), XM_OK)
                << err.text;
            EXPECT_EQ(in, out);
            EXPECT_EQ(xm_queue_write(queue, plain, 0, more.data(), n_bytes, &err), XM_OK);
            EXPECT_EQ(xm_queue_copy(queue, plain, 0, b, 64, 64, &err), XM_OK) << err.text;
            EXPECT_EQ(xm_queue_copy(queue, b, 0, plain, 0, n_bytes, &err), XM_OK)
                << err.text;
            EXPECT_EQ(xm_queue_read(queue, plain, 0, out.data(), n_bytes, &err), XM_OK);
            EXPECT_TRUE(std::equal(out.begin(), out.begin() + 64, in.begin()));
            EXPECT_TRUE(std::equal(out.begin() + 64, out.begin() + 128, more.begin()));
            EXPECT_TRUE(std::equal(out.begin() + 128, out.end(), in.begin() + 128));
            xm_buffer_unref(b);
            clReleaseMemObject(his);
        }
        xm_buffer_unref(plain);
    }
}

TEST_F(OclShare, RefusesPointersThatAreNoUsm)
{
    open(nullptr);
    if (!xm_engine_has_usm(engine))
        GTEST_SKIP() << "the device has no USM";
    std::vector<uint8_t> plain(n_bytes);
    xm_buffer *b = nullptr;
    EXPECT_EQ(
        xm_buffer_wrap(engine, XM_MEMORY_USM_SHARED, plain.data(), n_bytes, &b, &err),
        XM_INVALID);
    expect_sentence("not USM of the OpenCL context");
    xm_buffer *his = make(XM_MEMORY_USM_HOST);
    char *inside = (char *)xm_buffer_native(his) + 64;
    EXPECT_EQ(xm_buffer_wrap(engine, XM_MEMORY_USM_SHARED, inside, n_bytes, &b, &err),
              XM_INVALID);
    expect_sentence("the tensor needs 4000");
    xm_buffer *rest = wrap(XM_MEMORY_USM_SHARED, inside, n_bytes - 64);
    xm_buffer_unref(rest);
    xm_buffer_unref(his);
}

} // namespace
