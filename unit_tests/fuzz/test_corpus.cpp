// SPDX-License-Identifier: Apache-2.0
// Runs one fuzz target over its corpus: what the fuzzer found once stays found. Each
// input is copied to the heap, exactly as long as it is, for AddressSanitizer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "unit_tests/fuzz/fuzz.h"

TEST(Corpus, EveryInputIsReadOrRefused)
{
    size_t inputs = 0;
    for (const auto &file : std::filesystem::directory_iterator(XM_CORPUS)) {
        SCOPED_TRACE(file.path());
        std::ifstream stream(file.path(), std::ios::binary);
        std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(stream), {}};
        bytes.shrink_to_fit();
        fprintf(stderr, "%s\n",
                file.path().filename().c_str()); /* last: the one that crashed */
        EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
        inputs++;
    }
    EXPECT_GT(inputs, 0u) << XM_CORPUS;
}
