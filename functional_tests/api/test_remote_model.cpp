/* SPDX-License-Identifier: Apache-2.0
 *
 * A language model in an application's OpenCL context and queue, with all inputs and logits in
 * the application's buffers: in each run the bits equal those with host tensors.
 */
#include "functional_tests/api/remote_test.h"

namespace
{

/* The inputs of a run; rows of ids one after the other. */
struct Feed {
    int64_t batch, tokens;
    std::vector<int64_t> ids;
    std::vector<int64_t> mask; /* past and new positions; empty: all ones */
};

class RemoteModel : public Remote
{
  protected:
    void SetUp() override
    {
        Remote::SetUp();
        const std::string path =
            XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml";
        ov_model_t *m = nullptr;
        ASSERT_EQ(ov_core_read_model(core.get(), path.c_str(), nullptr, &m), OK)
            << last_error();
        model.reset(m);
    }

    void compile_with(const char *chunk)
    {
        ov_compiled_model_t *c = nullptr;
        shared = share(queue);
        ASSERT_EQ(ov_core_compile_model_with_context(
                      core.get(), model.get(), shared.get(), 2, &c, "XM_UBATCH", chunk),
                  OK)
            << last_error();
        compiled.reset(c);
    }

    /* Sets an input: a host tensor, or a buffer that is written without waiting. */
    template <typename T>
    void give(const Request &r, const char *name, ov_element_type_e type, Dims dims,
              const std::vector<T> &values, bool is_remote)
    {
        const ov_shape_t s = {(int64_t)dims.size(), dims.data()};
        const size_t n = values.size() * sizeof(T);
        if (is_remote) {
            set(r, name,
                tensor_of(shared.get(), type, dims, "OCL_BUFFER",
                          make_mem(values.data(), n)));
            return;
        }
        ov_tensor_t *t = nullptr;
        void *data = nullptr;
        ASSERT_EQ(ov_tensor_create(type, s, &t), OK);
        ASSERT_EQ(ov_tensor_data(t, &data), OK);
        memcpy(data, values.data(), n);
        set(r, name, Tensor(t));
    }

    std::vector<uint8_t> host_logits(const Request &r)
    {
        ov_tensor_t *t = nullptr;
        void *data = nullptr;
        size_t n = 0;
        EXPECT_EQ(ov_infer_request_get_tensor(r.get(), "logits", &t), OK) << last_error();
        Tensor owned(t);
        EXPECT_EQ(ov_tensor_data(t, &data), OK) << last_error();
        EXPECT_EQ(ov_tensor_get_byte_size(t, &n), OK);
        std::vector<uint8_t> bytes(n);
        memcpy(bytes.data(), data, n);
        return bytes;
    }

    void feed(const Request &r, const Feed &f, bool is_remote)
    {
        const int64_t keys = past + f.tokens;
        std::vector<int64_t> mask = f.mask, positions;
        if (mask.empty())
            mask.assign(size_t(f.batch * keys), 1);
        for (int64_t b = 0; b < f.batch; b++)
            for (int64_t i = past; i < keys; i++)
                positions.push_back(i);
        std::vector<int32_t> beams;
        for (int32_t b = 0; b < f.batch; b++)
            beams.push_back(b);
        give(r, "input_ids", I64, {f.batch, f.tokens}, f.ids, is_remote);
        give(r, "attention_mask", I64, {f.batch, keys}, mask, is_remote);
        give(r, "position_ids", I64, {f.batch, f.tokens}, positions, is_remote);
        give(r, "beam_idx", I32, {f.batch}, beams, is_remote);
    }

    void expect_same(const std::vector<Feed> &feeds)
    {
        const Request host = make_request(compiled.get());
        const Request remote = make_request(compiled.get());
        for (const Feed &f : feeds) {
            feed(host, f, false);
            feed(remote, f, true);
            infer(host);
            const std::vector<uint8_t> want = host_logits(host);
            const int64_t vocabulary =
                int64_t(want.size() / sizeof(float)) / (f.batch * f.tokens);
            const std::vector<uint8_t> nothing(want.size(), 0xff);
            cl_mem logits = make_mem(nothing.data(), nothing.size());
            set(remote, "logits",
                tensor_of(shared.get(), F32, {f.batch, f.tokens, vocabulary},
                          "OCL_BUFFER", logits));
            infer(remote);
            expect_bits(read_mem(logits, want.size(), queue), want);
            past += f.tokens;
        }
        past = 0;
    }

    Model model;
    Context shared;
    Compiled compiled;
    int64_t past = 0;
};

const Feed prompt = {1, 5, {1343, 266, 267, 265, 269}, {}};
const Feed next = {1, 1, {1024}, {}}, third = {1, 1, {13}, {}};

TEST_F(RemoteModel, APromptAndTokensBehindIt)
{
    compile_with("512");
    expect_same({prompt, next, third});
}

TEST_F(RemoteModel, APromptInChunks)
{
    compile_with("2");
    expect_same({prompt, next});
    expect_same({{2, 3, {1343, 266, 267, 265, 269, 13}, {}}, {2, 1, {5, 6}, {}}});
}

TEST_F(RemoteModel, RowsThatBeginWithPadding)
{
    compile_with("512");
    expect_same({{2, 4, {0, 0, 267, 265, 1343, 266, 267, 265}, {0, 0, 1, 1, 1, 1, 1, 1}},
                 {2, 1, {269, 269}, {0, 0, 1, 1, 1, 1, 1, 1, 1, 1}}});
}

TEST_F(RemoteModel, AMaskWithHoles)
{
    compile_with("512");
    expect_same({{1, 5, {1343, 266, 267, 265, 269}, {1, 1, 0, 1, 1}},
                 {1, 1, {1024}, {1, 1, 0, 1, 1, 1}}});
}

/* Ids are checked in device memory, too. A failed run leaves the request as it was. */
TEST_F(RemoteModel, IdsThatAreNoneAreFound)
{
    compile_with("512");
    const Request r = make_request(compiled.get());
    feed(r, {1, 2, {1343, 9999999}, {}}, true);
    expect_error(ov_infer_request_infer(r.get()), "is not an index below");
    feed(r, {1, 2, {1343, 266}, {}}, true);
    infer(r);
}

} // namespace
