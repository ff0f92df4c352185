/* SPDX-License-Identifier: Apache-2.0
 *
 * An application that uses OpenCL itself on the device named GPU: its own context, queues and
 * memory, and contexts and tensors of the API over them.
 */
#ifndef XM_FUNCTIONAL_TESTS_API_REMOTE_TEST_H
#define XM_FUNCTIONAL_TESTS_API_REMOTE_TEST_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "functional_tests/api/api_test.h"

using Context = std::unique_ptr<ov_remote_context_t, Free<ov_remote_context_free>>;
using Text = std::unique_ptr<char, Free<ov_free>>;
using Dims = std::vector<int64_t>;

/* Returns the value after a key in "KEY VALUE KEY VALUE"; "" if the key is absent. */
inline std::string
value_of(const std::string &params, const std::string &key)
{
    const size_t at = (" " + params).find(" " + key + " ");
    if (at == std::string::npos)
        return "";
    const size_t from = at + key.size() + 1;
    return params.substr(from, params.find(' ', from) - from);
}

inline std::string
params_of(const ov_remote_context_t *c)
{
    char *text = nullptr;
    size_t n = 0;
    EXPECT_EQ(ov_remote_context_get_params(c, &n, &text), OK) << last_error();
    EXPECT_EQ(n, 3u);
    Text owned(text);
    return text ? text : "";
}

inline std::string
params_of(ov_tensor_t *t)
{
    char *text = nullptr;
    size_t n = 0;
    EXPECT_EQ(ov_remote_tensor_get_params(t, &n, &text), OK) << last_error();
    EXPECT_EQ(n, 3u);
    Text owned(text);
    return text ? text : "";
}

inline void *
handle_of(const std::string &params, const std::string &key)
{
    return (void *)(uintptr_t)std::stoull(value_of(params, key), nullptr, 16);
}

inline std::string
handle_text(const void *handle)
{
    char text[32];
    snprintf(text, sizeof(text), "0x%llx", (unsigned long long)(uintptr_t)handle);
    return text;
}

/* A fixture with an OpenCL context of its own; skipped without a device. */
class Remote : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        core = make_core();
        ov_remote_context_t *own = nullptr;
        if (ov_core_get_default_context(core.get(), "GPU", &own) != OK)
            GTEST_SKIP() << "no OpenCL device";
        Context c(own);
        cl_context theirs = (cl_context)handle_of(params_of(own), "OCL_CONTEXT");
        ASSERT_EQ(clGetContextInfo(theirs, CL_CONTEXT_DEVICES, sizeof(device), &device,
                                   nullptr),
                  CL_SUCCESS);
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
        queue = make_queue(context);
    }

    void TearDown() override
    {
        for (cl_mem m : mems)
            clReleaseMemObject(m);
        for (cl_command_queue q : queues)
            clReleaseCommandQueue(q);
        if (context)
            clReleaseContext(context);
    }

    cl_command_queue make_queue(cl_context c, cl_command_queue_properties bits = 0)
    {
        const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, bits, 0};
        queues.push_back(clCreateCommandQueueWithProperties(c, device, list, nullptr));
        EXPECT_NE(queues.back(), nullptr);
        return queues.back();
    }

    cl_mem make_mem(size_t bytes)
    {
        mems.push_back(
            clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, nullptr));
        EXPECT_NE(mems.back(), nullptr);
        return mems.back();
    }

    cl_mem make_mem(const void *bytes, size_t n)
    {
        cl_mem m = make_mem(n);
        EXPECT_EQ(
            clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, n, bytes, 0, nullptr, nullptr),
            CL_SUCCESS);
        return m;
    }

    std::vector<uint8_t> read_mem(cl_mem m, size_t n, cl_command_queue q)
    {
        std::vector<uint8_t> bytes(n);
        EXPECT_EQ(
            clEnqueueReadBuffer(q, m, CL_TRUE, 0, n, bytes.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
        return bytes;
    }

    /* Returns the API's context over the test's OpenCL context, with a queue or without. */
    Context share(cl_command_queue q)
    {
        ov_remote_context_t *c = nullptr;
        EXPECT_EQ(ov_core_create_context(core.get(), "GPU", q ? 6 : 4, &c, "CONTEXT_TYPE",
                                         "OCL", "OCL_CONTEXT", context, "OCL_QUEUE", q),
                  OK)
            << last_error();
        return Context(c);
    }

    Compiled compile_in(ov_model_t *model, const ov_remote_context_t *c)
    {
        ov_compiled_model_t *compiled = nullptr;
        EXPECT_EQ(ov_core_compile_model_with_context(core.get(), model, c, 0, &compiled),
                  OK)
            << last_error();
        return Compiled(compiled);
    }

    static Tensor tensor_of(const ov_remote_context_t *c, ov_element_type_e type,
                            Dims dims, const char *memory, void *handle)
    {
        ov_tensor_t *t = nullptr;
        const size_t n = handle ? 4 : memory ? 2 : 0;
        EXPECT_EQ(ov_remote_context_create_tensor(
                      c, type, {(int64_t)dims.size(), dims.data()}, n, &t,
                      "SHARED_MEM_TYPE", memory, "MEM_HANDLE", handle),
                  OK)
            << last_error();
        return Tensor(t);
    }

    static void set(const Request &r, const char *name, const Tensor &t)
    {
        EXPECT_EQ(ov_infer_request_set_tensor(r.get(), name, t.get()), OK)
            << name << ": " << last_error();
    }

    static void infer(const Request &r)
    {
        EXPECT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    }

    /* Whether the driver only checks calls and computes nothing (tools/dry_run). */
    static bool is_dry()
    {
        return getenv("XM_TEST_DRY") != nullptr;
    }

    static void expect_bits(const std::vector<uint8_t> &got,
                            const std::vector<uint8_t> &want)
    {
        ASSERT_EQ(got.size(), want.size());
        size_t wrong = 0;
        for (size_t i = 0; i < got.size(); i++)
            wrong += got[i] != want[i];
        if (!is_dry()) {
            EXPECT_EQ(wrong, 0u) << "of " << got.size() << " bytes";
        }
    }

    uint32_t references() const
    {
        cl_uint n = 0;
        clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof(n), &n, nullptr);
        return n;
    }

    static void expect_error(ov_status_e code, const char *part)
    {
        EXPECT_EQ(code, GENERAL_ERROR);
        EXPECT_NE(last_error().find(part), std::string::npos) << last_error();
    }

    Core core;
    cl_device_id device = nullptr;
    cl_context context = nullptr;
    cl_command_queue queue = nullptr;
    std::vector<cl_command_queue> queues;
    std::vector<cl_mem> mems;
};

#endif
