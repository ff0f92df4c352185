/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that match a grammar or a JSON Schema: --grammar and --json-schema.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

static Outcome
run(const std::string &command, const Words &options, const std::string &input = "")
{
    const Folder folder{"structured"};
    folder.write("input", input);
    Words words = {command, "-m", model, "-d", "REFERENCE"};
    words.insert(words.end(), options.begin(), options.end());
    return Program(words, {}, folder.path + "/input").finish();
}

static Outcome
generate(const Words &options)
{
    Words all = {"-p", "Paris is the capital of", "-n", "60"};
    all.insert(all.end(), options.begin(), options.end());
    return run("generate", all);
}

TEST(StructuredOutput, TheTextMatchesTheGrammar)
{
    Outcome o = generate({"--grammar", "root ::= \" \" [A-Z] [a-z]+ \".\""});
    EXPECT_EQ(o.out, " France.\n") << o.err;
    o = generate({"--grammar", "root ::= \" yes\" | \" no\""});
    EXPECT_TRUE(o.out == " yes\n" || o.out == " no\n") << o.out << o.err;
    o = generate(
        {"--grammar", "root ::= [0-9]{3} \"-\" [xyz]{2}", "--temp", "1", "--seed", "3"});
    ASSERT_EQ(o.out.size(), 7u) << o.out << o.err;
    EXPECT_EQ(o.out[3], '-');
    EXPECT_EQ(o.out.find_first_not_of("0123456789"), 3u);
}

TEST(StructuredOutput, TheTextIsAnInstanceOfTheSchema)
{
    const std::string schema = R"({"type":"object","properties":{"name":{"type":"string",
        "maxLength":12},"age":{"type":"integer","minimum":1,"maximum":99}},
        "required":["name","age"],"additionalProperties":false})";
    const Folder folder{"schema"};
    folder.write("schema.json", schema);
    for (const char *temperature : {"0", "1", "2"}) {
        const Outcome o =
            generate({"--json-schema", schema, "--temp", temperature, "--seed", "5"});
        ASSERT_EQ(o.code, 0) << o.err;
        const Json json(o.out);
        const double age = json.number("/age");
        EXPECT_GE(age, 1) << o.out;
        EXPECT_LE(age, 99) << o.out;
        EXPECT_LE(json.text("/name").size(), 48u) << o.out;
        EXPECT_EQ(generate({"--json-schema", folder.path + "/schema.json", "--temp",
                            temperature, "--seed", "5"})
                      .out,
                  o.out);
    }
}

TEST(StructuredOutput, AnswersOfAChatMatch)
{
    const Words grammar = {"--grammar", "root ::= \"{\" [a-z]{3} \"}\""};
    Outcome o = run("chat", {"-n", "40", grammar[0], grammar[1]}, "Hello\nMore\n");
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out.size(), 12u) << o.out;
    EXPECT_EQ(o.out[0], '{') << o.out;
    o = run("generate", {"--chat", "-p", "Hi", "-n", "60", "--json-schema",
                         R"({"enum":["one","two"]})"});
    EXPECT_TRUE(o.out == "\"one\"\n" || o.out == "\"two\"\n") << o.out << o.err;
}

TEST(StructuredOutput, SaysWhatIsWrong)
{
    const struct {
        Words options;
        int code;
        const char *sentence;
    } cases[] = {
        {{"--grammar", "root ::= x"},
         2,
         "xemoe: option --grammar: grammar, line 1, column 10: there is no rule 'x'"},
        {{"--json-schema", R"({"properties":{"a":{"contains":{}}}})"},
         2,
         "xemoe: option --json-schema: JSON Schema, /properties/a/contains: the keyword "
         "'contains' is not supported"},
        {{"--grammar", "/no/such/file"},
         3,
         "xemoe: option --grammar: /no/such/file: No such file or directory"},
        {{"--json-schema", "/no/such/file"},
         3,
         "xemoe: option --json-schema: /no/such/file: No such file or directory"},
        {{"--json-schema", "/dev/null"},
         3,
         "xemoe: option --json-schema: /dev/null: JSON Schema: not valid JSON"},
        {{"--grammar", XM_MODELS_DIR "/README.md"},
         3,
         "xemoe: option --grammar: " XM_MODELS_DIR "/README.md: grammar, line "},
        {{"--grammar", "root ::= \"a\"", "--json-schema", "{}"},
         2,
         "xemoe: give only one of --grammar and --json-schema"},
    };
    for (const auto &c : cases) {
        const Outcome o = generate(c.options);
        EXPECT_EQ(o.code, c.code);
        EXPECT_EQ(o.err.substr(0, strlen(c.sentence)), c.sentence);
        EXPECT_EQ(o.out, "");
    }
    const Outcome o = generate({"--grammar", "root ::= <nobody>"});
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find("the grammar names the token <nobody>"), std::string::npos)
        << o.err;
}
