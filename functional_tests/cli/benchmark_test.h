/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of benchmark_app share: small models and a language model, on PoCL as device CPU
 * and on the host's reference.
 */
#ifndef XM_FUNCTIONAL_TESTS_CLI_BENCHMARK_TEST_H
#define XM_FUNCTIONAL_TESTS_CLI_BENCHMARK_TEST_H

#include "functional_tests/cli/benchmark_run.h"

inline const std::string models = XM_MODELS_DIR;
inline const std::string language = models + "/qwen3moe-tiny/ov/int4_asym_g64";

/* The small models, written to files once for a test program. */
class Models
{
  public:
    Models()
        : folder("benchmark_models"), mlp(small_mlp(2).save(folder / "mlp")),
          rows(small_mlp(-1).save(folder / "rows")),
          pair(small_pair(-1).save(folder / "pair"))
    {
    }
    Folder folder;
    std::string mlp, rows, pair; /* [2,16]; [?,16]; a and b, [?,2] */
};

inline const Models &
small()
{
    static const Models list;
    return list;
}

inline Words
operator+(Words a, const Words &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/* Flags with which benchmark_app must fail. */
struct Wrong {
    Words flags;
    int code;
    const char *sentence; /* a part of the error text */
};

/* Runs on the host's reference, for what does not depend on the device. */
inline BenchmarkRun
on_host(const std::string &model, const Words &flags)
{
    return BenchmarkRun(Words{"-m", model, "-d", "REFERENCE"} + flags);
}

/* Returns the bytes of an .npy file. */
inline std::string
npy(const std::string &type, const std::string &shape, const std::string &bytes)
{
    std::string head =
        "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    head.resize((10 + head.size() + 64) / 64 * 64 - 10 - 1, ' ');
    head += '\n';
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(head.size() & 255);
    file += static_cast<char>(head.size() >> 8);
    return file + head + bytes;
}

class Benchmark : public testing::TestWithParam<const char *>
{
  protected:
    void SetUp() override
    {
        if (device() == "CPU" && !has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    static std::string device()
    {
        return GetParam();
    }
    static BenchmarkRun bench(const std::string &model, const Words &flags)
    {
        return BenchmarkRun(Words{"-m", model, "-d", device()} + flags);
    }
};

#endif
