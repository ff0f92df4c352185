/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of cached prefixes: they return the positions that were saved, and nothing else.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "plugin/pipeline/prefix_store.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"
#include "unit_tests/pipeline/scheduled_jobs.h"

namespace
{

namespace fs = std::filesystem;
constexpr uint64_t PLENTY = 1 << 30;

Ids
tokens(size_t n, uint32_t seed = 1)
{
    Ids list;
    for (size_t i = 0; i < n; i++) {
        seed = digest((int32_t)i, seed);
        list.push_back((int32_t)(seed >> 8) % VOCABULARY);
    }
    return list;
}

class PrefixStore : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        xm_log_set_sink(
            [](xm_log_level, const char *line, void *ctx) {
                static_cast<std::vector<std::string> *>(ctx)->push_back(line);
            },
            &warnings);
        open(PLENTY);
    }
    void TearDown() override
    {
        xm_prefix_store_close(store);
        xm_log_set_sink(nullptr, nullptr);
    }
    void open(uint64_t most, SequenceModel *of = nullptr)
    {
        xm_prefix_store_close(store);
        ASSERT_EQ(xm_prefix_store_open(&(of ? of : &model)->base, folder.path.c_str(),
                                       most, &store, &err),
                  XM_OK)
            << err.text;
    }
    /* Returns a sequence that has run these tokens. */
    xm_sequence *run(const Ids &ids, SequenceModel *of = nullptr)
    {
        xm_compiled *c = &(of ? of : &model)->base;
        xm_sequence *s = nullptr;
        xm_batch *b = nullptr;
        EXPECT_EQ(xm_compiled_create_sequence(c, &s, &err), XM_OK);
        if (ids.empty())
            return s;
        EXPECT_EQ(xm_compiled_create_batch(c, &b, &err), XM_OK);
        const xm_batch_row row = {s, ids.data(), ids.size(), 1};
        EXPECT_EQ(b->ops->run(b, &row, 1, &err), XM_OK) << err.text;
        xm_compiled_destroy_batch(b);
        return s;
    }
    void save(const Ids &ids, SequenceModel *of = nullptr)
    {
        xm_sequence *s = run(ids, of);
        xm_prefix_store_save(store, s, ids.data(), ids.size());
        xm_compiled_destroy_sequence(s);
    }
    /* Returns the number of positions that a prompt gets from files, with an empty cache. */
    uint64_t load(const Ids &ids, SequenceModel *of = nullptr)
    {
        xm_sequence *s = run({}, of);
        const uint64_t n = xm_prefix_store_load(store, s, ids.data(), ids.size());
        EXPECT_EQ(s->ops->past(s), n);
        xm_compiled_destroy_sequence(s);
        return n;
    }
    std::vector<fs::path> files() const
    {
        std::vector<fs::path> list;
        for (const auto &f : fs::directory_iterator(folder.path))
            list.push_back(f.path());
        return list;
    }
    uintmax_t bytes() const
    {
        uintmax_t n = 0;
        for (const fs::path &f : files())
            n += fs::file_size(f);
        return n;
    }
    static void flip(const fs::path &path, uintmax_t at)
    {
        std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
        f.seekg((std::streamoff)at);
        const int byte = f.get();
        f.seekp((std::streamoff)at);
        f.put((char)(byte ^ 0x20));
    }
    /* Sets the file's time of last use to a fixed time plus `seconds`. */
    static void age(const fs::path &path, int64_t seconds)
    {
        const timespec t[2] = {{1000000 + seconds, 0}, {1000000 + seconds, 0}};
        ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), t, 0), 0);
    }
    bool has_warning(const std::string &text) const
    {
        return std::any_of(warnings.begin(), warnings.end(), [&](const auto &line) {
            return line.find(text) != std::string::npos;
        });
    }

    Folder folder{"prefixes"};
    SequenceModel model;
    xm_prefix_store *store = nullptr;
    std::vector<std::string> warnings;
    xm_error err = {};
};

TEST_F(PrefixStore, GivesBackWholePagesOfTheLongestBeginning)
{
    const Ids text = tokens(23);
    save(text);
    EXPECT_EQ(load(text), 20u) << "pages of 4, and three positions that fill none";
    EXPECT_EQ(load(tokens(100)), 20u);
    EXPECT_EQ(load(Ids(text.begin(), text.begin() + 20)), 16u)
        << "a token is left to run";
    EXPECT_EQ(load(Ids(text.begin(), text.begin() + 4)), 0u);
    Ids other = tokens(23);
    other[9]++;
    EXPECT_EQ(load(other), 8u);
    other[0]++;
    EXPECT_EQ(load(other), 0u);
    EXPECT_TRUE(warnings.empty());
    EXPECT_EQ(files().size(), 1u);
}

TEST_F(PrefixStore, OutlivesTheProgram)
{
    const Ids text = tokens(40);
    save(text);
    SequenceModel again;
    open(PLENTY, &again);
    EXPECT_EQ(load(text, &again), 36u);
    EXPECT_EQ(load(tokens(41), &again), 40u);
    open(PLENTY);
}

TEST_F(PrefixStore, KeepsWhatASequenceHoldsAlready)
{
    const Ids text = tokens(30);
    save(text);
    xm_sequence *s = run(Ids(text.begin(), text.begin() + 12));
    EXPECT_EQ(xm_prefix_store_load(store, s, text.data(), text.size()), 28u);
    EXPECT_EQ(s->ops->past(s), 28u);
    xm_compiled_destroy_sequence(s);
    s = run(Ids(text.begin(), text.begin() + 28));
    const uint64_t loads = model.n_loads;
    EXPECT_EQ(xm_prefix_store_load(store, s, text.data(), text.size()), 0u);
    EXPECT_EQ(s->ops->past(s), 28u);
    EXPECT_EQ(model.n_loads, loads) << "it has as many";
    xm_compiled_destroy_sequence(s);
}

/* If the cache has no room for loaded pages, the sequence keeps what it has. */
TEST_F(PrefixStore, SurvivesACacheWithoutRoom)
{
    const Ids text = tokens(40);
    save(text);
    xm_sequence *s = run(Ids(text.begin(), text.begin() + 12));
    model.load_fails = true;
    EXPECT_EQ(xm_prefix_store_load(store, s, text.data(), text.size()), 0u);
    EXPECT_GE(s->ops->past(s), 12u) << "pages of it were in the cache";
    EXPECT_TRUE(warnings.empty()) << "that is no news";
    xm_compiled_destroy_sequence(s);
}

TEST_F(PrefixStore, ReplacesTheFileOfATextThatWentOn)
{
    save(tokens(20));
    save(tokens(20));
    ASSERT_EQ(files().size(), 1u);
    save(tokens(44));
    ASSERT_EQ(files().size(), 1u);
    EXPECT_EQ(load(tokens(45)), 44u);
    save(tokens(28));
    EXPECT_EQ(files().size(), 1u) << "a file has it";
    save(tokens(20, 2));
    EXPECT_EQ(files().size(), 2u);
    save(tokens(3, 3));
    EXPECT_EQ(files().size(), 2u) << "no whole page";
}

/* With windows, files of earlier turns are kept: an edited turn or a second answer continues from
 * one. */
TEST_F(PrefixStore, KeepsWhatALongerFileCannotServe)
{
    model.window = 8;
    save(tokens(20));
    save(tokens(44));
    save(tokens(60));
    EXPECT_EQ(files().size(), 3u);
    EXPECT_EQ(load(tokens(61)), 60u);
    EXPECT_EQ(load(tokens(60)), 56u) << "the end of a window is there";
    Ids edited = tokens(61);
    edited[45]++;
    EXPECT_EQ(load(edited), 44u) << "the longest shares no more, and lacks pages";
    edited[30]++;
    EXPECT_EQ(load(edited), 20u) << "28 are shared, and no file serves them";
    edited[10]++;
    EXPECT_EQ(load(edited), 0u);
    save(tokens(28));
    EXPECT_EQ(files().size(), 4u) << "no file serves it";
    EXPECT_EQ(load(tokens(30)), 28u);
    EXPECT_TRUE(warnings.empty());
}

TEST_F(PrefixStore, ReplacesWhatALongerFileServesAsWell)
{
    model.window = 32;
    save(tokens(20));
    save(tokens(32));
    EXPECT_EQ(files().size(), 1u) << "both have all pages";
    save(tokens(40));
    EXPECT_EQ(files().size(), 2u) << "the first two pages are gone";
    EXPECT_EQ(load(tokens(6)), 4u);
}

TEST_F(PrefixStore, IgnoresFilesOfAnotherModel)
{
    save(tokens(20));
    SequenceModel other;
    other.name = "model of a test, with a KV cache of u8";
    open(PLENTY, &other);
    EXPECT_EQ(load(tokens(20), &other), 0u);
    save(tokens(24), &other);
    EXPECT_EQ(files().size(), 2u) << "neither replaces the other";
    EXPECT_EQ(load(tokens(25), &other), 24u);
    open(PLENTY);
    EXPECT_EQ(load(tokens(25)), 20u);
    EXPECT_TRUE(warnings.empty());
}

/* Two models with one hash: the file has this model's name, but the other model's identity
 * inside. */
TEST_F(PrefixStore, LooksAtTheWholeIdentity)
{
    save(tokens(20));
    const fs::path mine = files()[0];
    SequenceModel other;
    other.name = "another";
    open(PLENTY, &other);
    save(tokens(20), &other);
    for (const fs::path &f : files())
        if (f != mine)
            fs::rename(mine, f);
    EXPECT_EQ(load(tokens(20), &other), 0u);
    EXPECT_EQ(files().size(), 1u) << "it is no damage";
    open(PLENTY);
}

/* Flipping any byte of a file makes the whole file unusable. */
TEST_F(PrefixStore, IgnoresDamagedFiles)
{
    save(tokens(20));
    const uintmax_t n = bytes();
    for (uintmax_t at = 0; at < n; at++) {
        warnings.clear();
        save(tokens(20));
        ASSERT_EQ(files().size(), 1u);
        flip(files()[0], at);
        ASSERT_EQ(load(tokens(30)), 0u) << at;
        ASSERT_TRUE(has_warning("is damaged")) << at;
        ASSERT_EQ(files().size(), 0u) << "it is warned of once";
    }
    for (uintmax_t length = 0; length < n; length += 7) {
        save(tokens(20));
        fs::resize_file(files()[0], length);
        ASSERT_EQ(load(tokens(30)), 0u) << length;
    }
}

/* A state of several checksum blocks that ends within a block. */
TEST_F(PrefixStore, ChecksLargeStatesToTheirEnd)
{
    model.bytes_of_position = 300000;
    save(tokens(20));
    EXPECT_EQ(load(tokens(21)), 20u);
    flip(files()[0], bytes() - 9);
    EXPECT_EQ(load(tokens(21)), 0u);
    EXPECT_TRUE(has_warning("is damaged"));
}

TEST_F(PrefixStore, LeavesOtherFilesAlone)
{
    folder.write("notes.kv", "not ours");
    folder.write("0123456789abcdef-0123456789abcdef.kv.bak", "nor this");
    open(1);
    save(tokens(20));
    EXPECT_EQ(load(tokens(20)), 0u);
    EXPECT_EQ(files().size(), 2u);
}

TEST_F(PrefixStore, DeletesThoseUsedLongestAgo)
{
    model.bytes_of_position = 1000;
    save(tokens(20, 1));
    const uintmax_t one = bytes();
    age(files()[0], 0);
    open(3 * one);
    for (uint32_t seed = 2; seed <= 3; seed++) {
        const std::vector<fs::path> before = files();
        save(tokens(20, seed));
        for (const fs::path &f : files())
            if (std::find(before.begin(), before.end(), f) == before.end())
                age(f, seed);
    }
    EXPECT_EQ(load(tokens(21, 1)), 20u) << "and it is used now";
    save(tokens(20, 4));
    EXPECT_LE(bytes(), 3 * one);
    EXPECT_EQ(load(tokens(21, 1)), 20u);
    EXPECT_EQ(load(tokens(21, 2)), 0u);
    EXPECT_EQ(load(tokens(21, 3)), 20u);
    EXPECT_EQ(load(tokens(21, 4)), 20u);
    open(one);
    save(tokens(20, 5));
    EXPECT_EQ(files().size(), 1u);
    EXPECT_EQ(load(tokens(21, 5)), 20u);
}

/* The bound of a folder counts the files of all models. */
TEST_F(PrefixStore, HasOneBoundForAFolder)
{
    model.bytes_of_position = 1000;
    save(tokens(20));
    const uintmax_t one = bytes();
    age(files()[0], 0);
    SequenceModel other;
    other.bytes_of_position = 1000;
    other.name = "another";
    open(one + one / 2, &other);
    save(tokens(20), &other);
    EXPECT_EQ(files().size(), 1u);
    EXPECT_EQ(load(tokens(21), &other), 20u);
    open(PLENTY);
}

TEST_F(PrefixStore, KeepsNoneBeyondTheBound)
{
    save(tokens(8));
    open(200);
    save(tokens(200, 2));
    save(tokens(200, 3));
    EXPECT_EQ(warnings.size(), 1u) << "said once";
    EXPECT_TRUE(has_warning("exceed the limit"));
    EXPECT_EQ(load(tokens(9)), 8u) << "nothing is deleted for it";
}

/* A limit on the file's size makes a write fail in the middle, as a full disk would. */
TEST_F(PrefixStore, LosesNothingOnAFullDisk)
{
    model.bytes_of_position = 100000;
    save(tokens(8));
    rlimit old, small;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 2000000;
    signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    save(tokens(40)); /* would replace the first file */
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    EXPECT_TRUE(has_warning("is not cached"));
    EXPECT_EQ(files().size(), 1u) << "no half file";
    EXPECT_EQ(load(tokens(41)), 8u);
    save(tokens(40));
    EXPECT_EQ(load(tokens(41)), 40u) << "there is room again";
    EXPECT_EQ(files().size(), 1u);
}

TEST_F(PrefixStore, SurvivesADeviceThatIsGone)
{
    save(tokens(8));
    model.save_fails = true;
    save(tokens(16));
    EXPECT_TRUE(has_warning("the device is gone"));
    EXPECT_EQ(files().size(), 1u);
    EXPECT_EQ(load(tokens(17)), 8u);
}

TEST_F(PrefixStore, CleansUpBehindAProcessThatWasKilled)
{
    folder.write("0123456789abcdef-0123456789abcdef.kv.999999.1", "half");
    save(tokens(8));
    EXPECT_EQ(files().size(), 1u);
}

TEST_F(PrefixStore, SaysWhoCannotSave)
{
    xm_prefix_store *none = nullptr;
    SequenceModel plain;
    plain.can_save = false;
    EXPECT_EQ(xm_prefix_store_open(&plain.base, folder.path.c_str(), 1, &none, &err),
              XM_UNSUPPORTED);
    EXPECT_NE(std::string(err.text).find("cannot save the KV cache"), std::string::npos);
    err = {};
}

TEST_F(PrefixStore, MakesOneFolderAndNoOthers)
{
    const std::string last = folder / "last";
    xm_prefix_store *other = nullptr;
    EXPECT_EQ(xm_prefix_store_made(store), nullptr);
    ASSERT_EQ(xm_prefix_store_open(&model.base, last.c_str(), 1, &other, &err), XM_OK)
        << err.text;
    EXPECT_EQ(fs::path(xm_prefix_store_made(other)), fs::canonical(last));
    EXPECT_EQ(fs::status(last).permissions(), fs::perms::owner_all);
    xm_prefix_store_close(other);
    folder.write("file", "");
    const struct {
        std::string path;
        xm_status status;
        const char *part;
    } rows[] = {{folder / "no/last", XM_NOT_FOUND, "its parent folder is missing"},
                {folder / "file/x", XM_IO,
                 "/file/x' for cached prefixes cannot be created: Not a directory"},
                {folder / "file", XM_IO, "/file', for cached prefixes, is not a folder"}};
    for (const auto &row : rows) {
        err = {};
        EXPECT_EQ(xm_prefix_store_open(&model.base, row.path.c_str(), 1, &other, &err),
                  row.status);
        EXPECT_NE(std::string(err.text).find(row.part), std::string::npos) << err.text;
    }
    EXPECT_FALSE(fs::exists(folder / "no"));
}

/* Runs as another user, because root may write everywhere. */
TEST_F(PrefixStore, ReadsAFolderThatCannotBeWrittenTo)
{
    const Ids text = tokens(23);
    save(text);
    fs::permissions(folder.path, (fs::perms)0555);
    fs::permissions(files()[0], (fs::perms)0444);
    const uid_t me = geteuid();
    if (me == 0) {
        ASSERT_EQ(seteuid(65534), 0);
    }
    open(PLENTY);
    EXPECT_TRUE(has_warning(
        "cannot be written: cached prefixes are used, but no new ones are kept"));
    EXPECT_EQ(load(text), 20u);
    save(tokens(40, 2));
    EXPECT_EQ(warnings.size(), 1u) << "said once";
    EXPECT_EQ(files().size(), 1u);
    ASSERT_EQ(seteuid(me), 0);
    fs::permissions(folder.path, fs::perms::owner_all);
}

/* A damaged file that cannot be deleted is found again by each prompt. */
TEST_F(PrefixStore, WarnsOnceOfDamageThatItCannotDelete)
{
    save(tokens(20));
    flip(files()[0], bytes() - 1);
    fs::permissions(files()[0], (fs::perms)0444);
    fs::permissions(folder.path, (fs::perms)0555);
    const uid_t me = geteuid();
    if (me == 0) {
        ASSERT_EQ(seteuid(65534), 0);
    }
    open(PLENTY);
    warnings.clear();
    for (int again = 0; again < 3; again++)
        EXPECT_EQ(load(tokens(30)), 0u);
    EXPECT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(has_warning("cannot be deleted"));
    ASSERT_EQ(seteuid(me), 0);
    fs::permissions(folder.path, fs::perms::owner_all);
}

/* While a text is written to a terminal, warnings are held back. */
TEST_F(PrefixStore, HoldsWarningsUntilTheyMayBeSaid)
{
    open(200);
    xm_prefix_store_hold(store);
    save(tokens(200, 2));
    EXPECT_TRUE(warnings.empty());
    xm_prefix_store_say(store);
    EXPECT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(has_warning("exceed the limit"));
    xm_prefix_store_say(store);
    EXPECT_EQ(warnings.size(), 1u);
    open(200);
    xm_prefix_store_hold(store);
    save(tokens(200, 3));
    open(200);
    EXPECT_EQ(warnings.size(), 2u) << "closing says what is left";
}

/* Two processes write to one folder and evict each other's files. */
TEST_F(PrefixStore, IsSharedByProcesses)
{
    model.bytes_of_position = 1000;
    save(tokens(20, 1));
    open(4 * bytes());
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    for (uint32_t i = 0; i < 40; i++) {
        const uint32_t seed = child ? 1 + i % 7 : 1 + i % 5;
        save(tokens(20 + 4 * (i % 3), seed));
        const uint64_t got = load(tokens(40, seed));
        if (got != 0 && (got < 20 || got > 28))
            warnings.push_back("another length");
    }
    if (child == 0)
        _exit(!warnings.empty());
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(warnings.empty()) << warnings[0];
    save(tokens(20, 99));
    EXPECT_LE(bytes(), 4 * 21000u);
    EXPECT_EQ(load(tokens(21, 99)), 20u);
}

TEST_F(PrefixStore, SurvivesWithoutMemory)
{
    for (uint64_t i = 1;; i++) {
        xm_sequence *s = run(tokens(20));
        xm_fail_allocation(i);
        xm_prefix_store_save(store, s, tokens(20).data(), 20);
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        xm_compiled_destroy_sequence(s);
        s = run({});
        xm_fail_allocation(i);
        const Ids ids = tokens(21);
        const uint64_t n = xm_prefix_store_load(store, s, ids.data(), ids.size());
        seen |= xm_fail_allocation_seen();
        xm_fail_allocation(0);
        ASSERT_TRUE(n == 0 || n == 20) << n;
        xm_compiled_destroy_sequence(s);
        if (!seen)
            break;
        for (const fs::path &f : files())
            fs::remove(f);
    }
    EXPECT_EQ(files().size(), 1u);
}

/* ---- callers ---- */

TEST_F(PrefixStore, BeginsTextsOfAScheduler)
{
    const Kind kind = long_kind(model, 30, 8);
    Kind next = kind;
    next.prompt.insert(next.prompt.end(), kind.ids.begin(), kind.ids.end());
    next.prompt.push_back(1);
    make_alone(model, next);
    for (const Kind *k : {&kind, (const Kind *)&next}) {
        SequenceModel fresh; /* a model with an empty cache */
        xm_scheduler *s = nullptr;
        open(PLENTY, &fresh);
        ASSERT_EQ(xm_scheduler_create(&fresh.base, nullptr, &s, &err), XM_OK);
        xm_scheduler_set_prefix_store(s, store);
        Job job(k);
        const xm_job wish = job.wish();
        ASSERT_EQ(xm_scheduler_submit(s, &wish, nullptr, &err), XM_OK);
        xm_scheduler_progress did = {};
        do
            ASSERT_EQ(xm_scheduler_step(s, &did, &err), XM_OK) << err.text;
        while (did.n_jobs > 0);
        job.check("job");
        EXPECT_EQ(job.reused, k == &kind ? 0u : 36u) << "30 and 7 of 8, in pages of 4";
        xm_scheduler_destroy(s);
        open(PLENTY);
    }
}

TEST_F(PrefixStore, KeepsNoTextThatFailed)
{
    const Kind kind = long_kind(model, 30, 8);
    xm_scheduler *s = nullptr;
    ASSERT_EQ(xm_scheduler_create(&model.base, nullptr, &s, &err), XM_OK);
    xm_scheduler_set_prefix_store(s, store);
    Job job(&kind);
    const xm_job wish = job.wish();
    ASSERT_EQ(xm_scheduler_submit(s, &wish, nullptr, &err), XM_OK);
    xm_scheduler_progress did = {};
    ASSERT_EQ(xm_scheduler_step(s, &did, &err), XM_OK);
    xm_error why = {};
    xm_fail(&why, XM_DEVICE, "the device is gone");
    xm_scheduler_end_all(s, &why);
    EXPECT_EQ(files().size(), 0u);
    xm_scheduler_destroy(s);
}

TEST_F(PrefixStore, BeginsTextsOfASession)
{
    const Ids prompt = tokens(22);
    Ids first, second;
    for (const bool keeps : {false, true}) {
        SequenceModel fresh;
        open(PLENTY, &fresh);
        xm_session *s = nullptr;
        xm_generation run = {};
        xm_generation_result got = {};
        run.prompt.kind = XM_PROMPT_IDS;
        run.prompt.ids = prompt.data();
        run.prompt.n = prompt.size();
        run.max_tokens = 6;
        for (int turn = 0; turn < 2; turn++) {
            ASSERT_EQ(xm_session_create(&fresh.base, nullptr, &s, &err), XM_OK);
            if (keeps)
                xm_session_set_prefix_store(s, store);
            fresh.page = 4;
            ASSERT_EQ(xm_session_run(s, &run, &got, &err), XM_OK) << err.text;
            (keeps ? second : first).assign(got.ids.ids, got.ids.ids + got.ids.n);
            xm_session_destroy(s);
        }
        EXPECT_EQ(first, keeps ? second : first);
        EXPECT_EQ(files().size(), keeps ? 1u : 0u);
        xm_generation_result_free(&got);
        open(PLENTY);
    }
    SequenceModel fresh;
    open(PLENTY, &fresh);
    Ids longer = prompt;
    longer.insert(longer.end(), first.begin(), first.end());
    xm_session *s = nullptr;
    xm_generation run = {};
    xm_generation_result got = {};
    run.prompt.kind = XM_PROMPT_IDS;
    run.prompt.ids = longer.data();
    run.prompt.n = longer.size();
    run.max_tokens = 2;
    ASSERT_EQ(xm_session_create(&fresh.base, nullptr, &s, &err), XM_OK);
    xm_session_set_prefix_store(s, store);
    ASSERT_EQ(xm_session_run(s, &run, &got, &err), XM_OK) << err.text;
    EXPECT_EQ(got.reused, 24u);
    EXPECT_EQ(xm_session_held(s), longer.size() + 1);
    xm_generation_result_free(&got);
    xm_session_destroy(s);
    open(PLENTY);
}

} // namespace
