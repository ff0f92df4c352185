/* SPDX-License-Identifier: Apache-2.0
 *
 * Creating and freeing pipelines leaves no memory in use. This is a program of its own because a
 * device's engine is freed with its last model and core: nothing else may be open.
 */
#include <algorithm>

#include "functional_tests/common/heap.h"
#include "functional_tests/genai/genai_test.h"

namespace
{

long
resident_kib()
{
    long kib = 0;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        sscanf(line.c_str(), "RssAnon: %ld", &kib);
    return kib;
}

/* Creates a pipeline, generates a text, chats, and frees everything. */
void
live_once(const char *device)
{
    const Pipe p = open_pipe(ir_folder, device);
    const Config c = make_config([](auto *c) { SET(max_new_tokens, 1); });
    ASSERT_TRUE(p);
    EXPECT_EQ(ov_genai_llm_pipeline_start_chat(p.get()), OK);
    EXPECT_TRUE(generate(p, "3", c));
}

/* Returns the least of the last readings, because a driver's threads may still hold memory. */
long
least(const std::vector<long> &readings, size_t end)
{
    return *std::min_element(readings.begin() + (long)end - 4,
                             readings.begin() + (long)end);
}

/* How much may grow: allocated bytes by what a driver keeps, resident memory also by what the
 * allocator keeps for a driver's threads, which come and go. */
struct Allowance {
    long heap_kib, resident_kib;
};

void
expect_no_growth(const char *device, size_t cycles, const Allowance &allowance)
{
    std::vector<long> heap, resident;
    heap.reserve(cycles); /* this vector is on the heap itself */
    resident.reserve(cycles);
    while (heap.size() < cycles && !testing::Test::HasFailure()) {
        live_once(device);
        heap.push_back(heap_kib());
        resident.push_back(resident_kib());
    }
    ASSERT_EQ(heap.size(), cycles);
    const long early = least(heap, cycles / 2), late = least(heap, cycles);
    const long before = least(resident, cycles / 2), after = least(resident, cycles);
    printf("%zu pipelines on %s: heap %ld -> %ld KiB, memory %ld -> %ld KiB\n", cycles,
           device, early, late, before, after);
    EXPECT_LE(late, early + allowance.heap_kib);
    EXPECT_LE(after, before + allowance.resident_kib);
}

/* Returns n, or XM_TEST_CYCLES if set. */
size_t
cycles_or(size_t n)
{
    const char *wanted = getenv("XM_TEST_CYCLES");
    return wanted ? (size_t)atoi(wanted) : n;
}

TEST(Pipelines, LeaveNothingBehind)
{
    expect_no_growth("REFERENCE", cycles_or(200), {16, 2048});
}

TEST(Pipelines, LeaveNothingBehindOnADevice)
{
    const size_t cycles = cycles_or(24);
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    expect_no_growth("CPU", cycles, {(long)cycles * 2, 32768});
}

} // namespace
