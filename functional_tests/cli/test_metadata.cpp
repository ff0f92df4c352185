/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe info --metadata: keys and tensors of GGUF files.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

namespace
{

const std::string files = XM_GGUF_DIR "/";

Json
metadata(const std::string &name)
{
    const Outcome o = run({"info", files + name, "--metadata", "--json"});
    EXPECT_EQ(o.code, 0) << o.err;
    return Json(o.out);
}

TEST(Metadata, ListsKeysAndTensorsOfAllParts)
{
    const Outcome o = run({"info", files + "split-00002-of-00003.gguf", "--metadata"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out.rfind("version       3\nalignment     32\nfile          ", 0), 0u);
    EXPECT_EQ(count(o.out, "\nfile "), 3u) << o.out;
    EXPECT_TRUE(contains(o.out, "string   \"split\"\n")) << o.out;
    EXPECT_TRUE(contains(o.out, "\ntensors       5\n")) << o.out;
    EXPECT_TRUE(contains(o.out, "f32      [2,8]  64\n")) << o.out;
}

TEST(Metadata, ShortensWhatIsLong)
{
    const Outcome o = run({"info", files + "values.gguf", "--metadata"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "i32      [0,1,2,3,4,5,6,7] … of 1000\n")) << o.out;
    EXPECT_TRUE(contains(o.out, "word \"… of 500 bytes\n")) << o.out;
    EXPECT_TRUE(contains(o.out, "i64      [-9223372036854775808,-1,"
                                "9223372036854775807] of 3\n"))
        << o.out;
    EXPECT_TRUE(contains(o.out, "\"é\\n\\t\\\"\"\n")) << o.out;
}

TEST(Metadata, SaysTheSameAsJson)
{
    const Json parts = metadata("split-00001-of-00003.gguf");
    EXPECT_EQ(parts.number("/version"), 3);
    EXPECT_EQ(yyjson_arr_size(parts.at("/files")), 3u);
    EXPECT_EQ(parts.text("/keys/0/name"), "general.architecture");
    EXPECT_EQ(parts.text("/keys/0/value"), "split");
    EXPECT_EQ(parts.text("/tensors/4/name"), "blk.4.weight");
    EXPECT_EQ(parts.text("/tensors/4/type"), "f32");
    EXPECT_EQ(parts.number("/tensors/4/shape/1"), 8);
    EXPECT_EQ(parts.number("/tensors/4/bytes"), 64);
    const Json values = metadata("values.gguf");
    const std::string last =
        "/keys/" + std::to_string(yyjson_arr_size(values.at("/keys")) - 1);
    EXPECT_EQ(values.text(last + "/type"), "i32");
    EXPECT_EQ(values.number(last + "/count"), 1000);
    EXPECT_EQ(yyjson_arr_size(values.at(last + "/values")), 8u);
}

TEST(Metadata, RefusesWhatItCannotShow)
{
    Outcome o = run({"info", files + "values.txt", "--metadata"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "values.txt: it is not a GGUF file")) << o.err;
    o = run({"info", files, "--metadata"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "is a folder; folders of OpenVINO IR have no such keys"))
        << o.err;
    o = run({"info", files + "values.gguf", "--metadata", "-v"});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "--metadata can be combined only with --json")) << o.err;
}

} // namespace
