/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of the tests' own: two devices FAKE that add one to a number.
 */
#ifndef XM_UNIT_TESTS_PLUGIN_FAKE_PLUGIN_H
#define XM_UNIT_TESTS_PLUGIN_FAKE_PLUGIN_H

#include <atomic>
#include <string>

#include "plugin/plugin.h"

/* With this input a run goes on until it is cancelled. */
const float endless = -1;
extern std::atomic<bool> fake_is_running;
/* Held: a request that has been started does not get to its run. */
extern std::atomic<bool> fake_is_held, fake_is_bound;

struct FakePlugin {
    xm_plugin base;
    std::string *events; /* of the test */
};
extern const xm_plugin_ops plugin_ops;

/* Models of one number. */
const char identity[] = "%0 = parameter f32[1] name=\"x\"\nresult %0 name=\"y\"\n";
const char relu[] =
    "%0 = parameter f32[1] name=\"x\"\n%1 = relu %0\nresult %1 name=\"y\"\n";

#endif
