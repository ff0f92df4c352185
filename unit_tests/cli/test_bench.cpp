/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/bench_out.h"
#include "plugin/cli/bench_values.h"

#include <gtest/gtest.h>
#include <yyjson.h>

#include <algorithm>
#include <string>
#include <vector>

namespace
{

/* ---- values ------------------------------------------------------------------------ */

struct Values {
    xm_status status;
    std::string sentence;
    std::vector<uint64_t> list;
};

Values
read(std::vector<const char *> texts, uint64_t least = 0)
{
    xm_cli_texts given = {};
    for (const char *text : texts)
        given.list[given.n++] = text;
    static xm_bench_values v;
    v = {};
    xm_error err = {};
    Values r;
    r.status = xm_bench_values_read("-p", &given, least, &v, &err);
    r.sentence = err.text;
    r.list.assign(v.list, v.list + v.n);
    return r;
}

using List = std::vector<uint64_t>;

TEST(BenchValues, AreNumbersListsAndRanges)
{
    EXPECT_EQ(read({"512"}).list, (List{512}));
    EXPECT_EQ(read({"1,2,4"}).list, (List{1, 2, 4}));
    EXPECT_EQ(read({"3-6"}).list, (List{3, 4, 5, 6}));
    EXPECT_EQ(read({"1-8+2"}).list, (List{1, 3, 5, 7}));
    EXPECT_EQ(read({"1-9*2"}).list, (List{1, 2, 4, 8}));
    EXPECT_EQ(read({"0,4-6,16-64*2"}).list, (List{0, 4, 5, 6, 16, 32, 64}));
    EXPECT_EQ(read({"7-7"}).list, (List{7}));
    EXPECT_EQ(read({"1,2", "8"}).list, (List{1, 2, 8}));
    EXPECT_EQ(read({}).list, (List{}));
}

TEST(BenchValues, RefuseWhatIsNoListWithASentence)
{
    for (const char *text : {"",
                             ",",
                             "1,",
                             ",1",
                             "a",
                             "1-",
                             "-1",
                             "8-1",
                             "1-8+0",
                             "1-8*1",
                             "1-8*0",
                             "0-8*2",
                             "1-2-3",
                             "1+2",
                             "1*2",
                             "1-8/2",
                             "1.5",
                             "16777217",
                             "1-99999999999",
                             "1 2"}) {
        const Values v = read({text});
        EXPECT_EQ(v.status, XM_INVALID) << text;
        EXPECT_NE(v.sentence.find("option -p takes whole numbers from 0 to 16777216"),
                  std::string::npos)
            << text << ": " << v.sentence;
    }
    const std::pair<const char *, const char *> reasons[] = {
        {"1,x,3", "found 'x', which is not a whole number"},
        {"1,,2", "found '', which is not a whole number"},
        {"1,16777217", "found '16777217', which is too large"},
        {"1-99999999999999999999", "found '1-99999999999999999999', which is too large"},
        {"1,8-1", "found '8-1', which ends before it begins"},
        {"1-8+0", "found '1-8+0', which never ends"},
    };
    for (const auto &[text, reason] : reasons)
        EXPECT_NE(read({text}).sentence.find(reason), std::string::npos)
            << read({text}).sentence;
    EXPECT_NE(read({"0"}, 1).sentence.find("found '0', which is too small"),
              std::string::npos);
    EXPECT_NE(read({"1-1000"}).sentence.find("more than 256 values"), std::string::npos);
    EXPECT_EQ(read({"1-256"}).list.size(), 256u);
}

bool
is_a_comma_path(const char *text)
{
    return std::string(text) == "a,b";
}

TEST(BenchValues, TextsAreSplitAtCommasUnlessTheyAreOne)
{
    xm_cli_texts given = {};
    given.list[given.n++] = "GPU,CPU";
    given.list[given.n++] = "a,b";
    xm_bench_texts t = {};
    xm_error err = {};
    ASSERT_EQ(xm_bench_texts_read("-m", &given, is_a_comma_path, &t, &err), XM_OK);
    EXPECT_EQ((std::vector<std::string>(t.list, t.list + t.n)),
              (std::vector<std::string>{"GPU", "CPU", "a,b"}));
    xm_bench_texts_free(&t);
    given.list[0] = "GPU,";
    EXPECT_EQ(xm_bench_texts_read("-m", &given, nullptr, &t, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "option -m has an empty value");
    xm_bench_texts_free(&t);
}

/* ---- printed output ------------------------------------------------------------------ */

const uint64_t samples[] = {2000000000, 1000000000, 4000000000};

xm_bench_result
result()
{
    xm_bench_result r = {};
    r.build = "xemoe 1.0";
    r.cpu = "";
    r.gpu = "A \"fast\" chip, with a comma";
    r.backend = "OpenCL";
    r.model = "it's/a model";
    r.model_type = "modèle 30.53B u4";
    r.type_k = r.type_v = "f16";
    r.devices = "auto";
    r.device_name = r.gpu;
    r.driver = "25.1";
    r.platform = "p";
    r.time = "2026-01-02T03:04:05Z";
    r.model_bytes = UINT64_C(16) << 30;
    r.parameters = UINT64_C(30530000000);
    r.n_batch = 2048;
    r.n_ubatch = 512;
    r.n_prompt = 512;
    r.samples_ns = samples;
    r.n_samples = 3;
    xm_bench_sum_up(&r);
    return r;
}

std::string
print(xm_bench_format format, const std::vector<xm_bench_result> &results,
      unsigned columns = XM_BENCH_NGL, size_t line = SIZE_MAX)
{
    char *text = nullptr;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    xm_bench_out o = {format, columns, to, "xemoe 1.0", line, 0, {}};
    xm_error err = {};
    for (const xm_bench_result &r : results)
        EXPECT_EQ(xm_bench_out_test(&o, &r, &err), XM_OK);
    EXPECT_EQ(xm_bench_out_end(&o, &err), XM_OK);
    fclose(to);
    const std::string all(text, n);
    free(text);
    return all;
}

TEST(BenchOut, SumsUpSamples)
{
    /* three runs of 256, 512 and 128 tokens a second */
    const xm_bench_result r = result();
    EXPECT_EQ(r.avg_ns, 2333333333u);
    EXPECT_EQ(r.stddev_ns, 1527525231u);
    EXPECT_NEAR(r.avg_ts, 298.666667, 1e-6);
    EXPECT_NEAR(r.stddev_ts, 195.523229, 1e-6);
    xm_bench_result one = result();
    one.n_samples = 1;
    xm_bench_sum_up(&one);
    EXPECT_EQ(one.stddev_ns, 0u);
    EXPECT_EQ(one.stddev_ts, 0.0);
    EXPECT_EQ(one.avg_ts, 256.0);
    one.n_prompt = 0;
    one.n_gen = 128;
    one.n_parallel = 4;
    xm_bench_sum_up(&one);
    EXPECT_EQ(one.avg_ts, 256.0) << "the tokens of all texts count";
}

TEST(BenchOut, NamesTestsAsLlamaBenchDoes)
{
    const struct {
        uint64_t prompt, gen, parallel, depth;
        const char *text;
    } cases[] = {{512, 0, 1, 0, "pp512"},
                 {0, 128, 1, 0, "tg128"},
                 {0, 128, 4, 0, "tg128 x 4"},
                 {0, 128, 4, 4096, "tg128 x 4 @ d4096"},
                 {512, 128, 1, 0, "pp512+tg128"},
                 {512, 0, 1, 4096, "pp512 @ d4096"},
                 {16777216, 16777216, 16777216, 16777216,
                  "pp16777216+tg16777216 x 16777216 @ d16777216"}};
    for (const auto &c : cases) {
        xm_bench_result r = {};
        char text[XM_BENCH_TEST_CHARS];
        r.n_prompt = c.prompt;
        r.n_gen = c.gen;
        r.n_parallel = c.parallel;
        r.n_depth = c.depth;
        xm_bench_test_text(&r, text);
        EXPECT_STREQ(text, c.text);
    }
}

/* Without a result nothing is printed, as when no model could be read: an empty table would look
 * like a result. */
TEST(BenchOut, WithoutATestNothingIsPrinted)
{
    for (xm_bench_format format : {XM_BENCH_NONE, XM_BENCH_MD, XM_BENCH_CSV,
                                   XM_BENCH_JSON, XM_BENCH_JSONL, XM_BENCH_SQL})
        EXPECT_EQ(print(format, {}), "") << format;
}

/* Columns are filled by characters, not by bytes: "è" has two bytes. */
TEST(BenchOut, TheTableIsLlamaBenchs)
{
    EXPECT_EQ(
        print(XM_BENCH_MD, {result()}),
        "| model                          |       size |     params | backend    | ngl |"
        "            test |                  t/s |\n"
        "| ------------------------------ | ---------: | ---------: | ---------- | --: |"
        " --------------: | -------------------: |\n"
        "| modèle 30.53B u4               |  16.00 GiB |    30.53 B | OpenCL     |  -1 |"
        "           pp512 |      298.67 ± 195.52 |\n"
        "\nbuild: xemoe 1.0\n");
}

/* A row must not be wider than the terminal: columns with equal values in all tests are printed
 * above the table. */
TEST(BenchOut, ANarrowTableHasTheTestsColumns)
{
    xm_bench_result gen = result(), other = result();
    gen.n_prompt = 0;
    gen.n_gen = 128;
    other.model_type = "other 1.00B q4_0";
    const std::string head = "|            test |                  t/s |\n"
                             "| --------------: | -------------------: |\n";
    const std::string row = "|           pp512 |      298.67 ± 195.52 |\n";
    EXPECT_EQ(
        print(XM_BENCH_MD, {result(), gen, other}, XM_BENCH_NGL, 79),
        "modèle 30.53B u4, size 16.00 GiB, params 30.53 B, backend OpenCL, ngl -1\n\n" +
            head + row +
            "|           tg128 |      298.67 ± 195.52 |\n\n"
            "other 1.00B q4_0, size 16.00 GiB, params 30.53 B, backend OpenCL, ngl "
            "-1\n\n" +
            head + row + "\nbuild: xemoe 1.0\n");
    const std::string narrow = print(XM_BENCH_MD, {result()}, XM_BENCH_NGL, 50);
    EXPECT_EQ(narrow.substr(0, narrow.find("\n\n")),
              "modèle 30.53B u4, size 16.00 GiB, params 30.53 B,\n"
              "  backend OpenCL, ngl -1");
    /* a terminal as wide as the table */
    EXPECT_EQ(print(XM_BENCH_MD, {result()}, XM_BENCH_NGL, 120),
              print(XM_BENCH_MD, {result()}));
    EXPECT_NE(print(XM_BENCH_MD, {result()}, XM_BENCH_NGL, 119),
              print(XM_BENCH_MD, {result()}));
}

TEST(BenchOut, ColumnsAreThereWhenTheyTellSomething)
{
    xm_bench_result cpu = result();
    cpu.n_threads = 8;
    const std::string table =
        print(XM_BENCH_MD, {result(), cpu},
              XM_BENCH_NGL | XM_BENCH_THREADS | XM_BENCH_BATCH | XM_BENCH_UBATCH |
                  XM_BENCH_TYPES | XM_BENCH_DEVICE);
    EXPECT_NE(table.find("| ngl | threads | n_batch | n_ubatch | type_k | type_v | dev   "
                         "       |            test |"),
              std::string::npos)
        << table;
    EXPECT_NE(
        table.find("|  -1 |         |    2048 |      512 |    f16 |    f16 | auto  "),
        std::string::npos)
        << table;
    EXPECT_NE(table.find("|     |       8 |    2048 |"), std::string::npos) << table;
}

const char *const field_order[] = {"build_commit",   "build_number",
                                   "cpu_info",       "gpu_info",
                                   "backends",       "model_filename",
                                   "model_type",     "model_size",
                                   "model_n_params", "n_batch",
                                   "n_ubatch",       "n_threads",
                                   "cpu_mask",       "cpu_strict",
                                   "poll",           "type_k",
                                   "type_v",         "n_gpu_layers",
                                   "n_cpu_moe",      "split_mode",
                                   "main_gpu",       "no_kv_offload",
                                   "flash_attn",     "devices",
                                   "tensor_split",   "tensor_buft_overrides",
                                   "load_mode",      "embeddings",
                                   "no_op_offload",  "no_host",
                                   "fit_target",     "fit_min_ctx",
                                   "n_prompt",       "n_gen",
                                   "n_depth",        "test_time",
                                   "avg_ns",         "stddev_ns",
                                   "avg_ts",         "stddev_ts",
                                   "device_name",    "driver_version",
                                   "platform",       "n_parallel"};

TEST(BenchOut, JsonHasLlamaBenchsFieldsInItsOrder)
{
    const std::string text = print(XM_BENCH_JSON, {result(), result()});
    yyjson_doc *doc = yyjson_read(text.data(), text.size(), 0);
    ASSERT_NE(doc, nullptr) << text;
    yyjson_val *list = yyjson_doc_get_root(doc);
    ASSERT_EQ(yyjson_arr_size(list), 2u);
    yyjson_val *r = yyjson_arr_get(list, 0), *key, *value;
    size_t i, n;
    std::vector<std::string> names,
        expected(std::begin(field_order), std::end(field_order));
    expected.insert(expected.end(), {"samples_ns", "samples_ts"});
    yyjson_obj_foreach(r, i, n, key, value) names.push_back(yyjson_get_str(key));
    EXPECT_EQ(names, expected);
    EXPECT_STREQ(yyjson_get_str(yyjson_obj_get(r, "gpu_info")),
                 "A \"fast\" chip, with a comma");
    EXPECT_EQ(yyjson_get_sint(yyjson_obj_get(r, "n_gpu_layers")), -1);
    EXPECT_EQ(yyjson_get_uint(yyjson_obj_get(r, "model_n_params")), 30530000000u);
    EXPECT_TRUE(yyjson_is_false(yyjson_obj_get(r, "cpu_strict")));
    EXPECT_NEAR(yyjson_get_real(yyjson_obj_get(r, "avg_ts")), 298.666667, 1e-6);
    EXPECT_EQ(yyjson_get_uint(yyjson_arr_get(yyjson_obj_get(r, "samples_ns"), 2)),
              4000000000u);
    EXPECT_EQ(yyjson_get_real(yyjson_arr_get(yyjson_obj_get(r, "samples_ts"), 2)), 128.0);
    yyjson_doc_free(doc);
}

TEST(BenchOut, JsonLinesAreAnObjectEach)
{
    const std::string text = print(XM_BENCH_JSONL, {result(), result()});
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
    EXPECT_EQ(text.rfind("{\"build_commit\":\"xemoe 1.0\",", 0), 0u) << text;
}

TEST(BenchOut, CsvDoublesQuotes)
{
    const std::string text = print(XM_BENCH_CSV, {result()});
    EXPECT_EQ(text.rfind("build_commit,build_number,cpu_info,gpu_info,backends,", 0), 0u);
    EXPECT_NE(
        text.find("\n\"xemoe 1.0\",\"0\",\"\",\"A \"\"fast\"\" chip, with a comma\","),
        std::string::npos)
        << text;
    EXPECT_NE(text.find(",\"298.666667\",\"195.523230\","), std::string::npos) << text;
}

TEST(BenchOut, SqlMakesATableAndDoublesApostrophes)
{
    const std::string text = print(XM_BENCH_SQL, {result()});
    EXPECT_EQ(
        text.rfind("CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,\n"
                   "  build_number INTEGER,\n",
                   0),
        0u)
        << text;
    EXPECT_NE(text.find("  stddev_ts REAL,\n"), std::string::npos);
    EXPECT_NE(text.find("  platform TEXT,\n  n_parallel INTEGER\n);\n"),
              std::string::npos);
    EXPECT_NE(text.find("'it''s/a model'"), std::string::npos) << text;
    EXPECT_EQ(text.substr(text.size() - 3), ");\n");
}

TEST(BenchOut, NoneIsNothing)
{
    EXPECT_EQ(print(XM_BENCH_NONE, {result()}), "");
}

} // namespace
