/* SPDX-License-Identifier: Apache-2.0
 *
 * Man pages, shell completion and the reference: every way to write an option, and text with
 * characters that are special there.
 */
#include "plugin/program_util/program_docs.h"

#include <gtest/gtest.h>

#include <string>

namespace
{

struct Values {
    const char *file, *word;
    bool flag;
};

void
add_names(xm_strbuf *out)
{
    for (const char *name : {"x", "y"})
        xm_strbuf_printf(out, "%s ", name);
}

const xm_cli_option rows[] = {
    XM_CLI_GROUP("Of files", "-f x.y"),
    {'f', "file", XM_CLI_TEXT, offsetof(Values, file), "FILE", "it's a\n'file' | -\\"},
    {0, "ff", XM_CLI_TEXT, offsetof(Values, file), "FILE", nullptr},
    {0, "word", XM_CLI_CHOICE, offsetof(Values, word), "WORD", "a [word]", nullptr,
     "a b"},
    {'t', "text", XM_CLI_TEXT, offsetof(Values, word), "TEXT", "any text", nullptr,
     "c d"},
    {0, "flag", XM_CLI_FLAG, offsetof(Values, flag), nullptr, "a flag"},
    {0, "name", XM_CLI_TEXT, offsetof(Values, word), "NAME", "a name", nullptr, nullptr,
     add_names},
    {0, "dir", XM_CLI_TEXT, offsetof(Values, file), "DIR", "a folder"},
};

std::string
describe(const char *kind, xm_cli_style style = XM_CLI_TWO_DASHES,
         const char *name = "do-it", void (*operands)(xm_strbuf *) = nullptr,
         const char *operand = nullptr)
{
    xm_cli_spec spec = {};
    spec.usage = "tool do-it";
    spec.about = "First.\n\n.Second\n";
    spec.own = rows;
    spec.n_own = sizeof(rows) / sizeof(rows[0]);
    spec.add_operands = operands;
    spec.operand = operand;
    spec.style = style;
    const xm_cli_described c = {name, "does it", "tool do-it", &spec};
    xm_strbuf out = {};
    EXPECT_TRUE(xm_describe(kind, &c, &out)) << kind;
    const std::string text(xm_strbuf_text(&out), out.n);
    xm_strbuf_free(&out);
    return text;
}

void
expect_parts(const char *kind, std::initializer_list<const char *> parts)
{
    const std::string text = describe(kind);
    for (const char *part : parts)
        EXPECT_NE(text.find(part), std::string::npos) << kind << ": " << part << "\n"
                                                      << text;
}

TEST(Describe, KnowsItsKinds)
{
    const xm_cli_described c = {};
    xm_strbuf out = {};
    EXPECT_FALSE(xm_describe("csh", &c, &out));
    EXPECT_EQ(out.n, 0u);
}

TEST(Describe, ForShells)
{
    expect_parts("bash",
                 {"_xemoe_options_do_it=' -f --file -ff --word -t --text --flag --name "
                  "--dir -h --help '",
                  "_xemoe_values_do_it=' -f --file -ff --word -t --text --name --dir '",
                  "_xemoe_paths_do_it=' -f --file -ff --dir '",
                  "_xemoe_folders_do_it=' --dir '",
                  "_xemoe_choices_do_it=' --word=a,b -t=c,d --text=c,d --name=x,y '"});
    expect_parts("zsh",
                 {"_xemoe_do_it() {", "'*--file=[it'\\''s a]:FILE:_files'",
                  "'*-f+[it'\\''s a]:FILE:_files'", "'*--dir=[a folder]:DIR:_files -/'",
                  "'*--word=[a \\[word\\]]:WORD:(a b)'", "'*--flag[a flag]'",
                  "'*--name=[a name]:NAME:(x y)'", "'*:file:_files'"});
    expect_parts("fish", {" -s f -l file -r -F -d 'it\\'s a'", " -l word -x -a 'a b' -d",
                          " -l flag -d 'a flag'",
                          " -l dir -x -a '(__fish_complete_directories)' -d 'a folder'",
                          "-o ff", " -l name -x -a 'x y' -d 'a name'"});
}

/* An operand that is a name is completed from a list instead of files. */
TEST(Describe, OperandsThatAreNames)
{
    const struct {
        const char *kind, *part;
    } rows[] = {
        {"bash", "_xemoe_operands_do_it='x y '\n"},
        {"zsh", "'1:operand:(x y )'\n}"},
        {"fish",
         "complete -c xemoe -f -n '__fish_seen_subcommand_from do-it' -a 'x y '\n"},
    };
    for (const auto &row : rows) {
        const std::string text =
            describe(row.kind, XM_CLI_TWO_DASHES, "do-it", add_names);
        EXPECT_NE(text.find(row.part), std::string::npos) << text;
        EXPECT_EQ(describe(row.kind).find(row.part), std::string::npos) << row.kind;
        EXPECT_EQ(text.find("_files'\n}"), std::string::npos) << text;
    }
}

TEST(Describe, AnOperandThatIsAFolder)
{
    const struct {
        const char *kind, *part;
    } rows[] = {
        {"bash", "_xemoe_operands_list='/'\n"},
        {"zsh", "'*:file:_files -/'\n}"},
        {"fish", "complete -c xemoe -f -n '__fish_seen_subcommand_from list' -a "
                 "'(__fish_complete_directories)'\n"},
    };
    for (const auto &row : rows) {
        const std::string text =
            describe(row.kind, XM_CLI_TWO_DASHES, "list", nullptr, "FOLDER");
        EXPECT_NE(text.find(row.part), std::string::npos) << text;
        EXPECT_EQ(describe(row.kind).find(row.part), std::string::npos) << row.kind;
    }
}

TEST(Describe, ACommandBehindAFlag)
{
    const char *name = "do --it";
    EXPECT_NE(describe("bash", XM_CLI_TWO_DASHES, name).find("_xemoe_options_do___it="),
              std::string::npos);
    EXPECT_NE(describe("fish", XM_CLI_TWO_DASHES, name)
                  .find("'__fish_seen_subcommand_from do; and __fish_contains_opt it'"),
              std::string::npos);
}

/* The man page lists the values of a choice, but not values that are only completed. */
TEST(Describe, ForPeopleNamesTheValuesOfAChoice)
{
    EXPECT_EQ(describe("man").find("c d"), std::string::npos);
    EXPECT_EQ(describe("reference").find("c d"), std::string::npos);
}

TEST(Describe, ForPeople)
{
    expect_parts("man", {"xemoe\\-do\\-it \\- does it", "\nFirst.\n.PP\n\\&.Second\n",
                         ".SS Of files\n.nf\ntool do\\-it \\-f x.y\n.fi\n",
                         "\n\\fB\\-f\\fR, \\fB\\-\\-file\\fR \\fIFILE\\fR\n",
                         "it's a\n\\&'file' | \\-\\e\n", "a [word] (a b)"});
    expect_parts("reference",
                 {"## do-it\n", "**Of files**\n\n    tool do-it -f x.y\n\n| option",
                  "`-f FILE`, `--file FILE` | it's a 'file' \\| -",
                  "| `-h`, `--help` | show this text |"});
}

/* OpenVINO's style with one dash: letters are long names, and help is an ordinary option. */
TEST(Describe, WithOneDash)
{
    EXPECT_NE(describe("bash", XM_CLI_ONE_DASH)
                  .find("' -f -file -ff -word -t -text -flag -name -dir '"),
              std::string::npos);
}

} // namespace
