// SPDX-License-Identifier: Apache-2.0
// What must not grow does not grow: memory, open files and mappings of a process that
// generates for long, and of one that loads a model again and again.
//
//     test_soak          5 000 tokens, 30 loads
//     test_soak --long   100 000 tokens, 1 000 loads: minutes (tools/test --soak)
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "functional_tests/api/api_test.h"
#include "functional_tests/common/program.h"
#include "xemoe/xemoe.h"

namespace
{

constexpr int64_t CONTEXT = 1000; /* tokens of a sequence */
constexpr int64_t VOCABULARY = 300;
bool is_long = false;

/* ---- resources of the process ------------------------------------------------------- */

struct Usage {
    long resident_kib, heap_kib, files, mappings;
};

Usage
usage()
{
    Usage u = {};
    std::ifstream status("/proc/self/status"), maps("/proc/self/maps");
    for (std::string line; std::getline(status, line);)
        sscanf(line.c_str(), "RssAnon: %ld", &u.resident_kib);
    for (std::string line; std::getline(maps, line);)
        u.mappings++;
    struct mallinfo2 heap = mallinfo2();
    u.heap_kib = static_cast<long>((heap.uordblks + heap.hblkhd) / 1024);
    auto fds = std::filesystem::directory_iterator("/proc/self/fd");
    u.files = std::distance(begin(fds), end(fds));
    return u;
}

/* Fails if usage has grown. Resident memory may grow by `kib`, because the allocator keeps freed
 * memory; allocated bytes may grow by `heap_kib`. */
void
expect_no_growth(const char *what, const Usage &early, const Usage &late, long kib,
                 long heap_kib)
{
    printf(
        "%s: memory %ld -> %ld KiB, heap in use %ld -> %ld KiB, open files %ld -> %ld, "
        "mappings %ld -> %ld\n",
        what, early.resident_kib, late.resident_kib, early.heap_kib, late.heap_kib,
        early.files, late.files, early.mappings, late.mappings);
    EXPECT_GT(early.resident_kib, 0);
    EXPECT_LE(late.resident_kib, early.resident_kib + kib);
    EXPECT_LE(late.heap_kib, early.heap_kib + heap_kib);
    EXPECT_EQ(late.files, early.files);
    EXPECT_LE(late.mappings, early.mappings + 4); /* the allocator may map some */
}

/* ---- a small model ----------------------------------------------------------------- */

class Soak : public testing::Test
{
  protected:
    static inline std::string folder;

    static void SetUpTestSuite()
    {
        folder = testing::TempDir() + "xemoe_soak_" + std::to_string(getpid());
        Outcome made = run({"make-model", "-o",        folder,
                            "--hidden",   "64",        "--layers",
                            "1",          "--experts", "4",
                            "--top-k",    "2",         "--moe-intermediate",
                            "64",         "--heads",   "2",
                            "--kv-heads", "1",         "--head-dim",
                            "32",         "--vocab",   std::to_string(VOCABULARY),
                            "--weights",  "u4",        "--group",
                            "32"});
        ASSERT_EQ(made.code, 0) << made.err;
    }
    static void TearDownTestSuite()
    {
        std::filesystem::remove_all(folder);
    }
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }

    static Request load(ov_core_t *core)
    {
        ov_model_t *model = nullptr;
        EXPECT_EQ(ov_core_read_model(core, (folder + "/openvino_model.xml").c_str(),
                                     nullptr, &model),
                  OK)
            << last_error();
        Model owner(model);
        return make_request(compile(core, model, "GPU").get());
    }
};

template <typename T>
void
set_input(ov_infer_request_t *r, const char *name, ov_element_type_e type,
          std::vector<T> values)
{
    int64_t dims[] = {1, static_cast<int64_t>(values.size())};
    ov_tensor_t *t = nullptr;
    void *data = nullptr;
    /* beam_idx has one dimension, the others are [batch, tokens] */
    bool flat = type == I32;
    ASSERT_EQ(ov_tensor_create(type, {flat ? 1 : 2, dims + (flat ? 1 : 0)}, &t), OK);
    Tensor owner(t);
    ASSERT_EQ(ov_tensor_data(t, &data), OK);
    memcpy(data, values.data(), values.size() * sizeof(T));
    ASSERT_EQ(ov_infer_request_set_tensor(r, name, t), OK) << last_error();
}

/* Runs one token after `past` others and returns the likeliest next one. */
int64_t
step(ov_infer_request_t *r, int64_t past, int64_t id)
{
    set_input<int64_t>(r, "input_ids", I64, {id});
    set_input<int64_t>(r, "attention_mask", I64,
                       std::vector<int64_t>(static_cast<size_t>(past) + 1, 1));
    set_input<int64_t>(r, "position_ids", I64, {past});
    set_input<int32_t>(r, "beam_idx", I32, {0});
    ov_tensor_t *t = nullptr;
    void *data = nullptr;
    EXPECT_EQ(ov_infer_request_infer(r), OK) << last_error();
    EXPECT_EQ(ov_infer_request_get_output_tensor(r, &t), OK) << last_error();
    Tensor logits(t);
    if (!t || ov_tensor_data(t, &data) != OK)
        return -1;
    const float *row = static_cast<const float *>(data);
    return std::max_element(row, row + VOCABULARY) - row;
}

/* ---- tests ------------------------------------------------------------------------- */

TEST_F(Soak, GeneratingTakesNoMoreMemory)
{
    const int64_t tokens = is_long ? 100000 : 5000;
    Core core = make_core();
    Request r = load(core.get());
    Usage early = {};
    int64_t id = 1;
    for (int64_t i = 0; i < tokens && !HasFailure(); i++) {
        if (i % CONTEXT == 0) {
            ASSERT_EQ(xm_request_reset_states(r.get()), OK) << last_error();
        }
        if (i == tokens / (is_long ? 10 : 2))
            early = usage();
        id = step(r.get(), i % CONTEXT, id);
        ASSERT_GE(id, 0);
        if (i % 97 == 0)
            id = i % VOCABULARY; /* leaves any repetition that the model is in */
    }
    expect_no_growth("generating", early, usage(), 1024, 16);
}

TEST_F(Soak, LoadingTakesNoMoreMemory)
{
    const int loads = is_long ? 1000 : 30;
    Usage early = {};
    for (int i = 0; i < loads && !HasFailure(); i++) {
        /* By then the allocator has reached its size. With PoCL 1.3 KiB a load were measured: the
         * second half of the loads may keep 2 KiB each. */
        if (i == loads / 2)
            early = usage();
        Core core = make_core();
        Request r = load(core.get());
        ASSERT_GE(step(r.get(), 0, 1), 0);
    }
    expect_no_growth("loading", early, usage(), 2048, loads);
}

} // namespace

int
main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    is_long = argc > 1 && std::string(argv[1]) == "--long";
    return RUN_ALL_TESTS();
}
