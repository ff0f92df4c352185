/* SPDX-License-Identifier: Apache-2.0
 *
 * Offsets are 64-bit everywhere: weights beyond 4 GiB in a sparse file, at an odd offset.
 */
#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "plugin/readers/openvino_ir.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

const int64_t rows = 32, cols = 64;
const uint64_t offset = (5ull << 30) + 1;

/* y = x W^T with W of 32 x 64 floats at `offset`. */
std::string
model_text()
{
    auto port = [](int id, const char *dims) {
        return "<port id=\"" + std::to_string(id) + "\" precision=\"FP32\">" + dims +
               "</port>";
    };
    const char *x = "<dim>-1</dim><dim>64</dim>", *w = "<dim>32</dim><dim>64</dim>";
    const char *y = "<dim>-1</dim><dim>32</dim>";
    return "<net name=\"large\" version=\"11\"><layers>"
           "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\">"
           "<data shape=\"?,64\" element_type=\"f32\"/><output>" +
           port(0, x) +
           "</output></layer>"
           "<layer id=\"1\" name=\"w\" type=\"Const\" version=\"opset1\">"
           "<data element_type=\"f32\" shape=\"32,64\" offset=\"" +
           std::to_string(offset) + "\" size=\"" + std::to_string(rows * cols * 4) +
           "\"/><output>" + port(0, w) +
           "</output></layer>"
           "<layer id=\"2\" name=\"y\" type=\"MatMul\" version=\"opset1\">"
           "<data transpose_a=\"false\" transpose_b=\"true\"/><input>" +
           port(0, x) + port(1, w) + "</input><output>" + port(2, y) +
           "</output></layer>"
           "<layer id=\"3\" name=\"result\" type=\"Result\" version=\"opset1\"><input>" +
           port(0, y) +
           "</input></layer></layers><edges>"
           "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"2\" to-port=\"0\"/>"
           "<edge from-layer=\"1\" from-port=\"0\" to-layer=\"2\" to-port=\"1\"/>"
           "<edge from-layer=\"2\" from-port=\"2\" to-layer=\"3\" to-port=\"0\"/>"
           "</edges></net>";
}

class Large : public OpenClTest
{
  protected:
    void SetUp() override
    {
        OpenClTest::SetUp();
        folder = ::testing::TempDir() + "xemoe_large_" + std::to_string(getpid());
        xml = folder + ".xml";
        bin = folder + ".bin";
    }
    void TearDown() override
    {
        unlink(xml.c_str());
        unlink(bin.c_str());
    }
    /* Returns false if the file system has no sparse files of this size. */
    bool write(const std::vector<float> &w)
    {
        std::ofstream(xml) << model_text();
        int fd = open(bin.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0)
            return false;
        ssize_t n = (ssize_t)(w.size() * sizeof(float));
        bool ok = pwrite(fd, w.data(), (size_t)n, (off_t)offset) == n;
        close(fd);
        return ok;
    }
    std::string folder, xml, bin;
};

TEST_F(Large, WeightsBehind4GiBAreRead)
{
    std::vector<float> w;
    for (int64_t i = 0; i < rows * cols; i++)
        w.push_back((float)(i % 17) / 8 - 1);
    if (!write(w))
        GTEST_SKIP() << "no sparse file of 5 GiB can be made here";
    xm_graph *g = nullptr;
    ASSERT_XM_OK(xm_openvino_ir_read(xml.c_str(), nullptr, &g, &err));
    Program p = must_compile(engine, Graph(g, xm_graph_destroy),
                             {{"INFERENCE_PRECISION_HINT", "f32"}});
    ASSERT_TRUE(p);
    Request r = make_request(p.get());
    Tensor x = random_tensor(XM_F32, {3, cols}, 1);
    auto y = must_infer(r.get(), {x});
    ASSERT_EQ(y.size(), 1u);
    for (int64_t t = 0; t < 3; t++) {
        for (int64_t n = 0; n < rows; n++) {
            double want = 0;
            for (int64_t k = 0; k < cols; k++)
                want += (double)x->f[t * cols + k] * w[n * cols + k];
            EXPECT_NEAR(y[0]->f[t * rows + n], want, 1e-4);
        }
    }
}

} // namespace
