/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe serve as a process, and requests to it.
 */
#ifndef XM_FUNCTIONAL_TESTS_CLI_SERVE_TEST_H
#define XM_FUNCTIONAL_TESTS_CLI_SERVE_TEST_H

#include <memory>
#include <thread>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/raw_client.h"
#include "functional_tests/common/text.h"

inline const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
inline const Words exact = {
    "--precision", "f32", "--kv", "f32", "--dynamic-quantization", "0"};
inline const char *const completions = "/v1/completions";

inline Words
operator+(Words a, const Words &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/* Returns the value of a key in JSON text; it must be a string without escapes. */
inline std::string
value_of(const std::string &json, const std::string &key)
{
    const std::string begin = "\"" + key + "\":\"";
    const size_t at = json.find(begin);
    return at == std::string::npos
               ? ""
               : json.substr(at + begin.size(),
                             json.find('"', at + begin.size()) - at - begin.size());
}

class Serve : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    void begin(const Words &options = {})
    {
        program = std::make_unique<Program>(Words{"serve", "-m", model, "--port", "0"} +
                                            exact + options);
        ASSERT_TRUE(program->wait_for_output(" slots)\n")) << program->errors();
        port = port_of(program->output());
    }
    static uint16_t port_of(const std::string &line)
    {
        const size_t at = line.find(':', line.find("://") + 3);
        EXPECT_NE(at, std::string::npos) << line;
        return (uint16_t)std::stoi(line.substr(at + 1));
    }
    Response ask(const std::string &request) const
    {
        RawClient c(port);
        c.send(request);
        return c.read();
    }
    static std::string body(const std::string &prompt, int tokens,
                            const std::string &more = "")
    {
        return R"({"temperature":0,"max_tokens":)" + std::to_string(tokens) +
               R"(,"prompt":")" + prompt + "\"" + more + "}";
    }
    std::string metric(const std::string &name) const
    {
        const std::string text = ask(RawClient::get("/metrics")).body;
        const size_t at = text.find("\nxemoe_" + name + "{");
        const size_t value = text.find("} ", at) + 2;
        return at == std::string::npos
                   ? ""
                   : text.substr(value, text.find('\n', value) - value);
    }
    bool becomes(const std::string &name, const std::string &value) const
    {
        for (int i = 0; i < 2000; i++) {
            if (metric(name) == value)
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        ADD_FAILURE() << name << " is " << metric(name);
        return false;
    }

    std::unique_ptr<Program> program;
    uint16_t port = 0;
};

#endif
