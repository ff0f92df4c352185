// SPDX-License-Identifier: Apache-2.0
// The cache of compiled models (CACHE_DIR), its encryption, and exported models with and without
// their weights.
#include "functional_tests/api/api_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

namespace
{

namespace fs = std::filesystem;

const std::string tiny =
    std::string(XM_MODELS_DIR) + "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model";

std::string
text_of(const fs::path &path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

int encryptions, decryptions;

void
turn(const char *in, size_t n, char *out, size_t *n_out)
{
    *n_out = n;
    for (size_t i = 0; out && i < n; i++)
        out[i] = (char)(in[i] ^ 0x5a);
}

void
encrypt(const char *in, const size_t n, char *out, size_t *n_out)
{
    encryptions += out != nullptr;
    turn(in, n, out, n_out);
}

void
decrypt(const char *in, const size_t n, char *out, size_t *n_out)
{
    decryptions += out != nullptr;
    turn(in, n, out, n_out);
}

void
break_promise(const char *, const size_t n, char *, size_t *n_out)
{
    *n_out = 2 * n + *n_out;
}

class ModelCache : public testing::Test
{
  protected:
    void SetUp() override
    {
        char name[] = "/tmp/xm_model_cache_XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        folder = name;
        char *text = nullptr;
        if (ov_core_get_property(core.get(), "GPU", "FULL_DEVICE_NAME", &text) != OK)
            GTEST_SKIP() << "no OpenCL device";
        ov_free(text);
    }
    void TearDown() override
    {
        fs::remove_all(folder);
    }
    std::vector<fs::path> entries() const
    {
        std::vector<fs::path> found;
        for (const auto &f : fs::directory_iterator(folder)) {
            if (f.path().extension() == ".blob")
                found.push_back(f.path());
        }
        return found;
    }
    Model read(const std::string &name = "adder")
    {
        std::string text = add_model(true);
        text.replace(text.find("adder"), 5, name);
        return read_text(core.get(), text);
    }
    Compiled compile_cached(ov_model_t *model)
    {
        ov_compiled_model_t *c = nullptr;
        EXPECT_EQ(ov_core_compile_model(core.get(), model, "GPU", 2, &c,
                                        ov_property_key_cache_dir, folder.c_str()),
                  OK)
            << last_error();
        return Compiled(c);
    }
    Compiled compile_secretly(ov_model_t *model, ov_encryption_callbacks *callbacks)
    {
        ov_compiled_model_t *c = nullptr;
        EXPECT_EQ(ov_core_compile_model(core.get(), model, "GPU", 4, &c,
                                        ov_property_key_cache_dir, folder.c_str(),
                                        ov_property_key_cache_encryption_callbacks,
                                        callbacks),
                  OK)
            << last_error();
        return Compiled(c);
    }
    std::string came_from_cache(const Compiled &c)
    {
        char *text = nullptr;
        EXPECT_EQ(ov_compiled_model_get_property(c.get(), "LOADED_FROM_CACHE", &text),
                  OK);
        std::string s = text ? text : "";
        ov_free(text);
        return s;
    }
    void expect_sums(const Compiled &c)
    {
        Request request = make_request(c.get());
        float a[6] = {1, 2}, b[6] = {3, 4}, y[6] = {};
        for (auto &[name, data] : {std::pair{"a", a}, {"b", b}, {"y", y}}) {
            Tensor t = wrap(data, 3);
            EXPECT_EQ(ov_infer_request_set_tensor(request.get(), name, t.get()), OK);
        }
        ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
        EXPECT_EQ(y[0], 4);
        EXPECT_EQ(y[1], 6);
    }
    Core core = make_core();
    std::string folder;
};

TEST_F(ModelCache, GivesTheModelBackTheSecondTime)
{
    Model model = read();
    Compiled first = compile_cached(model.get());
    EXPECT_EQ(came_from_cache(first), "NO");
    ASSERT_EQ(entries().size(), 1u);
    Compiled second = compile_cached(model.get());
    EXPECT_EQ(came_from_cache(second), "YES");
    expect_sums(second);
    Core another = make_core();
    core.swap(another);
    Model again = read();
    Compiled third = compile_cached(again.get());
    EXPECT_EQ(came_from_cache(third), "YES");
    expect_sums(third);
    EXPECT_EQ(entries().size(), 1u);
}

TEST_F(ModelCache, TellsModelsAndSettingsApart)
{
    Model model = read(), other = read("other");
    Compiled first = compile_cached(model.get());
    Compiled second = compile_cached(other.get());
    EXPECT_EQ(came_from_cache(second), "NO");
    EXPECT_EQ(entries().size(), 2u);
    ov_compiled_model_t *c = nullptr;
    ASSERT_EQ(ov_core_compile_model(core.get(), model.get(), "GPU", 4, &c, "CACHE_DIR",
                                    folder.c_str(), "EXECUTION_MODE_HINT", "ACCURACY"),
              OK);
    Compiled third(c);
    EXPECT_EQ(came_from_cache(third), "NO");
    EXPECT_EQ(entries().size(), 3u);
}

// Returns the offset of a model's largest constant in its weight file.
size_t
largest_constant(const std::string &xml)
{
    const std::regex constant("offset=\"(\\d+)\"[^>]* size=\"(\\d+)\"");
    size_t at = 0, most = 0;
    for (std::sregex_iterator i(xml.begin(), xml.end(), constant), end; i != end; ++i) {
        const size_t n = std::stoull((*i)[2]);
        if (n > most) {
            most = n;
            at = std::stoull((*i)[1]);
        }
    }
    EXPECT_GT(most, 1000u);
    return at;
}

TEST_F(ModelCache, TellsWeightsOfMemoryApart)
{
    // the same graph with other weights is another model
    const std::string xml = text_of(tiny + ".xml");
    std::string bin = text_of(tiny + ".bin");
    const size_t of_largest = largest_constant(xml);
    for (int changed = 0; changed < 2; changed++) {
        const int64_t n = (int64_t)bin.size();
        ov_tensor_t *weights = nullptr;
        ov_model_t *model = nullptr;
        ASSERT_EQ(
            ov_tensor_create_from_host_ptr(U8, {1, (int64_t *)&n}, bin.data(), &weights),
            OK);
        ASSERT_EQ(ov_core_read_model_from_memory_buffer(core.get(), xml.data(),
                                                        xml.size(), weights, &model),
                  OK)
            << last_error();
        Model held(model);
        ov_tensor_free(weights);
        EXPECT_EQ(came_from_cache(compile_cached(model)), "NO");
        EXPECT_EQ(came_from_cache(compile_cached(model)), "YES");
        EXPECT_EQ(entries().size(), 1u + changed);
        bin[of_largest + 1000]++; // changes one byte
    }
}

TEST_F(ModelCache, TellsAChangedFile)
{
    const std::string copy = folder + "/model";
    fs::copy(tiny + ".xml", copy + ".xml");
    fs::copy(tiny + ".bin", copy + ".bin");
    const auto compile_file = [&] {
        ov_compiled_model_t *c = nullptr;
        EXPECT_EQ(ov_core_compile_model_from_file(core.get(), (copy + ".xml").c_str(),
                                                  "GPU", 2, &c, "CACHE_DIR",
                                                  folder.c_str()),
                  OK)
            << last_error();
        return came_from_cache(Compiled(c));
    };
    EXPECT_EQ(compile_file(), "NO");
    EXPECT_EQ(compile_file(), "YES");
    const struct timespec times[2] = {{1000000000, 5}, {1000000000, 5}};
    ASSERT_EQ(utimensat(AT_FDCWD, (copy + ".bin").c_str(), times, 0), 0);
    EXPECT_EQ(compile_file(), "NO");
    EXPECT_EQ(compile_file(), "YES");
}

TEST_F(ModelCache, CompilesWhatIsDamaged)
{
    Model model = read();
    compile_cached(model.get());
    ASSERT_EQ(entries().size(), 1u);
    const fs::path entry = entries()[0];
    const std::string whole = text_of(entry);
    for (const std::string &bad :
         {std::string(), std::string("no blob"), whole.substr(0, whole.size() / 2),
          whole.substr(0, 4100) + "!" + whole.substr(4101)}) {
        std::ofstream(entry, std::ios::binary | std::ios::trunc) << bad;
        Compiled c = compile_cached(model.get());
        EXPECT_EQ(came_from_cache(c), "NO");
        expect_sums(c);
        EXPECT_EQ(came_from_cache(compile_cached(model.get())), "YES") << bad.size();
    }
}

TEST_F(ModelCache, IsEncryptedByTheCallersFunctions)
{
    Model model = read();
    ov_encryption_callbacks callbacks = {encrypt, decrypt};
    encryptions = decryptions = 0;
    Compiled first = compile_secretly(model.get(), &callbacks);
    EXPECT_EQ(came_from_cache(first), "NO");
    EXPECT_EQ(encryptions, 1);
    EXPECT_EQ(decryptions, 0);
    ASSERT_EQ(entries().size(), 1u);
    const std::string secret = text_of(entries()[0]);
    EXPECT_EQ(secret.find("adder"), std::string::npos);
    EXPECT_NE(secret.substr(0, 6), "xmblob");
    Compiled second = compile_secretly(model.get(), &callbacks);
    EXPECT_EQ(came_from_cache(second), "YES");
    EXPECT_EQ(decryptions, 1);
    expect_sums(second);
    // without the key it is compiled again and replaces the entry
    Compiled third = compile_cached(model.get());
    EXPECT_EQ(came_from_cache(third), "NO");
    Compiled fourth = compile_secretly(model.get(), &callbacks);
    EXPECT_EQ(came_from_cache(fourth), "NO");
}

TEST_F(ModelCache, NeedsBothFunctionsAndTheirPromise)
{
    Model model = read();
    ov_compiled_model_t *c = nullptr;
    ov_encryption_callbacks half = {encrypt, nullptr}, liar = {break_promise, decrypt};
    EXPECT_EQ(ov_core_compile_model(core.get(), model.get(), "GPU", 2, &c,
                                    "CACHE_ENCRYPTION_CALLBACKS", &half),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("both functions"), std::string::npos);
    Compiled kept = compile_secretly(model.get(), &liar); // warns and stores nothing
    expect_sums(kept);
    EXPECT_EQ(entries().size(), 0u);
}

TEST_F(ModelCache, IsNotThereWithoutAFolder)
{
    Model model = read();
    ov_encryption_callbacks callbacks = {encrypt, decrypt};
    ov_compiled_model_t *c = nullptr;
    ASSERT_EQ(ov_core_compile_model(core.get(), model.get(), "GPU", 2, &c,
                                    "CACHE_ENCRYPTION_CALLBACKS", &callbacks),
              OK);
    Compiled held(c);
    expect_sums(held);
    EXPECT_EQ(entries().size(), 0u);
}

// Models compiled with skipped or stopped passes are neither stored nor taken from the cache.
TEST_F(ModelCache, IsNotUsedWherePassesAreLeftOut)
{
    Model model = read();
    for (const char *variable : {"XM_SKIP", "XM_FORCE"}) {
        ASSERT_EQ(setenv(variable, variable[3] == 'S' ? "FuseRMSNorm" : "ref", 1), 0);
        Compiled c = compile_cached(model.get());
        unsetenv(variable);
        expect_sums(c);
        EXPECT_EQ(entries().size(), 0u) << variable;
    }
}

TEST_F(ModelCache, HasRoomForAnyNumberOfCiphers)
{
    Model model = read();
    const auto a_pair = [](size_t i) {
        // all are different and never called, because there is no folder
        return ov_encryption_callbacks{
            reinterpret_cast<decltype(ov_encryption_callbacks::encrypt_func)>(4096 + i),
            decrypt};
    };
    for (size_t i = 0; i < 100; i++) {
        ov_encryption_callbacks callbacks = a_pair(i);
        ASSERT_EQ(ov_core_set_property(core.get(), "GPU", "CACHE_ENCRYPTION_CALLBACKS",
                                       &callbacks),
                  OK)
            << last_error();
    }
    Compiled c = compile(core.get(), model.get(), "GPU");
    expect_sums(c);
}

TEST_F(ModelCache, IsSetForTheDeviceToo)
{
    ov_encryption_callbacks callbacks = {encrypt, decrypt};
    Model model = read();
    ASSERT_EQ(ov_core_set_property(core.get(), nullptr, "CACHE_DIR", folder.c_str()), OK);
    ASSERT_EQ(
        ov_core_set_property(core.get(), "GPU", "CACHE_ENCRYPTION_CALLBACKS", &callbacks),
        OK);
    encryptions = decryptions = 0;
    Compiled first = compile(core.get(), model.get(), "GPU");
    Compiled second = compile(core.get(), model.get(), "GPU");
    EXPECT_EQ(came_from_cache(second), "YES");
    EXPECT_EQ(encryptions, 1);
    EXPECT_EQ(decryptions, 1);
}

// ---- exported models ----------------------------------------------------------------

class ExportedModel : public ModelCache
{
  protected:
    std::string exported(const char *mode, const char *key = "CACHE_MODE")
    {
        const std::string path = folder + "/" + mode;
        ov_compiled_model_t *c = nullptr;
        EXPECT_EQ(ov_core_compile_model_from_file(core.get(), (copy + ".xml").c_str(),
                                                  "GPU", 2, &c, key, mode),
                  OK)
            << last_error();
        Compiled held(c);
        EXPECT_EQ(ov_compiled_model_export_model(c, path.c_str()), OK) << last_error();
        return text_of(path);
    }
    ov_status_e import(const std::string &blob, Compiled *out)
    {
        ov_compiled_model_t *c = nullptr;
        const ov_status_e s =
            ov_core_import_model(core.get(), blob.data(), blob.size(), "GPU", &c);
        out->reset(c);
        return s;
    }
    void SetUp() override
    {
        ModelCache::SetUp();
        copy = folder + "/model";
        fs::copy(tiny + ".xml", copy + ".xml");
        fs::copy(tiny + ".bin", copy + ".bin");
    }
    std::string copy;
};

TEST_F(ExportedModel, HasItsWeightsUnlessItIsToBeSmall)
{
    const auto weights = fs::file_size(copy + ".bin");
    const std::string whole = exported("OPTIMIZE_SPEED"),
                      small = exported("OPTIMIZE_SIZE");
    EXPECT_GT(whole.size(), weights);
    EXPECT_LT(small.size(), whole.size() - weights / 2);
    EXPECT_EQ(exported("YES", "ENABLE_WEIGHTLESS").size(), small.size());
    EXPECT_EQ(exported("NO", "ENABLE_WEIGHTLESS").size(), whole.size());
    fs::rename(copy + ".bin", folder + "/elsewhere.bin");
    fs::remove(copy + ".xml");
    Compiled c;
    EXPECT_EQ(import(whole, &c), OK) << last_error();
    EXPECT_EQ(import(small, &c), GENERAL_ERROR);
    EXPECT_NE(last_error().find("model.bin"), std::string::npos) << last_error();
    // WEIGHTS_PATH gives their new place
    ASSERT_EQ(ov_core_set_property(core.get(), "GPU", "WEIGHTS_PATH",
                                   (folder + "/elsewhere.bin").c_str()),
              OK);
    EXPECT_EQ(import(small, &c), OK) << last_error();
    fs::create_directory(folder + "/there");
    fs::rename(folder + "/elsewhere.bin", folder + "/there/model.bin");
    ASSERT_EQ(ov_core_set_property(core.get(), "GPU", "WEIGHTS_PATH",
                                   (folder + "/there").c_str()),
              OK);
    EXPECT_EQ(import(small, &c), OK) << last_error();
}

} // namespace
