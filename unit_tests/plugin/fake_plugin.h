/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin for tests: two devices FAKE that add one to a number.
 */
#ifndef XM_UNIT_TESTS_PLUGIN_FAKE_PLUGIN_H
#define XM_UNIT_TESTS_PLUGIN_FAKE_PLUGIN_H

#include <atomic>
#include <string>

#include "plugin/plugin.h"

/* A run with this input lasts until it is cancelled. */
const float endless = -1;
extern std::atomic<bool> fake_is_running;
/* While `fake_is_held` is set, a request that was started waits when its input is bound, before
 * its run. `fake_is_bound` says that a request reached this point. */
extern std::atomic<bool> fake_is_held, fake_is_bound;

struct FakePlugin {
    xm_plugin base;
    std::string *events; /* the test's record of calls */
};
extern const xm_plugin_ops plugin_ops;

/* Models with one number as input and output. */
const char identity[] = "%0 = parameter f32[1] name=\"x\"\nresult %0 name=\"y\"\n";
const char relu[] =
    "%0 = parameter f32[1] name=\"x\"\n%1 = relu %0\nresult %1 name=\"y\"\n";

#endif
