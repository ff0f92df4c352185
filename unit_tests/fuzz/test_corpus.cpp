// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target on its corpus, so that errors that the fuzzer found once are found again.
// Each input is copied to a heap block of exactly its size, so that AddressSanitizer sees reads
// beyond its end.
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
                /* After a crash, the last name printed is that of the input. */
                file.path().filename().c_str());
        EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
        inputs++;
    }
    EXPECT_GT(inputs, 0u) << XM_CORPUS;
}
