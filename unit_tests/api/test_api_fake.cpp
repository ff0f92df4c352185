/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API over a fake plugin: cancelling runs, callbacks, settings, and every failing
 * allocation.
 */
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "plugin/api/api.h"
#include "runtime/util/log.h"
#include "unit_tests/graph/graph_text.h"
#include "unit_tests/plugin/fake_plugin.h"

namespace
{

TEST(ApiWithFake, ImportsExportsAndCompiles)
{
    std::string events;
    ov_core_t *core = nullptr;
    xm_error err = {};
    ASSERT_EQ(ov_core_create(&core), OK);
    auto *p = new FakePlugin{{&plugin_ops}, &events};
    ASSERT_EQ(xm_core_register(core->core, &p->base, &err), XM_OK);
    ov_compiled_model_t *compiled = nullptr;
    EXPECT_EQ(ov_core_import_model(core, "other", 5, "FAKE", &compiled), GENERAL_ERROR);
    ASSERT_EQ(ov_core_import_model(core, "fake blob", 9, "FAKE", &compiled), OK);
    EXPECT_EQ(ov_compiled_model_export_model(compiled, "/no/such/folder/blob"),
              GENERAL_ERROR);
    ov_compiled_model_free(compiled);
    EXPECT_EQ(ov_core_set_property(core, nullptr, "ONLY_FAKE_KNOWS", "1"), OK);
    EXPECT_EQ(events, "ONLY_FAKE_KNOWS=1;");
    ov_core_free(core);
}

/* A device that was not used yet keeps its settings and gets them when it is first used. If
 * memory runs out while one is set, the old value must remain. */
TEST(ApiWithFake, KeepsASettingWhenThereIsNoMemoryForTheNext)
{
    std::string events;
    ov_core_t *core = nullptr;
    xm_error err = {};
    xm_plugin *found = nullptr;
    uint32_t index;
    ASSERT_EQ(ov_core_create(&core), OK);
    auto *p = new FakePlugin{{&plugin_ops}, &events};
    ASSERT_EQ(xm_core_register(core->core, &p->base, &err), XM_OK);
    const xm_property old = {"KEY", "old"}, next = {"KEY", "next"};
    ASSERT_EQ(xm_api_set_for_device(core, "FAKE", &old, false, &err), XM_OK);
    for (uint64_t n = 1; n <= 3; n++) {
        err = {};
        xm_fail_allocation(n);
        EXPECT_EQ(xm_api_set_for_device(core, "FAKE", &next, false, &err), XM_NO_MEMORY);
        EXPECT_TRUE(xm_fail_allocation_seen());
        xm_fail_allocation(0);
        EXPECT_STREQ(err.text, "out of memory for KEY");
    }
    err = {};
    EXPECT_EQ(xm_api_use_device(core, "FAKE", &found, &index, &err), XM_OK) << err.text;
    EXPECT_EQ(events, "KEY=old;");
    ov_core_free(core);
}

/* Creates a request on the fake device that reads its only input from *value. */
ov_infer_request_t *
request_for(float *value)
{
    std::string events;
    ov_core_t *core = nullptr;
    ov_compiled_model_t *compiled = nullptr;
    ov_infer_request_t *request = nullptr;
    ov_tensor_t *x = nullptr;
    int64_t dims[] = {1};
    xm_error err = {};
    EXPECT_EQ(ov_core_create(&core), OK);
    auto *p = new FakePlugin{{&plugin_ops}, &events};
    EXPECT_EQ(xm_core_register(core->core, &p->base, &err), XM_OK);
    EXPECT_EQ(ov_core_import_model(core, "fake blob", 9, "FAKE", &compiled), OK);
    EXPECT_EQ(ov_compiled_model_create_infer_request(compiled, &request), OK);
    EXPECT_EQ(ov_tensor_create_from_host_ptr(F32, {1, dims}, value, &x), OK);
    EXPECT_EQ(ov_infer_request_set_tensor(request, "x", x), OK);
    ov_tensor_free(x);
    ov_compiled_model_free(compiled);
    ov_core_free(core);
    return request;
}

TEST(ApiWithFake, ARunningRequestIsBusyUntilItIsCancelled)
{
    float value = endless;
    ov_infer_request_t *r = request_for(&value);
    ov_tensor_t *y = nullptr;
    ASSERT_EQ(ov_infer_request_cancel(r), OK); /* idle: no effect */
    ASSERT_EQ(ov_infer_request_start_async(r), OK);
    EXPECT_EQ(ov_infer_request_wait_for(r, 1), RESULT_NOT_READY);
    EXPECT_EQ(ov_infer_request_start_async(r), REQUEST_BUSY);
    EXPECT_EQ(ov_infer_request_infer(r), REQUEST_BUSY);
    EXPECT_EQ(ov_infer_request_get_output_tensor(r, &y), REQUEST_BUSY);
    const char *text = ov_get_last_err_msg();
    EXPECT_STREQ(text, "Infer Request is busy");
    ov_free(text);
    while (!fake_is_running)
        std::this_thread::yield();
    EXPECT_EQ(ov_infer_request_cancel(r), OK);
    EXPECT_EQ(ov_infer_request_wait(r), INFER_CANCELLED);
    value = 1;
    EXPECT_EQ(ov_infer_request_infer(r), OK); /* the request is usable again */
    ov_infer_request_free(r);
}

/* Cancels after the start but before the device begins: that run ends as cancelled, and the next
 * run is not affected. */
TEST(ApiWithFake, ACancelBeforeTheDeviceBeginsIsNotLost)
{
    for (bool in_thread : {false, true}) {
        float value = 1;
        ov_infer_request_t *r = request_for(&value);
        ov_status_e s = OK;
        fake_is_bound = false;
        fake_is_held = true;
        std::thread other([&] {
            s = in_thread ? ov_infer_request_start_async(r) : ov_infer_request_infer(r);
        });
        while (!fake_is_bound)
            std::this_thread::yield();
        EXPECT_EQ(ov_infer_request_cancel(r), OK);
        fake_is_held = false;
        other.join();
        EXPECT_EQ(in_thread ? ov_infer_request_wait(r) : s, INFER_CANCELLED);
        EXPECT_EQ(ov_infer_request_infer(r), OK);
        ov_infer_request_free(r);
    }
}

/* A cancel counts however soon after the start it comes: if it were lost, the endless run would
 * never end. */
TEST(ApiWithFake, ACancelRightBehindTheStartIsNotLost)
{
    enum { ROUNDS = 300 };
    float value = endless;
    ov_infer_request_t *r = request_for(&value);
    for (int i = 0; i < ROUNDS; i++) {
        ASSERT_EQ(ov_infer_request_start_async(r), OK);
        EXPECT_EQ(ov_infer_request_cancel(r), OK);
        EXPECT_EQ(ov_infer_request_wait(r), INFER_CANCELLED);
    }
    ov_infer_request_free(r);
}

/* An idle request has nothing to cancel: as in OpenVINO, its next run is not cancelled. */
TEST(ApiWithFake, ACancelOfAnIdleRequestIsForgotten)
{
    float value = 1;
    ov_infer_request_t *r = request_for(&value);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(ov_infer_request_cancel(r), OK);
        EXPECT_EQ(ov_infer_request_infer(r), OK);
        EXPECT_EQ(ov_infer_request_cancel(r), OK);
        EXPECT_EQ(ov_infer_request_start_async(r), OK);
        EXPECT_EQ(ov_infer_request_wait(r), OK);
    }
    ov_infer_request_free(r);
}

/* Arguments of a callback that reads the request's result and starts its next run. */
struct Chain {
    ov_infer_request_t *request;
    float *value;
    int runs = 0;
};

void
start_next(void *args)
{
    auto *c = static_cast<Chain *>(args);
    ov_tensor_t *y = nullptr;
    void *data = nullptr;
    EXPECT_EQ(ov_infer_request_get_output_tensor(c->request, &y), OK);
    EXPECT_EQ(ov_tensor_data(y, &data), OK);
    *c->value = *static_cast<float *>(data);
    ov_tensor_free(y);
    if (++c->runs < 5) {
        EXPECT_EQ(ov_infer_request_start_async(c->request), OK);
    }
}

TEST(ApiWithFake, ACallbackMayStartTheNextRun)
{
    float value = 0;
    ov_infer_request_t *r = request_for(&value);
    Chain chain = {r, &value};
    ov_callback_t callback = {start_next, &chain};
    ASSERT_EQ(ov_infer_request_set_callback(r, &callback), OK);
    ASSERT_EQ(ov_infer_request_start_async(r), OK);
    EXPECT_EQ(ov_infer_request_wait(r), OK);
    EXPECT_EQ(chain.runs, 5);
    EXPECT_EQ(value, 5);
    ov_infer_request_free(r);
}

/* Arguments of a callback that frees its request, possibly after it started the next run. */
struct Freed {
    ov_infer_request_t *request;
    bool starts_another;
    std::atomic<bool> done;
};

TEST(ApiWithFake, ACallbackMayFreeItsRequest)
{
    for (bool starts_another : {false, true}) {
        float value = 0;
        Freed freed = {request_for(&value), starts_another, {false}};
        ov_callback_t callback = {[](void *args) {
                                      auto *f = static_cast<Freed *>(args);
                                      if (f->starts_another)
                                          ov_infer_request_start_async(f->request);
                                      ov_infer_request_free(f->request);
                                      f->done = true;
                                  },
                                  &freed};
        ASSERT_EQ(ov_infer_request_set_callback(freed.request, &callback), OK);
        ASSERT_EQ(ov_infer_request_start_async(freed.request), OK);
        for (int i = 0; i < 300000 && !freed.done; i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ASSERT_TRUE(freed.done);
    }
}

/* Runs a model on the host reference, from model to result. Frees everything it created, also
 * after a failure. */
ov_status_e
run_all(xm_graph *g)
{
    ov_core_t *core = nullptr;
    ov_model_t *model = nullptr;
    ov_compiled_model_t *compiled = nullptr;
    ov_infer_request_t *request = nullptr;
    ov_tensor_t *x = nullptr, *y = nullptr;
    int64_t dims[] = {1};
    ov_status_e s = xm_api_model_create(g, &model);
    if (s == OK)
        s = ov_core_create(&core);
    if (s == OK)
        s = ov_core_compile_model(core, model, "REFERENCE", 2, &compiled, "CACHE_DIR",
                                  "");
    if (s == OK)
        s = ov_compiled_model_create_infer_request(compiled, &request);
    if (s == OK)
        s = ov_tensor_create(F32, {1, dims}, &x);
    if (s == OK)
        s = ov_infer_request_set_tensor(request, "x", x);
    if (s == OK)
        s = ov_infer_request_infer(request);
    if (s == OK)
        s = ov_infer_request_get_output_tensor(request, &y);
    ov_tensor_free(y);
    ov_tensor_free(x);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ov_model_free(model);
    ov_core_free(core);
    return s;
}

TEST(ApiMemory, EveryFailedAllocationIsAnErrorWithoutLeak)
{
    EXPECT_EQ(run_all(parse(relu).release()), OK);
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        xm_graph *g = parse(relu).release();
        xm_fail_allocation(n);
        ov_status_e s = run_all(g);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s, seen ? GENERAL_ERROR : OK) << "allocation " << n;
    }
}

} // namespace
