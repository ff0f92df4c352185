// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "functional_tests/common/comma_locale.h"
#include "runtime/util/element.h"
#include "runtime/util/folder.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/memory.h"
#include "runtime/util/new_file.h"
#include "runtime/util/number.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

TEST(Status, FirstFailureIsKept)
{
    struct xm_error err = {};
    EXPECT_EQ(xm_fail(&err, XM_INVALID, "first %d", 1), XM_INVALID);
    EXPECT_EQ(xm_fail(&err, XM_IO, "second"), XM_IO);
    EXPECT_EQ(err.status, XM_INVALID);
    EXPECT_STREQ(err.text, "first 1");
    xm_error_prefix(&err, "file '%s'", "a.xml");
    EXPECT_STREQ(err.text, "file 'a.xml': first 1");
}

TEST(Status, LongTextIsCutNotOverrun)
{
    struct xm_error err = {};
    std::string lots(4000, 'x');
    xm_fail(&err, XM_INVALID, "%s", lots.c_str());
    EXPECT_EQ(strlen(err.text), sizeof(err.text) - 1);
    xm_error_prefix(&err, "%s", lots.c_str());
    EXPECT_EQ(strlen(err.text), sizeof(err.text) - 1);
}

TEST(Element, EveryHalfSurvivesTheRoundTrip)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = xm_half_to_float((uint16_t)h);
        if (std::isnan(f))
            EXPECT_TRUE(std::isnan(xm_half_to_float(xm_float_to_half(f))));
        else
            EXPECT_EQ(xm_float_to_half(f), h);
    }
}

TEST(Element, HalfRoundsToNearestEven)
{
    // a tie: the even mantissa is below
    EXPECT_EQ(xm_float_to_half(1.0f + 0x1p-11f), 0x3c00);
    EXPECT_EQ(xm_float_to_half(1.0f + 3 * 0x1p-11f), 0x3c02);
    EXPECT_EQ(xm_float_to_half(65519.0f), 0x7bff);
    EXPECT_EQ(xm_float_to_half(65520.0f), 0x7c00);
    EXPECT_EQ(xm_float_to_half(-0x1p-25f), 0x8000);
    EXPECT_EQ(xm_float_to_half(0x1.8p-25f), 0x0001);
}

TEST(Element, FourBitsAreLowNibbleFirst)
{
    const uint8_t packed[] = {0x8f, 0x17};
    EXPECT_EQ(xm_load_int(XM_U4, packed, 0), 15);
    EXPECT_EQ(xm_load_int(XM_U4, packed, 1), 8);
    EXPECT_EQ(xm_load_int(XM_I4, packed, 0), -1);
    EXPECT_EQ(xm_load_int(XM_I4, packed, 1), -8);
    EXPECT_EQ(xm_load_int(XM_I4, packed, 2), 7);
}

/* Every code by definition: a sign, an exponent with bias, and a mantissa with a leading 1, which
 * is 0 if the exponent bits are 0. */
TEST(Element, SmallFloatsAreWhatTheirFieldsSay)
{
    struct {
        xm_element e;
        int exponent_bits, mantissa_bits, bias;
    } const types[] = {{XM_F4E2M1, 2, 1, 1}, {XM_F8E4M3, 4, 3, 7}, {XM_F8E5M2, 5, 2, 15}};
    for (const auto &t : types) {
        const int bits = 1 + t.exponent_bits + t.mantissa_bits;
        for (int code = 0; code < 1 << bits; code++) {
            const uint8_t packed[] = {(uint8_t)(bits == 4 ? code << 4 | 5 : code)};
            const float f = xm_load_float(t.e, packed, bits == 4);
            const int m = code % (1 << t.mantissa_bits);
            const int x = (code >> t.mantissa_bits) % (1 << t.exponent_bits);
            const double size = (m / std::pow(2, t.mantissa_bits) + (x > 0)) *
                                std::pow(2, (x > 0 ? x : 1) - t.bias);
            SCOPED_TRACE(std::string(xm_element_text(t.e)) + " " + std::to_string(code));
            if (t.e == XM_F8E4M3 && code % 128 == 127)
                EXPECT_TRUE(std::isnan(f));
            else if (t.e == XM_F8E5M2 && x == 31)
                EXPECT_TRUE(m ? std::isnan(f) : std::isinf(f));
            else
                EXPECT_EQ(std::fabs(f), size);
            EXPECT_TRUE(std::isnan(f) || std::signbit(f) == (code >> (bits - 1) != 0));
        }
    }
}

/* Values from ml_dtypes and OpenVINO. */
TEST(Element, SmallFloatsAreThoseOfOtherPrograms)
{
    struct {
        xm_element e;
        uint8_t code;
        float value;
    } const some[] = {{XM_F8E4M3, 0x01, 0x1p-9f},
                      {XM_F8E4M3, 0x7e, 448.0f},
                      {XM_F8E4M3, 0x88, -0x1p-6f},
                      {XM_F8E5M2, 0x01, 0x1p-16f},
                      {XM_F8E5M2, 0x7b, 57344.0f},
                      {XM_F8E5M2, 0xfc, -INFINITY},
                      {XM_F8E8M0, 0x00, 0x1p-127f},
                      {XM_F8E8M0, 0x01, 0x1p-126f},
                      {XM_F8E8M0, 0x7f, 1.0f},
                      {XM_F8E8M0, 0xfe, 0x1p127f},
                      {XM_F4E2M1, 0x7f, -6.0f},
                      {XM_F4E2M1, 0x01, 0.5f},
                      {XM_NF4, 0x00, -1.0f},
                      {XM_NF4, 0x01, -0.6961928009986877f},
                      {XM_NF4, 0x02, -0.5250730514526367f},
                      {XM_NF4, 0x03, -0.39491748809814453f},
                      {XM_NF4, 0x04, -0.28444138169288635f},
                      {XM_NF4, 0x05, -0.18477343022823334f},
                      {XM_NF4, 0x06, -0.09105003625154495f},
                      {XM_NF4, 0x07, 0.0f},
                      {XM_NF4, 0x08, 0.07958029955625534f},
                      {XM_NF4, 0x09, 0.16093020141124725f},
                      {XM_NF4, 0x0a, 0.24611230194568634f},
                      {XM_NF4, 0x0b, 0.33791524171829224f},
                      {XM_NF4, 0x0c, 0.44070982933044434f},
                      {XM_NF4, 0x0d, 0.5626170039176941f},
                      {XM_NF4, 0x0e, 0.7229568362236023f},
                      {XM_NF4, 0x0f, 1.0f}};
    for (const auto &s : some)
        EXPECT_EQ(xm_load_float(s.e, &s.code, 0), s.value)
            << xm_element_text(s.e) << " " << (int)s.code;
    const uint8_t nan = 0xff;
    EXPECT_TRUE(std::isnan(xm_load_float(XM_F8E8M0, &nan, 0)));
}

TEST(Element, NamesOfFilesAndPortsParse)
{
    EXPECT_EQ(xm_element_parse("f16"), XM_F16);
    EXPECT_EQ(xm_element_parse("FP16"), XM_F16);
    EXPECT_EQ(xm_element_parse("BOOL"), XM_BOOL);
    EXPECT_EQ(xm_element_parse("I64"), XM_I64);
    EXPECT_EQ(xm_element_parse("nonsense"), XM_ELEMENT_COUNT);
}

TEST(Element, SizesThatOverflowAreRefused)
{
    uint64_t bytes = 0;
    EXPECT_TRUE(xm_element_bytes(XM_U4, 3, &bytes));
    EXPECT_EQ(bytes, 2u);
    EXPECT_FALSE(xm_element_bytes(XM_F32, UINT64_MAX / 2, &bytes));
    EXPECT_FALSE(xm_element_bytes(XM_STRING, 1, &bytes));
}

TEST(Element, OutOfRangeFloatsSaturate)
{
    int64_t v = 0;
    xm_store_float(XM_I64, &v, 0, 1e30f);
    EXPECT_EQ(v, INT64_MAX);
    xm_store_float(XM_I64, &v, 0, -INFINITY);
    EXPECT_EQ(v, INT64_MIN);
    xm_store_float(XM_I64, &v, 0, NAN);
    EXPECT_EQ(v, 0);
}

TEST(Memory, TheNthAllocationFails)
{
    xm_fail_allocation(2);
    void *a = xm_malloc(1), *b = xm_malloc(1), *c = xm_malloc(1);
    EXPECT_TRUE(xm_fail_allocation_seen());
    xm_fail_allocation(0);
    EXPECT_NE(a, nullptr);
    EXPECT_EQ(b, nullptr);
    EXPECT_NE(c, nullptr);
    xm_free(a);
    xm_free(c);
}

TEST(Memory, ArraysGrowAndSurviveThatTheyCannot)
{
    size_t room = 0;
    int *items = static_cast<int *>(xm_grow(nullptr, &room, 1, sizeof(*items)));
    ASSERT_NE(items, nullptr);
    ASSERT_EQ(room, 16u);
    items[15] = 7;
    EXPECT_EQ(xm_grow(items, &room, 16, sizeof(*items)), items) << "there is room";
    EXPECT_EQ(xm_grow(items, &room, SIZE_MAX / 2, sizeof(*items)), nullptr);
    xm_fail_allocation(1);
    EXPECT_EQ(xm_grow(items, &room, 17, sizeof(*items)), nullptr);
    EXPECT_EQ(room, 16u);
    items = static_cast<int *>(xm_grow(items, &room, 17, sizeof(*items)));
    ASSERT_NE(items, nullptr);
    EXPECT_EQ(room, 32u);
    EXPECT_EQ(items[15], 7);
    xm_free(items);
}

TEST(Memory, ArenaIsZeroedAndAligned)
{
    struct xm_arena arena = {};
    for (size_t n : {1u, 100u, 100000u, 7u}) {
        auto *p = (unsigned char *)xm_arena_alloc(&arena, n);
        ASSERT_NE(p, nullptr);
        EXPECT_EQ((uintptr_t)p % 16, 0u);
        for (size_t i = 0; i < n; i++)
            ASSERT_EQ(p[i], 0);
        memset(p, 0xff, n);
    }
    xm_arena_free(&arena);
}

TEST(Strbuf, FailureIsSticky)
{
    struct xm_strbuf b = {};
    xm_strbuf_add(&b, "one ");
    xm_strbuf_printf(&b, "%d", 2);
    EXPECT_STREQ(xm_strbuf_text(&b), "one 2");
    xm_fail_allocation(1);
    xm_strbuf_add(&b, std::string(1000, 'x').c_str());
    xm_fail_allocation(0);
    EXPECT_FALSE(xm_strbuf_ok(&b));
    EXPECT_EQ(xm_strbuf_take(&b), nullptr);
}

/* Forgotten pages are read from the file again; other memory is not touched. */
TEST(MappedFile, ForgetsOnlyItsOwnPages)
{
    const size_t size = 5 * 4096 + 100;
    std::string path = testing::TempDir() + "xemoe_forget", text(size, 'a');
    std::ofstream(path, std::ios::binary) << text;
    struct xm_mapped_file f = {};
    struct xm_error err = {};
    ASSERT_EQ(xm_mapped_file_open(path.c_str(), &f, &err), XM_OK) << err.text;
    std::vector<uint8_t> other(size, 7);
    xm_mapped_file_forget(&f, f.bytes + 10, size - 20);
    xm_mapped_file_forget(&f, f.bytes + 10, 1);
    xm_mapped_file_forget(&f, other.data(), other.size());
    xm_mapped_file_forget(&f, f.bytes + 10, size); /* beyond its end */
    xm_mapped_file_forget(&f, nullptr, 0);
    EXPECT_EQ(std::string((const char *)f.bytes, size), text);
    EXPECT_EQ(other, std::vector<uint8_t>(size, 7));
    xm_mapped_file_close(&f);
    remove(path.c_str());
}

/* A file made by the test and mapped. */
class Mapped : public testing::Test
{
  protected:
    static constexpr size_t size = 3 * 4096 + 100;

    void SetUp() override
    {
        std::ofstream(path, std::ios::binary) << std::string(size, 'a');
        xm_error err = {};
        ASSERT_EQ(xm_mapped_file_open(path.c_str(), &file, &err), XM_OK) << err.text;
    }

    void TearDown() override
    {
        xm_mapped_file_close(&file);
        remove(path.c_str());
    }

    const std::string path =
        testing::TempDir() + "xemoe_mapped_" + std::to_string(getpid());
    xm_mapped_file file = {};
};

TEST_F(Mapped, IsFoundByTheAddressesOfItsBytes)
{
    const char *found = nullptr;
    uint64_t n = 0;
    for (size_t at : {size_t{0}, size_t{5000}, size - 1}) {
        ASSERT_TRUE(xm_mapped_file_find(file.bytes + at, &found, &n)) << at;
        EXPECT_EQ(found, path);
        EXPECT_EQ(n, size);
    }
    const uint8_t *bytes = file.bytes;
    EXPECT_FALSE(xm_mapped_file_find(bytes - 1, &found, &n));
    EXPECT_FALSE(xm_mapped_file_find(bytes + size, &found, &n));
    EXPECT_FALSE(xm_mapped_file_find(nullptr, &found, &n));
    xm_mapped_file_close(&file);
    EXPECT_FALSE(xm_mapped_file_find(bytes, &found, &n));
}

/* Files beyond the size of the table of watched files work, but are not watched; entries become
 * free again. */
TEST_F(Mapped, ManyFilesMayBeMapped)
{
    const char *found = nullptr;
    uint64_t n = 0;
    for (int round = 0; round < 2; round++) {
        std::vector<xm_mapped_file> files(100);
        int known = 0;
        for (xm_mapped_file &f : files) {
            ASSERT_EQ(xm_mapped_file_open(path.c_str(), &f, nullptr), XM_OK);
            EXPECT_EQ(f.bytes[size - 1], 'a');
            known += xm_mapped_file_find(f.bytes, &found, &n);
        }
        EXPECT_EQ(known, 63); /* and the fixture's file */
        for (xm_mapped_file &f : files)
            xm_mapped_file_close(&f);
    }
}

TEST_F(Mapped, OfALongPathTheEndIsTold)
{
    std::string deep = testing::TempDir();
    for (int i = 0; i < 40; i++)
        deep += "/./././.";
    deep += "/xemoe_mapped_" + std::to_string(getpid());
    xm_mapped_file f = {};
    const char *found = nullptr;
    uint64_t n = 0;
    ASSERT_EQ(xm_mapped_file_open(deep.c_str(), &f, nullptr), XM_OK);
    ASSERT_TRUE(xm_mapped_file_find(f.bytes, &found, &n));
    EXPECT_EQ(found, deep.substr(deep.size() - 255));
    xm_mapped_file_close(&f);
}

void
say_and_leave(const char *path, uint64_t n)
{
    const std::string text = "lost " + std::string(path) + " " + std::to_string(n) + "\n";
    if (write(STDERR_FILENO, text.data(), text.size()) < 0)
        _exit(1);
    _exit(3);
}

/* Runs in a child process from here on, where no sanitizer handles SIGBUS. */
void
watch(xm_lost_file_fn lost)
{
    signal(SIGBUS, SIG_DFL);
    if (xm_mapped_file_watch(lost, nullptr) != XM_OK)
        _exit(9);
}

uint8_t
look_at(const volatile uint8_t *bytes)
{
    return *bytes;
}

TEST_F(Mapped, ThatIsTruncatedIsSaid)
{
    EXPECT_EXIT(
        {
            watch(say_and_leave);
            if (truncate(path.c_str(), 4096) != 0 || look_at(file.bytes) != 'a')
                _exit(9);
            look_at(file.bytes + 2 * 4096);
        },
        testing::ExitedWithCode(3),
        "lost .*xemoe_mapped_" + std::to_string(getpid()) + " " + std::to_string(size));
}

/* Installs a handler for one signal only, as LLVM does: of two threads the second would have
 * none. */
void
install_for_one_signal()
{
    struct sigaction action = {};
    action.sa_handler = [](int) { pause(); };
    action.sa_flags = int(SA_RESETHAND) | SA_NODEFER;
    sigaction(SIGBUS, &action, nullptr);
}

TEST_F(Mapped, TheWatchOutlivesWhatADriverInstalls)
{
    const auto lose_file = [&] {
        if (truncate(path.c_str(), 0) != 0)
            _exit(9);
        std::thread other([&] { look_at(file.bytes); });
        look_at(file.bytes + 4096);
        other.join();
    };
    EXPECT_EXIT(
        {
            watch(say_and_leave);
            const bool was_watched = xm_mapped_file_is_watched();
            install_for_one_signal();
            xm_mapped_file_keep_watch(was_watched);
            lose_file();
        },
        testing::ExitedWithCode(3), "lost .*xemoe_mapped_");
    EXPECT_EXIT(
        {
            watch(say_and_leave);
            install_for_one_signal(); /* installed by the program itself, so it stays */
            xm_mapped_file_keep_watch(xm_mapped_file_is_watched());
            lose_file();
        },
        testing::KilledBySignal(SIGBUS), "^$");
}

/* Bus errors elsewhere are handled as before, also by a handler that returns. */
TEST_F(Mapped, OtherBusErrorsAreLeftAlone)
{
    const auto is_bus_error = testing::KilledBySignal(SIGBUS);
    EXPECT_EXIT(
        {
            watch(say_and_leave);
            raise(SIGBUS);
        },
        is_bus_error, "^$");
    EXPECT_EXIT(
        {
            watch(say_and_leave);
            FILE *empty = tmpfile();
            void *p = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fileno(empty), 0);
            look_at(static_cast<uint8_t *>(p));
        },
        is_bus_error, "^$");
    EXPECT_EXIT(
        {
            watch([](const char *, uint64_t) {});
            if (truncate(path.c_str(), 0) == 0)
                look_at(file.bytes);
        },
        is_bus_error, "^$");
}

TEST(Strbuf, WritesMarkupAsEntities)
{
    struct xm_strbuf b = {};
    const char text[] = "a<b> & \"c\" \xc3\xa4";
    xm_strbuf_add_markup(&b, text, sizeof(text) - 1);
    EXPECT_STREQ(xm_strbuf_text(&b), "a&lt;b&gt; &amp; &quot;c&quot; \xc3\xa4");
    xm_strbuf_free(&b);
}

TEST(Lists, HaveWholeWordsOnly)
{
    const auto has = [](const char *list, const std::string &word) {
        return xm_list_has(list, ' ', word.data(), word.size());
    };
    for (const char *word : {"ab", "abc", "d"})
        EXPECT_TRUE(has("ab abc d", word)) << word;
    for (const char *word : {"a", "bc", "c d", "e", ""})
        EXPECT_FALSE(has("ab abc  d", word)) << word;
    EXPECT_FALSE(has("", "a"));
    EXPECT_TRUE(xm_list_has("cpu,memory", ',', "memory", 6));
    EXPECT_TRUE(xm_list_has("ab abcd", ' ', "abx", 2));
}

TEST(Number, WholeOnesAreDigitsThatFit)
{
    uint64_t n = 7;
    EXPECT_TRUE(xm_parse_whole("0", &n));
    EXPECT_EQ(n, 0u);
    EXPECT_TRUE(xm_parse_whole("18446744073709551615", &n));
    EXPECT_EQ(n, UINT64_MAX);
    for (const char *wrong : {"", " 1", "1 ", "-1", "+1", "1.5", "0x1", "1e3",
                              "18446744073709551616", "99999999999999999999"})
        EXPECT_FALSE(xm_parse_whole(wrong, &n)) << wrong;
}

/* A program that uses the library may have set its user's locale. */
TEST(Number, HasAPointInEveryLocale)
{
    const CommaLocale locale;
    REQUIRE_COMMA_LOCALE(locale);
    struct xm_strbuf b = {};
    char *end = nullptr;
    xm_strbuf_printf(&b, "%g %.8e %s", 0.5, 1e-6, "x");
    EXPECT_STREQ(xm_strbuf_text(&b), "0.5 1.00000000e-06 x");
    xm_strbuf_free(&b);
    EXPECT_EQ(xm_parse_float("0.5 ", &end), 0.5f);
    EXPECT_STREQ(end, " ");
    EXPECT_EQ(xm_parse_double("-2.5e-1", &end), -0.25);
    EXPECT_TRUE(locale.is_on()) << "the locale is left as it was";
}

TEST(Folder, IsMadeWithThoseAboveForItsOwnerAlone)
{
    namespace fs = std::filesystem;
    const fs::path root =
        fs::path(testing::TempDir()) / ("xemoe_folder_" + std::to_string(getpid()));
    const fs::path deep = root / "a" / "b";
    EXPECT_EQ(xm_folder_make(deep.c_str()), 0);
    EXPECT_EQ(xm_folder_make((deep.string() + "/").c_str()), 0) << "it is there already";
    for (const fs::path &p : {root, root / "a", deep})
        EXPECT_EQ(fs::status(p).permissions(), fs::perms::owner_all) << p;
    std::ofstream(root / "file") << "in the way";
    EXPECT_EQ(xm_folder_make((root / "file").c_str()), ENOTDIR);
    EXPECT_EQ(xm_folder_make((root / "file" / "x").c_str()), ENOTDIR);
    EXPECT_EQ(xm_folder_make(""), ENOENT);
    EXPECT_EQ(xm_folder_make(std::string(5000, 'x').c_str()), ENAMETOOLONG);
    fs::remove_all(root);
}

/* A folder with a file in it. */
struct NewFile : testing::Test {
    const std::filesystem::path root = std::filesystem::path(testing::TempDir()) /
                                       ("xemoe_new_file_" + std::to_string(getpid()));
    const std::string path = root / "file";
    xm_strbuf text = {};
    xm_error err = {};

    void SetUp() override
    {
        std::filesystem::create_directories(root);
        std::ofstream(path) << "old";
        xm_strbuf_add(&text, "new text");
    }
    void TearDown() override
    {
        xm_strbuf_free(&text);
        std::filesystem::remove_all(root);
    }
    std::string content(const std::string &of)
    {
        std::ifstream file(of);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    size_t n_files()
    {
        const std::filesystem::directory_iterator all(root);
        return (size_t)std::distance(begin(all), end(all));
    }
};

TEST_F(NewFile, TakesThePlaceOfTheOldOneWhichWhoHasItMappedKeeps)
{
    xm_mapped_file old = {};
    ASSERT_EQ(xm_mapped_file_open(path.c_str(), &old, &err), XM_OK);
    EXPECT_EQ(xm_write_text_file(path.c_str(), &text, &err), XM_OK) << err.text;
    EXPECT_EQ(memcmp(old.bytes, "old", 3), 0);
    xm_mapped_file_close(&old);
    EXPECT_EQ(content(path), "new text");
    EXPECT_EQ(xm_write_text_file((root / "other").c_str(), &text, &err), XM_OK);
    EXPECT_EQ(n_files(), 2u);
}

TEST_F(NewFile, FollowsLinks)
{
    const std::filesystem::path link = root / "link";
    std::filesystem::create_symlink("file", link);
    EXPECT_EQ(xm_write_text_file(link.c_str(), &text, &err), XM_OK) << err.text;
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(content(path), "new text");
}

TEST_F(NewFile, IsMadeWhereALinkLeads)
{
    const std::filesystem::path link = root / "link";
    std::filesystem::create_symlink("not_yet", link);
    EXPECT_EQ(xm_write_text_file(link.c_str(), &text, &err), XM_OK) << err.text;
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(content(root / "not_yet"), "new text");
}

TEST_F(NewFile, HasTheModeOfTheOldOne)
{
    struct stat st = {};
    for (mode_t mode : {0600u, 0640u, 0755u}) {
        ASSERT_EQ(chmod(path.c_str(), mode), 0);
        EXPECT_EQ(xm_write_text_file(path.c_str(), &text, &err), XM_OK) << err.text;
        ASSERT_EQ(stat(path.c_str(), &st), 0);
        EXPECT_EQ(st.st_mode & 07777, mode);
    }
    const mode_t mask = umask(027);
    EXPECT_EQ(xm_write_text_file((root / "fresh").c_str(), &text, &err), XM_OK);
    umask(mask);
    ASSERT_EQ(stat((root / "fresh").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0640u);
}

TEST_F(NewFile, MayHaveALongName)
{
    const std::string name(NAME_MAX, 'x');
    EXPECT_EQ(xm_write_text_file((root / name).c_str(), &text, &err), XM_OK) << err.text;
    EXPECT_EQ(content(root / name), "new text");
    EXPECT_EQ(n_files(), 2u);
}

/* As another user, because root may write everywhere. */
TEST_F(NewFile, IsWrittenAsItIsInAFolderThatTakesNoNewOnes)
{
    ASSERT_EQ(chmod(path.c_str(), 0666), 0);
    ASSERT_EQ(chmod(root.c_str(), 0555), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && seteuid(65534) != 0)
            _exit(2);
        _exit(xm_write_text_file(path.c_str(), &text, nullptr) == XM_OK &&
                      xm_write_text_file((root / "other").c_str(), &text, nullptr) ==
                          XM_IO
                  ? 0
                  : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    chmod(root.c_str(), 0755);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(content(path), "new text");
    EXPECT_EQ(n_files(), 1u);
}

/* Also through a link to the file. Other names, and files of writers that ended, do not count. */
TEST_F(NewFile, TellsWhetherSomebodyWritesIt)
{
    const std::string link = path + ".link", other = path + "2";
    std::filesystem::create_symlink(path, link);
    std::ofstream(path + ".99999999.0") << "left by a process that is gone";
    EXPECT_FALSE(xm_new_file_has_writer(path.c_str()));
    xm_new_file f;
    ASSERT_EQ(xm_new_file_begin(&f, other.c_str(), &err), XM_OK) << err.text;
    EXPECT_FALSE(xm_new_file_has_writer(path.c_str()));
    EXPECT_TRUE(xm_new_file_has_writer(other.c_str()));
    EXPECT_EQ(xm_new_file_end(&f, XM_DEVICE, &err), XM_DEVICE);
    EXPECT_FALSE(xm_new_file_has_writer(other.c_str()));
    ASSERT_EQ(xm_new_file_begin(&f, path.c_str(), &err), XM_OK) << err.text;
    EXPECT_TRUE(xm_new_file_has_writer(path.c_str()));
    EXPECT_TRUE(xm_new_file_has_writer(link.c_str()));
    EXPECT_EQ(xm_new_file_end(&f, XM_OK, &err), XM_OK);
    EXPECT_FALSE(xm_new_file_has_writer(path.c_str()));
    EXPECT_FALSE(xm_new_file_has_writer("/no/such/folder/m"));
}

TEST_F(NewFile, ThatFailsLeavesTheOldOneAndNothingElse)
{
    xm_new_file f;
    ASSERT_EQ(xm_new_file_begin(&f, path.c_str(), &err), XM_OK) << err.text;
    ASSERT_EQ(xm_new_file_write(&f, &text, &err), XM_OK) << err.text;
    EXPECT_EQ(n_files(), 2u);
    EXPECT_EQ(xm_new_file_end(&f, XM_DEVICE, &err), XM_DEVICE);
    EXPECT_EQ(content(path), "old");
    EXPECT_EQ(n_files(), 1u);
    xm_strbuf failed = {};
    failed.failed = true;
    EXPECT_EQ(xm_write_text_file(path.c_str(), &failed, &err), XM_NO_MEMORY);
    EXPECT_EQ(err.text, "out of memory for the text of '" + path + "'");
    EXPECT_EQ(content(path), "old");
}

/* The program's own input is not overwritten, whatever name it has, even after it was closed.
 * Runs in a child process. */
TEST_F(NewFile, IsNotPutOverWhatWasReadWhereInputsAreSpared)
{
    const std::string input = root / "input", link = root / "link";
    std::ofstream(input) << "weights";
    std::filesystem::create_symlink("input", link);
    const pid_t child = fork();
    if (child == 0) {
        xm_mapped_file f = {};
        xm_error refused = {};
        bool good = xm_mapped_file_open(input.c_str(), &f, nullptr) == XM_OK;
        xm_mapped_file_close(&f);
        xm_new_file_spare_inputs(true);
        for (const std::string &name : {input, link})
            good = good && xm_write_text_file(name.c_str(), &text, &refused) == XM_IO;
        good = good &&
               strstr(refused.text, "is not written, because this program reads it") &&
               xm_write_text_file(path.c_str(), &text, nullptr) == XM_OK;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(content(input), "weights");
    EXPECT_EQ(content(path), "new text");
}

/* Removes temporary files of processes that ended, which hold no lock; files with other names
 * stay. */
TEST_F(NewFile, RemovesWhatKilledProcessesHaveLeft)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, nullptr, 0);
    const std::string gone = std::to_string(child), here = std::to_string(getpid());
    const std::string left = path + "." + gone + ".0", locked = path + "." + gone + ".1";
    const std::string kept[] = {path + "." + here + ".77", path + "." + gone,
                                path + "." + gone + ".x",  path + "s." + gone + ".0",
                                path + "." + gone + ".",   locked};
    std::ofstream(left) << "half";
    for (const std::string &name : kept)
        std::ofstream(name) << "other";
    const int fd = open(locked.c_str(), O_WRONLY);
    ASSERT_EQ(flock(fd, LOCK_EX), 0);
    EXPECT_EQ(xm_write_text_file(path.c_str(), &text, &err), XM_OK) << err.text;
    EXPECT_FALSE(std::filesystem::exists(left));
    for (const std::string &name : kept)
        EXPECT_TRUE(std::filesystem::exists(name)) << name;
    close(fd);
}

/* A lock tells others that the file is being written; it is released at the end. */
TEST_F(NewFile, IsLockedUntilTheEnd)
{
    xm_new_file f;
    ASSERT_EQ(xm_new_file_begin(&f, path.c_str(), &err), XM_OK) << err.text;
    const int fd = open(xm_new_file_name(&f), O_WRONLY);
    EXPECT_NE(flock(fd, LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(xm_new_file_end(&f, XM_OK, &err), XM_OK);
    EXPECT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
}

TEST_F(NewFile, SaysWhereItCannotBe)
{
    const std::string places[] = {root, root / "missing" / "file"};
    const char *reasons[] = {"Is a directory", "No such file or directory"};
    for (size_t i = 0; i < 2; i++) {
        err = {};
        EXPECT_EQ(xm_write_text_file(places[i].c_str(), &text, &err), XM_IO);
        EXPECT_EQ(err.text, "'" + places[i] + "' cannot be written: " + reasons[i]);
    }
    EXPECT_EQ(n_files(), 1u);
}

/* Devices and open files are written in place, because /dev/stdout may be a file. */
TEST_F(NewFile, IsWrittenAsItIsWhereItHasNoPlace)
{
    const int fd = open(path.c_str(), O_WRONLY);
    const std::string opened = "/proc/self/fd/" + std::to_string(fd);
    const std::filesystem::path pipe = root / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string &name : {opened, pipe.string(), std::string("/dev/null")}) {
        xm_new_file f;
        ASSERT_EQ(xm_new_file_begin(&f, name.c_str(), &err), XM_OK) << err.text;
        EXPECT_EQ(xm_new_file_name(&f), name);
        EXPECT_EQ(xm_new_file_end(&f, XM_OK, &err), XM_OK);
    }
    close(fd);
    EXPECT_EQ(xm_write_text_file("/dev/full", &text, &err), XM_IO);
    EXPECT_STREQ(err.text, "'/dev/full' cannot be written: No space left on device");
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}
